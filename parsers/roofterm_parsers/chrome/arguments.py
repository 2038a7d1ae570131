"""Arguments of events as columns, group by group."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from roofterm_parsers.chrome.codes import Codes, Columns
from roofterm_parsers.chrome.events import COLLECTIVE_FIELDS, HLO_FIELDS, NO_TEXT, NULL, SIGNATURE_FIELDS
from roofterm_parsers.chrome.groups import Group

I64 = NDArray[np.int64]

SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_SEPARATOR = b"\x00"
_NO_HLO = _SEPARATOR * (len(HLO_FIELDS) - 1)
_hlo_texts = attrgetter(*HLO_FIELDS)
_collective_texts = attrgetter(*COLLECTIVE_FIELDS)
_INTEGERS = re.compile(rb"-?\d+")


class ArgumentColumns:
    """Makes the columns of a group of events. Texts become codes of `texts`."""

    def __init__(self, texts: Codes[bytes]) -> None:
        self._texts = texts
        self._makers: dict[int, Callable[[Sequence[Any]], Columns]] = {
            Group.OP: self._ops,
            Group.RUNTIME: self._calls,
            Group.LAUNCH: self._launches,
            Group.WORK: self._work,
            Group.WAIT: self._waits,
            Group.PYTHON: self._python,
            Group.MEMORY: self._memory,
            Group.FLOW: self._arrows,
            Group.XLA: self._xla,
            Group.COLLECTIVE: self._collectives,
        }

    def of(self, group: int, events: Sequence[Any]) -> Columns:
        """Columns of events that are all of the group."""
        return self._makers[group](events)

    def _ops(self, events: Sequence[Any]) -> Columns:
        args = [e.args for e in events]
        texts = self._texts
        join = _SEPARATOR.join
        signature = [
            texts[join((a.dims if a.old_dims is NO_TEXT else a.old_dims, a.types, a.strides, a.concrete))]
            if a.types is not NO_TEXT or a.dims is not NO_TEXT or a.old_dims is not NO_TEXT
            else 0
            for a in args
        ]
        caller = [
            texts[join((a.call_stack, a.module_hierarchy))] if a.call_stack is not NO_TEXT or a.module_hierarchy is not NO_TEXT else 0
            for a in args
        ]
        return {
            "external": _externals(args),
            "sequence": integers([a.sequence for a in args]),
            "forward_thread": integers([a.forward_thread for a in args]),
            "signature": np.array(signature, np.uint32),
            "caller": np.array(caller, np.uint32),
        }

    def _calls(self, events: Sequence[Any]) -> Columns:
        args = [e.args for e in events]
        return {"correlation": integers([a.correlation for a in args]), "external": _externals(args)}

    def _launches(self, events: Sequence[Any]) -> Columns:
        args = [e.args for e in events]
        texts = self._texts
        kernel = np.array([texts[bytes(a.kernel)] for a in args], np.uint32)
        return {"correlation": integers([a.correlation for a in args]), "kernel": kernel, **self._launch_shapes(args)}

    def _work(self, events: Sequence[Any]) -> Columns:
        args = [e.args for e in events]
        return {
            "correlation": integers([a.correlation for a in args]),
            "external": _externals(args),
            "device": integers([a.device for a in args]),
            "stream": _streams(args),
            "registers": integers([a.registers for a in args]),
            "graph": integers([a.graph for a in args]),
            "graph_node": integers([a.graph_node for a in args]),
            "bytes": integers([_integer(a.size if a.bytes == NULL else a.bytes) for a in args]),
            "peer": integers([a.in_device if a.to_device == NULL else a.to_device for a in args]),
            "occupancy": numbers([a.old_occupancy if a.occupancy is None else a.occupancy for a in args]),
            "blocks_per_unit": numbers([a.blocks_per_unit for a in args]),
            "warps_per_unit": numbers([a.warps_per_unit for a in args]),
            **self._launch_shapes(args),
        }

    def _waits(self, events: Sequence[Any]) -> Columns:
        args = [e.args for e in events]
        return {
            "correlation": integers([a.correlation for a in args]),
            "device": integers([a.device for a in args]),
            "stream": _streams(args),
            "on_stream": integers([a.wait_on_stream for a in args]),
            "event_correlation": integers([a.wait_on_record for a in args]),
        }

    def _python(self, events: Sequence[Any]) -> Columns:
        args = [e.args for e in events]
        return {
            "python": integers([a.python for a in args]),
            "python_parent": integers([NULL if a.python_parent is None else a.python_parent for a in args]),
            "module": integers([a.module for a in args]),
        }

    def _memory(self, events: Sequence[Any]) -> Columns:
        args = [e.args for e in events]
        return {
            "bytes": integers([a.memory_bytes for a in args]),
            "address": integers([a.address for a in args]),
            "allocated": integers([a.total_allocated for a in args]),
            "reserved": integers([a.total_reserved for a in args]),
            "device_type": integers([a.device_type for a in args]),
            "device_id": integers([a.device_id for a in args]),
        }

    def _arrows(self, events: Sequence[Any]) -> Columns:
        ids = [e.id for e in events]
        if all(type(i) is int for i in ids):
            return {"id": integers(ids), "id_text": np.zeros(len(ids), np.uint32)}
        texts = self._texts
        return {
            "id": integers([i if type(i) is int else 0 for i in ids]),
            "id_text": np.array([0 if type(i) is int else texts[i.encode("utf-8", "replace")] for i in ids], np.uint32),
        }

    def _xla(self, events: Sequence[Any]) -> Columns:
        texts = self._texts
        args = [e.args for e in events]
        hlo = [texts[_SEPARATOR.join(_hlo_texts(a))] for a in args]
        nothing = texts[_NO_HLO]
        return {
            "correlation": integers([_unquoted_integer(a.correlation) for a in args]),
            "step": integers([_unquoted_integer(a.step) for a in args]),
            "group": integers([_unquoted_integer(a.group) for a in args]),
            "clock_offset": integers([_unquoted_integer(a.clock_offset) for a in args]),
            "clock_duration": integers([_unquoted_integer(a.clock_duration) for a in args]),
            "eager": np.array([a.eager is not NO_TEXT for a in args], bool),
            "util": numbers([_unquoted_number(a.util) for a in args]),
            "occupancy": numbers([_unquoted_number(a.occupancy) for a in args]),
            "hlo": np.array([0 if code == nothing else code for code in hlo], np.uint32),
            "kernel": np.array([texts[bytes(a.kernel)] for a in args], np.uint32),
            "copy": np.array([texts[bytes(a.copy)] for a in args], np.uint32),
        }

    def _collectives(self, events: Sequence[Any]) -> Columns:
        texts = self._texts
        return {"facts": np.array([texts[_SEPARATOR.join(_collective_texts(e.args))] for e in events], np.uint32)}

    def _launch_shapes(self, args: Sequence[Any]) -> Columns:
        """Grid and block, and shared memory: of the kernel, or on ROCm of the call that launched it."""
        texts = self._texts
        join = _SEPARATOR.join
        shape = [texts[join((a.grid, a.block))] if a.grid is not NO_TEXT else 0 for a in args]
        return {"shape": np.array(shape, np.uint32), "shared": integers([a.shared for a in args])}


def integers(values: list[int]) -> I64:
    """Integers as i64; one that does not fit becomes a negative stand-in of its own, the same wherever it appears."""
    try:
        return np.array(values, np.int64)
    except (OverflowError, ValueError):
        return np.array([v if -(1 << 63) <= v < 1 << 63 else stand_in(v) for v in values], np.int64)


def stand_in(value: int) -> int:
    """A number that is not in use for an integer beyond 64 bits: equal ids stay equal, different ones different."""
    text = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return -(1 << 62) - (int.from_bytes(digest, "big") >> 2)


def numbers(values: Sequence[float | None]) -> NDArray[np.float32]:
    """Floats, NaN where there is none."""
    with np.errstate(over="ignore"):
        return np.array(values, np.float64).astype(np.float32)


def counter_values(name: str, args: bytes) -> list[tuple[str, float]]:
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


def signature_parts(key: bytes) -> dict[str, str | None]:
    """The texts behind a code of the column `signature`, as compact JSON; None for what the file does not hold."""
    return {name: _compact(text) if text else None for name, text in zip(SIGNATURE_FIELDS, key.split(_SEPARATOR), strict=True)}


def caller_parts(key: bytes) -> dict[str, str | None]:
    """The texts behind a code of the column `caller`; None for what is empty or the file does not hold."""
    stack, _, modules = key.partition(_SEPARATOR)
    return {"stack": _unquoted(stack) or None, "modules": _unquoted(modules) or None}


def hlo_parts(key: bytes) -> dict[str, str | None]:
    """The texts behind a code of the column `hlo`."""
    return {name: _unquoted(text) for name, text in zip(HLO_FIELDS, key.split(_SEPARATOR), strict=True)}


def _externals(args: Sequence[Any]) -> I64:
    """External ids, which were written in small letters until 2021."""
    ids = [a.external for a in args]
    if NULL in ids:
        ids = [a.old_external if a.external == NULL else a.external for a in args]
    return integers(ids)


def _streams(args: Sequence[Any]) -> I64:
    streams = [a.stream for a in args]
    try:
        found = np.array(streams, np.int64)
        if not (found == NULL).any():
            return found
    except (OverflowError, ValueError):
        pass
    return integers([_integer(a.sycl_queue if a.stream == NULL else a.stream) for a in args])


def _integer(value: int | str) -> int:
    """An integer that may be written as text, decimal or hexadecimal."""
    if isinstance(value, int):
        return value
    try:
        return int(value, 0) if len(value) < 64 else NULL
    except ValueError:
        return NULL


def _unquoted_integer(raw: Raw) -> int:
    if raw is NO_TEXT:
        return NULL
    text = bytes(raw).strip(b'" ')
    return int(text) if len(text) < 64 and _INTEGERS.fullmatch(text) else NULL


def _unquoted_number(raw: Raw) -> float | None:
    if raw is NO_TEXT:
        return None
    try:
        return float(bytes(raw).strip(b'" '))
    except ValueError:
        return None


def shape_of(key: bytes) -> tuple[int, ...]:
    """Grid and block behind a code of the column `shape`; -1 for what is unknown."""
    grid, _, block = key.partition(_SEPARATOR)
    return (*_triple(grid), *_triple(block))


def text_of(key: bytes) -> str | None:
    """The text behind a code of a JSON value, None where the file holds none."""
    value = _value(key)
    return value if isinstance(value, str) else None


def collective_parts(key: bytes) -> dict[str, Any]:
    """The values behind a code of the column `facts`."""
    return {name: _value(text) for name, text in zip(COLLECTIVE_FIELDS, key.split(_SEPARATOR), strict=True)}


def _triple(text: bytes) -> tuple[int, int, int]:
    found = [int(x) for x in _INTEGERS.findall(text[:200]) if len(x) < 11]
    return (found[0], found[1], found[2]) if len(found) == 3 else (-1, -1, -1)


def _value(text: bytes) -> Any:
    """What a JSON text says; the text itself where it says nothing."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text.decode("utf-8", "replace")


def _unquoted(text: bytes) -> str | None:
    value = _value(text)
    return value if value is None or isinstance(value, str) else text.decode("utf-8", "replace")


def _compact(text: bytes) -> str:
    try:
        return msgspec.json.format(text, indent=-1).decode("utf-8", "replace")
    except (msgspec.DecodeError, RecursionError):
        return text.decode("utf-8", "replace")
