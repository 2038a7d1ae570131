"""What a form of events says: its events' values, and which of them are read from each event's own digits.

A form is decoded twice as an event, with other stand-ins in the places of its numbers. Where the two agree, a value is
that of the form; where they differ by the stand-ins of one number, that number is it. So no key is named here: whatever
the decoder and the makers of columns do with a number, an event that is read by its form gives what it would give by
itself. A form where that is not so is told apart, and its events are decoded one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from roofterm_parsers.chrome import times
from roofterm_parsers.chrome.codes import Columns
from roofterm_parsers.chrome.events import Args, Event
from roofterm_parsers.chrome.form_columns import SHARED
from roofterm_parsers.chrome.groups import Group
from roofterm_parsers.chrome.scanning import FILL
from roofterm_parsers.occurring import occurring

I64 = NDArray[np.int64]
I16 = NDArray[np.int16]
U8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]

ALONE = 255
"""Stands for the group of a form whose events must be decoded one by one."""

_FILL = bytes([FILL])
_FIRST_STAND_IN = 1 << 62
_OTHER = 1 << 41
"""added to a stand-in, gives the one of the second decoding; even 32-bit floats hold all of them exactly"""
_MOST_NUMBERS = 256
_BEYOND = 2.0**63
_STAND_INS, _OTHERS = ([b"%d" % (_FIRST_STAND_IN + (2 * i + other) * _OTHER) for i in range(_MOST_NUMBERS)] for other in (0, 1))
_NUMBER_OF = {text: i for i, text in enumerate(_STAND_INS)}
_own_texts = attrgetter("ph", "cat", "name", "pid", "tid")
_raw_arguments = attrgetter(*(f.name for f in msgspec.structs.fields(Args) if f.type is Raw))


class NoEvent(Exception):
    """A text that was taken for an event is none."""


class Kinds(NamedTuple):
    """What the owner of the forms knows of events."""

    lanes: Callable[[Sequence[Event]], NDArray[np.uint32]]
    names: Callable[[Sequence[Event]], NDArray[np.uint32]]
    groups: Callable[[NDArray[np.uint32]], U8]
    """by lane"""
    extras: Callable[[int, Sequence[Event]], Iterable[tuple[int, list[int]]]]
    columns: Callable[[int, Sequence[Event]], Columns]
    alone: frozenset[int]
    """groups of events that must be decoded one by one"""


class OfGroup(NamedTuple):
    """What the forms of one group hold."""

    rows: I64
    columns: Columns
    which: dict[str, I16]
    """by column: which number of its form a value is, whose sign the column holds then; SHARED"""


class Learned(NamedTuple):
    """Forms in order: the columns of all, with `group`, and those of each group."""

    columns: Columns
    which: dict[str, I16]
    groups: dict[int, OfGroup]


class _Decoded(NamedTuple):
    """Forms as events, with either stand-ins."""

    events: list[Event]
    others: list[Event]
    numbers: I64
    """how many each has"""


def learn(texts: Sequence[bytes], single: Callable[[bytes], Event], kinds: Kinds) -> tuple[Learned, Mask]:
    """What some forms say, and which of them are told at all: of the others, events must be decoded one by one.

    A form has one FILL for each number. Raises NoEvent if one is the form of no event.
    """
    forms, told = _decoded(texts, single)
    lanes = kinds.lanes(forms.events)
    groups = kinds.groups(lanes).copy()
    for group in kinds.alone:
        groups[groups == group] = ALONE
    columns: Columns = {"lane": lanes, "name": kinds.names(forms.events)}
    which: dict[str, I16] = {}
    for field, names in (("ts", ("us", "ps", "state")), ("dur", ("length_us", "length_ps", "length_state"))):
        _add_times(forms, field, names, columns, which, groups)
    of_groups = _by_group(forms, groups, kinds)
    columns["group"] = groups
    return Learned(columns, which, of_groups), told


def _decoded(texts: Sequence[bytes], single: Callable[[bytes], Event]) -> tuple[_Decoded, Mask]:
    told = np.zeros(len(texts), bool)
    events: list[Event] = []
    others: list[Event] = []
    numbers: list[int] = []
    for i, text in enumerate(texts):
        parts = text.split(_FILL)
        count = len(parts) - 1
        if count > _MOST_NUMBERS:
            continue
        both = [b""] * (2 * count + 1)
        both[::2] = parts
        both[1::2] = _STAND_INS[:count]
        one = b"".join(both)
        both[1::2] = _OTHERS[:count]
        try:
            event, other = single(one), single(b"".join(both))
        except msgspec.ValidationError:
            continue
        except (msgspec.DecodeError, RecursionError) as error:
            raise NoEvent from error
        if _own_texts(event) == _own_texts(other) and _raw_arguments(event.args) == _raw_arguments(other.args):
            told[i] = True
            events.append(event)
            others.append(other)
            numbers.append(count)
    return _Decoded(events, others, np.array(numbers, np.int64)), told


def _add_times(forms: _Decoded, field: str, names: tuple[str, str, str], columns: Columns, which: dict[str, I16], groups: U8) -> None:
    """The columns of a time (whole microseconds, picoseconds, state); marks in `groups` the forms that have none to be sure of."""
    size = len(forms.events)
    shared: list[bytes] = []
    number, decimals, sign = np.full(size, SHARED, np.int16), np.full(size, SHARED, np.int16), np.ones(size, np.int64)
    memo: dict[bytes, tuple[int, int, int, bytes] | None] = {}
    read = attrgetter(field)
    for i, (event, other) in enumerate(zip(forms.events, forms.others, strict=True)):
        one, two = bytes(read(event)), bytes(read(other))
        shared.append(one if one == two else b"")
        if one == two:
            continue
        if one not in memo:
            memo[one] = _stood_in(one)
        found = memo[one]
        if found is None or found[3] != two:
            groups[i] = ALONE
            continue
        sign[i], number[i], decimals[i], _ = found
    us, ps, state = times.microseconds(times.comma_separated(shared), size)
    own, fine = number != SHARED, decimals != SHARED
    us[own], ps[fine], state[own] = sign[own], sign[fine], times.GOOD
    columns |= dict(zip(names, (us, ps.astype(np.int32), state), strict=True))
    which |= {names[0]: number, names[1]: decimals}


def _stood_in(text: bytes) -> tuple[int, int, int, bytes] | None:
    """Sign, number and decimals (SHARED: none) that a text stands in for, and the text of the second decoding; None: something else."""
    minus, unsigned = text[: text.startswith(b"-")], text[text.startswith(b"-") :]
    whole, point, rest = unsigned.partition(b".")
    number, decimals = _NUMBER_OF.get(whole), _NUMBER_OF.get(rest) if point else SHARED
    if number is None or decimals is None:
        return None
    return -1 if minus else 1, number, decimals, minus + _OTHERS[number] + point + (_OTHERS[decimals] if point else b"")


def _by_group(forms: _Decoded, groups: U8, kinds: Kinds) -> dict[int, OfGroup]:
    """What the forms of each group hold; marks in `groups` those whose events must be decoded one by one."""
    made: dict[int, list[OfGroup]] = {}
    for group in occurring(groups).tolist():
        if group in (Group.NONE, ALONE):
            continue
        rows = (groups == group).nonzero()[0]
        unclear = np.zeros(groups.size, bool)
        found: list[tuple[int, OfGroup]] = []
        events = [forms.events[i] for i in rows.tolist()]
        for part, held in ((group, list(range(rows.size))), *kinds.extras(group, events)):
            of_part = rows[held]
            columns = kinds.columns(part, [events[i] for i in held])
            others = kinds.columns(part, [forms.others[i] for i in of_part.tolist()])
            found.append((part, OfGroup(of_part, columns, _which(forms, of_part, columns, others, unclear))))
        groups[unclear] = ALONE
        for part, held_by in found:
            clear = ~unclear[held_by.rows]
            made.setdefault(part, []).append(_some(held_by, clear.nonzero()[0]))
    return {group: parts[0] if len(parts) == 1 else _merged(parts) for group, parts in made.items()}


def _which(forms: _Decoded, rows: I64, columns: Columns, others: Columns, unclear: Mask) -> dict[str, I16]:
    """By column which of its form's numbers a value is, in whose place its sign is put; marks the forms where that is not clear."""
    found: dict[str, I16] = {}
    for name, values in columns.items():
        other = others[name]
        numbers = found[name] = np.full(rows.size, SHARED, np.int16)
        differs = values != other
        if values.dtype.kind == "f":
            differs &= ~(np.isnan(values) & np.isnan(other))
        at = differs.nonzero()[0]
        if at.size == 0:
            continue
        if values.dtype.kind not in "if":
            unclear[rows[at]] = True
            continue
        one, two = _integers(values[at]), _integers(other[at])
        sign = np.where(one < 0, -1, 1)
        number, rest = np.divmod(one * sign - _FIRST_STAND_IN, 2 * _OTHER)
        stands_in = (rest == 0) & (two == one + sign * _OTHER) & (number >= 0) & (number < forms.numbers[rows[at]])
        unclear[rows[at[~stands_in]]] = True
        at = at[stands_in]
        numbers[at] = number[stands_in]
        values[at] = sign[stands_in]
    return found


def _integers(values: NDArray[Any]) -> I64:
    if values.dtype.kind == "f":
        values = np.where(np.abs(values) < _BEYOND, values, 0)
    return values.astype(np.int64)


def _some(of_group: OfGroup, chosen: I64) -> OfGroup:
    return OfGroup(
        of_group.rows[chosen],
        {name: column[chosen] for name, column in of_group.columns.items()},
        {name: numbers[chosen] for name, numbers in of_group.which.items()},
    )


def _merged(parts: list[OfGroup]) -> OfGroup:
    """Forms of one group that come from several, in order."""
    rows = np.concatenate([part.rows for part in parts])
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    which = {name: np.concatenate([part.which[name] for part in parts]) for name in parts[0].which}
    return _some(OfGroup(rows, columns, which), np.argsort(rows, kind="stable"))
