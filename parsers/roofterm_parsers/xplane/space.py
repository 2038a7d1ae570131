"""An XSpace: its planes, their lines, and what names their events and stats (tsl/profiler/protobuf/xplane.proto).

Lines are only found here; `events.read_events` decodes what is in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from roofterm_parsers.xplane.wire import BYTES, EIGHT, VARINT, Buffer, WireError, double, fields, signed, text

Value: TypeAlias = int | float | str | bytes


class Stat(NamedTuple):
    """A stat as it lies in the file: id of its name, field of XStat that holds the value, value or data[a:b]."""

    stat: int
    wire: int
    a: int
    b: int


@dataclass(slots=True)
class EventMetadata:
    name: str
    display_name: str
    stats: list[Stat] = field(default_factory=list)


@dataclass(slots=True)
class Plane:
    id: int = 0
    name: str = ""
    lines: list[tuple[int, int]] = field(default_factory=list)
    """data[a:b] of each XLine"""
    event_metadata: dict[int, EventMetadata] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    stats: list[Stat] = field(default_factory=list)

    def stat_ids(self, names: frozenset[str]) -> dict[int, str]:
        """Ids of the stats with these names."""
        return {number: name for number, name in self.stat_names.items() if name in names}

    def value(self, data: Buffer, stat: Stat) -> Value:
        """The value of a stat; of a reference the text that it refers to."""
        if stat.wire == 2:
            return double(data, stat.a)
        if stat.wire == 5:
            return text(data, stat.a, stat.b)
        if stat.wire == 6:
            return bytes(data[stat.a : stat.b])
        if stat.wire == 7:
            return self.stat_names.get(stat.a, "")
        return signed(stat.a) if stat.wire == 4 else stat.a

    def values(self, data: Buffer, stats: list[Stat]) -> dict[str, Value]:
        """Stats by name; one without a name in the file is left out."""
        return {self.stat_names[stat.stat]: self.value(data, stat) for stat in stats if stat.stat in self.stat_names}


@dataclass(slots=True)
class Space:
    planes: list[Plane] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    """what could not be read, one sentence each"""


def looks_like_xplane(head: bytes) -> bool:
    """Whether a file that begins with these bytes (a few dozen are enough) can be an XSpace."""
    data = memoryview(head)
    try:
        number, wire, a, _ = _first_field(data)
        if number > 1:
            return wire == BYTES and number <= 4 and _printable(head[a : a + 8])
        plane = data[a:]
        number, inner, b, _ = _first_field(plane)
    except (WireError, StopIteration):
        return False
    if number == 1:
        return wire == BYTES and inner == VARINT
    if number == 2:
        return wire == inner == BYTES and _printable(bytes(plane[b : b + 8]))
    return wire == inner == BYTES and 3 <= number <= 6


def _printable(piece: bytes) -> bool:
    return piece.isascii() and piece.decode("ascii").isprintable()


def _first_field(data: Buffer) -> tuple[int, int, int, int]:
    try:
        return next(fields(data, 0, len(data)))
    except WireError as error:
        if error.cut is None:
            raise
        return error.cut, BYTES, error.at, len(data)


def read_space(data: Buffer) -> Space:
    """Planes with their metadata. What is damaged is named in `damage`, and everything before it is kept."""
    space = Space()
    for number, wire, a, b in _with_cut(data, 0, len(data), space, "the file"):
        if wire != BYTES:
            continue
        if number == 1:
            space.planes.append(_plane(data, a, b, space))
        elif number == 2:
            space.errors.append(text(data, a, b))
        elif number == 3:
            space.warnings.append(text(data, a, b))
        elif number == 4:
            space.hosts.append(text(data, a, b))
    return space


def _with_cut(data: Buffer, at: int, end: int, space: Space, where: str) -> Iterator[tuple[int, int, int, int]]:
    """`fields`, but damage is noted instead of raised, and a field that is cut off is given as far as it goes."""
    try:
        yield from fields(data, at, end)
    except WireError as error:
        space.damage.append(f"{where} is damaged or cut: {error}")
        if error.cut is not None:
            yield error.cut, BYTES, error.at, end


def _plane(data: Buffer, at: int, end: int, space: Space) -> Plane:
    plane = Plane()
    for number, wire, a, b in _with_cut(data, at, end, space, "a plane"):
        if number == 1 and wire == VARINT:
            plane.id = signed(a)
        elif wire != BYTES:
            continue
        elif number == 2:
            plane.name = text(data, a, b)
        elif number == 3:
            plane.lines.append((a, b))
        elif number == 4:
            _event_metadata(data, a, b, plane.event_metadata)
        elif number == 5:
            _stat_metadata(data, a, b, plane.stat_names)
        elif number == 6:
            stat = read_stat(data, a, b)
            if stat is not None:
                plane.stats.append(stat)
    return plane


def _entry(data: Buffer, at: int, end: int) -> tuple[int, int, int]:
    """A map entry: its key, and data[a:b] of its value."""
    key = a = b = 0
    for number, wire, x, y in fields(data, at, end):
        if number == 1 and wire == VARINT:
            key = x
        elif number == 2 and wire == BYTES:
            a, b = x, y
    return key, a, b


def _event_metadata(data: Buffer, at: int, end: int, known: dict[int, EventMetadata]) -> None:
    try:
        key, a, b = _entry(data, at, end)
        metadata = EventMetadata("", "")
        for number, wire, x, y in fields(data, a, b):
            if wire != BYTES:
                continue
            if number == 2:
                metadata.name = text(data, x, y)
            elif number == 4:
                metadata.display_name = text(data, x, y)
            elif number == 5:
                stat = read_stat(data, x, y)
                if stat is not None:
                    metadata.stats.append(stat)
    except WireError:
        return
    known[key] = metadata


def _stat_metadata(data: Buffer, at: int, end: int, names: dict[int, str]) -> None:
    try:
        key, a, b = _entry(data, at, end)
        for number, wire, x, y in fields(data, a, b):
            if number == 2 and wire == BYTES:
                names[key] = text(data, x, y)
    except WireError:
        return


def read_stat(data: Buffer, at: int, end: int) -> Stat | None:
    """An XStat; None if it is damaged or has no value."""
    stat = 0
    held: tuple[int, int, int] | None = None
    try:
        for number, wire, a, b in fields(data, at, end):
            if number == 1 and wire == VARINT:
                stat = a
            elif (number == 2 and wire == EIGHT) or (number in (3, 4, 7) and wire == VARINT) or (number in (5, 6) and wire == BYTES):
                held = (number, a, b)
    except WireError:
        return None
    return Stat(stat, *held) if held else None
