"""A layout: the order of an event's fields and stats, followed by the cursors of many events at once.

An event follows a layout if at each place its cursor meets the layout's tag, each stat has the layout's id and length
that ends where its fields end, and the cursor arrives exactly at the event's end. Nothing else is checked and nothing
else need be: by induction over the places every cursor stands where the wire format says.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.xplane.wire import (
    BYTES,
    EIGHT,
    FOUR,
    I64,
    PADDING_BYTES,
    U64,
    VARINT,
    Block,
    Buffer,
    WireError,
    behind_varints,
    fields,
    varints,
    varints_behind_tags,
)

METADATA, OFFSET, DURATION, STATS, OCCURRENCES = 1, 2, 3, 4, 5
"""Fields of XEvent."""
COLUMNS = {METADATA: 0, OFFSET: 1, DURATION: 2}
MOST_PLACES = 200
_LENGTH = np.uint64(0x7F)


@dataclass(slots=True)
class StatValue:
    """One stat of some events: value bits, or position and size in the block of a text."""

    stat: int
    event: NDArray[np.int32] | I64
    wire: int
    value: U64
    size: I64 | None


@dataclass(frozen=True, slots=True)
class Head:
    """A stat up to its value, where that is short: its tag, a length of one byte, its id, the value's tag. Compared as one word."""

    word: np.uint64
    mask: np.uint64
    """all bits but the length's, of which only the top one must be clear"""
    size: int


@dataclass(frozen=True, slots=True)
class Place:
    tag: int
    column: int | None = None
    """column of the event that this number fills"""
    stat: int | None = None
    """stat whose value stands here, if it is wanted"""
    equals: int | None = None
    """the number that must stand here: a stat's id"""
    opens: bool = False
    """a stat begins here"""
    closes: bool = False
    """a stat ends here"""
    head: Head | None = None
    """what stands before this value, the tag included"""


@dataclass(frozen=True, slots=True)
class Layout:
    places: tuple[Place, ...]
    aggregated: bool

    def read(self, block: Block, start: I64, end: I64, rows: I64, columns: I64, stats: list[StatValue]) -> NDArray[np.bool_]:
        """Decode those of the `rows` that follow this layout, into `columns` and `stats`; says which of them did."""
        at, stop = start[rows], end[rows]
        last = block.bytes.size - PADDING_BYTES
        fits = np.ones(rows.size, bool)
        filled: list[tuple[int, U64]] = []
        found: list[StatValue] = []
        stat_end = stop
        for place in self.places:
            word, wire = block.words[at], place.tag & 7
            if place.head is None:
                fits &= word.view(np.uint8)[::8] == place.tag
            else:
                stat_end = at + word.view(np.uint8)[1::8]
                stat_end += 2
                at += place.head.size
                word &= place.head.mask
                fits &= word == place.head.word
            if place.head is None and wire != VARINT:
                at += 1
            size: I64 | None = None
            value: U64 | None = None
            if wire == VARINT and place.head is None:
                value, at = varints_behind_tags(block, at, word)
            elif wire == VARINT and place.stat is None:
                at = behind_varints(block, at)
            elif wire == VARINT:
                value, at = varints(block, at)
            elif wire == EIGHT:
                value, at = block.words[at], at + 8
            elif wire == FOUR:
                at += 4
            else:
                length, at = varints(block, at)
                size = np.minimum(length, np.uint64(last)).astype(np.int64)
                if place.opens:
                    stat_end = at + size
                else:
                    value, at = at.astype(np.uint64), at + size
                fits &= (at >= 0) & (at <= stop)
                at = np.clip(at, 0, last)
            if place.equals is not None and value is not None:
                fits &= value == place.equals
            if place.column is not None and value is not None:
                filled.append((place.column, value))
            if place.stat is not None and value is not None:
                found.append(StatValue(place.stat, rows, place.tag >> 3, value, size))
            if place.closes:
                fits &= at == stat_end
        fits &= at == stop
        whole = bool(fits.all())
        chosen = rows if whole else rows[fits]
        for column, value in filled:
            columns[column][chosen] = (value if whole else value[fits]).view(np.int64)
        for stat in found:
            size = stat.size
            stats.append(
                StatValue(
                    stat.stat,
                    chosen,
                    stat.wire,
                    stat.value if whole else stat.value[fits],
                    size if whole or size is None else size[fits],
                )
            )
        return fits


def layout_of(data: Buffer, at: int, end: int, wanted: Collection[int]) -> Layout | None:
    """The layout of the event in data[at:end]; None if the event is damaged or too long to be one of many."""
    places: list[Place] = []
    aggregated = False
    try:
        for number, wire, a, b in fields(data, at, end):
            if number > 15:
                return None
            tag = number << 3 | wire
            if number == STATS and wire == BYTES:
                places += _stat_places(data, a, b, wanted)
                continue
            aggregated |= number == OCCURRENCES
            places.append(Place(tag, column=COLUMNS.get(number) if wire == VARINT else None))
    except WireError:
        return None
    return Layout(tuple(places), aggregated) if len(places) <= MOST_PLACES else None


def _stat_places(data: Buffer, at: int, end: int, wanted: Collection[int]) -> list[Place]:
    inner = list(fields(data, at, end))
    if any(number > 15 for number, *_ in inner):
        raise WireError(at, "an unknown field")
    stat = next((a for number, wire, a, _ in inner if number == 1 and wire == VARINT), 0)
    head = _head(data, at, inner, end - at)
    places = [] if head is not None else [Place(STATS << 3 | BYTES, opens=True, closes=at == end)]
    for i, (number, wire, a, _) in enumerate(inner):
        closes = i == len(inner) - 1
        if number == 1 and wire == VARINT:
            if head is None:
                places.append(Place(number << 3 | wire, equals=a, closes=closes))
            continue
        value = stat in wanted and 2 <= number <= 7
        places.append(Place(number << 3 | wire, stat=stat if value else None, closes=closes, head=head))
    return places


def _head(data: Buffer, at: int, inner: list[tuple[int, int, int, int]], size: int) -> Head | None:
    """The head of the stat whose message begins at data[at], if it has an id and then one value, and fits a word."""
    if len(inner) != 2 or inner[0][0] != 1 or inner[0][1] != VARINT or inner[1][0] == 1 or size > _LENGTH:
        return None
    behind_id = inner[0][3]
    known = bytes(data[at : behind_id + 1])
    if len(known) > 6:
        return None
    tag = STATS << 3 | BYTES
    word = int.from_bytes(bytes([tag, 0]) + known, "little")
    mask = int.from_bytes(bytes([0xFF, 0x80]) + b"\xff" * len(known), "little")
    return Head(np.uint64(word), np.uint64(mask), 2 + len(known))
