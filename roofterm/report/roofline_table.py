"""Rows of a roofline as a table, for every writer and screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from roofterm.analysis.roofline import level_records
from roofterm.analysis.scope import Scope
from roofterm.results import RooflineRow

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

LEVELS = ("hbm", "vmem", "l2", "l1")
"""Memory whose traffic a table shows, the first that the row knows."""


def level_rows(study: Study, scope: Scope, level: str) -> list[RooflineRow]:
    """All rows of a level (program with its steps, phase, category, module, op or kernel), most time first."""
    if level == "phase":
        return study.phase_rows(scope)
    if level == "module":
        return study.module_rows(scope)
    if level in ("program", "op"):
        found = study.roofline(scope, 0)
        return found.ops if level == "op" else [*found.program, *found.steps]
    return level_records(study.joined, study.bounded(scope), study.facts, study.device, level, 0)


def roofline_frame(rows: Sequence[RooflineRow]) -> pl.DataFrame:
    """One row each, with the traffic of the device's main memory; all of `RooflineRow`'s scalar fields by their names.

    `limit` is its limiter as it is shown: what binds it, with ? where latency does.
    """
    return pl.DataFrame([_roofline_record(row) for row in rows], schema=_ROOFLINE, strict=False)


def main_level(values: dict[str, float]) -> float | None:
    return next((values[level] for level in LEVELS if level in values), None)


_TEXT = ("limit", "level", "step", "name", "category", "bound_by", "limiter", "dtype", "flops_from", "bytes_from", "flags", "shapes", "op")
_NUMBERS = (
    "time_us", "time_per_unit_us", "flops", "model_flops", "bytes", "flops_per_s", "bytes_per_s", "intensity", "pct_of_peak_flops",
    "pct_of_peak_bw", "pct_of_roof", "time_bound_us", "headroom_us",
)  # fmt: skip
_ROOFLINE = pl.Schema({**dict.fromkeys(_TEXT, pl.String()), "calls": pl.Int64(), **dict.fromkeys(_NUMBERS, pl.Float64())})


def _roofline_record(row: RooflineRow) -> dict[str, Any]:
    record = {name: getattr(row, name) for name in (*_TEXT[1:], "calls", *_NUMBERS)}
    record["limit"] = f"{row.bound_by}?" if row.limiter == "latency" and row.bound_by else row.limiter
    record["flags"] = ", ".join(row.flags)
    record["bytes"] = main_level(row.bytes)
    record["bytes_per_s"] = main_level(row.bytes_per_s)
    record["intensity"] = main_level(row.intensity)
    return record
