"""`roofterm steps PATH...`: one row a step and rank."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.study import Study
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE
from roofterm.cli.loading import study_of
from roofterm.cli.tabular import answer
from roofterm.report.as_json import rows_of
from roofterm.report.columns import STEP_COLUMNS
from roofterm.report.step_notes import step_notes
from roofterm.report.step_table import STEPS_HEAD, step_table


def run(args: Arguments) -> int:
    study = study_of(args)
    phases, tools = _phases(study), study.other_tools()
    head = STEPS_HEAD | {"phases": rows_of(phases), "other_tools": tools}
    answer(args, step_table(study.steps()), STEP_COLUMNS, head, most=0, notes=step_notes(phases, tools))
    return DONE


def _phases(study: Study) -> pl.DataFrame:
    """Where each step's time goes by phase, with the step's name."""
    found = study.phase_breakdown()
    return found.with_columns(name=study.profile.steps["name"].gather(found["step"]))
