"""What a reader of the table of collectives must know, as sentences below it."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.overlap import slowdown
from roofterm.text.units import count, duration_us, figures


def collective_notes(table: pl.DataFrame, hiding: pl.DataFrame) -> list[str]:
    """The rows' notes, each once, and what hiding costs (frames of `results.TABLES["collective"]` and `overlap.HIDING`)."""
    said = [f"{note} ({count(rows)} row{'s' if rows > 1 else ''})" for note, rows in _counted(table)]
    factor = slowdown(hiding)
    if factor is not None:
        calls = int(hiding["calls_overlapped"].sum())
        cost = duration_us(float(hiding["cost_us"].sum()))
        said.append(f"compute kernels take {figures(factor)} times as long under collectives as alone: {cost} over {count(calls)} calls")
    return said


def _counted(table: pl.DataFrame) -> list[tuple[str, int]]:
    notes = table["note"].drop_nulls().str.split("; ").explode()
    return notes.value_counts(sort=True).sort(["count", "note"], descending=[True, False]).rows() if notes.len() else []
