"""Costs of compiled programs (XLA): what the compiler counted for each instruction, once for each time it ran."""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.categories.hlo import CONTAINERS
from roofterm.analysis.lookup import ABSENT, rows_among, taken
from roofterm_parsers.profile import Kind, Profile

_MEMORIES = ("vmem_read", "vmem_write", "cmem_read", "cmem_write")

HLO_COSTS = pl.Schema(
    {
        "hlo_cost": pl.UInt32(),
        "hlo_flops": pl.Float64(),
        "hlo_model_flops": pl.Float64(),
        "hlo_hbm_bytes": pl.Float64(),
        **{f"{memory}_bytes": pl.Float64() for memory in _MEMORIES},
        "hlo_from": pl.String(),
    }
)


def hlo_items(profile: Profile, pieces: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pieces with columns hlo, hlo_instance and hlo_cost, and the costs keyed by hlo_cost (schema `HLO_COSTS`).

    An instruction that launches several kernels counts once: within one run of its program it was executed as often as its
    rarest kernel ran, and the others fall on these executions in order. Containers (while, call) repeat the costs of what
    they hold, and the start of an asynchronous op those of its end: they have none.
    """
    ops = profile.hlo_ops
    pieces = _with_executions(profile, pieces.with_columns(hlo=hlo_of(profile, pieces["slice"])))
    category = ops["category"].str.to_lowercase()
    void = category.is_in(list(CONTAINERS)).fill_null(False) | category.str.ends_with("-start").fill_null(False)
    # Where the compiler breaks bytes down by memory, those of HBM are their own; else all are taken as HBM's (XProf).
    broken_down = pl.any_horizontal(pl.col(f"{memory}_bytes").is_not_null() for memory in ("hbm_read", "hbm_write", *_MEMORIES))
    hbm = pl.sum_horizontal("hbm_read_bytes", "hbm_write_bytes")
    costs = ops.with_row_index("hlo_cost").filter(~void)
    costs = costs.select(
        "hlo_cost",
        hlo_flops="flops",
        hlo_model_flops=pl.coalesce("model_flops", "flops"),
        hlo_hbm_bytes=pl.when(broken_down).then(hbm).otherwise("bytes"),
        **{f"{memory}_bytes": pl.col(f"{memory}_bytes") for memory in _MEMORIES},
        hlo_from=pl.when(pl.col("flops_from") == "trace").then(pl.lit("trace")).otherwise(pl.lit("hlo")),
    )
    return pieces, costs.cast(HLO_COSTS)


def hlo_of(profile: Profile, slices: pl.Series) -> pl.Series:
    """Row of `hlo_ops` of each slice; null where none is known."""
    return taken(profile.hlo["op"], rows_among(profile.hlo["slice"], slices, profile.slices.height))


def on_device_clock(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    """Work with the times that the device's own clock gave, where the file has them beside those aligned with the host.

    Rates and bounds hold for the device's clock (XProf takes it too); windows of steps are the host's.
    """
    clock = profile.device_clock
    if clock.height == 0:
        return work
    rows = rows_among(clock["slice"], work["slice"], profile.slices.height)
    told = rows != ABSENT
    start, end, own = (work[column].to_numpy() for column in ("start_ps", "end_ps", "own_ps"))
    length = end - start
    if told.all():
        among = slice(int(rows[0]), int(rows[-1]) + 1) if rows.size and np.all(np.diff(rows) == 1) else rows
        begin, ticks = clock["start_ps"].to_numpy()[among], clock["dur_ps"].to_numpy()[among]
    else:
        begin = np.where(told, clock["start_ps"].to_numpy()[rows], start)
        ticks = np.where(told, clock["dur_ps"].to_numpy()[rows], length)
    own = np.where((own == length) & told, ticks, own)
    return work.with_columns(pl.Series("start_ps", begin), pl.Series("end_ps", begin + ticks), pl.Series("own_ps", own))


def _with_executions(profile: Profile, pieces: pl.DataFrame) -> pl.DataFrame:
    """Pieces with hlo_instance, the number of the execution of an instruction that each belongs to, and hlo_cost.

    Where all kernels of an instruction have one name, each is an execution.
    """
    own = pl.when(pl.col("hlo").is_not_null()).then(pl.int_range(pl.len(), dtype=pl.UInt32))
    pieces = pieces.with_columns(hlo_instance=own, hlo_cost="hlo")
    names = pieces.lazy().select("hlo", "kernel_name").drop_nulls("hlo").unique().collect()
    several = names.filter(pl.col("hlo").is_duplicated())["hlo"].unique()
    if several.is_empty():
        return pieces
    run = ["device", "hlo", "run"]
    mine = pieces.filter(pl.col("hlo").is_in(several.implode()))
    mine = mine.with_columns(run=_program_runs(profile, mine)).sort("start_ps", maintain_order=True)
    counts = mine.group_by(*run, "kernel_name").agg(count=pl.len())
    executions = counts.group_by(run).agg(executions=pl.col("count").min())
    mine = mine.with_columns(ordinal=pl.int_range(pl.len()).over(*run, "kernel_name"))
    mine = mine.join(counts, on=[*run, "kernel_name"], how="left", nulls_equal=True).join(executions, on=run, how="left", nulls_equal=True)
    mine = mine.with_columns(execution=pl.col("ordinal") * pl.col("executions") // pl.col("count"))
    together = pl.struct(*run, "execution").rank("dense").cast(pl.UInt32) + pieces.height
    pieces = pieces.join(mine.select("slice", together=together), on="slice", how="left", maintain_order="left")
    return pieces.with_columns(hlo_instance=pl.coalesce("together", "hlo_instance")).drop("together")


def _program_runs(profile: Profile, pieces: pl.DataFrame) -> pl.Series:
    """Slice of the program run (module) on the piece's device that each piece starts in; null where the file shows none."""
    modules = profile.slices.with_row_index("module").filter(pl.col("kind") == int(Kind.MODULE))
    if modules.height == 0:
        return pl.Series("run", [None] * pieces.height, dtype=pl.UInt32)
    modules = modules.select(
        pl.col("module").cast(pl.UInt32).alias("slice"),
        "start_ps",
        end_ps=pl.col("start_ps") + pl.col("dur_ps"),
        own_ps="dur_ps",
        device=profile.tracks["device"][modules["track"]],
    ).drop_nulls("device")
    modules = on_device_clock(profile, modules).select("start_ps", "device", module="slice", stop_ps="end_ps")
    found = (
        pieces.select("start_ps", "device")
        .with_row_index("row")
        .sort("start_ps")
        .join_asof(modules.sort("start_ps"), on="start_ps", by="device", strategy="backward", check_sortedness=False)
        .sort("row")
    )
    return found.select(pl.when(pl.col("start_ps") < pl.col("stop_ps")).then("module").alias("run"))["run"]
