"""Time in which a piece of device work had its device to itself: only that can be won where it gets faster."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

I64 = NDArray[np.int64]


def exclusive(work: pl.DataFrame) -> pl.Series:
    """Time (ps) of each piece in which no other piece ran on its device."""
    start, end = work["start_ps"].to_numpy(), work["end_ps"].to_numpy()
    device = work["device"].to_numpy()
    alone_ps = np.zeros(start.size, np.int64)
    for number in np.unique(device):
        rows = np.flatnonzero((device == number) & (end > start))
        if rows.size == 0:
            continue
        alone_ps[rows] = _alone(start[rows], end[rows])
    return pl.Series("exclusive_ps", alone_ps)


def _alone(start: I64, end: I64) -> I64:
    """Time (ps) of each interval, all of some length, that no other one covers."""
    if np.all(start[1:] >= start[:-1]):
        outer = np.ones(start.size, np.bool_)
        reach = np.maximum.accumulate(end)
        np.greater_equal(start[1:], reach[:-1], out=outer[1:])
        around = np.cumsum(outer) - 1
        if np.all(end <= end[outer][around]):  # what lies inside another is never alone, and covers it once
            fresh = np.where(outer, end - start, 0)
            inner = np.flatnonzero(~outer)
            if inner.size:
                first, last = start[inner], end[inner]
                begun = np.concatenate((first[:1], np.maximum.accumulate(last)[:-1]))
                covered = np.maximum(last - np.maximum(first, begun), 0)
                np.subtract.at(fresh, np.flatnonzero(outer)[around[inner]], covered)
            return fresh
    times = np.concatenate((start, end))
    change = np.concatenate((np.ones(start.size, np.int64), -np.ones(start.size, np.int64)))
    rows = np.arange(start.size)
    which = np.concatenate((rows, rows)) * change
    order = np.argsort(times, kind="stable")
    times = times[order]
    running, sum_of_rows = np.cumsum(change[order])[:-1], np.cumsum(which[order])[:-1]
    length = np.diff(times)
    alone = (running == 1) & (length > 0)
    alone_ps = np.zeros(start.size, np.int64)
    np.add.at(alone_ps, sum_of_rows[alone], length[alone])
    return alone_ps
