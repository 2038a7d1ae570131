"""Sets of half-open intervals [start, end) in integer picoseconds, as pairs of arrays sorted by start.

A *merged* set holds no overlaps and no empty intervals; the set operations take and give merged sets.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


class Intervals(NamedTuple):
    start: I64
    end: I64

    @property
    def length(self) -> int:
        """Sum of lengths, ps."""
        return int((self.end - self.start).sum())


NONE = Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))


def union(start: I64, end: I64) -> Intervals:
    """The merged set of any intervals; those of length 0 vanish, touching ones join."""
    full = end > start
    if not full.all():
        start, end = start[full], end[full]
    if start.size == 0:
        return NONE
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Intervals(start[first], reach[last])


def both(a: Intervals, b: Intervals) -> Intervals:
    """The intersection of two merged sets."""
    return cut(b, a.start, a.end)[1]


def cut(a: Intervals, start: I64, end: I64) -> tuple[I64, Intervals]:
    """For many windows at once: a merged set cut to each [start, end), window after window, and the window of each piece."""
    if a.start.size == 0 or start.size == 0:
        return np.zeros(0, np.int64), NONE
    # For each window: the intervals from the first that ends after its start to the last that starts before its end.
    lo = np.searchsorted(a.end, start, side="right")
    hi = np.searchsorted(a.start, end, side="left")
    counts = np.maximum(hi - lo, 0)
    window = np.repeat(np.arange(start.size), counts)
    piece = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(lo, counts)
    return window, Intervals(np.maximum(start[window], a.start[piece]), np.minimum(end[window], a.end[piece]))


def without(a: Intervals, b: Intervals) -> Intervals:
    """What of `a` is not in `b` (merged sets)."""
    if a.start.size == 0:
        return NONE
    return both(a, gaps(b, int(a.start[0]), int(a.end[-1])))


def gaps(a: Intervals, start: int, end: int) -> Intervals:
    """The part of [start, end) that a merged set leaves free."""
    cut = clip(a, start, end)
    left = np.concatenate(([start], cut.end))
    right = np.concatenate((cut.start, [end]))
    free = right > left
    return Intervals(left[free], right[free])


def clip(a: Intervals, start: int, end: int) -> Intervals:
    """A merged set cut to [start, end)."""
    lo = int(np.searchsorted(a.end, start, side="right"))
    hi = int(np.searchsorted(a.start, end, side="left"))
    if lo >= hi:
        return NONE
    s, e = a.start[lo:hi].copy(), a.end[lo:hi].copy()
    s[0], e[-1] = max(int(s[0]), start), min(int(e[-1]), end)
    return Intervals(s, e)


def covered(a: Intervals, start: I64, end: I64) -> I64:
    """For many windows at once: how much (ps) of each [start, end) a merged set covers."""
    if a.start.size == 0:
        return np.zeros(start.size, np.int64)
    before = np.concatenate(([0], np.cumsum(a.end - a.start)))

    def upto(t: I64) -> I64:
        at = np.searchsorted(a.start, t, side="right")
        last = np.maximum(at - 1, 0)
        partial: I64 = np.where(at > 0, np.minimum(a.end[last], t) - a.start[last], 0)
        total: I64 = before[last] + np.where(at > 0, partial, 0)
        return total

    return upto(end) - upto(start)


def among(borders: I64, times: I64, side: Literal["left", "right"]) -> I64:
    """For each time how many of the ascending `borders` lie before it, or for "right" at it or before (`numpy.searchsorted`).

    Where the times ascend too, as those of a line's events, the few borders are looked for among them instead.
    """
    if times.size < borders.size or np.any(times[1:] < times[:-1]):
        return np.searchsorted(borders, times, side=side)
    first = np.searchsorted(times, borders, side="left" if side == "right" else "right")
    return np.repeat(np.arange(borders.size + 1), np.diff(first, prepend=0, append=times.size))
