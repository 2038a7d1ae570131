"""`roofterm ranks PATH...`: one row a rank or host, the late ones marked."""

from __future__ import annotations

from typing import Any

from roofterm.analysis.filters import FilterError
from roofterm.analysis.scope import ScopeError
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.output import width
from roofterm.cli.report import explain
from roofterm.cli.selecting import scope_of
from roofterm.cli.tabular import answer
from roofterm.report.as_markdown import markdown_table
from roofterm.report.columns import RANK_COLUMNS, RANK_GROUP_COLUMNS
from roofterm.report.plain_table import plain_table
from roofterm.report.rank_notes import rank_notes
from roofterm.report.rank_table import group_records, scoped_ranks


def run(args: Arguments) -> int:
    study = study_of(args)
    scope = scope_of(args, "steady")
    try:
        rows, groups, table = study.ranks(scope), study.rank_groups(scope), scoped_ranks(study, scope)
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    said = rank_notes(study, rows)
    head: dict[str, Any] = {"schema": "roofterm.ranks/1", "notes": said, "clocks": study.clocks, "groups": groups}
    beside: list[str] = []
    if groups and args.format in ("text", "markdown"):
        records = group_records(groups)
        lines = plain_table(records, RANK_GROUP_COLUMNS, width()) if args.format == "text" else markdown_table(records, RANK_GROUP_COLUMNS)
        beside = ["", "process groups, means a step and device", *([""] if args.format == "markdown" else []), *lines]
    answer(args, table, RANK_COLUMNS, head, most=0, notes=said, beside=beside)
    return DONE
