"""Nesting of slices on one track: depth, parent and self time.

Two rules (shared with every view but the profiler's own table, which has its own tree):
slices are ordered by start, longer first, then file order; and a slice that sticks out of its parent ends, for nesting
and self time, with the parent, so that self time is never negative.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.profile import ROOT

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
U16 = NDArray[np.uint16]

DEEPEST = 0xFFFF
_NONE = -1
BLOCK_ROWS = 1 << 16
"""Slices whose times are looked at together, in the processor's second cache."""
FEW_ROWS = 8
"""Rows looked at first where most stretches are short: plain numbers then take less time than arrays."""
MOST_LEVELS, SHALLOW = 8, 2
"""Deeper tracks, and those with more than half of their slices below this depth, are nested by their ends: that costs the same for
every depth."""


def nest(track: U32, start_ps: I64, dur_ps: I64) -> tuple[U32, U16]:
    """Parent and depth of slices sorted by (track, start, -dur).

    Returns (parent, depth): parent is the row of the innermost slice of the same track around it, or ROOT. Depths and
    parents come from counting ends, which is right as long as slices nest properly; only the stretches where one sticks out
    of its parent are walked with a stack.
    """
    n = track.size
    parent = np.full(n, ROOT, np.uint32)
    depth = np.zeros(n, np.uint16)
    if n == 0:
        return parent, depth
    bounds = [0, *(np.flatnonzero(track[1:] != track[:-1]) + 1).tolist(), n]
    for a, b in pairwise(bounds):
        above, depth[a:b] = nest_track(start_ps[a:b], dur_ps[a:b])
        np.add(above, np.uint32(a), out=parent[a:b], where=above != ROOT)
    return parent, depth


def nest_track(start_ps: I64, dur_ps: I64) -> tuple[U32, U16]:
    """Parent (row, or ROOT) and depth of the slices of one track, sorted by (start, -dur); as `nest`."""
    n = start_ps.size
    parent, depth = np.full(n, ROOT, np.uint32), np.zeros(n, np.uint16)
    end = start_ps + dur_ps
    if not np.all(end[:-1] <= start_ps[1:]):
        above, level = _nested(start_ps, end)
        np.copyto(parent, above, where=above != _NONE, casting="unsafe")
        np.minimum(level, DEEPEST, out=depth, casting="unsafe")
    return parent, depth


def self_times(parent: U32, start_ps: I64, dur_ps: I64) -> I64:
    """Self time (ps) of slices nested by `nest`: own length less that of the children, both cut to the parent's end."""
    own = dur_ps.copy()
    for a in range(0, parent.size, BLOCK_ROWS):
        rows = slice(a, a + BLOCK_ROWS)
        child = np.flatnonzero(parent[rows] != ROOT)
        around, start, dur = parent[rows][child], start_ps[rows][child], dur_ps[rows][child]
        if np.any(start + dur > start_ps[around] + dur_ps[around]):
            return _own_times_cut(parent, start_ps, dur_ps)
        np.subtract.at(own, around, dur)  # exact integers; bincount would go through float
    return own


def _own_times_cut(parent: U32, start_ps: I64, dur_ps: I64) -> I64:
    """As `self_times`, where slices stick out."""
    cut = cut_ends(parent, start_ps, dur_ps) - start_ps
    child = parent != ROOT
    own = cut.copy()
    np.subtract.at(own, parent[child], cut[child])
    return own


def cut_ends(parent: U32, start_ps: I64, dur_ps: I64) -> I64:
    """End (ps) of each slice, cut to that of its parent's (cut) end."""
    end = start_ps + dur_ps
    child = np.flatnonzero(parent != ROOT)
    around = parent[child]
    sticking = np.flatnonzero(end[child] > end[around])
    while sticking.size:  # a cut travels down, one level a turn
        end[child[sticking]] = end[around[sticking]]
        sticking = np.flatnonzero(end[child] > end[around])
    return end


def _nested(start: I64, end: I64) -> tuple[I64, I64]:
    """Parents (rows, or -1) and depths of the slices of one track."""
    found = _by_levels(start, end)
    return _by_ends(start, end) if found is None else found


def _by_levels(start: I64, end: I64) -> tuple[I64, I64] | None:
    """As `_nested`, level by level from the outermost in, each pass over what is left; None where it is deep.

    A slice is the outermost of those left if all before it have ended where it starts; the others lie in the last such one, and end
    with it.
    """
    above, level = np.full(start.size, _NONE, np.int64), np.zeros(start.size, np.int64)
    left: I64 | None = None
    written = end
    for depth in range(MOST_LEVELS):
        starts, ends = (start, end) if left is None else (start[left], end[left])
        outer = np.ones(starts.size, bool)
        np.greater_equal(starts[1:], np.maximum.accumulate(ends)[:-1], out=outer[1:])
        inside = np.flatnonzero(~outer)
        if left is not None:
            level[left] = depth
        if inside.size == 0:
            return above, level
        if depth == SHALLOW and inside.size > start.size // 2:
            return None
        around = _last(outer, inside)
        sticking = ends[inside] > ends[around]
        if sticking.any():
            _find_outer(starts, ends, outer, around[sticking])
            inside = np.flatnonzero(~outer)
            around = _last(outer, inside)
            end = end.copy() if end is written else end
            end[inside if left is None else left[inside]] = np.minimum(ends[inside], ends[around])
        if left is not None:
            inside, around = left[inside], left[around]
        above[inside] = around
        left = inside
    return None


def _last(outer: NDArray[np.bool_], rows: I64) -> I64:
    """For each of these rows the last one up to it that is outer."""
    last: I64 = np.flatnonzero(outer)[np.cumsum(outer)[rows] - 1]
    return last


def _find_outer(start: I64, end: I64, outer: NDArray[np.bool_], stuck: I64) -> None:
    """Tell anew which slices are outer, from those that others stick out of to where all of them have ended.

    What sticks out ends with what it lies in: so the next is the first that starts where that has ended.
    """
    harmed = np.zeros(outer.size, bool)
    harmed[stuck] = True
    rows = np.flatnonzero(harmed[_last(outer, np.arange(outer.size))])
    start, end = start[rows], end[rows]
    following = np.maximum(np.searchsorted(start, end), np.arange(1, rows.size + 1)).tolist()
    found, at = [], 0
    while at < rows.size:
        found.append(at)
        at = following[at]
    outer[rows] = False
    outer[rows[found]] = True


def _by_ends(start: I64, end: I64) -> tuple[I64, I64]:
    """As `_nested`, by counting the ends before each start; the stretches where a slice sticks out are walked."""
    level = _open_before(start, end)
    above = _parents(level, end > start)
    wrong = _sticking_out(start, end, above)
    if wrong.size:
        cut = end.copy()
        for a, b in _stretches(start, end, level, above, wrong):
            _walk(start, cut, above, level, a, b)
    return above, level


def _open_before(start: I64, end: I64) -> I64:
    """How many earlier slices have not ended where each starts. One without a length holds nothing."""
    long = end > start
    ended = np.searchsorted(np.sort(end[long]), start, side="right")
    return np.cumsum(long) - long - ended


def _parents(level: I64, long: NDArray[np.bool_]) -> I64:
    """The last earlier slice of some length that is one level up."""
    parent = np.full(level.size, _NONE, np.int64)
    deepest = int(level.max())
    order = np.argsort(level.astype(np.uint16) if deepest <= DEEPEST else level, kind="stable")
    bounds = np.searchsorted(level[order], np.arange(deepest + 2))
    above = order[bounds[0] : bounds[1]]
    for depth in range(1, deepest + 1):
        here = order[bounds[depth] : bounds[depth + 1]]
        above = above[long[above]]
        if above.size:
            place = np.searchsorted(above, here) - 1
            parent[here] = np.where(place >= 0, above[place], _NONE)
        above = here
    return parent


def _sticking_out(start: I64, end: I64, parent: I64) -> I64:
    """Slices that do not lie within their parents, or have none where they should."""
    inside = np.flatnonzero(parent != _NONE)
    around = parent[inside]
    return inside[(end[inside] > end[around]) | (start[inside] >= end[around])]


def _stretches(start: I64, end: I64, level: I64, parent: I64, wrong: I64) -> list[tuple[int, int]]:
    """Rows around each fault: from the slice that is stuck out of to where all of them have ended, as written.

    Behind that nothing of the stretch is counted as open, so that the depths counted there are right, and so are the
    parents, which lie no deeper than the stretch begins.
    """
    found: list[tuple[int, int]] = []
    for row in wrong.tolist():
        if found and row < found[-1][1]:
            continue
        first = int(parent[row])
        while found and found[-1][1] > first:
            first = min(first, found.pop()[0])
        found.append((first, _all_ended(start, end, first, row + 1)))
    return found


def _all_ended(start: I64, end: I64, first: int, after: int) -> int:
    """The first row from `after` on that starts when all from `first` to before it have ended."""
    last = int(end[first:after].max())
    ahead = FEW_ROWS
    while True:
        rows = slice(after, after + ahead)
        for begin, stop in zip(start[rows].tolist(), end[rows].tolist(), strict=True):
            if begin >= last:
                return after
            last = max(last, stop)
            after += 1
        if after >= start.size:
            return after
        ahead *= 2


def _walk(start: I64, end: I64, parent: I64, level: I64, a: int, b: int) -> None:
    """Nest rows a to b with a stack, below the parent that row a has; cuts the ends of those that stick out."""
    starts, ends = start[a:b].tolist(), end[a:b].tolist()
    parents, levels = [_NONE] * (b - a), [0] * (b - a)
    top, base = int(parent[a]), int(level[a])
    stack: list[int] = []
    for i, begin in enumerate(starts):
        while stack and ends[stack[-1]] <= begin:
            stack.pop()
        while not stack and top != _NONE and end[top] <= begin:
            base = int(level[top])
            top = int(parent[top])
        parents[i] = stack[-1] + a if stack else top
        levels[i] = base + len(stack)
        limit = ends[stack[-1]] if stack else int(end[top]) if top != _NONE else ends[i]
        if ends[i] > limit:
            ends[i] = limit
        stack.append(i)
    parent[a:b] = parents
    level[a:b] = levels
    end[a:b] = ends
