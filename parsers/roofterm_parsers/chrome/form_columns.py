"""Columns by form: a value that all events of a form share, or which of an event's own numbers it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.chrome.codes import Columns
from roofterm_parsers.chrome.digits import numbers

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
I16 = NDArray[np.int16]
U64 = NDArray[np.uint64]

SHARED = -1
"""in the place of which number a value is: the form's own is all there is"""
MOST_DECIMALS = 6
"""Microseconds to the picosecond."""
_TENS = 10 ** np.arange(MOST_DECIMALS + 1, dtype=np.int64)
_WIDTH_BITS = 5
_WIDTH = (1 << _WIDTH_BITS) - 1
_FIRST_CAPACITY = 256


class Events(NamedTuple):
    """Events in a text, and where the numbers of each lie in it."""

    starts: I64
    first: I64
    """row of each event's first number in `places`"""
    places: I32
    """packed: place in the event's text, number of digits"""
    word_at: U64

    def some(self, rows: I64) -> Events:
        return Events(self.starts[rows], self.first[rows], self.places, self.word_at)

    def numbers(self, which: I16, *, decimals: bool) -> I64:
        """One number of each event; those behind a decimal point in millionths."""
        packed = self.places[self.first + which]
        digits = (packed & _WIDTH).astype(np.int64)
        found = numbers(self.word_at, self.starts + (packed >> _WIDTH_BITS), digits)
        if decimals:
            found *= _TENS[MOST_DECIMALS - digits]
        return found


def packed_places(places: I64, digits: I64) -> I32:
    """Where in the text of its event each number stands, and how many digits it has, as one integer."""
    return (places << _WIDTH_BITS | digits).astype(np.int32)


class Column:
    """One column. Where a form's events have numbers of their own, the form's value is their sign."""

    def __init__(self, dtype: np.dtype[Any], *, decimals: bool) -> None:
        self._values = Growing(dtype)
        self._which = Growing(np.dtype(np.int16))
        self._has_own = False
        self._decimals = decimals

    def extend(self, values: NDArray[Any], which: I16 | None) -> None:
        """Add forms: their values, and which of their numbers these are (SHARED, or nothing at all: none)."""
        self._values.extend(values)
        self._which.extend(np.full(values.size, SHARED, np.int16) if which is None else which)
        self._has_own = self._has_own or (which is not None and bool((which != SHARED).any()))

    def of(self, rows: NDArray[Any], events: Events) -> NDArray[Any]:
        """The values of events, by the rows of their forms in this column."""
        values: NDArray[Any] = self._values.held[rows]
        if not self._has_own:
            return values
        which = self._which.held[rows]
        own = (which != SHARED).nonzero()[0]
        if own.size == which.size:
            values *= _as(values.dtype, events.numbers(which, decimals=self._decimals))
        elif own.size:
            values[own] *= _as(values.dtype, events.some(own).numbers(which[own], decimals=self._decimals))
        return values


class Table:
    """The columns of those forms that are of one kind."""

    def __init__(self, decimals: frozenset[str] = frozenset()) -> None:
        """`decimals`: columns whose numbers stand behind a decimal point."""
        self.rows = 0
        self._decimals = decimals
        self._row_of = Growing(np.dtype(np.int32))
        self._columns: dict[str, Column] = {}

    def extend(self, held: NDArray[np.bool_], values: Columns, which: dict[str, I16]) -> None:
        """Add forms: which of them are of this kind, and what those hold."""
        count = int(held.sum())
        row_of = np.full(held.size, -1, np.int32)
        row_of[held] = np.arange(self.rows, self.rows + count)
        self._row_of.extend(row_of)
        self.rows += count
        for name, column in values.items():
            if name not in self._columns:
                self._columns[name] = Column(column.dtype, decimals=name in self._decimals)
            self._columns[name].extend(column, which.get(name))

    def rows_of(self, forms: I64) -> I32:
        """Row of each form in this table; -1 where it is of another kind."""
        found: I32 = self._row_of.held[forms]
        return found

    def of(self, rows: NDArray[Any], events: Events) -> Columns:
        """The columns of events, by the rows of their forms."""
        return {name: column.of(rows, events) for name, column in self._columns.items()}


class Growing:
    """An array that is added to."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._array = np.zeros(_FIRST_CAPACITY, dtype)
        self.size = 0

    @property
    def held(self) -> NDArray[Any]:
        """What there is so far; it may be changed, but is another array once more was added."""
        return self._array[: self.size]

    def extend(self, values: NDArray[Any]) -> None:
        size = self.size + values.size
        if size > self._array.size:
            grown = np.zeros(max(size, 2 * self._array.size), self._array.dtype)
            grown[: self.size] = self.held
            self._array = grown
        self._array[self.size : size] = values
        self.size = size


def _as(dtype: np.dtype[Any], values: I64) -> NDArray[Any]:
    """As numbers of JSON become floats: of 64 bits first."""
    return values.astype(np.float64).astype(dtype) if dtype.kind == "f" else values.astype(dtype, copy=False)
