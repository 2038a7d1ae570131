"""`roofterm steps PATH...`: one row a step and rank."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.filters import FilterError
from roofterm.analysis.scope import ScopeError
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.report import explain
from roofterm.cli.selecting import scope_of
from roofterm.cli.tabular import answer
from roofterm.report.columns import STEP_COLUMNS
from roofterm.report.step_notes import step_notes
from roofterm.report.step_table import phase_table, scoped_steps, steps_head


def run(args: Arguments) -> int:
    study = study_of(args)
    try:
        table = scoped_steps(study, scope_of(args, "all"))
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    phases = phase_table(study)
    notes = step_notes(phases.filter(pl.col("name").is_in(table["name"].implode())), study.other_tools())
    answer(args, table, STEP_COLUMNS, steps_head(study), most=0, notes=notes)
    return DONE
