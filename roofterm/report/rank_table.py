"""Rows of ranks and of their process groups as tables, for every writer and screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from roofterm.results import RankGroup, RankRow
from roofterm_parsers.ranks import number_ranges

RANKS_HEAD: dict[str, Any] = {"schema": "roofterm.ranks/1"}


def rank_table(rows: Sequence[RankRow]) -> pl.DataFrame:
    """Rank rows as a frame, its columns in the order of the record."""
    kinds = {"host": pl.String, "path": pl.String, "late": pl.Boolean} | dict.fromkeys(("rank", "devices", "steps"), pl.Int64)
    schema = {name: kinds.get(name, pl.Float64) for name in RankRow.__struct_fields__}
    return pl.DataFrame([msgspec.structs.asdict(row) for row in rows], schema=schema)


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
