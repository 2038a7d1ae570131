"""A small writer of XSpace and HLO protocol buffers, so that tests and samples say what lies in a file and not how."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import Any

Stat = int | float | str | bytes


class Ref(str):
    """A text that is written as a reference to a stat's name."""


class Signed(int):
    """A whole number that is written as a signed one; others are written as unsigned unless they are negative."""


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field_number: int, value: int) -> bytes:
    return varint(field_number << 3) + varint(value)


def text(field_number: int, value: str | bytes) -> bytes:
    payload = value.encode() if isinstance(value, str) else value
    return varint(field_number << 3 | 2) + varint(len(payload)) + payload


def packed(field_number: int, values: list[int] | tuple[int, ...]) -> bytes:
    return text(field_number, b"".join(varint(value) for value in values)) if values else b""


@dataclass
class Plane:
    """An XPlane in the making. Times are picoseconds, line starts nanoseconds."""

    name: str
    id: int = 0
    stats: dict[str, Any] = field(default_factory=dict)
    _lines: list[bytes] = field(default_factory=list)
    _metadata: list[bytes] = field(default_factory=list)
    _names: dict[str, int] = field(default_factory=dict)
    _events: dict[str, int] = field(default_factory=dict)

    def stat_id(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names) + 1)

    def stat(self, name: str, value: Stat) -> bytes:
        head = number(1, self.stat_id(name))
        if isinstance(value, bool):
            return head + number(3, int(value))
        if isinstance(value, Ref):
            return head + number(7, self.stat_id(str(value)))
        if isinstance(value, float):
            return head + varint(2 << 3 | 1) + struct.pack("<d", value)
        if isinstance(value, int):
            return head + number(4 if value < 0 or isinstance(value, Signed) else 3, value)
        return head + text(5 if isinstance(value, str) else 6, value)

    def op(self, name: str, display: str = "", key: str = "", **stats: Any) -> int:
        """Event metadata; returns its id. `key` tells two of one name apart."""
        known = self._events.get(key or name)
        if known is not None:
            return known
        made = self._events[key or name] = len(self._events) + 1
        body = number(1, made) + text(2, name) + (text(4, display) if display else b"")
        body += b"".join(text(5, self.stat(stat, value)) for stat, value in stats.items())
        self._metadata.append(text(4, number(1, made) + text(2, body)))
        return made

    def event(self, metadata: int | str, offset_ps: int, dur_ps: int, extra: Any = b"", **stats: Any) -> bytes:
        """An event; a metadata that is text is made one without stats. Spaces in stat names are written `__`."""
        if isinstance(metadata, str):
            metadata = self.op(metadata)
        body = number(1, metadata) + number(2, offset_ps) + number(3, dur_ps)
        body += b"".join(text(4, self.stat(stat.replace("__", " "), value)) for stat, value in stats.items())
        return body + extra

    def line(self, name: str, events: list[bytes], id: int = 1, start_ns: int = 0, display: str = "") -> None:
        body = number(1, id) + text(2, name) + number(3, start_ns) + b"".join(text(4, event) for event in events)
        self._lines.append(text(3, body + (text(11, display) if display else b"")))

    def encode(self) -> bytes:
        stats = b"".join(text(6, self.stat(name, value)) for name, value in self.stats.items())
        names = b"".join(text(5, number(1, made) + text(2, number(1, made) + text(2, name))) for name, made in self._names.items())
        return number(1, self.id) + text(2, self.name) + b"".join(self._lines) + b"".join(self._metadata) + names + stats


def space(*planes: Plane, errors: tuple[str, ...] = (), warnings: tuple[str, ...] = (), host: str = "") -> bytes:
    body = b"".join(text(1, plane.encode()) for plane in planes)
    body += b"".join(text(2, error) for error in errors) + b"".join(text(3, warning) for warning in warnings)
    return body + (text(4, host) if host else b"")


def tpu_plane(id: int = 0, **stats: Any) -> Plane:
    """A TensorCore of 100 TFLOP/s and 1000 GB/s."""
    peaks: dict[str, Any] = {
        "device_type_string": "TPU test",
        "peak_teraflops_per_second": 100.0,
        "peak_hbm_bw_gigabytes_per_second": 1000.0,
    }
    return Plane(f"/device:TPU:{id}", id=id + 2, stats={**peaks, **stats})


def breakdown(*accesses: tuple[int, int, int]) -> bytes:
    """A memory_access_breakdown of (1 read or 2 write, memory: 1 HBM 2 CMEM 3 VMEM, bytes)."""
    return b"".join(text(1, number(1, way) + number(2, memory) + number(3, size)) for way, memory, size in accesses)


_TYPES = {
    "pred": 1, "s8": 2, "s32": 4, "u8": 6, "u32": 8, "u64": 9, "f16": 10, "f32": 11, "f64": 12, "bf16": 16, "f8e4m3fn": 20, "s4": 21,
}  # fmt: skip
_ARRAY = re.compile(r"^(\w+)\[([\d,]*)\](?:\{([\d,]*)(?::E\((\d+)\))?\})?$")


def shape(written: str) -> bytes:
    """A ShapeProto from `bf16[8,128]{1,0}` or a tuple `(f32[2], s8[4])`; row-major where no layout is written."""
    if written.startswith("("):
        return number(2, 13) + b"".join(text(4, shape(part)) for part in _parts(written[1:-1]))
    match = _ARRAY.match(written)
    assert match is not None, written
    dims = [int(dim) for dim in match[2].split(",") if dim]
    layout = [int(dim) for dim in match[3].split(",") if dim] if match[3] is not None else list(reversed(range(len(dims))))
    packing = number(7, int(match[4])) if match[4] else b""
    return number(2, _TYPES[match[1]]) + packed(3, dims) + text(5, packed(1, layout) + packing)


def _parts(written: str) -> list[str]:
    """The parts between commas that stand in no brackets."""
    parts, depth = [""], 0
    for letter in written:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


@dataclass
class _Computation:
    id: int
    name: str
    instructions: list[bytes] = field(default_factory=list)
    parameters: list[bytes] = field(default_factory=list)
    root: int = 0
    result: bytes = b""

    def program_shape(self) -> bytes:
        names = b"".join(text(3, f"p{i}") for i in range(len(self.parameters)))
        return b"".join(text(1, one) for one in self.parameters) + text(2, self.result) + names

    def encode(self) -> bytes:
        body = text(1, self.name) + b"".join(text(2, one) for one in self.instructions) + text(4, self.program_shape())
        return body + number(5, self.id) + number(6, self.root)


@dataclass
class Hlo:
    """An HLO module in the making: `op` adds an instruction to the computation that was begun last."""

    name: str = "jit_f"
    id: int = 7
    _computations: list[_Computation] = field(default_factory=list)
    _ids: dict[str, int] = field(default_factory=dict)

    def computation(self, name: str) -> int:
        made = len(self._computations) + 1
        self._computations.append(_Computation(made, name))
        return made

    def op(self, name: str, opcode: str, result: str, operands: tuple[str, ...] = (), calls: tuple[int, ...] = (), **rest: Any) -> str:
        """`rest`: parameter, dimensions, kind, target, config (bytes), dot, conv, window, index, groups, op_name, source.

        Parameters come in order. A constant is a scalar zero.
        """
        made = self._ids[name] = len(self._ids) + 1
        body = text(1, name) + text(2, opcode) + text(3, shape(result)) + number(35, made)
        body += packed(36, [self._ids[operand] for operand in operands]) + packed(38, calls)
        metadata = text(2, rest.get("op_name", "")) + text(3, rest.get("source", ("", 0))[0]) + number(4, rest.get("source", ("", 0))[1])
        body += text(7, metadata) + number(9, rest.get("parameter", 0)) + packed(14, rest.get("dimensions", ()))
        for key, field_number in (("kind", 11), ("target", 28), ("config", 43), ("window", 15), ("conv", 16), ("dot", 30)):
            if key in rest:
                body += text(field_number, rest[key])
        if "index" in rest:
            body += number(13, rest["index"])
        for group in rest.get("groups", ()):
            body += text(49, packed(1, group))
        if opcode == "constant":
            body += text(8, text(1, shape(result)) + _ZERO.get(result.partition("[")[0], b""))
        computation = self._computations[-1]
        computation.instructions.append(body)
        computation.root, computation.result = made, shape(result)
        if opcode == "parameter":
            computation.parameters.append(shape(result))
        return name

    def encode(self) -> bytes:
        """An HloProto; the last instruction of a computation is its root, the last computation the entry."""
        entry = self._computations[-1]
        body = text(1, self.name) + text(2, entry.name) + b"".join(text(3, one.encode()) for one in self._computations)
        return text(1, body + text(4, entry.program_shape()) + number(5, self.id) + number(6, entry.id))


_ZERO = {"f32": text(8, bytes(4)), "f16": text(11, bytes(2)), "bf16": text(13, bytes(2)), "s32": packed(4, [0]), "pred": packed(2, [0])}
"""A scalar zero in a literal of each type."""


def dot_dims(lhs: tuple[int, ...], rhs: tuple[int, ...], lhs_batch: tuple[int, ...] = (), rhs_batch: tuple[int, ...] = ()) -> bytes:
    return packed(1, lhs) + packed(2, rhs) + packed(3, lhs_batch) + packed(4, rhs_batch)


def conv_dims_nchw(spatial: int = 2) -> bytes:
    """bf01_oi01->bf01"""
    dims = tuple(range(2, 2 + spatial))
    one = number(3, 1) + number(4, 0) + number(7, 0) + number(8, 1) + number(9, 0) + number(10, 1)
    return one + packed(6, dims) + packed(11, dims) + packed(12, dims)


def window(*dims: dict[str, int]) -> bytes:
    """Of each dimension size, stride, low, high, window_dilation, base_dilation."""
    keys = ("size", "stride", "low", "high", "window_dilation", "base_dilation")
    defaults = {"stride": 1, "window_dilation": 1, "base_dilation": 1}
    return b"".join(text(1, b"".join(number(i, {**defaults, **dim}.get(key, 0)) for i, key in enumerate(keys, 1))) for dim in dims)


def metadata_plane(*modules: Hlo) -> Plane:
    """The plane that holds the programs' HLO."""
    plane = Plane("/host:metadata")
    for module in modules:
        made = plane._events[module.name + str(module.id)] = module.id
        body = number(1, made) + text(2, f"{module.name}({module.id})") + text(5, plane.stat("Hlo Proto", module.encode()))
        plane._metadata.append(text(4, number(1, made) + text(2, body)))
    return plane
