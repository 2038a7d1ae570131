"""Which instruction XProf counts a GPU's kernel for, where the file's own word is not what it goes by."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.xprof.framework_names import framework_op_of
from roofterm.analysis.xprof.step_groups import NO_GROUP, groups
from roofterm_parsers.profile import Profile


def by_run(profile: Profile, events: pl.DataFrame, costs: pl.DataFrame) -> pl.DataFrame:
    """Within a step XProf takes neighbours of one name on a stream for one instruction, even of two programs: the first one's."""
    hlo = costs.filter(pl.col("name") != "")
    if hlo["name"].n_unique() == hlo.height:
        return events
    rows = events["slice"]
    group = pl.Series("group", groups(profile)[rows.to_numpy()])
    track, at = profile.slices["track"][rows], profile.slices["offset"][rows].alias("at")
    known = events.with_columns(group, track, at, row=pl.int_range(pl.len())).join(costs.select("op", "name"), on="op").sort("track", "at")
    new = (pl.col("name") != pl.col("name").shift(1)) | (pl.col("group") != pl.col("group").shift(1))
    new |= (pl.col("track") != pl.col("track").shift(1)) | (pl.col("group") == NO_GROUP) | (pl.col("name") == "")
    run = new.fill_null(True).cum_sum()
    first = known.with_columns(run=run).with_columns(first=pl.col("op").first().over("run")).select("row", "first")
    joined = (
        events.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64)).join(first, on="row", how="left", maintain_order="left")
    )
    return joined.with_columns(op=pl.coalesce("first", "op")).drop("row", "first")


def by_kernel(profile: Profile, events: pl.DataFrame, costs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """An op of a framework that no HLO is known of is one op for each of its kernels, `op/kernel`, of the op's type."""
    alone = costs.filter((pl.col("name") == "") & (pl.col("category") == ""))
    if alone.is_empty():
        return events, costs
    parsed = {text: framework_op_of(text) for text in alone["framework_op"].unique().to_list()}
    names = profile.names["text"][profile.slices["name"][events["slice"]]]
    own = events.select("op", kernel=names).join(alone.select("op", "framework_op"), on="op").unique(maintain_order=True)
    first = profile.hlo_ops.height
    own = own.with_columns(made=pl.int_range(first, first + pl.len(), dtype=pl.UInt32))
    rows = own.join(costs.drop("name", "category", "text", "framework_op"), on="op", maintain_order="left").with_columns(
        op="made",
        name=pl.col("framework_op").replace_strict({text: op.name for text, op in parsed.items()}, return_dtype=pl.String)
        + "/"
        + pl.col("kernel"),
        category=pl.col("framework_op").replace_strict({text: op.type for text, op in parsed.items()}, return_dtype=pl.String),
    )
    rows = rows.with_columns(text="name")
    kept = costs.join(alone.select("op"), on="op", how="anti")
    events = events.with_columns(kernel=names).join(
        own.select("op", "kernel", "made"), on=["op", "kernel"], how="left", maintain_order="left"
    )
    events = events.with_columns(op=pl.coalesce("made", "op")).drop("kernel", "made")
    return events, pl.concat([kept, rows.select(kept.columns)])
