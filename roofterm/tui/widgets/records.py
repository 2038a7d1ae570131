"""Rows that are no frame: few, kept as lists, shown before polars is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec


class Records(msgspec.Struct, frozen=True):
    """Rows of values by columns; a column that is not there holds nothing but unknown values."""

    columns: list[str]
    rows: list[list[Any]]

    @property
    def height(self) -> int:
        return len(self.rows)

    def values(self, rows: Iterable[int], columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Of some rows these columns, in this order."""
        places = [self.columns.index(name) if name in self.columns else None for name in columns]
        return [tuple(None if at is None else self.rows[row][at] for at in places) for row in rows]

    def longest(self, column: str) -> int:
        """Characters of a column's longest text."""
        return max((len(str(value)) for (value,) in self.values(range(self.height), [column]) if value is not None), default=0)
