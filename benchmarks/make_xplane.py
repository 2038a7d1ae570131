"""Write a large .xplane.pb: a small one whose events are repeated, times and step numbers carried on.

    python -m benchmarks.make_xplane uniform 2100000 OUT.xplane.pb
    python -m benchmarks.make_xplane tpu 5000000 OUT.xplane.pb
    python -m benchmarks.make_xplane serving 5000000 OUT.xplane.pb
    python -m benchmarks.make_xplane SMALL.xplane.pb 5000000 OUT.xplane.pb

`uniform` has one line of ops that all carry the same stats; `tpu` is five steps of training on four cores, with lines and stats
of many kinds; `serving` is a program run again and again without steps, beside a host with more events than its four cores. The
number is how many events there are at least. The same bytes each time.

The samples of the project are too small for it: of a few dozen ops a step, five million events are a hundred thousand steps.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import xplane_seeds
from benchmarks.byte_rows import ByteRows, beside, constants, sized, varints
from tests.xspace import number, text, varint

# xplane.proto: numbers of the fields used here.
SPACE_PLANE = 1
PLANE_LINE, PLANE_STAT_METADATA = 3, 5
LINE_EVENT = 4
EVENT_OFFSET, EVENT_DURATION, EVENT_STAT = 2, 3, 4
STAT_ID, STAT_UINT64, STAT_INT64 = 1, 3, 4
MAP_VALUE, NAME = 2, 2

GAP_PS = 1_000_000
BLOCK_EVENTS = 100_000
"""so many are encoded at once"""

TIMES = (b"device_offset_ps",)
"""Stats that move with the time."""
NUMBERS = (b"group_id", b"step_num", b"run_id")
"""Stats that count on."""


def inflate(small: bytes, events: int) -> Iterator[bytes]:
    """Pieces of a space like `small` with `events` events at least."""
    planes = [_read_plane(body) if key == SPACE_PLANE else None for key, body, _ in fields(small)]
    known = [plane for plane in planes if plane is not None]
    copies = -(-events // max(sum(len(line.events) for plane in known for line in plane.lines), 1))
    span = max((plane.span_ps for plane in known), default=0) + GAP_PS
    strides = {"time": span, **_counting_strides(known)}
    for plane, (_, _, raw) in zip(planes, fields(small), strict=True):
        yield raw if plane is None else text(SPACE_PLANE, _inflated(plane, copies, strides))


@dataclass
class Moving:
    """A number of an event that is another one in each copy."""

    kind: str
    before: bytes
    """of its message: tags and what stands before the value"""
    value: int
    is_stat: bool


@dataclass
class Event:
    constant: list[bytes] = field(default_factory=lambda: [b""])
    """bytes before, between and after the moving numbers"""
    moving: list[Moving] = field(default_factory=list)


@dataclass
class Line:
    head: bytes
    events: list[Event]


@dataclass
class Plane:
    parts: list[bytes | Line]
    """lines, and the text of the fields between them"""
    span_ps: int

    @property
    def lines(self) -> list[Line]:
        return [part for part in self.parts if isinstance(part, Line)]


def fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, payload (of a varint: the varint itself) and whole text of each field."""
    at = 0
    while at < len(message):
        start = at
        key, at = read_varint(message, at)
        if key & 7 == 2:
            size, at = read_varint(message, at)
            end = at + size
        elif key & 7 == 0:
            _, end = read_varint(message, at)
        else:
            end = at + (8 if key & 7 == 1 else 4)
        yield key >> 3, message[at:end], message[start:end]
        at = end


def read_varint(message: bytes, at: int) -> tuple[int, int]:
    """A varint's value, and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        shift += 7
        at += 1
        if byte < 128:
            return value, at


def _read_plane(body: bytes) -> Plane:
    kinds = _kinds_of_stats(body)
    parts: list[bytes | Line] = []
    spans = []
    for key, payload, raw in fields(body):
        if key == PLANE_LINE:
            line, span = _read_line(payload, kinds)
            parts.append(line)
            spans += [span] if line.events else []
        else:
            parts.append(raw)
    return Plane(parts, max((end for _, end in spans), default=0) - min((start for start, _ in spans), default=0))


def _kinds_of_stats(plane: bytes) -> dict[int, str]:
    """What the stats that differ from copy to copy are, by their id."""
    kinds = {}
    for key, entry, _ in fields(plane):
        if key == PLANE_STAT_METADATA:
            metadata = {number: payload for number, payload, _ in fields(entry)}[MAP_VALUE]
            facts = {number: payload for number, payload, _ in fields(metadata)}
            name = facts.get(NAME, b"")
            if name in (*TIMES, *NUMBERS):
                kinds[read_varint(facts[STAT_ID], 0)[0]] = "time" if name in TIMES else name.decode()
    return kinds


def _read_line(body: bytes, kinds: dict[int, str]) -> tuple[Line, tuple[int, int]]:
    """A line, and when its first event begins and its last one ends."""
    head, events, first, last = b"", [], 1 << 62, 0
    for key, payload, raw in fields(body):
        if key != LINE_EVENT:
            head += raw
            continue
        event, offset, duration = _read_event(payload, kinds)
        events.append(event)
        first, last = min(first, offset), max(last, offset + duration)
    return Line(head, events), (first, last)


def _read_event(body: bytes, kinds: dict[int, str]) -> tuple[Event, int, int]:
    event, offset, duration = Event(), 0, 0
    for key, payload, raw in fields(body):
        moving = None
        if key == EVENT_OFFSET:
            offset = read_varint(payload, 0)[0]
            moving = Moving("time", varint(EVENT_OFFSET << 3), offset, is_stat=False)
        elif key == EVENT_STAT:
            moving = _read_stat(payload, kinds)
        elif key == EVENT_DURATION:
            duration = read_varint(payload, 0)[0]
        if moving is None:
            event.constant[-1] += raw
        else:
            event.moving.append(moving)
            event.constant.append(b"")
    return event, offset, duration


def _read_stat(body: bytes, kinds: dict[int, str]) -> Moving | None:
    facts = {key: payload for key, payload, _ in fields(body)}
    stat_id = read_varint(facts[STAT_ID], 0)[0]
    value = next((key for key in (STAT_UINT64, STAT_INT64) if key in facts), None)
    if stat_id not in kinds or value is None:
        return None
    return Moving(kinds[stat_id], number(STAT_ID, stat_id) + varint(value << 3), read_varint(facts[value], 0)[0], is_stat=True)


def _counting_strides(planes: list[Plane]) -> dict[str, int]:
    """By how much each counting stat goes on from copy to copy, so that no number comes twice."""
    values: dict[str, list[int]] = {}
    for plane in planes:
        for line in plane.lines:
            for event in line.events:
                for moving in event.moving:
                    values.setdefault(moving.kind, []).append(moving.value)
    return {kind: max(found) - min(found) + 1 for kind, found in values.items() if kind != "time"}


def _inflated(plane: Plane, copies: int, strides: dict[str, int]) -> bytes:
    written = []
    for part in plane.parts:
        if isinstance(part, Line):
            written.append(text(PLANE_LINE, part.head + b"".join(_repeated(part.events, copies, strides))))
        else:
            written.append(part)
    return b"".join(written)


def _repeated(events: list[Event], copies: int, strides: dict[str, int]) -> Iterator[bytes]:
    """The events of a line, copy after copy."""
    if not events:
        return
    slots = max(len(event.moving) for event in events)
    constant = [constants([event.constant[at] if at < len(event.constant) else b"" for event in events]) for at in range(slots + 1)]
    moving = [_Column([event.moving[at] if at < len(event.moving) else None for event in events], strides) for at in range(slots)]
    at_once = max(BLOCK_EVENTS // len(events), 1)
    for first in range(0, copies, at_once):
        numbers = np.arange(first, min(first + at_once, copies))
        rows = np.tile(np.arange(len(events)), len(numbers))
        copy = np.repeat(numbers, len(events))
        columns = [constant[0].take(rows)]
        for at in range(slots):
            columns += [moving[at].encoded(rows, copy), constant[at + 1].take(rows)]
        yield sized(LINE_EVENT << 3 | 2, beside(*columns)).joined()


class _Column:
    """One moving number of each event, where it has so many."""

    def __init__(self, moving: list[Moving | None], strides: dict[str, int]) -> None:
        self._before = constants([one.before if one else b"" for one in moving])
        self._value = np.array([one.value if one else 0 for one in moving], np.uint64)
        self._stride = np.array([strides[one.kind] if one else 0 for one in moving], np.uint64)
        self._is_stat = np.array([bool(one and one.is_stat) for one in moving])
        self._is_there = np.array([one is not None for one in moving])

    def encoded(self, rows: NDArray[np.int64], copy: NDArray[np.int64]) -> ByteRows:
        values = varints(self._value[rows] + self._stride[rows] * copy.astype(np.uint64))
        body = beside(self._before.take(rows), ByteRows(values.data, values.kept & self._is_there[rows, None]))
        wrapped = sized(EVENT_STAT << 3 | 2, body)
        front = wrapped.data.shape[1] - body.data.shape[1]
        kept = wrapped.kept.copy()
        kept[:, :front] &= self._is_stat[rows, None]  # an offset is a field of the event itself
        return ByteRows(wrapped.data, kept)


def small_space(which: str) -> bytes:
    """`uniform`, `tpu`, `serving`, or the content of a file."""
    built = {"uniform": xplane_seeds.uniform, "tpu": xplane_seeds.training, "serving": xplane_seeds.serving}
    return built[which]() if which in built else Path(which).read_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", help="uniform, tpu, serving, or a small .xplane.pb")
    parser.add_argument("events", type=int)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    with args.out.open("wb") as out:
        for piece in inflate(small_space(args.which), args.events):
            out.write(piece)


if __name__ == "__main__":
    main()
