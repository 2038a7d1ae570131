"""Rows of ranks and of their process groups as tables, for every writer and screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from roofterm.analysis.filters import parse
from roofterm.analysis.row_filter import row_predicate
from roofterm.analysis.scope import Scope
from roofterm.results import RankGroup, RankRow
from roofterm_parsers.ranks import number_ranges

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

RANKS_HEAD: dict[str, Any] = {"schema": "roofterm.ranks/1"}


def rank_table(rows: Sequence[RankRow]) -> pl.DataFrame:
    """Rank rows as a frame, its columns in the order of the record."""
    kinds = {"host": pl.String, "path": pl.String, "late": pl.Boolean} | dict.fromkeys(("rank", "devices", "steps"), pl.Int64)
    schema = {name: kinds.get(name, pl.Float64) for name in RankRow.__struct_fields__}
    return pl.DataFrame([msgspec.structs.asdict(row) for row in rows], schema=schema)


def scoped_ranks(study: Study, scope: Scope) -> pl.DataFrame:
    """The table of those ranks that a scope and its filter let through, means over the scope's steps; a word is sought in the path.

    Raises FilterError for a wrong expression, ScopeError for a step or rank that is not there.
    """
    table = rank_table(study.ranks(scope))
    if scope.rank is not None:
        study.selection(Scope(step="all", rank=scope.rank))  # says which ranks there are where this one is not
        table = table.filter(pl.col("rank") == scope.rank)
    asked = table.with_columns(name="path")
    return asked.filter(row_predicate(parse(scope.where), asked.schema)).drop("name")


def group_records(groups: Sequence[RankGroup]) -> list[dict[str, Any]]:
    """Groups as table rows: the ranks as a text, unequal calls as such."""
    return [
        msgspec.structs.asdict(group)
        | {
            "called": group.name or "unnamed",
            "members": number_ranges(group.ranks) if group.ranks else None,
            "seen_of": f"{group.seen} of {group.size}" if group.size else str(group.seen),
            "uneven": f"{group.least_calls} to {group.most_calls}" if group.least_calls != group.most_calls else None,
        }
        for group in groups
    ]
