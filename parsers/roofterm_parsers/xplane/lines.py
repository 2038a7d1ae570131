"""A line of a plane: its head, and its events decoded."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from roofterm_parsers.xplane.boundaries import boundaries
from roofterm_parsers.xplane.events import Events, read_events
from roofterm_parsers.xplane.wire import BYTES, U8, VARINT, Buffer, WireError, fields, signed, text


@dataclass(slots=True)
class Line:
    id: int
    name: str
    display_name: str
    base_ps: int
    """time of the line's zero, ps; of any size"""
    events: Events
    damaged: bool
    """the line could not be read to its end"""


def read_line(data: Buffer, array: U8, at: int, end: int, wanted: Collection[int], tick: Callable[[int], None] | None = None) -> Line:
    """The line in data[at:end] with its `wanted` stats."""
    found = boundaries(data, array, at, end)
    line = Line(0, "", "", 0, read_events(data, array, found.start, found.end, wanted, tick), found.damaged_at is not None)
    for number, wire, a, b in found.other:
        if number == 1 and wire == VARINT:
            line.id = a
        elif number == 2 and wire == BYTES:
            line.name = text(data, a, b)
        elif number == 3 and wire == VARINT:
            line.base_ps = signed(a) * 1000
        elif number == 11 and wire == BYTES:
            line.display_name = text(data, a, b)
    return line


class Head(NamedTuple):
    """What stands before a line's events."""

    name: str
    base_ps: int
    """time of the line's zero, ps"""


def head_of(data: Buffer, at: int, end: int) -> Head | None:
    """The head of the line in data[at:end]; None for a line without events."""
    name, base = "", 0
    try:
        for number, wire, a, b in fields(data, at, end):
            if number == 2 and wire == BYTES:
                name = text(data, a, b)
            elif number == 3 and wire == VARINT:
                base = signed(a) * 1000
            elif number == 4:
                return Head(name, base)
    except WireError:
        pass
    return None
