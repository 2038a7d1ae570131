"""The columns of a block in the making: parts of it as they are decoded, joined once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.chrome import times
from roofterm_parsers.chrome.codes import Columns

I64 = NDArray[np.int64]

COLUMNS: dict[str, Any] = {
    "lane": np.uint32,
    "name": np.uint32,
    "us": np.int64,
    "ps": np.int32,
    "state": np.uint8,
    "length_us": np.int64,
    "length_ps": np.int32,
    "length_state": np.uint8,
    "offset": np.uint64,
}
"""Columns of all events."""
_TIMES = (("us", "ps", "state"), ("length_us", "length_ps", "length_state"))


@dataclass(slots=True)
class Part:
    """Some events: their columns, those of their groups with the rows in the block that have them."""

    count: int
    columns: Columns
    groups: dict[int, list[tuple[I64, Columns]]] = field(default_factory=dict)
    written: tuple[bytes, bytes] | None = None
    """times and lengths as they are written, where the columns do not hold them yet"""

    def add_group(self, group: int, rows: I64, columns: Columns) -> None:
        self.groups.setdefault(group, []).append((rows, columns))

    def put(self, rows: I64, other: Part) -> None:
        """Put the events of another part in the place of these of this one."""
        other.read_times()
        for name, values in other.columns.items():
            self.columns[name][rows] = values
        for group, parts in other.groups.items():
            merged = [*self.groups.get(group, []), *parts]
            order = np.argsort(np.concatenate([rows for rows, _ in merged]), kind="stable")
            joined = np.concatenate([rows for rows, _ in merged])[order]
            names = merged[0][1]
            self.groups[group] = [(joined, {name: np.concatenate([part[name] for _, part in merged])[order] for name in names})]

    def read_times(self) -> None:
        if self.written is not None:
            for names, text in zip(_TIMES, self.written, strict=True):
                self.columns |= dict(zip(names, times.microseconds(text, self.count), strict=True))
            self.written = None


class Pieces:
    """Parts one behind the other."""

    def __init__(self) -> None:
        self.count = 0
        self._parts: list[Part] = []

    def add(self, part: Part) -> None:
        self.count += part.count
        self._parts.append(part)

    def columns(self) -> tuple[Columns, dict[int, Columns]]:
        """All columns, and by group its own with `row`: which event of the block."""
        self._read_times()
        columns: Columns = {}
        for name, dtype in COLUMNS.items():
            held = [part.columns[name] for part in self._parts]
            columns[name] = np.concatenate(held or [np.zeros(0, dtype)]).astype(dtype, copy=False)
        groups: dict[int, Columns] = {}
        for group in dict.fromkeys(group for part in self._parts for group in part.groups):
            parts = [held for part in self._parts for held in part.groups.get(group, [])]
            groups[group] = {"row": np.concatenate([rows for rows, _ in parts]).astype(np.uint32)}
            for name in parts[0][1]:
                groups[group][name] = np.concatenate([part[name] for _, part in parts])
        return columns, groups

    def _read_times(self) -> None:
        """Read the times of all parts that have them written, at once."""
        parts = [part for part in self._parts if part.written is not None and part.count]
        for which, names in enumerate(_TIMES):
            text = b",".join([part.written[which] for part in parts if part.written is not None])
            values: tuple[NDArray[Any], ...] = times.microseconds(text, sum(part.count for part in parts))
            at = 0
            for part in parts:
                part.columns |= {name: column[at : at + part.count] for name, column in zip(names, values, strict=True)}
                at += part.count
