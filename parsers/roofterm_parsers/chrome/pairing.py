"""Begin and end events to slices: an end closes the innermost open begin of its thread, whatever its name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


@dataclass(slots=True)
class Pairs:
    begin: I64
    """rows of the begins that have an end"""
    end: I64
    """rows of their ends"""
    unclosed: I64
    """rows of begins that have none"""
    stray: int
    """ends that close nothing"""


def pair(thread: I64, time: I64, order: I64, is_end: NDArray[np.bool_]) -> Pairs:
    """Match begins and ends given in one list; `order` is their order in the file. Rows are places in the list."""
    rows = np.lexsort((order, time, thread))
    step = np.where(is_end[rows], -1, 1)
    first = np.ones(rows.size, bool)
    first[1:] = thread[rows[1:]] != thread[rows[:-1]]
    starts = np.flatnonzero(first)
    sizes = np.diff(np.append(starts, rows.size))
    level = np.cumsum(step)
    level -= np.repeat(level[starts] - step[starts], sizes)  # each thread counts from 0
    floor = _running_minimum(np.minimum(level, 0), starts)
    above = np.zeros(rows.size, np.int64)
    above[1:] = floor[:-1]
    above[starts] = 0
    stray = (step < 0) & (level < above)
    level -= floor  # stray ends take nothing from the stack
    kept = np.flatnonzero(~stray)
    depth = np.where(step[kept] > 0, level[kept], level[kept] + 1)
    group = np.repeat(np.arange(starts.size), sizes)[kept]
    by_depth = kept[np.lexsort((np.arange(kept.size), depth, group))]
    depth_of = np.zeros(rows.size, np.int64)
    depth_of[kept] = depth
    group_of = np.zeros(rows.size, np.int64)
    group_of[kept] = group
    a, b = by_depth[:-1], by_depth[1:]
    matched = (step[a] > 0) & (step[b] < 0) & (depth_of[a] == depth_of[b]) & (group_of[a] == group_of[b])
    begins, ends = a[matched], b[matched]
    opened = np.ones(rows.size, bool)
    opened[begins] = False
    unclosed = np.flatnonzero(opened & (step > 0))
    return Pairs(rows[begins], rows[ends], rows[unclosed], int(stray.sum()))


def _running_minimum(values: I64, starts: I64) -> I64:
    """The smallest value so far, begun anew at each of `starts`. Values are at most 0."""
    if starts.size == 0:
        return values
    low = int(values.min()) - 1
    lift = np.repeat(np.arange(starts.size, dtype=np.int64), np.diff(np.append(starts, values.size))) * low
    return np.minimum.accumulate(values + lift) - lift
