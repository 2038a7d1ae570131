"""Nesting of slices on one track: depth, parent and self time.

Two rules (shared with every view but the profiler's own table, which has its own tree):
slices are ordered by start, longer first, then file order; and a slice that sticks out of its parent ends, for nesting
and self time, with the parent, so that self time is never negative.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.profile import ROOT

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
U16 = NDArray[np.uint16]


def nest(track: U32, start_ps: I64, dur_ps: I64) -> tuple[U32, U16]:
    """Parent and depth of slices sorted by (track, start, -dur).

    Returns (parent, depth): parent is the row of the innermost slice of the same track around it, or ROOT. Tracks whose
    slices nest properly take a vectorised path; one with a partial overlap, or with a length of zero, is walked with a stack.
    """
    n = track.size
    parent = np.full(n, ROOT, np.uint32)
    depth = np.zeros(n, np.uint16)
    if n == 0:
        return parent, depth
    bounds = np.concatenate(([0], np.flatnonzero(np.diff(track)) + 1, [n]))
    end = start_ps + dur_ps
    for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if b - a == 1:
            continue
        s, e = start_ps[a:b], end[a:b]
        if np.all(e[:-1] <= s[1:]):
            continue
        found = _nest_proper(s, e)
        if found is None:
            found = _nest_any(s, e)
        p, d = found
        inside = p >= 0
        parent[a:b][inside] = (p[inside] + a).astype(np.uint32)
        depth[a:b] = d
    return parent, depth


def self_times(parent: U32, start_ps: I64, dur_ps: I64) -> I64:
    """Self time (ps) of slices nested by `nest`: own length less that of the children, both cut to the parent's end."""
    cut = cut_ends(parent, start_ps, dur_ps) - start_ps
    child = parent != ROOT
    own = cut.copy()
    np.subtract.at(own, parent[child], cut[child])  # exact integers; bincount would go through float
    return own


def cut_ends(parent: U32, start_ps: I64, dur_ps: I64) -> I64:
    """End (ps) of each slice, cut to that of its parent's (cut) end."""
    end = start_ps + dur_ps
    child = np.flatnonzero(parent != ROOT)
    sticking = child[end[child] > end[parent[child]]]
    if sticking.size == 0:
        return end
    # Parents come before their children, so a cut travels down in one pass over the children in order.
    first = int(sticking[0])
    rows = child[np.searchsorted(child, first) :]
    ends = end.tolist()
    for row, above in zip(rows.tolist(), parent[rows].tolist(), strict=True):
        if ends[row] > ends[above]:
            ends[row] = ends[above]
    return np.array(ends, np.int64)


def _nest_proper(s: I64, e: I64) -> tuple[I64, U16] | None:
    """Parents and depths by counting ends; None if the slices do not nest properly. One without a length holds nothing."""
    n = s.size
    long = e > s
    ends = np.sort(e[long])
    depth = np.cumsum(long) - long - np.searchsorted(ends, s, side="right")
    if depth.min() < 0 or depth.max() > 0xFFFF:
        return None
    parent = np.full(n, -1, np.int64)
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max()) + 2))
    above = order[bounds[0] : bounds[1]]
    for level in range(1, bounds.size - 1):
        here = order[bounds[level] : bounds[level + 1]]
        above = above[long[above]]
        at = np.searchsorted(above, here) - 1
        if at.size and at[0] < 0:
            return None
        parent[here] = above[at]
        above = here
    inside = parent >= 0
    if np.any(e[inside] > e[parent[inside]]) or np.any(s[inside] >= e[parent[inside]]):
        return None
    return parent, depth.astype(np.uint16)


def _nest_any(s: I64, e: I64) -> tuple[I64, U16]:
    n = s.size
    parent = [-1] * n
    depth = [0] * n
    starts, ends = s.tolist(), e.tolist()
    stack: list[int] = []
    for i in range(n):
        start = starts[i]
        while stack and ends[stack[-1]] <= start:
            stack.pop()
        if stack:
            top = stack[-1]
            parent[i] = top
            depth[i] = min(len(stack), 0xFFFF)
            if ends[i] > ends[top]:
                ends[i] = ends[top]
        stack.append(i)
    return np.array(parent, np.int64), np.array(depth, np.uint16)
