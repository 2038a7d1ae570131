"""`roofterm ops PATH... --by kernel|launch|op|framework|category|...`: one table."""

from __future__ import annotations

from typing import Any, cast, get_args

import polars as pl

from roofterm.analysis.filters import FilterError
from roofterm.analysis.op_groups import COLUMNS, untold
from roofterm.analysis.scope import ScopeError
from roofterm.analysis.xprof.op_profile import Grouping, xprof_op_profile
from roofterm.analysis.xprof.op_profile_rows import op_profile_rows
from roofterm.analysis.xprof.peaks import VERSIONS
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import load, study_of
from roofterm.cli.report import explain
from roofterm.cli.selecting import scope_of
from roofterm.cli.tabular import answer
from roofterm.report.as_json import rows_of
from roofterm.report.collective_notes import collective_notes
from roofterm.report.columns import OP_PROFILE_COLUMNS
from roofterm.report.ops_columns import table_columns
from roofterm.report.roof_notes import roof_notes

GROUPS: dict[str, tuple[str, ...]] = {"op": tuple(COLUMNS), "op_profile": get_args(Grouping)}

_NOTHING = {
    "module": "no device work here, so nothing belongs to a module",
    "launch": "no kernel of this profile states how it was launched: a GPU's do, a TPU has no grid",
    "framework": "no op of this profile is compiled from a framework's: they are in profiles of JAX, TensorFlow and XLA; PyTorch's are "
    "the rows of --by op",
    "counter": "no counter was recorded in this profile, or none in the part that is asked for",
    "hlo": "no device work of this profile belongs to an HLO instruction: they are in profiles of JAX and XLA programs",
}


def run(args: Arguments) -> int:
    if args.group and args.group not in GROUPS.get(args.by, ()):
        raise UsageError("--group shape|stack|module splits the rows of --by op, program|category|provenance those of --by op_profile")
    if args.by == "op_profile":
        return _op_profile(args)
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
    if args.group and (why_not := untold(table, args.group, study.is_torch)):
        notes += [why_not]
    if table.height == 0 and args.by in _NOTHING:
        notes += [_NOTHING[args.by]]
    answer(args, table, table_columns(args.by, table), head, notes=notes)
    return DONE


def _op_profile(args: Arguments) -> int:
    """XProf's op profile of the whole file: each node before its children, set in by its depth for people."""
    if args.where:
        raise UsageError("--by op_profile shows a tree whole: filter --by hlo instead")
    group = cast(Grouping, args.group or "program")
    table = op_profile_rows(xprof_op_profile(load(args), VERSIONS[-1], group))
    head = {"schema": "roofterm.ops/1", "by": args.by, "group": group, "version": VERSIONS[-1]}
    if table.height <= 1:
        answer(args, table.clear(), OP_PROFILE_COLUMNS, head, notes=[_NOTHING["hlo"]])
        return DONE
    if args.format in ("text", "markdown"):
        table = table.with_columns(name=pl.lit("  ").repeat_by("depth").list.join("") + pl.col("name"))
    answer(args, table, OP_PROFILE_COLUMNS, head)
    return DONE
