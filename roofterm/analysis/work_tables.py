"""Device work by the module of the model that it belongs to, and by HLO instruction (contract.md section 4)."""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.lookup import joined
from roofterm.analysis.modules import NO_MODULE, NONE, Modules
from roofterm.analysis.tables import aggregates, finished, work_with_names
from roofterm.results import TABLES
from roofterm_parsers.profile import Profile

NO_INSTRUCTION = "(instruction unknown)"


def module_keys(work: pl.DataFrame, modules: Modules) -> pl.DataFrame:
    """`slice, key, name, module_path` of each piece of work; one that belongs to no module has them too. `modules`: row for row."""
    row = np.where(modules.of_work == NONE, len(modules.names), modules.of_work)
    paths = pl.Series([path or name for path, name in zip(modules.paths, modules.names, strict=True)] + [NO_MODULE], dtype=pl.String)
    names = pl.Series([*modules.names, NO_MODULE], dtype=pl.String)
    told = pl.DataFrame({"slice": work["slice"], "name": names[row], "module_path": paths[row]})
    return told.with_columns(key="module_path")


def hlo_keys(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    """`slice, key` and what the program tells of each piece of work that belongs to an HLO instruction."""
    ops = profile.hlo_ops.with_row_index("op").select(
        "op", "name", "program", "program_id", hlo_category="category", source="source", tf_op="framework_op", long_name="text"
    )
    around = profile.hlo_facts.select("op", *(_listed(name) for name in ("operands", "users"))).unique("op", keep="first")
    ops = ops.join(around, on="op", how="left", maintain_order="left")
    told = work.select("slice").join(profile.hlo, on="slice", how="inner", maintain_order="left").join(ops, on="op", how="left")
    # An event whose program is not in the file is known by the op of the framework alone.
    told = told.with_columns(name=pl.coalesce("name", "tf_op", pl.lit(NO_INSTRUCTION)))
    program = pl.format("{} {}", pl.col("program_id").fill_null(0), pl.col("program").fill_null(""))  # a JSON on GPUs has no ids
    return told.with_columns(key=pl.format("{} {}", program, "name")).drop("op", "program_id")


def _listed(column: str) -> pl.Expr:
    """Names of a JSON list, apart by commas; null where the file has no HLO for the instruction, or none is named."""
    names = pl.col(column).str.json_decode(pl.List(pl.String)).list.join(", ")
    return pl.when(names != "").then(names).alias(column)


def work_table(profile: Profile, work: pl.DataFrame, facts: pl.DataFrame, keys: pl.DataFrame, by: str) -> pl.DataFrame:
    """Device work with the same key: columns of `results.TABLES[by]` and `key`, most self time first.

    `work` is of schema `work.WORK`, `facts` as `tables.kernel_table` takes them. `keys`: `slice, key` and the columns that tell
    the row, the first of a key for all of them. Work without a key is left out.
    """
    rows, size = work_with_names(profile, work).drop("name", "op"), profile.slices.height
    rows = joined(joined(rows, work["slice"], facts, "slice", size), work["slice"], keys, "slice", size).drop_nulls("key")
    told = [name for name in keys.columns if name not in ("slice", "key")]
    table = rows.group_by("key", maintain_order=True).agg(
        *aggregates(),
        *(pl.col(name).drop_nulls().first() for name in told),
        category=pl.col("category").drop_nulls().mode().cast(pl.String).sort().first(),
        dtype=pl.when(pl.col("dtype").drop_nulls().n_unique() == 1).then(pl.col("dtype").drop_nulls().first()).cast(pl.String),
        tensor_core=pl.col("tensor_core").drop_nulls().first(),
    )
    table = table.with_columns(device_ps=pl.col("total_ps"))
    assert set(told) <= set(TABLES[by])
    return finished(table, by, most="self_us", kept=("key",))
