"""`ops --by framework`: the framework's ops of an XLA program, on the device and on the host, as XProf's framework op stats count them."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.launch_table import framework_ops_of
from roofterm.analysis.work_tables import NO_INSTRUCTION
from roofterm.analysis.xprof.host_ops import HostOps
from roofterm.results import TABLES
from roofterm_parsers.profile import Profile

UNKNOWN_TYPE = "Unknown"
"""of an instruction for which the file states no op"""

NOT_OPS = ("(null)", "dummy")
"""What allocators call those for whom they know no op; XProf counts them as ops of their own."""

US = 1_000_000


def framework_keys(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    """`slice, key, name, op_type` and `instruction` (row of hlo_ops) of each piece of work; without an op it is called by its instruction.

    Work of no instruction (a copy that nothing annotates) is a row of its own.
    """
    told = framework_ops_of(profile, work["slice"])
    instruction = profile.hlo_ops["name"][told["instruction"]]
    rows = told.with_columns(work["slice"], hlo=instruction).with_columns(
        name=pl.coalesce("name", "hlo", pl.lit(NO_INSTRUCTION)), op_type=pl.coalesce("type", pl.lit(UNKNOWN_TYPE))
    )
    return rows.select("slice", "name", "op_type", "instruction", key="name")


def device_side(table: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """The rows of the device, of the table of work by these keys: an op was called as often as the instruction of it that ran most."""
    ran = keys.group_by("key", "instruction").len().group_by("key").agg(calls=pl.col("len").max().cast(pl.Int64))
    table = table.drop("calls").join(ran, on="key", how="left", maintain_order="left")
    single = [pl.lit(None, pl.Float64).alias(name) for name in ("min_us", "max_us", "p50_us", "p99_us")]
    table = table.with_columns(*single, mean_us=pl.col("total_us") / pl.col("calls"), side=pl.lit("device"))
    return table.select(*TABLES["framework"], "key")


def host_side(host: HostOps) -> pl.DataFrame:
    """The rows of the host: ops on its threads, each with the time outside of the ops that it calls."""
    rows = host.ops.filter(~pl.col("name").is_in(NOT_OPS)).with_columns(
        side=pl.lit("host"),
        category=pl.lit("op"),
        op_type=pl.when(pl.col("type") != "").then("type").otherwise(pl.lit(UNKNOWN_TYPE)),
        calls="occurrences",
        total_us=pl.col("time_ps") / US,
        self_us=pl.col("self_ps") / US,
        host_us=pl.col("time_ps") / US,
    )
    whole = rows["self_us"].sum()
    rows = rows.with_columns(mean_us=pl.col("total_us") / pl.col("calls"), pct=100 * pl.col("self_us") / whole if whole else None)
    return rows.select(name for name in TABLES["framework"] if name in rows.columns)


def both_sides(device: pl.DataFrame, host: pl.DataFrame) -> pl.DataFrame:
    """The device's rows, then the host's; each most self time first, with shares of its own side."""
    rows = pl.concat([device.select(TABLES["framework"]), host], how="diagonal_relaxed")
    order = ["side", "self_us", "name"]
    return rows.sort(order, descending=[False, True, False], maintain_order=True).select(TABLES["framework"])
