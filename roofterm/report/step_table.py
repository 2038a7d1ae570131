"""Rows of steps as a table, for every writer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from roofterm.results import StepRow

STEPS_HEAD: dict[str, Any] = {"schema": "roofterm.steps/1"}
"""Keys of the JSON before its rows."""

_KINDS = {"name": pl.String, "phase": pl.String, "rank": pl.Int64, "launches": pl.Int64, "complete": pl.Boolean, "steady": pl.Boolean}
_SCHEMA = pl.Schema({name: _KINDS.get(name, pl.Float64)() for name in StepRow.__struct_fields__})


def step_table(rows: Sequence[StepRow]) -> pl.DataFrame:
    """Step rows as a frame, its columns in the order of the record."""
    return pl.DataFrame([msgspec.structs.asdict(row) for row in rows], schema=_SCHEMA)
