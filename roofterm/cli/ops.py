"""`roofterm ops PATH... --by kernel|op|category|collective|iteration`: one table."""

from __future__ import annotations

from typing import Any

from roofterm.analysis.filters import FilterError
from roofterm.analysis.scope import ScopeError
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.report import explain
from roofterm.cli.selecting import scope_of
from roofterm.cli.tabular import answer
from roofterm.report.as_json import rows_of
from roofterm.report.collective_notes import collective_notes
from roofterm.report.columns import TABLE_COLUMNS


def run(args: Arguments) -> int:
    if args.group and args.by != "op":
        raise UsageError("--group splits the rows of --by op")
    study, scope = study_of(args), scope_of(args, "all")
    try:
        table = study.table(args.by, scope, args.group)
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    head: dict[str, Any] = {"schema": "roofterm.ops/1", "by": args.by}
    notes: list[str] = []
    if args.by == "collective":
        hiding = study.hiding(scope)
        notes = collective_notes(table, hiding)
        head |= {"notes": notes, "hiding": rows_of(hiding)}
    answer(args, table, TABLE_COLUMNS[args.by], head, notes=notes)
    return DONE
