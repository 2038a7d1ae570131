"""Which kernels are one execution of an HLO instruction.

An instruction may launch several kernels (im2col and GEMM of a convolution, five of a fused attention's backward). Its cost
is that of all of them together, so each kernel gets its share by time; counting it for every kernel, as XProf does, would
count it several times.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.xplane.wire import I64, U32


def shared_costs(slices: pl.DataFrame, kernels: pl.DataFrame, hlo: pl.DataFrame, hlo_ops: pl.DataFrame) -> pl.DataFrame:
    """Costs of the kernels that are not alone in executing their instruction: slice, flops, model_flops, bytes."""
    costed = hlo_ops.with_row_index("op").filter(pl.col("flops_from") == "hlo")
    events = kernels.select("slice").join(hlo, on="slice").join(costed.select("op"), on="op", how="semi").sort("slice")
    rows = events["slice"].to_numpy().astype(np.int64)
    op = events["op"].to_numpy()
    track, name, dur = (slices[column].to_numpy()[rows] for column in ("track", "name", "dur_ps"))
    execution = _executions(op, track, name)
    if execution.size == 0:
        return pl.DataFrame(schema={"slice": pl.UInt32, **dict.fromkeys(_COSTS, pl.Float64)})
    together = np.bincount(execution)
    share = _shares(execution, dur)
    shared = np.flatnonzero(together[execution] > 1)
    frame = pl.DataFrame({"slice": rows[shared].astype(np.uint32), "op": op[shared], "share": share[shared]})
    costs = frame.join(costed.select("op", *_COSTS), on="op", how="left", maintain_order="left")
    return costs.select("slice", *[pl.col(column) * pl.col("share") for column in _COSTS])


_COSTS = ("flops", "model_flops", "bytes")


def _executions(op: U32, track: U32, name: U32) -> I64:
    """Number of the execution that each kernel belongs to; kernels are in order of track and time."""
    if op.size == 0:
        return np.empty(0, np.int64)
    first = np.ones(op.size, bool)
    first[1:] = (op[1:] != op[:-1]) | (track[1:] != track[:-1])
    renamed = np.zeros(op.size, bool)
    renamed[1:] = ~first[1:] & (name[1:] != name[:-1])
    begins = np.flatnonzero(first)
    ends = np.append(begins[1:], op.size)
    mixed = np.add.reduceat(renamed, begins) > 0
    # Kernels of one name after another are executions of their own; where names change, they are one until they repeat.
    starts = first | ~np.repeat(mixed, ends - begins)
    periods: dict[bytes, int] = {}
    for a, b in zip(begins[mixed].tolist(), ends[mixed].tolist(), strict=True):
        run = name[a:b]
        key = run.tobytes()
        period = periods.get(key)
        if period is None:
            period = periods[key] = _period(run)
        starts[a:b:period] = True
    return np.cumsum(starts) - 1


def _period(run: U32) -> int:
    """The shortest length after which the names of a run repeat to its end; the whole run if they do not."""
    n = int(run.size)
    for period in range(2, n // 2 + 1):
        if n % period == 0 and np.array_equal(run[period:], run[:-period]):
            return period
    return n


def _shares(execution: I64, dur: I64) -> NDArray[np.float64]:
    """Share of each kernel in its execution's time; equal shares where none has a length."""
    total = np.bincount(execution, weights=dur)[execution]
    count = np.bincount(execution)[execution]
    return np.where(total > 0, dur / np.maximum(total, 1), 1 / count)
