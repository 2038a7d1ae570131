"""Text of trace events to columns: the one function between bytes and arrays, which a compiled scanner could replace.

A `Decoder` takes blocks of text that each hold whole events and gives a `Block` of columns for each. Names, lanes and
argument texts are given as codes of dictionaries that belong to the decoder; a block carries what its events added to
them. No event object outlives its piece of text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from roofterm_parsers.chrome import times
from roofterm_parsers.chrome.arguments import ArgumentColumns, counter_values
from roofterm_parsers.chrome.codes import Block, Codes, Columns, Lane
from roofterm_parsers.chrome.events import NO_TEXT, AnyEvent, Event, WholeEvent, XlaEvent
from roofterm_parsers.chrome.groups import BEGIN, PHASES, SLICE, Group, group_of
from roofterm_parsers.chrome.loose import LooseReader
from roofterm_parsers.chrome.positions import event_starts
from roofterm_parsers.chrome.salvage import KEYS, Salvager, end_of_first, whole_events

PIECE_BYTES = 128 << 10
"""Text decoded at once: its objects stay in the processor's cache."""

I64 = NDArray[np.int64]

_BETWEEN = re.compile(rb"\}\s*,\s*\{\s*" + KEYS)
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')


class Decoder:
    """Decodes the blocks of one file (or, in a worker, some of them)."""

    def __init__(self, *, xla: bool) -> None:
        """`xla`: the trace was made from an XPlane, and its events hold other arguments."""
        event: type[AnyEvent] = XlaEvent if xla else Event
        self._xla = xla
        self._many = msgspec.json.Decoder(list[event]).decode  # type: ignore[valid-type]
        self._single = msgspec.json.Decoder(event).decode
        self._raws = msgspec.json.Decoder(list[Raw]).decode
        self._whole_events = msgspec.json.Decoder(list[WholeEvent]).decode
        self._whole_event = msgspec.json.Decoder(WholeEvent).decode
        self._loose = LooseReader(event)
        self._lanes: Codes[Lane] = Codes()
        self._names: Codes[str] = Codes()
        self._texts: Codes[bytes] = Codes(b"")
        self._arguments = ArgumentColumns(self._texts)
        self._groups = np.zeros(0, np.uint8)

    def block(self, data: bytes | bytearray | memoryview, offset: int, *, last: bool) -> Block:
        """Decode a block that begins behind a `[` or `,` at byte `offset` of the file; `last`: the file ends with it."""
        block = Block({}, {})
        out = _Pieces()
        at, size = 0, len(data)
        while at < size:
            to = size
            if size - at > PIECE_BYTES * 3 // 2:
                found = _BETWEEN.search(data, at + PIECE_BYTES)
                if found:
                    to = found.start() + 1
            text = b"".join((b"[", data[at:to], b"]"))
            events, used = self._piece(text, block, last=last and to == size)
            self._extract(events, offset + at, out, block, text[: used + 1] if block.ended else text)
            at += used
            if block.ended:
                again = _EVENTS.search(data, at)
                block.trailers.append(bytes(data[at : again.start() if again else size]))
                if not again:
                    break
                at = again.end()
                block.ended = False
                block.lists += 1
            else:
                at += 1  # the comma
        block.columns, block.groups = out.columns()
        block.new_lanes = [(phase, category, _within_64(pid), _within_64(tid)) for phase, category, pid, tid in self._lanes.take_new()]
        block.new_names = self._names.take_new()
        block.new_texts = self._texts.take_new()
        return block

    def _piece(self, text: bytes, block: Block, *, last: bool) -> tuple[list[AnyEvent], int]:
        """Events of a text in brackets, and how many bytes between the brackets are used: all, or those up to the list's end."""
        try:
            try:
                return self._many(text), len(text) - 2
            except msgspec.ValidationError:
                return self._one_by_one(text), len(text) - 2
        except msgspec.DecodeError as error:
            end = end_of_first(text, error)
            if end is not None:  # a whole list, and something behind it
                events, _ = self._piece(text[:end], block, last=False)
                block.ended = True
                return events, end - 1
        except RecursionError:
            pass
        salvager: Salvager[AnyEvent] = Salvager(self._single, self._loose.read, block.damage)
        found = salvager.resync(text[1:-1], last=last)
        block.ended = found.ended
        return found.events, found.used

    def _one_by_one(self, text: bytes) -> list[AnyEvent]:
        """Events of a list that is JSON, where some value has an unusual type."""
        events: list[AnyEvent] = []
        for raw in self._raws(text):
            try:
                events.append(self._single(raw))
            except msgspec.ValidationError:
                event = bytes(raw)
                if event.startswith(b"{"):
                    events.append(self._loose.read(event))
        return events

    def _extract(self, events: Sequence[AnyEvent], offset: int, out: _Pieces, block: Block, text: bytes) -> None:
        """Codes, times and arguments of the events, appended to `out`."""
        if not events:
            return
        base = out.count
        codes, names = self._lanes, self._names
        lanes = np.array([codes[e.ph, e.cat, e.pid, e.tid] for e in events], np.uint32)
        starts = event_starts(text, len(events))
        offsets = np.full(len(events), offset, np.uint64) if starts is None else (starts + (offset - 1)).astype(np.uint64)
        out.add(lanes, np.array([names[e.name] for e in events], np.uint32), offsets, events)
        if self._groups.size < len(codes):
            self._learn_lanes()
        groups = self._groups[lanes]
        for group in np.flatnonzero(np.bincount(groups)).tolist():
            if group == Group.NONE:
                continue
            rows = np.flatnonzero(groups == group)
            if group == Group.WHOLE:
                counters = self._keep_whole(events, rows, base, block, text)
                if counters is not None:
                    out.add_group(Group.COUNTER, *counters)
                continue
            chosen = [events[i] for i in rows.tolist()]
            out.add_group(group, rows + base, self._arguments.of(group, chosen))
            for extra, held in self._extras(group, chosen):
                out.add_group(extra, rows[held] + base, self._arguments.of(extra, [chosen[i] for i in held]))

    def _extras(self, group: int, events: Sequence[Any]) -> Iterator[tuple[int, list[int]]]:
        """Which of a group's events hold more than the group does, and as what that is kept."""
        if group == Group.RUNTIME:
            held = [i for i, e in enumerate(events) if e.args.grid is not NO_TEXT]
            if held:
                yield Group.LAUNCH, held
        elif group in (Group.OP, Group.WORK):
            held = [i for i, e in enumerate(events) if e.args.collective is not NO_TEXT]
            if held:
                yield Group.COLLECTIVE, held

    def _learn_lanes(self) -> None:
        fresh = []
        for phase, category, _, _ in list(self._lanes)[self._groups.size :]:
            group = group_of(phase, category)
            if self._xla and group not in (Group.WHOLE, Group.FLOW):
                group = Group.XLA if PHASES.get(phase) in (SLICE, BEGIN) else Group.NONE
            fresh.append(int(group))
        self._groups = np.concatenate((self._groups, np.array(fresh, np.uint8)))

    def _keep_whole(self, events: Sequence[AnyEvent], rows: I64, base: int, block: Block, text: bytes) -> tuple[I64, Columns] | None:
        """Keep all arguments of some events, read anew from the piece; gives rows and columns of what counters hold."""
        counted: list[int] = []
        series: list[int] = []
        values: list[float] = []
        arguments = self._arguments_of(events, rows, text)
        for i, args in zip(rows.tolist(), arguments, strict=True):
            event = events[i]
            if event.ph != "C":
                block.whole.append((i + base, event.ph, event.name, event.pid, event.tid, args))
                continue
            for name, value in counter_values(event.name, args):
                counted.append(i + base)
                series.append(self._texts[name.encode("utf-8", "replace")])
                values.append(value)
        if not counted:
            return None
        return np.array(counted, np.int64), {"series": np.array(series, np.uint32), "value": np.array(values, np.float64)}

    def _arguments_of(self, events: Sequence[AnyEvent], rows: I64, text: bytes) -> list[bytes]:
        """Arguments of some events as JSON; empty where the text is too damaged to find them."""
        try:
            again = self._whole_events(text)
        except (msgspec.DecodeError, RecursionError):
            again = whole_events(text[1:-1], self._whole_event)
        if len(again) == len(events):
            return [bytes(again[i].args) for i in rows.tolist()]
        left: dict[tuple[str, str], list[bytes]] = {}
        for event in reversed(again):
            left.setdefault((event.ph, event.name), []).append(bytes(event.args))
        return [held.pop() if (held := left.get((events[i].ph, events[i].name))) else b"" for i in rows.tolist()]


class _Pieces:
    """Columns and texts gathered over the pieces of a block, joined once."""

    def __init__(self) -> None:
        self.count = 0
        self._lanes: list[NDArray[np.uint32]] = []
        self._names: list[NDArray[np.uint32]] = []
        self._times: list[bytes] = []
        self._lengths: list[bytes] = []
        self._offsets: list[NDArray[np.uint64]] = []
        self._groups: dict[int, list[tuple[I64, Columns]]] = {}

    def add(self, lanes: NDArray[np.uint32], names: NDArray[np.uint32], offsets: NDArray[np.uint64], events: Sequence[AnyEvent]) -> None:
        self._lanes.append(lanes)
        self._names.append(names)
        self._times.append(_joined([e.ts for e in events]))
        self._lengths.append(_joined([e.dur for e in events]))
        self._offsets.append(offsets)
        self.count += lanes.size

    def add_group(self, group: int, rows: I64, columns: Columns) -> None:
        self._groups.setdefault(group, []).append((rows, columns))

    def columns(self) -> tuple[Columns, dict[int, Columns]]:
        us, ps, state = times.microseconds(b",".join(self._times), self.count)
        length_us, length_ps, length_state = times.microseconds(b",".join(self._lengths), self.count)
        nothing = [np.zeros(0, np.uint32)]
        columns: Columns = {
            "lane": np.concatenate(self._lanes or nothing),
            "name": np.concatenate(self._names or nothing),
            "us": us,
            "ps": ps.astype(np.int32),
            "state": state,
            "length_us": length_us,
            "length_ps": length_ps.astype(np.int32),
            "length_state": length_state,
            "offset": np.concatenate(self._offsets or [np.zeros(0, np.uint64)]),
        }
        groups: dict[int, Columns] = {}
        for group, parts in self._groups.items():
            groups[group] = {"row": np.concatenate([rows for rows, _ in parts]).astype(np.uint32)}
            for name in parts[0][1]:
                groups[group][name] = np.concatenate([part[name] for _, part in parts])
        return columns, groups


def _within_64(number: int | str) -> int | str:
    """An id as it is, or as text where it has more than 64 bits."""
    return number if isinstance(number, str) or abs(number) < 1 << 63 else str(number)


def _joined(texts: list[Raw]) -> bytes:
    """Values joined by commas; one that holds a comma itself (a list, an object, a text) is emptied, for it is no number."""
    joined = b",".join(texts)
    if joined.count(b",") != len(texts) - 1:
        return b",".join([b"[]" if b"," in bytes(text) else text for text in texts])
    return joined
