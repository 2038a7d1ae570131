"""Events of any layout, field by field: one cursor an event, the cursors that meet the same tag moved together."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.xplane.layout import COLUMNS, OCCURRENCES, STATS, StatValue
from roofterm_parsers.xplane.wire import BYTES, EIGHT, FOUR, I64, U64, VARINT, Block, varints

Bools = NDArray[np.bool_]


class Met(NamedTuple):
    """A field that some of the messages have: its number, its wire type, and for each of them value, or position and size."""

    number: int
    wire: int
    message: I64
    value: U64
    size: I64


def read_mixed(
    block: Block,
    start: I64,
    end: I64,
    rows: I64,
    columns: I64,
    good: Bools,
    wanted: Collection[int],
    stats: list[StatValue],
) -> int:
    """Decode the `rows`, clearing `good` for those that are no events; returns how many are aggregated."""
    aggregated = 0
    damaged = np.zeros(rows.size, bool)
    spans: list[Met] = []
    for met in _fields(block, start[rows], end[rows], damaged):
        if met.number in COLUMNS and met.wire == VARINT:
            columns[COLUMNS[met.number], rows[met.message]] = met.value.view(np.int64)
        elif met.number == OCCURRENCES:
            aggregated += met.message.size
        elif met.number == STATS and met.wire == BYTES:
            spans.append(met)
    if spans:
        owner = np.concatenate([span.message for span in spans])
        at = np.concatenate([span.value for span in spans]).view(np.int64)
        size = np.concatenate([span.size for span in spans])
        order = np.argsort(at, kind="stable")
        broken = np.zeros(owner.size, bool)
        _read_stats(block, rows[owner[order]], at[order], at[order] + size[order], broken, wanted, stats)
    good[rows[damaged]] = False
    return aggregated


def _read_stats(block: Block, event: I64, at: I64, end: I64, broken: Bools, wanted: Collection[int], stats: list[StatValue]) -> None:
    ids = np.zeros(at.size, np.int64)
    values: list[Met] = []
    for met in _fields(block, at, end, broken):
        if met.number == 1 and met.wire == VARINT:
            ids[met.message] = met.value.view(np.int64)
        elif 2 <= met.number <= 7:
            values.append(met)
    wanted_ids = np.fromiter(wanted, np.int64, len(wanted))
    for met in values:
        own = ids[met.message]
        sound = np.isin(own, wanted_ids) & ~broken[met.message]
        order = np.argsort(own[sound], kind="stable")
        chosen = np.flatnonzero(sound)[order]
        cuts = np.flatnonzero(np.diff(own[chosen])) + 1
        for part in np.split(chosen, cuts):
            if part.size:
                stats.append(StatValue(int(own[part[0]]), event[met.message[part]], met.number, met.value[part], met.size[part]))


def _fields(block: Block, start: I64, end: I64, damaged: Bools) -> Iterator[Met]:
    """Fields of the messages block[start:end], round by round: the first of each message, then the second, ...

    A message whose bytes are no field, or whose field sticks out of it, is marked damaged and read no further.
    """
    message = np.flatnonzero(start < end)
    at = start[message]
    limit = block.bytes.size - 16
    while message.size:
        tags = block.bytes[at]
        following = at.copy()
        bad = np.zeros(message.size, bool)
        met: list[Met] = []
        for tag in np.flatnonzero(np.bincount(tags, minlength=256)).tolist():
            sub = np.flatnonzero(tags == tag)
            if tag >= 128:
                keys, behind = varints(block, at[sub])
                for wire in range(8):
                    same = np.flatnonzero((keys & np.uint64(7)) == wire)
                    if same.size:
                        rows = sub[same]
                        _, _, following[rows], bad[rows] = _value(block, behind[same], wire, limit)
                continue
            value, size, following[sub], bad[sub] = _value(block, at[sub] + 1, tag & 7, limit)
            bad[sub] |= tag >> 3 == 0
            met.append(Met(tag >> 3, tag & 7, sub, value, size))
        bad |= (following < 0) | (following > end[message])
        damaged[message[bad]] = True
        for one in met:
            sound = ~bad[one.message]
            if sound.all():
                yield Met(one.number, one.wire, message[one.message], one.value, one.size)
            else:
                yield Met(one.number, one.wire, message[one.message[sound]], one.value[sound], one.size[sound])
        on = ~bad & (following < end[message])
        message, at = message[on], following[on]


def _value(block: Block, at: I64, wire: int, limit: int) -> tuple[U64, I64, I64, Bools]:
    """Values at the positions (of a text the position), sizes, positions behind, and which are no field."""
    none = np.zeros(at.size, np.int64)
    bad = at < 0
    at = np.clip(at, 0, limit)
    if wire == VARINT:
        value, behind = varints(block, at)
        return value, none, behind, bad
    if wire == BYTES:
        length, behind = varints(block, at)
        size = np.minimum(length, np.uint64(limit + 1)).astype(np.int64)
        return behind.astype(np.uint64), size, np.where(behind < 0, -1, behind + size), bad
    if wire == EIGHT:
        return block.words[at], none, at + 8, bad
    if wire == FOUR:
        return block.words[at] & np.uint64(0xFFFFFFFF), none, at + 4, bad
    return none.astype(np.uint64), none, at, np.ones(at.size, bool)
