"""`roofterm ops PATH... --by kernel|op|category`: one table."""

from __future__ import annotations

from roofterm.analysis.filters import FilterError
from roofterm.analysis.scope import ScopeError
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import scope_of, study_of
from roofterm.cli.report import explain
from roofterm.cli.tabular import answer
from roofterm.report.columns import TABLE_COLUMNS


def run(args: Arguments) -> int:
    if args.group and args.by != "op":
        raise UsageError("--group splits the rows of --by op")
    study = study_of(args)
    try:
        table = study.table(args.by, scope_of(args, "all"), args.group)
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    answer(args, table, TABLE_COLUMNS[args.by], {"schema": "roofterm.ops/1", "by": args.by})
    return DONE
