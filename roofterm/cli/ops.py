"""`roofterm ops PATH... --by kernel|op|category|module|hlo|collective|gap|iteration`: one table."""

from __future__ import annotations

from typing import Any

from roofterm.analysis.filters import FilterError
from roofterm.analysis.op_groups import COLUMNS
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
from roofterm.report.roof_notes import roof_notes

_MISSING = {"shape": "input shapes", "stack": "Python stacks", "module": "modules"}
_FLAGS = {"shape": "record_shapes=True", "stack": "with_stack=True", "module": "with_stack=True (or with_modules=True)"}
"""What to record where a grouping finds nothing to split by"""

_NOTHING = {
    "module": "no device work here, so nothing belongs to a module",
    "hlo": "no device work of this profile belongs to an HLO instruction: they are in profiles of JAX and XLA programs",
}


def run(args: Arguments) -> int:
    if args.group and args.by != "op":
        raise UsageError("--group splits the rows of --by op")
    study, scope = study_of(args), scope_of(args, "all")
    try:
        table = study.table(args.by, scope, args.group)
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    head: dict[str, Any] = {"schema": "roofterm.ops/1", "by": args.by}
    notes = roof_notes(table) if "flags" in table.columns else []
    if args.by == "collective":
        hiding = study.hiding(scope)
        notes = collective_notes(table, hiding)
        head |= {"notes": notes, "hiding": rows_of(hiding)}
    if args.group and table[COLUMNS[args.group]].null_count() == table.height:
        how = f": record with {_FLAGS[args.group]}" if study.is_torch else ""
        notes += [f"the profile tells no {_MISSING[args.group]}{how}"]
    if table.height == 0 and args.by in _NOTHING:
        notes += [_NOTHING[args.by]]
    answer(args, table, TABLE_COLUMNS[args.by], head, notes=notes)
    return DONE
