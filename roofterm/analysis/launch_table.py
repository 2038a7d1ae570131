"""`ops --by launch`: a GPU's kernels, one row for each way in which one was launched, as XProf's kernel stats count them."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.lookup import looked_up
from roofterm.analysis.tables import work_with_names
from roofterm.analysis.xprof.framework_names import framework_op_of
from roofterm.analysis.xprof.source import framework_op
from roofterm_parsers.profile import Profile

_AXES = tuple(f"{prefix}_{axis}" for prefix in ("grid", "block") for axis in "xyz")
_LAUNCH = (*_AXES, "registers", "shared_bytes")


def launch_keys(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    """`slice, key` and what tells the row, of the kernels whose launch the file knows: name, tf_op, grid, block, registers, shared memory.

    `tf_op` is the framework's: that of the kernel's HLO instruction, else what PyTorch launched it for. Ops that a file names without
    an instruction (TensorFlow's, each by a path of its own) tell no kernels apart.
    """
    known = profile.kernels.filter(pl.col("grid_x").is_not_null()).select("slice", *_LAUNCH, "occupancy_pct").unique("slice", keep="first")
    rows = work_with_names(profile, work).select("slice", "name", launcher=profile.slices["name"][work["op"]])
    rows = rows.join(known, on="slice", how="inner", maintain_order="left")
    op = framework_ops_of(profile, rows["slice"])
    compiled = pl.when(profile.hlo_ops["name"][op["instruction"]].is_not_null()).then(op["name"])
    launcher = pl.when(op["instruction"].is_null()).then(profile.names["text"][rows["launcher"]])
    rows = rows.with_columns(tf_op=pl.coalesce(compiled, launcher))
    dims = [pl.concat_str([f"{prefix}_{axis}" for axis in "xyz"], separator=",").alias(prefix) for prefix in ("grid", "block")]
    rows = rows.with_columns(dims).drop(*_AXES, "launcher")
    told = ("name", "tf_op", "grid", "block", "registers", "shared_bytes")
    return rows.with_columns(key=pl.struct(told).rank("dense").cast(pl.UInt32))


def framework_ops_of(profile: Profile, slices: pl.Series) -> pl.DataFrame:
    """The framework's op of each slice, by its HLO instruction: instruction (row of hlo_ops), name and type; null where none is stated."""
    instruction = looked_up(profile.hlo["op"], profile.hlo["slice"], profile.slices.height, slices).alias("instruction")
    stated = profile.hlo_ops["framework_op"]
    distinct = stated.drop_nulls().unique()
    parsed = [framework_op_of(framework_op(text)) for text in distinct.to_list()]
    names, types = (pl.Series([getattr(op, part) or None for op in parsed], dtype=pl.String) for part in ("name", "type"))
    of_op = pl.DataFrame(
        {
            "name": stated.replace_strict(distinct, names, default=None, return_dtype=pl.String),
            "type": stated.replace_strict(distinct, types, default=None, return_dtype=pl.String),
        }
    )
    return pl.DataFrame([instruction, *(of_op[part][instruction] for part in ("name", "type"))])
