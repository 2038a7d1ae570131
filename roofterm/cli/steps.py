"""`roofterm steps PATH...`: one row a step and rank."""

from __future__ import annotations

from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE
from roofterm.cli.loading import study_of
from roofterm.cli.tabular import answer
from roofterm.report.columns import STEP_COLUMNS
from roofterm.report.step_table import STEPS_HEAD, step_table


def run(args: Arguments) -> int:
    rows = study_of(args).steps()
    answer(args, step_table(rows), STEP_COLUMNS, STEPS_HEAD, most=0)
    return DONE
