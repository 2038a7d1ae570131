"""A line of a plane: its head, and its events decoded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from roofterm_parsers.threads import Later
from roofterm_parsers.xplane.boundaries import Boundaries, boundaries
from roofterm_parsers.xplane.events import Events, Part, Reading
from roofterm_parsers.xplane.wire import BYTES, U8, VARINT, Buffer, WireError, fields, signed, text

LINES_AHEAD, LINES_BEGUN = 3, 2
"""Lines of which the boundaries are looked for, and lines whose events are read, before the caller asks for them."""


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


class Span(NamedTuple):
    """Where a line lies, data[at:end], and the stats that are wanted of its events."""

    at: int
    end: int
    wanted: Collection[int]


def read_lines(data: Buffer, array: U8, spans: Sequence[Span], tick: Callable[[int], None], later: Later) -> Iterator[Line]:
    """The lines in order; with threads (`later`) those that follow are read while the caller works on one.

    `array` and `data` are the same memory. `tick` is told the bytes of each stretch of events, and may raise to stop.
    """
    begun: deque[tuple[Boundaries, Reading, list[Callable[[], Part]]]] = deque()
    ahead = iter(spans)
    found = deque((span, later(boundaries, data, array, span.at, span.end)) for span in islice(ahead, LINES_AHEAD))
    while found or begun:
        while found and len(begun) < LINES_BEGUN:
            span, bounds = found.popleft()
            known = bounds()
            reading = Reading(data, array, known.start, known.end, span.wanted)
            begun.append((known, reading, [later(reading.part, *stretch) for stretch in reading.stretches()]))
            found.extend((span, later(boundaries, data, array, span.at, span.end)) for span in islice(ahead, 1))
        known, reading, parts = begun.popleft()
        read = []
        for part in parts:
            read.append(part())
            tick(read[-1].bytes)
        yield _line(data, known, reading.joined(read))


def _line(data: Buffer, found: Boundaries, events: Events) -> Line:
    line = Line(0, "", "", 0, events, found.damaged_at is not None)
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
