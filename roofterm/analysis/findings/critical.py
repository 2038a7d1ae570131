"""Which of a device's work the step waits for.

Where the host launches the next work only after the device has run dry, faster kernels would lengthen the idle time after
them and win nothing: the host is the bound there. Work counts as critical if the idle time that ends its run is not the
host's doing (a kernel gap, the end of the window), or if the host was waiting for the device just then.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.intervals import Intervals

SKEW_PS = 20_000_000
"""Clocks of host and device agree to so much (20 us): a copy may end after the call that waits for it has returned."""


def critical_work(busy: Intervals, gaps: pl.DataFrame, waits: pl.DataFrame) -> Intervals:
    """Those intervals of a device's `busy` time for which the step waits.

    `gaps` (schema `gaps.GAPS`) and `waits` (schema `waits.WAITS`) are that device's.
    """
    gaps = gaps.sort("start_ps")
    tail = gaps["after"].is_null() & (gaps["start_ps"] == gaps["start_ps"].max()) if gaps.height else pl.Series([], dtype=pl.Boolean)
    blocking = gaps.filter((pl.col("host_wait_ps").fill_null(0) > 0) | tail)["start_ps"].to_numpy()
    if blocking.size == 0:
        return busy
    waiting = _waiting(blocking, waits)
    following = np.searchsorted(blocking, busy.end, side="left")
    known = following < blocking.size
    at = np.minimum(following, blocking.size - 1)
    critical = ~known | waiting[at]
    return Intervals(busy.start[critical], busy.end[critical])


def _waiting(at: np.ndarray[tuple[int], np.dtype[np.int64]], waits: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether the host was in a call that waits for the device at some times."""
    waits = waits.sort("start_ps")
    if waits.height == 0:
        return np.zeros(at.size, np.bool_)
    reach = np.maximum.accumulate(waits["end_ps"].to_numpy())
    last = np.searchsorted(waits["start_ps"].to_numpy(), at, side="left") - 1
    return (last >= 0) & (reach[np.maximum(last, 0)] >= at - SKEW_PS)
