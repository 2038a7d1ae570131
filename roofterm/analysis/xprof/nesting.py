"""Self times by XProf's rule: an event is another's child if it lies inside it altogether; one that sticks out is no child."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]


def self_ps(start: I64, dur: I64) -> I64:
    """Self times (ps) of a line's events, in its order: length less that of the direct children, who come after their parent.

    Level by level from the outermost in, which is right where events come by start, longer first, and none sticks out of the
    one around it. The stretches where that is not so are walked with a stack, as XProf walks them all.
    """
    end = start + dur
    own = dur.copy()
    if not (start[1:] < end[:-1]).any():
        return own
    outer = _begins_free(start, end)
    run = np.cumsum(outer) - 1
    odd = np.zeros(int(run[-1]) + 1, bool)
    unsorted = (start[1:] < start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] > end[:-1]))
    odd[run[1:][unsorted & ~outer[1:]]] = True
    left = np.flatnonzero(~outer)
    around = np.flatnonzero(outer)[run[left]]
    while left.size:
        odd[run[left[end[left] > end[around]]]] = True
        if odd.any():
            even = ~odd[run[left]]
            left, around = left[even], around[even]
        direct = _begins_free(start[left], end[left])
        children = left[direct]
        _subtract(own, around[direct], dur[children])
        around = children[np.cumsum(direct) - 1][~direct]
        left = left[~direct]
    if odd.any():
        bounds = np.append(np.flatnonzero(outer), start.size)
        for a, b in zip(bounds[:-1][odd].tolist(), bounds[1:][odd].tolist(), strict=True):
            own[a:b] = _stack(start[a:b].tolist(), end[a:b].tolist())
    return own


def _begins_free(start: I64, end: I64) -> Bools:
    """Which events begin when all before them have ended."""
    free = np.ones(start.size, bool)
    np.greater_equal(start[1:], np.maximum.accumulate(end)[:-1], out=free[1:])
    return free


def _subtract(own: I64, parent: I64, dur: I64) -> None:
    """Take each child's length off its parent's; children of one parent are neighbours."""
    if parent.size:
        first = np.flatnonzero(np.append(True, parent[1:] != parent[:-1]))
        own[parent[first]] -= np.add.reduceat(dur, first)


def _stack(starts: list[int], ends: list[int]) -> list[int]:
    own = [end - start for start, end in zip(starts, ends, strict=True)]
    lengths = list(own)
    above: list[int] = []
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        while above and not (starts[above[-1]] <= start and end <= ends[above[-1]]):
            above.pop()
        if above:
            own[above[-1]] -= lengths[i]
        above.append(i)
    return own
