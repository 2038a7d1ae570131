"""Events read by their forms: what is known of an event by its text without the digits of its numbers.

A form that is met often enough is learned; from then on its events are read many at a time, by tables and by the places of
their digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.chrome.codes import Columns
from roofterm_parsers.chrome.events import Event
from roofterm_parsers.chrome.form_columns import Events, Growing, Table, packed_places
from roofterm_parsers.chrome.learning import ALONE, Kinds, Learned, learn
from roofterm_parsers.chrome.pieces import COLUMNS
from roofterm_parsers.chrome.scanning import FILL, SEPARATOR, Scanned

I64 = NDArray[np.int64]

MOST_BYTES = 8 << 20
"""All forms are forgotten where their texts are longer together."""
FEWEST_EVENTS = 8
"""Where there are fewer of them to a form, decoding them is quicker than looking for forms."""
SIGHTS = 4
"""A form is learned when it has been met so often: learning it takes as long as decoding about so many events."""

_NO_FORM, _UNKNOWN = 0, -1
_FILL, _BETWEEN = bytes([FILL]), bytes([SEPARATOR])
_RUN = re.compile(_FILL + b"+")


class Read(NamedTuple):
    """Events by their forms: columns of all, columns by group with the rows that have them, rows to be decoded alone."""

    columns: Columns
    groups: dict[int, tuple[I64, Columns]]
    alone: I64


class Forms:
    """The forms that one decoder has met."""

    def __init__(self, single: Callable[[bytes], Event], kinds: Kinds) -> None:
        self._single = single
        self._kinds = kinds
        self._forget()

    def _forget(self) -> None:
        self._bytes = 0
        self._written = _Numbers()
        """forms as they are written, with a FILL for each digit"""
        self._bare_of = Growing(np.dtype(np.int64))
        self._first = Growing(np.dtype(np.int64))
        """by number of a written form: number of the bare one, and row of its first number in `places`"""
        self._places = Growing(np.dtype(np.int32))
        self._bare = _Numbers()
        """forms with one FILL for each number"""
        self._sights = Growing(np.dtype(np.int64))
        self._row_of = Growing(np.dtype(np.int64))
        """by number of a bare form: its row in the tables, _NO_FORM if its events are decoded one by one, or _UNKNOWN"""
        self._all = Table(frozenset({"ps", "length_ps"}))
        self._tables: dict[int, Table] = {}
        nothing = {name: np.zeros(1, dtype) for name, dtype in COLUMNS.items() if name != "offset"}
        self._extend(Learned(nothing | {"group": np.array([ALONE], np.uint8)}, {}, {}))

    def read(self, scanned: Scanned) -> Read | None:
        """What the events are, by their forms and the digits of their numbers; None if there are too many forms to be worth it.

        Raises NoEvent, having learned nothing, if a form that was to be learned is that of no event.
        """
        if self._bytes > MOST_BYTES:
            self._forget()
        starts, ends = scanned.starts, scanned.ends
        known, text = self._written, scanned.filled
        before = len(known)
        written = np.array([known[text[a:b]] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)], np.int64)
        seen_at = np.empty(len(known), np.int64)
        seen_at[written[::-1]] = np.arange(written.size)[::-1]
        if len(known) > before:
            self._take_in([scanned.form(row) for row in seen_at[before:].tolist()])
        met = np.bincount(written, minlength=len(known))
        bare = np.bincount(self._bare_of.held, met, len(self._bare))
        if np.count_nonzero(bare) * FEWEST_EVENTS > written.size:
            return None
        self._sights.held[:] += bare.astype(np.int64)
        wanted = ((self._row_of.held == _UNKNOWN) & (self._sights.held >= SIGHTS) & (bare > 0)).nonzero()[0]
        if wanted.size:
            self._learn(wanted)
        rows = np.maximum(self._row_of.held[self._bare_of.held], _NO_FORM)[written]
        return self._events(rows, Events(starts, self._first.held[written], self._places.held, scanned.word_at))

    def _events(self, rows: I64, events: Events) -> Read:
        columns = self._all.of(rows, events)
        group_of = columns.pop("group")
        groups: dict[int, tuple[I64, Columns]] = {}
        for group, table in self._tables.items():
            in_table = table.rows_of(rows)
            held = (in_table >= 0).nonzero()[0]
            if held.size:
                groups[group] = held, table.of(in_table[held], events.some(held))
        return Read(columns, groups, (group_of == ALONE).nonzero()[0])

    def _take_in(self, forms: list[bytes]) -> None:
        """Number written forms: the bare form of each, and the places of its numbers."""
        text = _BETWEEN.join(forms)
        bare = self._bare
        before = len(bare)
        self._bare_of.extend(np.array([bare[form] for form in _RUN.sub(_FILL, text).split(_BETWEEN)], np.int64))
        fresh = len(bare) - before
        self._sights.extend(np.zeros(fresh, np.int64))
        self._row_of.extend(np.full(fresh, _UNKNOWN))

        is_digit = np.zeros(len(text) + 2, np.int8)
        is_digit[1:-1] = np.frombuffer(text, np.uint8) == FILL
        edges = np.diff(is_digit)
        begin, end = (edges > 0).nonzero()[0], (edges < 0).nonzero()[0]
        form_begin = np.cumsum([0, *(len(form) + 1 for form in forms)])
        first = np.searchsorted(begin, form_begin[:-1])
        form = np.repeat(np.arange(len(forms)), np.diff(np.append(first, begin.size)))
        self._first.extend(first + self._places.size)
        self._places.extend(packed_places(begin - form_begin[form], end - begin))
        self._bytes += len(text)

    def _learn(self, wanted: I64) -> None:
        texts = list(self._bare)
        learned, told = learn([texts[number] for number in wanted.tolist()], self._single, self._kinds)
        row_of = self._row_of.held
        row_of[wanted] = _NO_FORM
        row_of[wanted[told]] = np.arange(self._all.rows, self._all.rows + int(told.sum()))
        self._extend(learned)

    def _extend(self, learned: Learned) -> None:
        count = learned.columns["group"].size
        for group in learned.groups.keys() - self._tables.keys():
            self._tables[group] = Table()
            self._tables[group].extend(np.zeros(self._all.rows, bool), {}, {})
        self._all.extend(np.ones(count, bool), learned.columns, learned.which)
        for group, table in self._tables.items():
            held = np.zeros(count, bool)
            of_group = learned.groups.get(group)
            if of_group is None:
                table.extend(held, {}, {})
            else:
                held[of_group.rows] = True
                table.extend(held, of_group.columns, of_group.which)


class _Numbers(dict[bytes, int]):
    """Numbers forms as they come."""

    def __missing__(self, form: bytes) -> int:
        number = self[form] = len(self)
        return number
