"""Every table that a command prints, by its name, for exporting it whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from roofterm.analysis.categories.short_names import with_short_names
from roofterm.analysis.filters import parse
from roofterm.analysis.row_filter import row_predicate
from roofterm.analysis.scope import Scope
from roofterm.report.memory_table import TABLES as MEMORY
from roofterm.report.memory_table import memory_frame
from roofterm.report.rank_table import RANKS_HEAD, scoped_ranks
from roofterm.report.roofline_table import level_rows, roofline_frame
from roofterm.report.step_table import STEPS_HEAD, scoped_steps
from roofterm.report.xprof_tables import TABLES as XPROF
from roofterm.report.xprof_tables import VERSION, xprof_frame

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

OPS = ("kernel", "launch", "op", "framework", "category", "module", "hlo", "collective", "gap", "iteration", "counter")
LEVELS = {"roofline": "op", **{f"roofline-{level}": level for level in ("program", "phase", "category", "module", "kernel")}}
NAMES = (*OPS, "steps", "ranks", *LEVELS, *MEMORY, *XPROF)


def result_table(study: Study, name: str, scope: Scope) -> tuple[pl.DataFrame, dict[str, Any]]:
    """All rows of the table of that name (`NAMES`) that the scope and its filter let through, and the keys of its JSON before `rows`.

    Raises FilterError for a wrong expression, ScopeError for a step or rank that is not there.
    """
    if name in OPS:
        return with_short_names(study.table(name, scope)), {"schema": "roofterm.ops/1", "by": name}
    if name == "steps":
        return scoped_steps(study, scope), STEPS_HEAD
    if name == "ranks":
        return scoped_ranks(study, scope), RANKS_HEAD
    if name in MEMORY:
        table, head = memory_frame(study, name), {"schema": "roofterm.memory/1", "table": name}
    elif name in XPROF:
        table, head = xprof_frame(study.given, name, scope), {"schema": "roofterm.xprof/1", "table": name, "version": VERSION}
    else:
        table, head = roofline_frame(level_rows(study, scope, LEVELS[name])), {"schema": "roofterm.roofline/1", "level": LEVELS[name]}
    return table.filter(row_predicate(parse(scope.where), table.schema)), head
