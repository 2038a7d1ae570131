"""The events of a line as columns: metadata id, offset, length, and a column for each stat that is wanted.

A block of events is decoded at once by one cursor an event. First all cursors try to follow the layout (the order of
fields and stats) of the first event that is left; those that can not try the next one; the rest, of many layouts, goes
field by field. Both ways read every byte by the wire format, so they give the same columns.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.xplane.layout import Layout, StatValue, layout_of
from roofterm_parsers.xplane.mixed import read_mixed
from roofterm_parsers.xplane.wire import I64, U8, U64, Block, Buffer

BLOCK_EVENTS = 1 << 15
"""Events decoded together: their columns stay in the processor's second cache."""
PART_EVENTS = 1 << 17
"""Events decoded in one go by one thread, block by block."""
LAYOUTS_TRIED = 4
LAYOUT_SHARE = 8
"""A layout that fits less than one in this many events is not worth its pass; the rest goes field by field."""


DOUBLE, UINT, INT, TEXT, RAW, REFERENCE = 2, 3, 4, 5, 6, 7
"""Fields of XStat that hold its value."""


class StatColumn(NamedTuple):
    """One stat of a line's events: for each event that has it, in order, the field of XStat that holds its value."""

    event: NDArray[np.int32]
    """row of the event in its line"""
    wire: U8
    """DOUBLE, UINT, INT, TEXT, RAW or REFERENCE (to a stat's name)"""
    value: U64
    """bits of the double or integer; of a text or bytes the position in the file"""
    size: I64 | None
    """length of a text or bytes; None if no value is one"""

    def integers(self) -> I64:
        """Values as int64; doubles are cut to integers, texts are 0."""
        plain = self.value.view(np.int64)
        if self.wire.size == 0 or (self.wire.min() >= UINT and self.wire.max() <= INT):
            return plain
        doubles = self.wire == DOUBLE
        if doubles.any():
            floats = self.value.view(np.float64)
            fits = doubles & np.isfinite(floats) & (np.abs(floats) < 2.0**63)
            cut = np.zeros(floats.size, np.int64)
            cut[fits] = floats[fits].astype(np.int64)
            plain = np.where(doubles, cut, plain)
        return np.where(self.wire >= TEXT, 0, plain)

    def floats(self) -> NDArray[np.float64]:
        """Values as float64; texts are NaN."""
        if self.wire.size and int(self.wire.min()) == int(self.wire.max()) == DOUBLE:
            return self.value.view(np.float64)
        if self.wire.size and int(self.wire.min()) == int(self.wire.max()) == UINT:
            return self.value.astype(np.float64)
        floats = np.where(self.wire == DOUBLE, self.value.view(np.float64), self.value.astype(np.float64))
        floats = np.where(self.wire == INT, self.value.view(np.int64).astype(np.float64), floats)
        return np.where(self.wire >= TEXT, np.nan, floats)


@dataclass(slots=True)
class Events:
    """Columns of a line's events, in file order."""

    metadata: I64
    offset_ps: I64
    dur_ps: I64
    at: I64
    """position of the event's payload in the file"""
    aggregated: int = 0
    """events that state a number of occurrences instead of an offset"""
    damaged: int = 0
    """events left out because their bytes are no event"""
    stats: dict[int, StatColumn] = field(default_factory=dict)


class Part(NamedTuple):
    """What was read of a stretch of a line's events beside its columns."""

    pieces: dict[int, list[StatValue]]
    """by stat; rows are of the line"""
    aggregated: int
    bytes: int


class Reading:
    """A line's events in the making: its stretches are read in any order, also side by side, and put together at the end."""

    def __init__(self, data: Buffer, array: U8, start: I64, end: I64, wanted: Collection[int]) -> None:
        """The events whose payloads lie at array[start:end]; stats whose metadata id is not wanted are passed over.

        `array` and `data` are the same memory.
        """
        self._data, self._array, self._start, self._end, self._wanted = data, array, start, end, wanted
        self._columns = np.zeros((3, start.size), np.int64)
        self._good = np.ones(start.size, bool)

    def stretches(self) -> list[tuple[int, int]]:
        """The events [first, last) to be read in one go each."""
        n = self._start.size
        return [(a, min(a + PART_EVENTS, n)) for a in range(0, n, PART_EVENTS)]

    def part(self, first: int, last: int) -> Part:
        """Read the events [first, last)."""
        pieces: dict[int, list[StatValue]] = {}
        layouts: list[Layout] = []
        aggregated = 0
        for a in range(first, last, BLOCK_EVENTS):
            b = min(a + BLOCK_EVENTS, last)
            origin = int(self._start[a])
            block = Block(self._array[origin : int(self._end[b - 1])])
            found: list[StatValue] = []
            event = Bytes(self._data, origin, self._start[a:b] - origin, self._end[a:b] - origin)
            aggregated += _read_block(block, event, self._columns[:, a:b], self._good[a:b], self._wanted, layouts, found)
            for piece in _in_order(found):
                piece.event = (piece.event + a).astype(np.int32)
                if piece.wire in (TEXT, RAW):
                    piece.value += np.uint64(origin)
                pieces.setdefault(piece.stat, []).append(piece)
        return Part(pieces, aggregated, int(self._end[last - 1] - self._start[first]))

    def joined(self, parts: Sequence[Part]) -> Events:
        """The events, of the parts in order."""
        metadata, offset, dur = self._columns
        aggregated = sum(part.aggregated for part in parts)
        events = Events(metadata, offset, dur, self._start, aggregated, int(self._good.size - self._good.sum()))
        for stat in dict.fromkeys(stat for part in parts for stat in part.pieces):
            events.stats[stat] = _column([piece for part in parts for piece in part.pieces.get(stat, ())])
        return _kept(events, self._good) if events.damaged else events


def read_events(data: Buffer, array: U8, start: I64, end: I64, wanted: Collection[int]) -> Events:
    """Decode events one stretch after the other; as `Reading`."""
    reading = Reading(data, array, start, end, wanted)
    return reading.joined([reading.part(first, last) for first, last in reading.stretches()])


def _read_block(
    block: Block,
    event: Bytes,
    columns: I64,
    good: NDArray[np.bool_],
    wanted: Collection[int],
    layouts: list[Layout],
    stats: list[StatValue],
) -> int:
    """Fill columns and stats of a block's events; returns how many are aggregated.

    `layouts` are those that served the block before; those that serve this one are left there, the best first.
    """
    left = np.arange(event.start.size)
    aggregated = 0
    served: list[tuple[int, Layout]] = []
    candidates = list(layouts)
    while left.size and len(served) < LAYOUTS_TRIED:
        layout = candidates.pop(0) if candidates else event.layout(int(left[0]), wanted)
        if layout is None:
            break
        fits = layout.read(block, event.start, event.end, left, columns, stats)
        count = int(fits.sum())
        served.append((count, layout))
        aggregated += count if layout.aggregated else 0
        left = left[~fits]
    if left.size:
        aggregated += read_mixed(block, event.start, event.end, left, columns, good, wanted, stats)
    served.sort(key=lambda one: -one[0])
    layouts[:] = [layout for count, layout in served if count * LAYOUT_SHARE >= event.start.size]
    return aggregated


class Bytes(NamedTuple):
    """Where a block's events lie in the block, and the block in the file."""

    data: Buffer
    origin: int
    start: I64
    end: I64

    def layout(self, row: int, wanted: Collection[int]) -> Layout | None:
        return layout_of(self.data, self.origin + int(self.start[row]), self.origin + int(self.end[row]), wanted)


def _in_order(found: list[StatValue]) -> list[StatValue]:
    """A block's pieces, those of several layouts that hold one stat put together in the events' order.

    Sorting a block is done in the processor's cache; sorting a line is not.
    """
    by_stat: dict[int, list[StatValue]] = {}
    for piece in found:
        by_stat.setdefault(piece.stat, []).append(piece)
    merged = []
    for pieces in by_stat.values():
        first = pieces[0]
        if len(pieces) == 1 or any(piece.wire != first.wire for piece in pieces):
            merged += pieces
            continue
        event = np.concatenate([piece.event for piece in pieces])
        order = np.argsort(event, kind="stable")
        value = np.concatenate([piece.value for piece in pieces])[order]
        size = _sizes(pieces)[order] if first.wire in (TEXT, RAW) else None
        merged.append(StatValue(first.stat, event[order], first.wire, value, size))
    return merged


def _column(parts: list[StatValue]) -> StatColumn:
    event = np.concatenate([part.event for part in parts])
    wire = np.repeat(np.array([part.wire for part in parts], np.uint8), [part.event.size for part in parts])
    value = np.concatenate([part.value for part in parts])
    texts = any(part.wire in (TEXT, RAW) for part in parts)
    size = _sizes(parts) if texts else None
    column = StatColumn(event, wire, value, size)
    if np.any(event[1:] < event[:-1]):
        column = _taken(column, np.argsort(event, kind="stable"))
    twice = column.event[1:] == column.event[:-1]
    if twice.any():  # a stat stated twice: the last one counts, as for any protocol buffer field
        column = _taken(column, np.append(~twice, True))
    return column


def _sizes(parts: list[StatValue]) -> I64:
    return np.concatenate([np.zeros(part.event.size, np.int64) if part.size is None else part.size for part in parts])


def _taken(column: StatColumn, which: NDArray[np.int64] | NDArray[np.bool_]) -> StatColumn:
    size = None if column.size is None else column.size[which]
    return StatColumn(column.event[which], column.wire[which], column.value[which], size)


def _kept(events: Events, good: NDArray[np.bool_]) -> Events:
    """Without the damaged events."""
    row = (np.cumsum(good) - 1).astype(np.int32)
    kept = Events(events.metadata[good], events.offset_ps[good], events.dur_ps[good], events.at[good], events.aggregated, events.damaged)
    for stat, column in events.stats.items():
        inside = _taken(column, good[column.event])
        kept.stats[stat] = inside._replace(event=row[inside.event])
    return kept
