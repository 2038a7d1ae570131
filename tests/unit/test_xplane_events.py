"""Vectorised decoding of events gives what a walk through the bytes gives, whatever the mix of layouts."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofterm_parsers.xplane import boundaries as boundaries_module
from roofterm_parsers.xplane import events as events_module
from roofterm_parsers.xplane.boundaries import boundaries
from roofterm_parsers.xplane.events import read_events
from roofterm_parsers.xplane.wire import Block, varints
from tests.xspace import number, text, varint

Event = tuple[int, int, int, list[tuple[int, Any]]]
"""metadata, offset, duration, stats as (id, value)"""


def encoded(event: Event) -> bytes:
    """Zeros left out, as writers do."""
    metadata, offset, dur, stats = event
    body = b"".join(number(i, value) for i, value in ((1, metadata), (2, offset), (3, dur)) if value)
    for stat, value in stats:
        head = number(1, stat)
        if isinstance(value, float):
            body += text(4, head + varint(2 << 3 | 1) + struct.pack("<d", value))
        elif isinstance(value, int):
            body += text(4, head + number(4 if value < 0 else 3, value))
        else:
            body += text(4, head + text(5, value))
    return body


def decoded(events: list[Event], wanted: set[int]) -> list[Event]:
    line = b"".join(text(4, encoded(event)) for event in events)
    data = memoryview(line)
    array = np.frombuffer(line, np.uint8)
    found = boundaries(data, array, 0, len(line))
    columns = read_events(data, array, found.start, found.end, wanted)
    assert (found.damaged_at, columns.damaged) == (None, 0)
    stats: list[list[tuple[int, Any]]] = [[] for _ in events]
    for stat, column in columns.stats.items():
        floats, integers = column.floats(), column.integers()
        for i, (row, wire) in enumerate(zip(column.event.tolist(), column.wire.tolist(), strict=True)):
            if wire == 5:
                assert column.size is not None
                at = int(column.value[i])
                value: Any = line[at : at + int(column.size[i])]
            else:
                value = float(floats[i]) if wire == 2 else int(integers[i])
            stats[row].append((stat, value))
    rows = zip(columns.metadata.tolist(), columns.offset_ps.tolist(), columns.dur_ps.tolist(), stats, strict=True)
    return [(metadata, offset, dur, sorted(own, key=lambda one: one[0])) for metadata, offset, dur, own in rows]


NUMBER = st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1), st.sampled_from([0, 127, 128, 2**56 - 1, 2**56, 2**63 - 1]))
VALUE = st.one_of(
    NUMBER,
    st.integers(-(2**63), -1),
    st.floats(allow_nan=False),
    st.binary(max_size=20),
    st.just(b"\x22\x02\x08\x01" * 40),  # looks like events
)
STATS = st.dictionaries(st.integers(1, 6), VALUE, max_size=4).map(lambda held: sorted(held.items()))
EVENT = st.tuples(st.integers(0, 2**20), NUMBER, NUMBER, STATS)


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENT, min_size=1, max_size=40))
def test_any_events_are_read_back(events: list[Event]) -> None:
    assert decoded(events, {1, 2, 3, 4, 5, 6}) == events


@settings(max_examples=30, deadline=None)
@given(st.lists(EVENT, min_size=1, max_size=20), st.sets(st.integers(1, 6)))
def test_stats_that_are_not_wanted_are_passed_over(events: list[Event], wanted: set[int]) -> None:
    expected = [(m, o, d, [one for one in stats if one[0] in wanted]) for m, o, d, stats in events]
    assert decoded(events, wanted) == expected


def mixed(n: int) -> list[Event]:
    """Events of a few layouts, some with text that looks like the beginning of an event."""
    trap = b"\x22\x04\x08\x01\x10\x02" * 9
    stats: list[list[tuple[int, Any]]] = [[], [(1, 5), (2, 2.5)], [(3, trap)], [(1, 2**60), (2, 1.0), (4, -7)]]
    return [(1 + i % 7, i * 1000, i % 5 * 90, stats[(i * i) % 4]) for i in range(n)]


def test_blocks_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "BLOCK_EVENTS", 16)
    events = mixed(1000)
    assert decoded(events, {1, 2, 3, 4}) == events


@pytest.mark.parametrize("stride", [64, 256, 1500])
def test_many_walkers_find_what_one_finds(monkeypatch: pytest.MonkeyPatch, stride: int) -> None:
    monkeypatch.setattr(boundaries_module, "SHORT_BYTES", 0)
    monkeypatch.setattr(boundaries_module, "STRIDE_BYTES", stride)
    events = mixed(3000)
    assert decoded(events, {1, 2, 3, 4}) == events


def test_fields_of_the_line_are_found_before_and_behind_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries_module, "SHORT_BYTES", 0)
    events = [text(4, encoded(event)) for event in mixed(200)]
    line = number(1, 77) + text(2, "name") + b"".join(events[:120]) + number(9, 5) + b"".join(events[120:]) + text(11, "shown")
    found = boundaries(memoryview(line), np.frombuffer(line, np.uint8), 0, len(line))
    assert found.start.size == 200
    assert [field[0] for field in found.other] == [1, 2, 9, 11]
    assert [line[a:b] for a, b in zip(found.start.tolist(), found.end.tolist(), strict=True)] == [encoded(event) for event in mixed(200)]


def test_a_line_that_is_cut_keeps_its_whole_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries_module, "SHORT_BYTES", 0)
    events = [text(4, encoded(event)) for event in mixed(500)]
    line = b"".join(events)[:-3]
    found = boundaries(memoryview(line), np.frombuffer(line, np.uint8), 0, len(line))
    assert found.start.size == 499
    assert found.damaged_at is not None


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50))
def test_numbers_of_all_lengths_are_read_at_once(values: list[int]) -> None:
    pieces = [varint(value) for value in values]
    ends = np.cumsum([len(piece) for piece in pieces])
    block = Block(np.frombuffer(b"".join(pieces), np.uint8))
    found, behind = varints(block, ends - [len(piece) for piece in pieces])
    assert found.tolist() == values
    assert behind.tolist() == ends.tolist()


def test_a_number_without_end_is_none() -> None:
    block = Block(np.frombuffer(b"\xff" * 11, np.uint8))
    _, behind = varints(block, np.array([0]))
    assert behind.tolist() == [-1]
