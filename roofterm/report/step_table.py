"""Rows of steps as a table, for every writer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from roofterm.analysis.filters import parse
from roofterm.analysis.row_filter import row_predicate
from roofterm.analysis.scope import Scope
from roofterm.analysis.step_choice import chosen_steps
from roofterm.report.as_json import rows_of
from roofterm.results import StepRow

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

STEPS_HEAD: dict[str, Any] = {"schema": "roofterm.steps/1"}
"""Keys of the JSON before its rows."""

_KINDS = {"name": pl.String, "phase": pl.String, "rank": pl.Int64, "launches": pl.Int64, "complete": pl.Boolean, "steady": pl.Boolean}
_SCHEMA = pl.Schema({name: _KINDS.get(name, pl.Float64)() for name in StepRow.__struct_fields__})


def steps_head(study: Study) -> dict[str, Any]:
    """Keys of the JSON before its rows, with what stands beside them: phases, and other tools' breakdowns."""
    return STEPS_HEAD | {"phases": rows_of(phase_table(study)), "other_tools": study.other_tools()}


def phase_table(study: Study) -> pl.DataFrame:
    """Where each step's time goes by phase, with the step's name."""
    found = study.phase_breakdown()
    return found.with_columns(name=study.profile.steps["name"].gather(found["step"]))


def step_table(rows: Sequence[StepRow]) -> pl.DataFrame:
    """Step rows as a frame, its columns in the order of the record."""
    return pl.DataFrame([msgspec.structs.asdict(row) for row in rows], schema=_SCHEMA)


def scoped_steps(study: Study, scope: Scope) -> pl.DataFrame:
    """The table of those steps that a scope and its filter let through; `step` in the filter is the step's number.

    Raises FilterError for a wrong expression, ScopeError for a step or rank that is not there.
    """
    chosen = step_table(study.steps()).with_columns(step=study.profile.steps["number"].gather(study.windows["step"]))
    chosen = chosen.filter(pl.Series(chosen_steps(study, scope), dtype=pl.Boolean))
    return chosen.filter(row_predicate(parse(scope.where), chosen.schema)).drop("step")
