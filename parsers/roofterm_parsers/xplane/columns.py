"""A line's stats by name: numbers as dense arrays, texts as codes into a list of distinct texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.xplane.events import RAW, REFERENCE, TEXT, Events, StatColumn
from roofterm_parsers.xplane.space import Plane
from roofterm_parsers.xplane.wire import I64, Buffer, text

F64 = NDArray[np.float64]
NONE = -1
"""Code of an event that has no such text."""


class LineStats:
    """Stats of a line's events, found by name. Arrays have one value for each event."""

    def __init__(self, data: Buffer, plane: Plane, events: Events) -> None:
        self._data, self._plane, self._events = data, plane, events
        self.size = int(events.metadata.size)
        self._by_name: dict[str, StatColumn] = {}
        for stat, column in events.stats.items():
            self._by_name.setdefault(plane.stat_names[stat], column)

    def has(self, name: str) -> bool:
        return name in self._by_name

    def rows(self, name: str) -> I64:
        """Events that have this stat, rising."""
        column = self._by_name.get(name)
        return np.empty(0, np.int64) if column is None else column.event.astype(np.int64)

    def everywhere(self, name: str) -> bool:
        """Whether all events have this stat."""
        column = self._by_name.get(name)
        return column is not None and column.event.size == self.size

    def integers(self, name: str, missing: int) -> I64:
        """Values as integers, also where they are written as text; `missing` for an event without the stat. Do not change it."""
        column = self._by_name.get(name)
        if column is None:
            return np.full(self.size, missing, np.int64)
        values = column.integers()
        texts = np.flatnonzero(column.wire == TEXT)
        if texts.size:
            values = values.copy()
            for i in texts.tolist():
                values[i] = _whole(self._text(column, i), missing)
        if column.event.size == self.size:
            return values
        dense = np.full(self.size, missing, np.int64)
        dense[column.event] = values
        return dense

    def floats(self, name: str) -> F64:
        """NaN where an event has no such number."""
        dense = np.full(self.size, np.nan)
        column = self._by_name.get(name)
        if column is not None:
            dense[column.event] = column.floats()
        return dense

    def stated_floats(self, name: str) -> tuple[I64, F64]:
        """Events that state this as a number, rising, and the numbers."""
        rows, values = self.rows(name), self._by_name[name].floats()
        sound = ~np.isnan(values)
        return (rows, values) if sound.all() else (rows[sound], values[sound])

    def stated_integers(self, name: str) -> tuple[I64, I64]:
        """Events that state this as a number, rising, and the numbers cut to integers."""
        rows, column = self.rows(name), self._by_name[name]
        sound = column.wire < TEXT
        values = column.integers()
        return (rows, values) if sound.all() else (rows[sound], values[sound])

    def texts(self, name: str) -> tuple[I64, list[str]]:
        """A code for each event (NONE without the stat), and the text of each code. Numbers are written out."""
        codes = np.full(self.size, NONE, np.int64)
        column = self._by_name.get(name)
        if column is None:
            return codes, []
        known: dict[str, int] = {}
        plain = np.flatnonzero(column.wire < TEXT)
        inline = np.flatnonzero((column.wire == TEXT) | (column.wire == RAW))
        refs = np.flatnonzero(column.wire == REFERENCE)
        own = np.full(column.event.size, NONE, np.int64)
        if refs.size:
            values, back = np.unique(column.value[refs], return_inverse=True)
            names = [self._plane.stat_names.get(value, "") for value in values.tolist()]
            own[refs] = np.array([known.setdefault(name, len(known)) for name in names], np.int64)[back]
        for i in inline.tolist():
            own[i] = known.setdefault(self._text(column, i), len(known))
        integers = column.integers()
        for i in plain.tolist():
            own[i] = known.setdefault(str(int(integers[i])), len(known))
        codes[column.event] = own
        return codes, list(known)

    def _text(self, column: StatColumn, i: int) -> str:
        if column.size is None:
            return ""
        at = int(column.value[i])
        return text(self._data, at, at + int(column.size[i]))


def _whole(written: str, missing: int) -> int:
    try:
        value = int(written)
    except ValueError:
        return missing
    return value if abs(value) < 1 << 63 else missing
