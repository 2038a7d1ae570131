"""What hiding communication costs: the same kernel in the same shape under a collective against alone."""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.intervals import Intervals, covered
from roofterm.analysis.work import WorkClass
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import Kind, Profile

OVERLAPPED_SHARE = 0.5
"""A kernel counts as overlapped if collectives cover this share of it, as alone if they cover nothing; what is between says nothing."""

ENOUGH_ALONE = 3
"""Calls alone that a comparison rests on at least."""

HIDING = pl.Schema(
    {
        "name": pl.String,
        "grid": pl.String,
        "block": pl.String,
        "shapes": pl.String,  # inputs of the op that launched it, as recorded; null: not recorded
        "calls_alone": pl.UInt32,
        "calls_overlapped": pl.UInt32,
        "mean_alone_us": pl.Float64,
        "mean_overlapped_us": pl.Float64,
        "ratio": pl.Float64,
        "cost_us": pl.Float64,  # how much longer the overlapped calls took than as many alone; below 0: they were faster
    }
)


_SAME = ("name", "grid", "block", "shapes")


def hiding(profile: Profile, work: pl.DataFrame, communication: dict[int, Intervals]) -> pl.DataFrame:
    """Compute kernels that ran under collectives and alone, by name, launch and shapes: frame of schema `HIDING`, dearest first.

    `work` is of schema `work.WORK`; `communication` the union of each device's collectives. The shapes count beside the grid,
    since persistent kernels have one grid for all of them. Each device is compared with itself: means alone are weighted by the
    calls that it overlapped, so that a slow rank does not pass for a cost of hiding.
    """
    kernels = work.filter((pl.col("kind") == Kind.KERNEL) & (pl.col("work_class") == int(WorkClass.COMPUTE)))
    if kernels.height == 0 or not communication:
        return pl.DataFrame(schema=HIDING)
    kernels = kernels.with_columns(length=pl.col("end_ps") - pl.col("start_ps"), under=_under(kernels, communication))
    launch = profile.kernels.select("slice", grid=_shape("grid"), block=_shape("block"))
    kernels = kernels.join(launch, on="slice", how="left", maintain_order="left")
    kernels = kernels.with_columns(
        name=profile.names["text"][profile.slices["name"][kernels["slice"]]], shapes=_shapes(profile, kernels["op"])
    )
    alone = pl.col("under") == 0
    overlapped = (pl.col("under") >= OVERLAPPED_SHARE * pl.col("length")) & (pl.col("under") > 0)
    length = pl.col("length")
    by_device = kernels.group_by(*_SAME, "device", maintain_order=True).agg(
        alone=alone.sum(), overlapped=overlapped.sum(), alone_ps=length.filter(alone).mean(), overlapped_ps=length.filter(overlapped).sum()
    )
    by_device = by_device.filter((pl.col("alone") >= ENOUGH_ALONE) & (pl.col("overlapped") > 0))
    expected = (pl.col("alone_ps") * pl.col("overlapped")).sum()
    table = by_device.group_by(_SAME, maintain_order=True).agg(
        calls_alone=pl.col("alone").sum(),
        calls_overlapped=pl.col("overlapped").sum(),
        mean_alone_us=expected / pl.col("overlapped").sum() / 1e6,
        mean_overlapped_us=pl.col("overlapped_ps").sum() / pl.col("overlapped").sum() / 1e6,
        cost_us=(pl.col("overlapped_ps").sum() - expected) / 1e6,
    )
    table = table.with_columns(ratio=pl.when(pl.col("mean_alone_us") > 0).then(pl.col("mean_overlapped_us") / pl.col("mean_alone_us")))
    table = table.select(pl.col(name).cast(kind) for name, kind in HIDING.items())
    return table.sort(["cost_us", "name"], descending=[True, False], maintain_order=True)


def slowdown(table: pl.DataFrame) -> float | None:
    """How many times as long the overlapped kernels of a frame of schema `HIDING` take as alone, all together; None: none known."""
    overlapped = float((table["mean_overlapped_us"] * table["calls_overlapped"]).sum())
    alone = float((table["mean_alone_us"] * table["calls_overlapped"]).sum())
    return overlapped / alone if alone > 0 else None


def _under(kernels: pl.DataFrame, communication: dict[int, Intervals]) -> pl.Series:
    """How much (ps) of each kernel collectives of its device cover."""
    start, end, device = (kernels[name].to_numpy() for name in ("start_ps", "end_ps", "device"))
    under = np.zeros(start.size, np.int64)
    for number in occurring(device):
        mine = device == number
        if int(number) in communication:
            under[mine] = covered(communication[int(number)], start[mine], end[mine])
    return pl.Series(under)


def _shapes(profile: Profile, ops: pl.Series) -> pl.Series:
    """Recorded input shapes of ops, null where there are none."""
    signed = profile.ops.select(op="slice", signature="signature").unique("op", keep="first")
    signature = ops.alias("op").to_frame().join(signed, on="op", how="left", maintain_order="left")["signature"]
    return profile.signatures["dims"][signature]


def _shape(prefix: str) -> pl.Expr:
    return pl.concat_str([pl.col(f"{prefix}_{axis}").cast(pl.String) for axis in "xyz"], separator=",")
