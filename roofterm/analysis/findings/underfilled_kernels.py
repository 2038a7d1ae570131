"""Do long kernels leave much of the device without work: too few blocks, or a nearly empty last wave?"""

from __future__ import annotations

import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding
from roofterm_parsers.profile import Kind

LEAST_PCT = 3.0
SHORTEST_PS = 20_000_000
FEW_WAVES = 3.0


@rule(
    "underfilled-kernels",
    question="Do kernels fill the device, or is the last wave nearly empty?",
    definition="""
    Kernels of at least 20 us (collectives apart) with fewer blocks than the device has units, or, where registers tell how
    many blocks fit on a unit, with one to three waves of which the last is partly empty. At stake is the empty share of the
    time in which they run alone and the step waits for them: 1 - blocks / units, or the tail's share of the slots. From 3 %
    of the step. Low occupancy alone is no fault: GEMMs need few warps.
    """,
    source="Nsight Compute rules LaunchConfiguration (small grid, tail effect) and AchievedOccupancy",
    of_device=True,
)
def underfilled_kernels(e: Evidence) -> Finding | None:
    rows = _with_waves(e)
    empty = (
        pl.when(pl.col("blocks") < pl.col("units"))
        .then(1.0 - pl.col("blocks") / pl.col("units"))
        .when((pl.col("waves") > 1.0) & (pl.col("waves") <= FEW_WAVES))
        .then(pl.col("tail_pct") / 100.0)
    )
    rows = rows.with_columns(empty=empty).drop_nulls("empty").filter(pl.col("empty") > 0)
    rows = rows.with_columns(won_ps=pl.col("critical_ps") * pl.col("empty"))
    stake = float(rows["won_ps"].sum())
    if rows.height == 0 or e.pct(stake) < LEAST_PCT:
        return None
    worst = rows.group_by("name", "blocks").agg(
        pl.len(), pl.col("inside_ps").sum(), pl.col("won_ps").sum(), pl.col("units", "occupancy_pct", "waves").first()
    )
    top = worst.sort("won_ps", "name", descending=[True, False]).row(0, named=True)
    small = rows.filter(pl.col("blocks") < pl.col("units"))
    evidence = {
        "kernels": rows.height / e.count,
        "kernels_us": e.mean_us(int(rows["inside_ps"].sum())),
        "small_grids_us": e.mean_us(int(small["inside_ps"].sum())),
        "worst": e.text(top["name"]),
        "worst_us": e.mean_us(top["inside_ps"]),
        "worst_blocks": top["blocks"],
        "units": top["units"],
        "worst_waves": top["waves"],
        "worst_occupancy_pct": top["occupancy_pct"],
    }
    title = f"Underfilled kernels: too few blocks for {top['units']} units, most of all {e.short(top['name'])} with {top['blocks']:,}"
    advice = (
        "Give them more parallel work: larger batch or sequence, split-K or stream-K for products, split over the keys for attention "
        "in decode."
    )
    return e.finding(title, stake, "compute", evidence, advice, view="ops", filter="dur>20us !cat:communication")


def _with_waves(e: Evidence) -> pl.DataFrame:
    """Long kernels with known grids: blocks, units, waves and tail_pct (null: what fits on a unit is not known), occupancy_pct."""
    rows = e.pieces.filter(
        (pl.col("kind") == int(Kind.KERNEL))
        & (pl.col("dur_ps") >= SHORTEST_PS)
        & (pl.col("category") != int(Category.COMMUNICATION))
        & pl.col("grid_x").is_not_null()
    )
    devices = e.profile.devices.with_row_index("device").select(pl.col("device").cast(pl.UInt16), "units")
    rows = rows.join(devices, on="device", how="left", maintain_order="left").filter(pl.col("units") > 0)
    fits = e.study.occupancy.select("slice", "waves", "tail_pct", "occupancy_pct")
    rows = rows.join(fits, on="slice", how="left", maintain_order="left")
    blocks = pl.col("grid_x").cast(pl.Int64) * pl.col("grid_y") * pl.col("grid_z")
    told = pl.col("registers").is_not_null()  # without registers what fits is only an upper limit
    return rows.with_columns(blocks=blocks, waves=pl.when(told).then("waves"), tail_pct=pl.when(told).then("tail_pct")).filter(
        pl.col("blocks") > 0
    )
