"""Text of trace events to columns: the one function between bytes and arrays, which a compiled scanner could replace.

A `Decoder` takes blocks of text that each hold whole events and gives a `Block` of columns for each. Names, lanes and
argument texts are given as codes of dictionaries that belong to the decoder; a block carries what its events added to
them. No event object outlives its piece of text.

A regular text is read by the forms of its events, many at a time. What is not regular, damaged or rare is decoded.
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
from roofterm_parsers.chrome.forms import Forms
from roofterm_parsers.chrome.groups import BEGIN, PHASES, SLICE, Group, group_of
from roofterm_parsers.chrome.learning import Kinds, NoEvent
from roofterm_parsers.chrome.loose import LooseReader
from roofterm_parsers.chrome.pieces import Part, Pieces
from roofterm_parsers.chrome.positions import event_starts
from roofterm_parsers.chrome.salvage import KEYS, Salvager, end_of_first, whole_events
from roofterm_parsers.chrome.scanning import scan

PIECE_BYTES = 128 << 10
"""Text decoded at once: its objects stay in the processor's cache."""
BY_FORMS_FROM = 96 << 20
"""Forms are looked for from this place in a file on, or at once in a long one: learning them pays where many events follow."""
LONGEST_PAUSE = 16
"""How many blocks are decoded, at most, before forms are looked for again in a text that had too many of them."""

I64 = NDArray[np.int64]

_BETWEEN = re.compile(rb"\}(\s*,)\s*\{\s*" + KEYS)
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')


class Decoder:
    """Decodes the blocks of one file (or, in a worker, some of them)."""

    def __init__(self, *, xla: bool, long: bool = False) -> None:
        """`xla`: the trace was made from an XPlane, and its events hold other arguments. `long`: much text is expected."""
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
        self._forms = None if xla else Forms(msgspec.json.Decoder(Event).decode, self._kinds())
        self._forms_from = 0 if long else BY_FORMS_FROM
        self._pause = 1
        self._paused = 0
        """blocks to be decoded, before forms are looked for again"""

    def block(self, data: bytes | bytearray | memoryview, offset: int, *, last: bool) -> Block:
        """Decode a block that begins behind a `[` or `,` at byte `offset` of the file; `last`: the file ends with it."""
        block = Block({}, {})
        out = Pieces()
        at, size = 0, len(data)
        if self._forms is not None and offset >= self._forms_from:
            at = self._regular_part(self._forms, data, offset, out, block, last=last)
        while at < size:
            to, begin = _cut(data, at)
            text = b"".join((b"[", data[at:to], b"]"))
            events, used = self._piece(text, block, last=last and to == size)
            self._add(events, offset + at, out, block, text[: used + 1] if block.ended else text)
            if block.ended:
                at += used
                again = _EVENTS.search(data, at)
                block.trailers.append(bytes(data[at : again.start() if again else size]))
                if not again:
                    break
                at = again.end()
                block.ended = False
                block.lists += 1
            else:
                at = begin
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

    def _regular_part(
        self, forms: Forms, data: bytes | bytearray | memoryview, offset: int, out: Pieces, block: Block, *, last: bool
    ) -> int:
        """Add the events of a block to `out` if its text is regular; gives the place from which on they have to be decoded."""
        if self._paused:
            self._paused -= 1
            return 0
        to, begin = _before_last(data) if last else (len(data), len(data))
        if self._by_forms(forms, data[:to], offset, out, block):
            self._pause = 1
            return begin
        self._paused = self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return 0

    def _by_forms(self, forms: Forms, text: bytes | bytearray | memoryview, offset: int, out: Pieces, block: Block) -> bool:
        """Add the events of a regular text to `out`; False, and nothing is added, if it is not regular."""
        scanned = scan(text)
        if scanned is None:
            return False
        starts, ends = scanned.starts, scanned.ends
        try:
            read = forms.read(scanned)
            if read is None:
                return False
            alone = [self._alone(bytes(text[starts[row] : ends[row]])) for row in read.alone.tolist()]
        except NoEvent:
            return False
        part = Part(starts.size, read.columns)
        part.columns["offset"] = (starts + offset).astype(np.uint64)
        for group, (rows, columns) in read.groups.items():
            part.add_group(group, rows + out.count, columns)
        if alone:
            events, texts = [event for event, _ in alone], b"[" + b",".join([text for _, text in alone]) + b"]"
            part.put(read.alone, self._part(events, read.alone + out.count, block, texts))
        out.add(part)
        return True

    def _alone(self, text: bytes) -> tuple[AnyEvent, bytes]:
        """An event and its text. Raises NoEvent if it is none."""
        try:
            try:
                return self._single(text), text
            except msgspec.ValidationError:
                return self._loose.read(text), text
        except (msgspec.DecodeError, RecursionError) as error:
            raise NoEvent from error

    def _add(self, events: Sequence[AnyEvent], offset: int, out: Pieces, block: Block, text: bytes) -> None:
        """Add decoded events to `out`."""
        if not events:
            return
        part = self._part(events, np.arange(out.count, out.count + len(events)), block, text)
        starts = event_starts(text, len(events))
        offsets = np.full(len(events), offset, np.uint64) if starts is None else (starts + (offset - 1)).astype(np.uint64)
        part.columns["offset"] = offsets
        out.add(part)

    def _part(self, events: Sequence[AnyEvent], rows: I64, block: Block, text: bytes) -> Part:
        """Codes, times and arguments of events, which are these rows of the block; `text` is the list of them."""
        lanes = self._lanes_of(events)
        written = times.comma_separated([e.ts for e in events]), times.comma_separated([e.dur for e in events])
        part = Part(len(events), {"lane": lanes, "name": self._names_of(events)}, written=written)
        groups = self._groups_of(lanes)
        for group in np.flatnonzero(np.bincount(groups)).tolist():
            if group == Group.NONE:
                continue
            of_group = np.flatnonzero(groups == group)
            if group == Group.WHOLE:
                counters = self._keep_whole(events, of_group, rows, block, text)
                if counters is not None:
                    part.add_group(Group.COUNTER, *counters)
                continue
            chosen = [events[i] for i in of_group.tolist()]
            part.add_group(group, rows[of_group], self._arguments.of(group, chosen))
            for extra, held in self._extras(group, chosen):
                part.add_group(extra, rows[of_group[held]], self._arguments.of(extra, [chosen[i] for i in held]))
        return part

    def _kinds(self) -> Kinds:
        return Kinds(self._lanes_of, self._names_of, self._groups_of, self._extras, self._arguments.of, frozenset({int(Group.WHOLE)}))

    def _lanes_of(self, events: Sequence[AnyEvent]) -> NDArray[np.uint32]:
        codes = self._lanes
        return np.array([codes[e.ph, e.cat, e.pid, e.tid] for e in events], np.uint32)

    def _names_of(self, events: Sequence[AnyEvent]) -> NDArray[np.uint32]:
        names = self._names
        return np.array([names[e.name] for e in events], np.uint32)

    def _groups_of(self, lanes: NDArray[np.uint32]) -> NDArray[np.uint8]:
        if self._groups.size < len(self._lanes):
            self._learn_lanes()
        groups: NDArray[np.uint8] = self._groups[lanes]
        return groups

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

    def _keep_whole(self, events: Sequence[AnyEvent], of_group: I64, rows: I64, block: Block, text: bytes) -> tuple[I64, Columns] | None:
        """Keep all arguments of some events, read anew from the piece; gives rows and columns of what counters hold."""
        counted: list[int] = []
        row_of = rows.tolist()
        series: list[int] = []
        values: list[float] = []
        arguments = self._arguments_of(events, of_group, text)
        for i, args in zip(of_group.tolist(), arguments, strict=True):
            event = events[i]
            if event.ph != "C":
                block.whole.append((row_of[i], event.ph, event.name, event.pid, event.tid, args))
                continue
            for name, value in counter_values(event.name, args):
                counted.append(row_of[i])
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


def _cut(data: bytes | bytearray | memoryview, at: int) -> tuple[int, int]:
    """Where a piece ends, behind an event, and where the next begins, behind the comma."""
    size = len(data)
    found = _BETWEEN.search(data, at + PIECE_BYTES) if size - at > PIECE_BYTES * 3 // 2 else None
    return (found.start() + 1, found.end(1)) if found else (size, size)


def _before_last(data: bytes | bytearray | memoryview) -> tuple[int, int]:
    """Where the last event but one ends, and where the last begins, with all that stands behind the list of events."""
    found = [(between.start() + 1, between.end(1)) for between in _BETWEEN.finditer(data, max(0, len(data) - PIECE_BYTES))]
    return found[-1] if found else (0, 0)


def _within_64(number: int | str) -> int | str:
    """An id as it is, or as text where it has more than 64 bits."""
    return number if isinstance(number, str) or abs(number) < 1 << 63 else str(number)
