"""`roofterm steps PATH...`: one row a step and rank."""

from __future__ import annotations

import msgspec
import polars as pl

from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE
from roofterm.cli.loading import study_of
from roofterm.cli.tabular import answer
from roofterm.report.columns import STEP_COLUMNS
from roofterm.results import StepRow


def run(args: Arguments) -> int:
    rows = study_of(args).steps()
    answer(args, steps_frame(rows), STEP_COLUMNS, {"schema": "roofterm.steps/1"}, most=0)
    return DONE


def steps_frame(rows: list[StepRow]) -> pl.DataFrame:
    """Step rows as a frame, its columns in the order of the record."""
    kinds = {"name": pl.String, "phase": pl.String, "rank": pl.Int64, "launches": pl.Int64, "complete": pl.Boolean, "steady": pl.Boolean}
    schema = {name: kinds.get(name, pl.Float64) for name in StepRow.__struct_fields__}
    return pl.DataFrame([msgspec.structs.asdict(row) for row in rows], schema=schema)
