"""Device work as the rules look at it: what of each piece runs inside the time that findings speak of, alone, and awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from roofterm.analysis.intervals import Intervals, covered
from roofterm.analysis.lookup import joined

if TYPE_CHECKING:
    from roofterm.analysis.study import Study


def pieces_of(study: Study, costed: pl.DataFrame, spans: dict[int, Intervals], critical: dict[int, Intervals]) -> pl.DataFrame:
    """Device work that runs inside `spans`, in order of device and start. `costed`: schema `costed.PIECES`; `spans` and `critical`, the
    work that a step waits for, by device.

    Columns of `work.WORK` and of `categories.FACTS`, and: track, stream, name and op_name (rows of names), item and share
    (`costed.PIECES`), dur_ps, inside_ps (of its length within the spans), exclusive_ps (of that, time in which nothing else ran
    on the device), critical_ps (that, if the step waits for it), registers, grid and block.
    """
    work, slices = study.work, study.profile.slices
    device, start, end = (work[name].to_numpy() for name in ("device", "start_ps", "end_ps"))
    inside, awaited = np.zeros(work.height, np.int64), np.zeros(work.height, np.int64)
    for row, windows in spans.items():
        mine = np.flatnonzero(device == row)
        inside[mine] = covered(windows, start[mine], end[mine])
    for row, intervals in critical.items():
        mine = np.flatnonzero(device == row)
        awaited[mine] = covered(intervals, start[mine], start[mine] + 1)
    frame = work.with_columns(dur_ps=pl.col("end_ps") - pl.col("start_ps"), inside_ps=pl.Series(inside)).with_columns(
        track=slices["track"][work["slice"]],
        name=slices["name"][work["slice"]],
        op_name=slices["name"][work["op"]],
    )
    sizes = study.profile.kernels.select("slice", "registers", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
    for known in (study.facts, costed, sizes):
        frame = joined(frame, work["slice"], known, "slice", slices.height)
    share = pl.col("inside_ps") / pl.when(pl.col("dur_ps") > 0).then("dur_ps")
    frame = frame.with_columns(exclusive_ps=(pl.col("exclusive_ps") * share).round().cast(pl.Int64).fill_null(0))
    frame = frame.with_columns(critical_ps=pl.when(pl.Series(awaited) > 0).then("exclusive_ps").otherwise(0))
    seen = (pl.col("inside_ps") > 0) | ((pl.col("dur_ps") == 0) & pl.col("step").is_not_null())
    return frame.filter(seen).sort("device", "start_ps", maintain_order=True)
