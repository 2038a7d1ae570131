"""In which step of the host a slice starts: one search for tables, selections and comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.intervals import among

OUTSIDE = -1


def host_step(start: NDArray[np.int64], source: NDArray[np.integer[Any]], windows: pl.DataFrame) -> NDArray[np.int64]:
    """For each slice, by its start (ps) and source, the row of the window in which it starts; `OUTSIDE` where it lies in none.

    `windows`: columns source, start_ps and end_ps (ps, end excluded), in any order. Of windows that overlap it is the one
    that began last, or if that has ended, the one that reaches furthest.
    """
    row = np.full(start.size, OUTSIDE, np.int64)
    for (of_source,), own in (
        windows.select("source", "start_ps", "end_ps").with_row_index("row").sort("start_ps", maintain_order=True).group_by("source")
    ):
        mine = np.flatnonzero(source == of_source)
        end = own["end_ps"].to_numpy()
        began = among(own["start_ps"].to_numpy(), start[mine], "right") - 1
        last = np.maximum(began, 0)
        furthest = np.maximum.accumulate(np.where(end == np.maximum.accumulate(end), np.arange(end.size), 0))[last]
        at = np.where(start[mine] < end[last], last, furthest)
        inside = (began >= 0) & (start[mine] < end[at])
        row[mine[inside]] = own["row"].to_numpy()[at[inside]]
    return row
