"""Overlapping and nested slices as disjoint pieces: at each moment the slice that began last, which is the innermost one."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


def disjoint(start_ps: I64, end_ps: I64, parent: I64 | None = None) -> tuple[I64, I64, I64]:
    """Pieces (start, end, row of the slice) in order of time, that together cover exactly the union of the slices.

    Slices are sorted by start, longer first. `parent` (rows, -1 for none; as `roofterm_parsers.nesting.nest` gives them)
    spares proper nests a walk. A slice with a length of zero keeps a piece with a length of zero.
    """
    rows = np.arange(start_ps.size)
    if start_ps.size == 0:
        return start_ps, end_ps, rows
    latest = np.maximum.accumulate(end_ps)
    apart = latest[:-1] <= start_ps[1:]
    if apart.all():
        return start_ps, end_ps, rows
    cluster = np.concatenate(([0], np.cumsum(apart)))
    odd = _odd_clusters(start_ps, end_ps, parent, cluster)
    walked = odd[cluster]
    parts = []
    if not walked.all():
        kept = np.flatnonzero(~walked)
        inner = np.arange(kept.size) if parent is None else _renumbered(parent, kept)
        a, b, of = _nested(start_ps[kept], end_ps[kept], inner) if parent is not None else (start_ps[kept], end_ps[kept], inner)
        parts.append((a, b, kept[of]))
    if walked.any():
        rest = np.flatnonzero(walked)
        a, b, of = _walk(start_ps[rest], end_ps[rest])
        parts.append((a, b, rest[of]))
    if len(parts) == 1:
        return parts[0]
    first, last, of = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(first, kind="stable")  # parts are of different clusters: equal starts only within one part
    return first[order], last[order], of[order]


def union(start_ps: I64, end_ps: I64) -> tuple[I64, I64]:
    """The union of intervals sorted by start: starts and ends of its parts, touching ones joined, empty ones dropped."""
    real = end_ps > start_ps
    start_ps, end_ps = start_ps[real], end_ps[real]
    if start_ps.size == 0:
        return start_ps, end_ps
    latest = np.maximum.accumulate(end_ps)
    first = np.concatenate(([True], latest[:-1] < start_ps[1:]))
    last = np.concatenate((first[1:], [True]))
    return start_ps[first], latest[last]


def _odd_clusters(start_ps: I64, end_ps: I64, parent: I64 | None, cluster: I64) -> NDArray[np.bool_]:
    """Clusters of touching slices that only a walk resolves: partial overlaps, or any overlap where parents are unknown."""
    odd = np.zeros(int(cluster[-1]) + 1, np.bool_)
    if parent is None:
        odd[cluster[1:][cluster[1:] == cluster[:-1]]] = True
        return odd
    inside = np.flatnonzero(parent >= 0)
    odd[cluster[inside[end_ps[inside] > end_ps[parent[inside]]]]] = True
    # A slice that begins before the one ahead of it ended must lie in some other.
    orphan = np.flatnonzero((parent[1:] < 0) & (cluster[1:] == cluster[:-1])) + 1
    odd[cluster[orphan]] = True
    return odd


def _renumbered(parent: I64, kept: I64) -> I64:
    place = np.full(parent.size + 1, -1, np.int64)
    place[kept] = np.arange(kept.size)
    return place[parent[kept]]  # parent -1 reads the last place, which is -1


def _nested(start_ps: I64, end_ps: I64, parent: I64) -> tuple[I64, I64, I64]:
    """Pieces of properly nested slices: after each boundary the slice that began, or the parent of the one that ended."""
    rows = np.arange(start_ps.size)
    empty = end_ps == start_ps
    ends = rows[~empty][::-1]  # at the same moment inner ends come before outer ones, and all of them before starts
    twice = np.repeat(rows, np.where(empty, 2, 1))  # an empty slice begins and ends before the next one begins
    closing = np.concatenate(([False], twice[1:] == twice[:-1]))
    time = np.concatenate((end_ps[ends], start_ps[twice]))
    active = np.concatenate((parent[ends], np.where(closing, parent[twice], twice)))
    opened_empty = np.concatenate((np.zeros(ends.size, np.bool_), empty[twice] & ~closing))
    order = np.argsort(time, kind="stable")
    time, active, opened_empty = time[order], active[order], opened_empty[order]
    until = np.concatenate((time[1:], time[-1:]))
    piece = (active >= 0) & ((until > time) | opened_empty)
    return time[piece], until[piece], active[piece]


def _walk(start_ps: I64, end_ps: I64) -> tuple[I64, I64, I64]:
    """Pieces of slices that overlap in any way."""
    starts, ends = start_ps.tolist(), end_ps.tolist()
    found: list[tuple[int, int, int]] = []
    running: list[int] = []  # heap of negative rows: the one that began last is on top
    now = starts[0]
    for row, begin in enumerate([*starts, max(ends) + 1]):
        while running and now < begin:
            top = -running[0]
            if ends[top] <= now:
                heappop(running)
                continue
            until = min(ends[top], begin)
            found.append((now, until, top))
            now = until
        now = begin
        if row == len(starts):
            break
        if ends[row] == begin:
            found.append((begin, begin, row))
        else:
            heappush(running, -row)
    table = np.array(found, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]
