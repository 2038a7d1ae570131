"""Text of trace events to columns: the one function between bytes and arrays, which a compiled scanner could replace.

A `Decoder` takes blocks of text that each hold whole events and gives a `Block` of columns for each. Names, lanes (phase,
category, process, thread) and argument texts are given as codes into dictionaries that belong to the decoder; a block
carries what its events added to them. No event object outlives its piece of some 256 KB.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from roofterm_parsers.chrome import times
from roofterm_parsers.chrome.categories import Group, group_of
from roofterm_parsers.chrome.events import HLO_FIELDS, NO_ARGS, NO_XLA_ARGS, NULL, SIGNATURE_FIELDS, AnyEvent, Event, WholeEvent, XlaEvent
from roofterm_parsers.chrome.loose import LooseReader
from roofterm_parsers.chrome.repair import mend, outer_fields

PIECE_BYTES = 256 << 10
"""Text decoded at once: its objects stay in the processor's cache."""
MOST_MERGED = 4
"""How many suspected events are tried as one before the first is given up."""

I64 = NDArray[np.int64]
K = TypeVar("K", bound=Hashable)
Lane = tuple[str, str, int | str, int | str]
Columns = dict[str, NDArray[Any]]

_KEYS = rb'"(?:ph|name|cat|pid|tid|ts|dur|id|args|bp|s|id2|tts|tdur|sf|cname|scope)"'
_BETWEEN = re.compile(rb"\}\s*,\s*\{\s*" + _KEYS)
_START = re.compile(rb"(?:\A|[,\[{}])\s*(\{\s*" + _KEYS + rb"\s*:|\{\s*\}\s*(?=[,\]]))")
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_AT_BYTE = re.compile(r"trailing characters \(byte (\d+)\)")
_LIST_END = re.compile(rb'\}\s*,?\s*\]\s*(?:\}|,\s*"[A-Za-z_]+"\s*:|\Z)')
_AFTER_EVENT = re.compile(rb"[\s,]*")
_INTEGERS = re.compile(rb"-?\d+")


class Codes(dict[K, int], Generic[K]):
    """Numbers things in the order of their first appearance; `new` holds those that nobody has been told of."""

    def __init__(self, *first: K) -> None:
        super().__init__()
        self.new: list[K] = []
        for key in first:
            _ = self[key]

    def __missing__(self, key: K) -> int:
        code = self[key] = len(self)
        self.new.append(key)
        return code

    def take_new(self) -> list[K]:
        new, self.new = self.new, []
        return new


@dataclass(slots=True)
class Block:
    """Columns of one block of events, in file order."""

    columns: Columns
    """lane u4, name u4, us i8, ps i4, state u1, length_us i8, length_ps i4, length_state u1, offset u8"""
    groups: dict[int, Columns]
    """by Group: `row` (event of this block) and the columns of its kind"""
    whole: list[tuple[int, str, str, int | str, int | str, bytes]]
    """events whose arguments have keys of their own: row, phase, name, process, thread, arguments as JSON"""
    new_lanes: list[Lane] = field(default_factory=list)
    new_names: list[str] = field(default_factory=list)
    new_texts: list[bytes] = field(default_factory=list)
    damage: Counter[str] = field(default_factory=Counter)
    """mended, skipped, cut, without phase: how many"""
    trailers: list[bytes] = field(default_factory=list)
    """text behind the end of the list of events"""
    ended: bool = False
    """the list of events ends in this block"""
    lists: int = 0
    """lists of events that begin in this block behind the end of another"""


class Decoder:
    """Decodes the blocks of one file (or, in a worker, some of them)."""

    def __init__(self, *, xla: bool) -> None:
        self._event: type[AnyEvent] = XlaEvent if xla else Event
        self._xla = xla
        self._no_args: Any = NO_XLA_ARGS if xla else NO_ARGS
        self._many = msgspec.json.Decoder(list[self._event]).decode  # type: ignore[name-defined]
        self._single = msgspec.json.Decoder(self._event).decode
        self._raws = msgspec.json.Decoder(list[Raw]).decode
        self._whole = msgspec.json.Decoder(list[WholeEvent]).decode
        self._loose = LooseReader(self._event)
        self._lanes: Codes[Lane] = Codes()
        self._names: Codes[str] = Codes()
        self._texts: Codes[bytes] = Codes(b"")
        self._groups: list[int] = []

    def block(self, data: bytes | memoryview, offset: int, *, last: bool) -> Block:
        """Decode a block that begins behind a `[` or `,` at byte `offset` of the file; `last`: the file ends with it."""
        data = bytes(data)
        out = _Pieces()
        block = Block({}, {}, [])
        at, size = 0, len(data)
        while at < size:
            to = size
            if size - at > PIECE_BYTES * 3 // 2:
                found = _BETWEEN.search(data, at + PIECE_BYTES)
                if found:
                    to = found.start() + 1
            events, used = self._piece(data, at, to, block, last=last)
            self._extract(events, offset + at, out, block, data[at:used])
            if block.ended:
                again = _EVENTS.search(data, used)
                block.trailers.append(data[used : again.start() if again else size])
                if not again:
                    break
                at = again.end()
                block.ended = False
                block.lists += 1
                continue
            at = used + 1 if used < size else size
        block.columns, block.groups = out.columns(self._xla)
        block.new_lanes = self._lanes.take_new()
        block.new_names = self._names.take_new()
        block.new_texts = self._texts.take_new()
        return block

    def _piece(self, data: bytes, at: int, to: int, block: Block, *, last: bool) -> tuple[list[AnyEvent], int]:
        """Events of data[at:to] and where they end: at `to`, or at the end of the list of events."""
        text = b"[" + data[at:to] + b"]"
        try:
            try:
                return self._many(text), to
            except msgspec.ValidationError:
                return self._one_by_one(text, block), to
        except msgspec.DecodeError as error:
            end = _AT_BYTE.search(str(error))
            if end:  # a whole list, and something behind it
                size = len(text[: int(end[1]) - 1].rstrip())
                events, _ = self._piece(data, at, at + size - 2, block, last=False)
                block.ended = True
                return events, at + size - 1
        except RecursionError:
            pass
        return self._resync(data, at, to, block, last=last)

    def _one_by_one(self, text: bytes, block: Block) -> list[AnyEvent]:
        """Events of a list that is JSON, where some value has an unusual type."""
        events: list[AnyEvent] = []
        for raw in self._raws(text):
            try:
                events.append(self._single(raw))
            except msgspec.ValidationError:
                try:
                    events.append(self._loose.read(bytes(raw)))
                except (msgspec.DecodeError, RecursionError):
                    block.damage["skipped"] += 1
        return events

    def _resync(self, data: bytes, at: int, to: int, block: Block, *, last: bool) -> tuple[list[AnyEvent], int]:
        """Events of a damaged piece: every place that looks like the start of one is tried."""
        starts = [m.start(1) for m in _START.finditer(data, at, to)]
        events: list[AnyEvent] = []
        if not starts:
            self._leftover(data[at:to], block, last=last and to == len(data))
            return events, self._list_end(data, at, to, block)
        if data[at : starts[0]].strip():
            if self._ends_list(data, at, to, block):
                return events, self._list_end(data, at, to, block)
            block.damage["mended"] += 1
        i = 0
        while i < len(starts):
            is_tail = False
            for j in range(i + 1, min(i + 1 + MOST_MERGED, len(starts) + 1)):
                end = starts[j] if j < len(starts) else to
                event, used = self._whole_event(data[starts[i] : end])
                if event is not None:
                    break
            else:
                j = i + 1
                end = starts[j] if j < len(starts) else to
                is_tail = last and end == len(data)
                event, used = self._mended(data[starts[i] : end], block, is_tail=is_tail)
            if event is not None:
                events.append(event)
            behind = starts[i] + used
            if event is not None and self._ends_list(data, behind, to, block):
                return events, self._list_end(data, behind, to, block)
            if event is not None and j < len(starts) and not is_tail:
                between = data[behind : starts[j]].strip()
                if between != b"," and not (between == b"" and used == end - starts[i]):
                    block.damage["mended"] += 1
            i = j
        return events, to

    def _whole_event(self, text: bytes) -> tuple[AnyEvent | None, int]:
        """The event that `text` begins with, if it is JSON, and how many bytes it takes."""
        body = text.rstrip(b" \t\r\n,")
        for _ in range(2):
            try:
                return self._single(body), len(body)
            except msgspec.ValidationError:
                try:
                    return self._loose.read(body), len(body)
                except (msgspec.DecodeError, RecursionError):
                    return None, 0
            except msgspec.DecodeError as error:
                end = _AT_BYTE.search(str(error))
                if not end:
                    return None, 0
                body = body[: int(end[1]) - 1].rstrip()
            except RecursionError:
                return None, 0
        return None, 0

    def _mended(self, text: bytes, block: Block, *, is_tail: bool) -> tuple[AnyEvent | None, int]:
        """The event in a damaged text, mended; None (and counted) if there is none in it."""
        body = text.rstrip(b" \t\r\n,")
        if is_tail and not body.endswith((b"}", b"]")):
            block.damage["cut"] += 1
            return None, len(text)
        ends = [len(body), *(m.start() + 1 for m in _LIST_END.finditer(body))]
        for end in ends[: MOST_MERGED + 1]:
            found = mend(body[:end], lambda candidate: self._is_event(candidate))
            if found is not None:
                block.damage["mended"] += 1
                return self._whole_event(found)[0], end
        if is_tail:
            block.damage["cut"] += 1
            return None, len(text)
        outer = outer_fields(body)
        if outer is not None:
            block.damage["mended"] += 1
            return self._whole_event(outer)[0], len(text)
        block.damage["skipped"] += 1
        return None, len(text)

    def _is_event(self, text: bytes) -> bool:
        event, used = self._whole_event(text)
        return event is not None and used == len(text.rstrip())

    def _leftover(self, text: bytes, block: Block, *, last: bool) -> None:
        """Count text in which no event begins."""
        body = text.strip(b" \t\r\n,\x00")
        if not body or body.startswith(b"]"):
            return
        block.damage["cut" if last else "skipped"] += 1

    def _ends_list(self, data: bytes, at: int, to: int, block: Block) -> bool:
        behind = _AFTER_EVENT.match(data, at, to)
        end = behind.end() if behind else at
        return data[end : end + 1] == b"]" and end < to

    def _list_end(self, data: bytes, at: int, to: int, block: Block) -> int:
        behind = _AFTER_EVENT.match(data, at, to)
        end = behind.end() if behind else at
        if data[end : end + 1] != b"]":
            return to
        block.ended = True
        return end + 1

    def _extract(self, events: Sequence[AnyEvent], offset: int, out: _Pieces, block: Block, text: bytes) -> None:
        """Codes, times and arguments of the events, appended to `out`."""
        if not events:
            return
        base = out.count
        codes = self._lanes
        lanes = [codes[e.ph, e.cat, e.pid, e.tid] for e in events]
        if len(self._groups) < len(codes):
            self._learn_lanes()
        names = self._names
        out.add(lanes, [names[e.name] for e in events], events, offset)
        groups = np.array(self._groups, np.uint8)[lanes]
        for group in np.unique(groups).tolist():
            if group == Group.NONE:
                continue
            rows = np.flatnonzero(groups == group)
            if group == Group.WHOLE:
                counters = self._keep_whole(events, rows, base, block, text)
                if counters is not None:
                    out.add_group(Group.COUNTER, *counters)
                continue
            chosen = [events[i] for i in rows.tolist()]
            out.add_group(group, rows + base, self._arguments(group, chosen))
            if group == Group.RUNTIME:
                launches = [i for i, e in enumerate(chosen) if len(e.args.grid)]  # type: ignore[union-attr]
                if launches:
                    out.add_group(Group.LAUNCH, rows[launches] + base, self._arguments(Group.LAUNCH, [chosen[i] for i in launches]))
            if group in (Group.OP, Group.WORK):
                with_facts = [i for i, e in zip(rows.tolist(), chosen, strict=True) if len(e.args.collective)]  # type: ignore[union-attr]
                if with_facts:
                    self._keep_whole(events, np.array(with_facts), base, block, text)

    def _learn_lanes(self) -> None:
        for phase, category, _, _ in list(self._lanes)[len(self._groups) :]:
            group = group_of(phase, category)
            if self._xla and group != Group.WHOLE and phase in ("X", "B"):
                group = Group.XLA
            elif self._xla and group != Group.FLOW and group != Group.WHOLE:
                group = Group.NONE
            self._groups.append(group)

    def _arguments(self, group: int, events: Sequence[Any]) -> Columns:
        args = [e.args for e in events]
        if group == Group.OP:
            return {
                "external": integers(a.external if a.external != NULL else a.old_external for a in args),
                "sequence": integers([a.sequence for a in args]),
                "forward_thread": integers([a.forward_thread for a in args]),
                "signature": self._signatures(args),
            }
        if group == Group.RUNTIME:
            return {
                "correlation": integers([a.correlation for a in args]),
                "external": integers(a.external if a.external != NULL else a.old_external for a in args),
            }
        if group == Group.LAUNCH:
            return {"correlation": integers([a.correlation for a in args]), **_launch_shape(args)}
        if group == Group.WORK:
            return {
                "correlation": integers([a.correlation for a in args]),
                "external": integers(a.external if a.external != NULL else a.old_external for a in args),
                "device": integers([a.device for a in args]),
                "stream": integers([_stream(a) for a in args]),
                "registers": integers([a.registers for a in args]),
                "graph": integers([a.graph for a in args]),
                "graph_node": integers([a.graph_node for a in args]),
                "bytes": integers([_integer(a.bytes if a.bytes != NULL else a.size) for a in args]),
                "peer": integers([a.to_device if a.to_device != NULL else a.in_device for a in args]),
                "occupancy": numbers([a.occupancy if a.occupancy is not None else a.old_occupancy for a in args]),
                "blocks_per_unit": numbers([a.blocks_per_unit for a in args]),
                "warps_per_unit": numbers([a.warps_per_unit for a in args]),
                **_launch_shape(args),
            }
        if group == Group.WAIT:
            return {
                "correlation": integers([a.correlation for a in args]),
                "device": integers([a.device for a in args]),
                "stream": integers([_stream(a) for a in args]),
                "on_stream": integers([a.wait_on_stream for a in args]),
                "event_correlation": integers([a.wait_on_record for a in args]),
            }
        if group == Group.PYTHON:
            return {
                "python": integers([a.python for a in args]),
                "python_parent": integers([NULL if a.python_parent is None else a.python_parent for a in args]),
                "module": integers([a.module for a in args]),
            }
        if group == Group.MEMORY:
            return {
                "bytes": integers([a.memory_bytes for a in args]),
                "address": integers([a.address for a in args]),
                "allocated": integers([a.total_allocated for a in args]),
                "reserved": integers([a.total_reserved for a in args]),
                "device_type": integers([a.device_type for a in args]),
                "device_id": integers([a.device_id for a in args]),
            }
        if group == Group.FLOW:
            texts = self._texts
            ids = [e.id for e in events]
            return {
                "id": integers([i if type(i) is int else 0 for i in ids]),
                "id_text": np.array([0 if type(i) is int else texts[i.encode("utf-8", "replace")] for i in ids], np.uint32),
            }
        return self._xla_arguments(args)

    def _signatures(self, args: Sequence[Any]) -> NDArray[np.uint32]:
        texts = self._texts
        return np.array(
            [
                texts[b"\x00".join((a.dims if len(a.dims) else a.old_dims, a.types, a.strides, a.concrete))]
                if len(a.types) or len(a.dims) or len(a.old_dims)
                else 0
                for a in args
            ],
            np.uint32,
        )

    def _xla_arguments(self, args: Sequence[Any]) -> Columns:
        texts = self._texts
        nothing = b"\x00" * (len(HLO_FIELDS) - 1)
        hlo, kernel, copy = [], [], []
        for a in args:
            key = b"\x00".join(
                (
                    a.module,
                    a.op,
                    a.text,
                    a.category,
                    a.framework_op,
                    a.name,
                    a.source,
                    a.source_stack,
                    a.deduplicated,
                    a.model_flops,
                    a.bytes_accessed,
                )
            )
            hlo.append(0 if key == nothing else texts[key])
            kernel.append(texts[bytes(a.kernel)])
            copy.append(texts[bytes(a.copy)])
        return {
            "correlation": integers([_unquoted_integer(a.correlation) for a in args]),
            "device": integers([_unquoted_integer(a.device) for a in args]),
            "step": integers([_unquoted_integer(a.step) for a in args]),
            "group": integers([_unquoted_integer(a.group) for a in args]),
            "eager": np.array([len(a.eager) > 0 for a in args], bool),
            "util": numbers([_unquoted_number(a.util) for a in args]),
            "occupancy": numbers([_unquoted_number(a.occupancy) for a in args]),
            "hlo": np.array(hlo, np.uint32),
            "kernel": np.array(kernel, np.uint32),
            "copy": np.array(copy, np.uint32),
        }

    def _keep_whole(self, events: Sequence[AnyEvent], rows: I64, base: int, block: Block, text: bytes) -> tuple[I64, Columns] | None:
        """Keep all arguments of some events; read anew from the piece, or without arguments where that is damaged.

        Gives the values of counters: rows and columns.
        """
        try:
            again: Sequence[WholeEvent] = self._whole(b"[" + text + b"]")
        except (msgspec.DecodeError, RecursionError):
            again = self._whole_of_damaged(text)
        aligned = len(again) == len(events)
        by_name: dict[tuple[str, str], list[WholeEvent]] = {}
        if not aligned:
            for other in again:
                by_name.setdefault((other.ph, other.name), []).append(other)
        counted: list[int] = []
        series: list[int] = []
        values: list[float] = []
        for i in rows.tolist():
            event = events[i]
            other = again[i] if aligned else next(iter(by_name.get((event.ph, event.name), [])), None)
            if not aligned and other is not None:
                by_name[event.ph, event.name].pop(0)
            args = bytes(other.args) if other is not None else b""
            if event.ph == "C":
                for name, value in _counter_values(event.name, args):
                    counted.append(i + base)
                    series.append(self._texts[name.encode("utf-8", "replace")])
                    values.append(value)
                continue
            block.whole.append((i + base, event.ph, event.name, event.pid, event.tid, args))

        if not counted:
            return None
        return np.array(counted, np.int64), {"series": np.array(series, np.uint32), "value": np.array(values, np.float64)}

    def _whole_of_damaged(self, text: bytes) -> list[WholeEvent]:
        single = msgspec.json.Decoder(WholeEvent).decode
        found = []
        starts = [m.start(1) for m in _START.finditer(text)] + [len(text)]
        for a, b in zip(starts[:-1], starts[1:], strict=True):
            body = text[a:b].rstrip(b" \t\r\n,")
            try:
                found.append(single(body))
            except (msgspec.DecodeError, RecursionError) as error:
                end = _AT_BYTE.search(str(error))
                if end:
                    try:
                        found.append(single(body[: int(end[1]) - 1]))
                    except (msgspec.DecodeError, RecursionError):
                        continue
        return found


class _Pieces:
    """Lists and texts gathered over the pieces of a block, turned to arrays once."""

    def __init__(self) -> None:
        self.count = 0
        self._lanes: list[int] = []
        self._names: list[int] = []
        self._times: list[bytes] = []
        self._lengths: list[bytes] = []
        self._plain: list[tuple[int, Sequence[AnyEvent]]] = []
        self._counts: list[int] = []
        self._offsets: list[int] = []
        self._groups: dict[int, list[tuple[I64, Columns]]] = {}

    def add(self, lanes: list[int], names: list[int], events: Sequence[AnyEvent], offset: int) -> None:
        self._lanes += lanes
        self._names += names
        self._times.append(_joined([e.ts for e in events]))
        self._lengths.append(_joined([e.dur for e in events]))
        self._counts.append(len(events))
        self._offsets.append(offset)
        self.count += len(events)

    def add_group(self, group: int, rows: I64, columns: Columns) -> None:
        self._groups.setdefault(group, []).append((rows, columns))

    def columns(self, xla: bool) -> tuple[Columns, dict[int, Columns]]:
        us, ps, state = times.microseconds_of(b",".join(self._times), self.count)
        length_us, length_ps, length_state = times.microseconds_of(b",".join(self._lengths), self.count)
        columns: Columns = {
            "lane": np.array(self._lanes, np.uint32),
            "name": np.array(self._names, np.uint32),
            "us": us,
            "ps": ps.astype(np.int32),
            "state": state,
            "length_us": length_us,
            "length_ps": length_ps.astype(np.int32),
            "length_state": length_state,
            "offset": np.repeat(np.array(self._offsets, np.uint64), self._counts),
        }
        groups: dict[int, Columns] = {}
        for group, parts in self._groups.items():
            groups[group] = {"row": np.concatenate([rows for rows, _ in parts]).astype(np.uint32)}
            for name in parts[0][1]:
                groups[group][name] = np.concatenate([part[name] for _, part in parts])
        return columns, groups


def _joined(texts: list[Raw]) -> bytes:
    """Values joined by commas; one that holds a comma itself (a list, an object, a text) is emptied, for it is no number."""
    joined = b",".join(texts)
    if joined.count(b",") != len(texts) - 1:
        return b",".join([b"[]" if b"," in bytes(t) else t for t in texts])
    return joined


def integers(values: Iterable[int]) -> I64:
    """Integers as i64; one that does not fit becomes a negative stand-in of its own, the same wherever it appears."""
    values = values if isinstance(values, list) else list(values)
    try:
        return np.array(values, np.int64)
    except (OverflowError, ValueError):
        return np.array([v if -(1 << 63) <= v < 1 << 63 else stand_in(v) for v in values], np.int64)


def stand_in(value: int) -> int:
    """A number that is not in use for an integer beyond 64 bits: equal ids stay equal, different ones different."""
    digest = hashlib.blake2b(
        str(value).encode() if value.bit_length() < 4000 else value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True), digest_size=8
    )
    return -(1 << 62) - (int.from_bytes(digest.digest(), "big") >> 2)


def numbers(values: Sequence[float | None]) -> NDArray[np.float32]:
    """Floats, NaN where there is none."""
    with np.errstate(over="ignore"):
        return np.array(values, np.float64).astype(np.float32)


def _stream(args: Any) -> int:
    return _integer(args.stream if args.stream != NULL else args.sycl_queue)


def _integer(value: int | str) -> int:
    """An integer that may be written as text, decimal or hexadecimal."""
    if isinstance(value, int):
        return value
    try:
        return int(value, 0) if len(value) < 64 else NULL
    except ValueError:
        return NULL


def _counter_values(name: str, args: bytes) -> list[tuple[str, float]]:
    """Series and value of each number that a counter event holds. A lone value goes by the counter's own name."""
    try:
        held = msgspec.json.decode(args) if args else None
    except (msgspec.DecodeError, RecursionError):
        held = None
    found = []
    for key, value in held.items() if isinstance(held, dict) else ():
        try:
            number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
        except (ValueError, OverflowError):
            continue
        if math.isfinite(number):
            found.append((name if key in ("", "value", name) else f"{name} {key}".strip(), number))
    return found


def _unquoted_integer(raw: Raw) -> int:
    if not len(raw):
        return NULL
    text = bytes(raw).strip(b'" ')
    return int(text) if len(text) < 64 and _INTEGERS.fullmatch(text) else NULL


def _unquoted_number(raw: Raw) -> float | None:
    if not len(raw):
        return None
    try:
        return float(bytes(raw).strip(b'" '))
    except ValueError:
        return None


def _launch_shape(args: Sequence[Any]) -> Columns:
    """Grid, block and shared memory: of the kernel, or on ROCm of the call that launched it."""
    shape = np.zeros((len(args), 6), np.int64)
    shape[:] = -1
    known: dict[bytes, tuple[int, ...]] = {}
    for i, a in enumerate(args):
        if len(a.grid):
            key = b"%b%b" % (bytes(a.grid), bytes(a.block))
            found = known.get(key)
            if found is None:
                found = known[key] = (*_triple(a.grid), *_triple(a.block))
            shape[i] = found
    names = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
    out: Columns = {name: shape[:, i].copy() for i, name in enumerate(names)}
    out["shared"] = integers([a.shared for a in args])
    return out


def _triple(raw: Raw) -> tuple[int, int, int]:
    found = [int(x) for x in _INTEGERS.findall(bytes(raw)[:200]) if len(x) < 11]
    return (found[0], found[1], found[2]) if len(found) == 3 else (-1, -1, -1)


def signature_parts(key: bytes) -> dict[str, str | None]:
    """The texts behind a code of the column `signature`, as compact JSON; None for what the file does not hold."""
    parts: dict[str, str | None] = {}
    for name, text in zip(SIGNATURE_FIELDS, key.split(b"\x00"), strict=True):
        parts[name] = _compact(text) if text else None
    return parts


def hlo_parts(key: bytes) -> dict[str, str | None]:
    """The texts behind a code of the column `hlo`."""
    return {name: _unquoted(text) for name, text in zip(HLO_FIELDS, key.split(b"\x00"), strict=True)}


def _unquoted(text: bytes) -> str | None:
    if not text:
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text.decode("utf-8", "replace")
    return value if isinstance(value, str) else text.decode("utf-8", "replace")


def _compact(text: bytes) -> str:
    try:
        return msgspec.json.format(text, indent=-1).decode("utf-8", "replace")
    except (msgspec.DecodeError, RecursionError):
        return text.decode("utf-8", "replace")
