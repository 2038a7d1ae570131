"""A table held against the same table of a baseline: what each row was there, and its change."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

ADDED = ("base", "change", "change_pct")
"""Columns that are added: the row's figure in the baseline (null: not there, or unknown), the figure less that, and that by base."""


def against_rows(frame: pl.DataFrame, base: pl.DataFrame, keys: Sequence[str], figure: str) -> pl.DataFrame:
    """`frame` with `ADDED`: its `figure` against that of the first row of `base` with the same `keys`; nulls are keys like others."""
    known = base.select(*keys, base=pl.col(figure).cast(pl.Float64)).unique(list(keys), keep="first", maintain_order=True)
    known = known.cast({key: frame.schema[key] for key in keys})
    return _changed(frame.join(known, on=list(keys), how="left", nulls_equal=True, maintain_order="left"), figure)


def against_value(frame: pl.DataFrame, base: float | None, figure: str) -> pl.DataFrame:
    """`frame` with `ADDED`: the `figure` of every row against one value."""
    return _changed(frame.with_columns(base=pl.lit(base, pl.Float64)), figure)


def against_changes(frame: pl.DataFrame, changes: pl.DataFrame, level: str) -> pl.DataFrame:
    """`frame` with `ADDED` as a comparison tells them: rows of a level of `compare.CHANGES` by their name in the new profile."""
    mine = changes.filter(pl.col("level").cast(pl.String) == level)
    told = mine.select(pl.coalesce("new_name", "name").alias("name"), *ADDED).unique("name", keep="first", maintain_order=True)
    return frame.join(told, on="name", how="left", maintain_order="left")


def _changed(frame: pl.DataFrame, figure: str) -> pl.DataFrame:
    change = pl.col(figure).cast(pl.Float64) - pl.col("base")
    return frame.with_columns(change=change, change_pct=pl.when(pl.col("base") != 0).then(100 * change / pl.col("base").abs()))
