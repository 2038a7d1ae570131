"""`roofterm steps PATH...`: one row a step and rank."""

from __future__ import annotations

from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE
from roofterm.cli.loading import study_of
from roofterm.cli.tabular import answer
from roofterm.report.columns import STEP_COLUMNS
from roofterm.report.step_notes import step_notes
from roofterm.report.step_table import phase_table, step_table, steps_head


def run(args: Arguments) -> int:
    study = study_of(args)
    notes = step_notes(phase_table(study), study.other_tools())
    answer(args, step_table(study.steps()), STEP_COLUMNS, steps_head(study), most=0, notes=notes)
    return DONE
