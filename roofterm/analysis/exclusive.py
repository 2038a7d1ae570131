"""Time in which a piece of device work had its device to itself: only that can be won where it gets faster."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.occurring import occurring

I64 = NDArray[np.int64]


def exclusive(work: pl.DataFrame) -> pl.Series:
    """Time (ps) of each piece in which no other piece ran on its device."""
    start, end = work["start_ps"].to_numpy(), work["end_ps"].to_numpy()
    device = work["device"].to_numpy()
    if start.size and np.all(device == device[0]) and np.all(end > start):
        return pl.Series("exclusive_ps", _alone(start, end))
    alone_ps = np.zeros(start.size, np.int64)
    for number in occurring(device):
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
        inner = np.flatnonzero(~outer)
        around = np.flatnonzero(outer)[inner - np.arange(1, inner.size + 1)]
        first, last = start[inner], end[inner]
        if np.all(last <= end[around]):  # what lies inside another is never alone, and covers it once
            alone_ps = end - start
            begun = np.concatenate((first[:1], np.maximum.accumulate(last)[:-1]))
            np.subtract.at(alone_ps, around, np.maximum(last - np.maximum(first, begun), 0))
            alone_ps[inner] = 0
            return alone_ps
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
