"""HLO modules out of their protos (xla/service/hlo.proto): what costs, texts and the op graph need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from roofterm_parsers.xplane.hlo_shapes import Shape, numbers, read_shape
from roofterm_parsers.xplane.wire import BYTES, VARINT, Buffer, fields, signed, text


@dataclass(frozen=True, slots=True)
class WindowDim:
    size: int = 0
    stride: int = 0
    padding_low: int = 0
    padding_high: int = 0
    window_dilation: int = 0
    base_dilation: int = 0
    reversal: bool = False


@dataclass(frozen=True, slots=True)
class ConvDims:
    """Dimension numbers of a convolution."""

    input_batch: int = 0
    input_feature: int = 0
    input_spatial: tuple[int, ...] = ()
    kernel_input: int = 0
    kernel_output: int = 0
    kernel_spatial: tuple[int, ...] = ()
    output_batch: int = 0
    output_feature: int = 0
    output_spatial: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DotDims:
    lhs_contracting: tuple[int, ...] = ()
    rhs_contracting: tuple[int, ...] = ()
    lhs_batch: tuple[int, ...] = ()
    rhs_batch: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class IotaGroups:
    """Replica groups as a reshaped and transposed count: `[groups,size]<=[dims]T(order)`."""

    groups: int = 0
    size: int = 0
    dims: tuple[int, ...] = ()
    order: tuple[int, ...] = ()


@dataclass(slots=True)
class Instruction:
    id: int = 0
    name: str = ""
    opcode: str = ""
    shape: Shape = field(default_factory=lambda: Shape(0))
    operand_ids: list[int] = field(default_factory=list)
    called: list[int] = field(default_factory=list)
    """ids of the computations it calls"""
    op_name: str = ""
    op_type: str = ""
    source_file: str = ""
    source_line: int = 0
    stack_frame: int = 0
    deduplicated: str = ""
    fusion_kind: str = ""
    parameter: int = 0
    tuple_index: int = 0
    dimensions: tuple[int, ...] = ()
    window: tuple[WindowDim, ...] = ()
    conv: ConvDims | None = None
    dot: DotDims | None = None
    target: str = ""
    """of a custom call"""
    backend_config: bytes = b""
    feature_groups: int = 1
    batch_groups: int = 1
    fft_length: tuple[int, ...] = ()
    replica_groups: tuple[tuple[int, ...], ...] = ()
    iota_groups: IotaGroups | None = None
    rare: dict[int, list[int | bytes]] = field(default_factory=dict)
    """fields that only its text shows, by their number in the proto"""
    operand_layouts: list[Shape] = field(default_factory=list)
    """of a custom call that demands layouts"""
    api_version: int = 0

    def ranks(self) -> int:
        """How many devices a collective joins; 1 where the program does not say."""
        if self.iota_groups is not None:
            return max(self.iota_groups.size, 1)
        return max((len(group) for group in self.replica_groups), default=1) or 1

    def config(self) -> dict[str, Any]:
        """The backend's configuration where it is JSON; else nothing."""
        try:
            found = msgspec.json.decode(self.backend_config)
        except msgspec.DecodeError:
            return {}
        return found if isinstance(found, dict) else {}


@dataclass(slots=True)
class Computation:
    id: int = 0
    name: str = ""
    root_id: int = 0
    instructions: list[Instruction] = field(default_factory=list)

    def root(self) -> Instruction:
        return next((one for one in self.instructions if one.id == self.root_id), self.instructions[-1])


@dataclass
class Module:
    name: str = ""
    id: int = 0
    entry_id: int = 0
    computations: list[Computation] = field(default_factory=list)
    replicas: int = 1
    partitions: int = 1
    stack_frames: list[str] = field(default_factory=list)
    """frame i + 1 as the lines from the outermost call to it"""

    @cached_property
    def by_id(self) -> dict[int, Instruction]:
        return {one.id: one for computation in self.computations for one in computation.instructions}

    @cached_property
    def by_name(self) -> dict[str, Instruction]:
        found: dict[str, Instruction] = {}
        for computation in self.computations:
            for one in computation.instructions:
                found.setdefault(one.name, one)
        return found

    @cached_property
    def computation(self) -> dict[int, Computation]:
        return {one.id: one for one in self.computations}

    @cached_property
    def users(self) -> dict[int, list[Instruction]]:
        """Instruction id to those of its computation that have it as operand, each once."""
        found: dict[int, list[Instruction]] = {}
        for computation in self.computations:
            for one in computation.instructions:
                for operand in dict.fromkeys(one.operand_ids):
                    found.setdefault(operand, []).append(one)
        return found

    def operands(self, one: Instruction) -> list[Instruction]:
        return [self.by_id[operand] for operand in one.operand_ids if operand in self.by_id]

    def stack(self, one: Instruction) -> str:
        return self.stack_frames[one.stack_frame - 1] if 0 < one.stack_frame <= len(self.stack_frames) else ""


def read_module(data: Buffer, at: int, end: int) -> Module:
    """The module in an HloProto. Raises WireError where the bytes are none."""
    for number, wire, a, b in fields(data, at, end):
        if number == 1 and wire == BYTES:
            return _module(data, a, b)
    return Module()


def _module(data: Buffer, at: int, end: int) -> Module:
    module = Module()
    frames: tuple[int, int] | None = None
    for number, wire, a, b in fields(data, at, end):
        if number == 1 and wire == BYTES:
            module.name = text(data, a, b)
        elif number == 3 and wire == BYTES:
            module.computations.append(_computation(data, a, b))
        elif number == 5 and wire == VARINT:
            module.id = a
        elif number == 6 and wire == VARINT:
            module.entry_id = signed(a)
        elif number == 15 and wire == BYTES:
            counts = {key: value for key, kind, value, _ in fields(data, a, b) if kind == VARINT}
            module.replicas, module.partitions = counts.get(1, 1), counts.get(2, 1)
        elif number == 17 and wire == BYTES:
            frames = a, b
    if frames is not None:
        module.stack_frames = _stack_frames(data, *frames)
    return module


def _computation(data: Buffer, at: int, end: int) -> Computation:
    computation = Computation()
    for number, wire, a, b in fields(data, at, end):
        if number == 1 and wire == BYTES:
            computation.name = text(data, a, b)
        elif number == 2 and wire == BYTES:
            computation.instructions.append(_instruction(data, a, b))
        elif number == 5 and wire == VARINT:
            computation.id = signed(a)
        elif number == 6 and wire == VARINT:
            computation.root_id = signed(a)
    return computation


def _instruction(data: Buffer, at: int, end: int) -> Instruction:
    one = Instruction()
    for number, wire, a, b in fields(data, at, end):
        if wire == BYTES and number in _TEXTS:
            setattr(one, _TEXTS[number], text(data, a, b))
        elif wire == VARINT and number in _NUMBERS:
            setattr(one, _NUMBERS[number], signed(a))
        elif number == 36:
            one.operand_ids += numbers(data, wire, a, b)
        elif number == 38:
            one.called += numbers(data, wire, a, b)
        elif number == 14:
            one.dimensions += tuple(numbers(data, wire, a, b))
        elif number == 32:
            one.fft_length += tuple(numbers(data, wire, a, b))
        elif number in _RARE:
            one.rare.setdefault(number, []).append(bytes(data[a:b]) if wire == BYTES else a)
        elif wire != BYTES:
            continue
        elif number == 3:
            one.shape = read_shape(data, a, b)
        elif number == 7:
            _metadata(data, a, b, one)
        elif number == 15:
            one.window = tuple(_window_dim(data, c, d) for key, kind, c, d in fields(data, a, b) if key == 1 and kind == BYTES)
        elif number == 16:
            one.conv = _conv_dims(data, a, b)
        elif number == 30:
            one.dot = DotDims(*[tuple(found) for found in _repeated(data, a, b, (1, 2, 3, 4))])
        elif number == 43:
            one.backend_config = bytes(data[a:b])
        elif number == 57:
            one.operand_layouts.append(read_shape(data, a, b))
        elif number == 49:
            one.replica_groups += (tuple(_repeated(data, a, b, (1,))[0]),)
        elif number == 87:
            _device_list(data, a, b, one)
        elif number == 92:
            one.iota_groups = _iota_groups(data, a, b)
    one.feature_groups, one.batch_groups = max(one.feature_groups, 1), max(one.batch_groups, 1)
    return one


_RARE = frozenset({17, 18, 19, 20, 21, 23, 26, 31, 33, 34, 48, 51, 52, 63, 65, 67, 69, 70, 71, 72, 74})
_TEXTS = {1: "name", 2: "opcode", 11: "fusion_kind", 28: "target"}
_NUMBERS = {9: "parameter", 13: "tuple_index", 35: "id", 50: "feature_groups", 58: "batch_groups", 77: "api_version"}


def _device_list(data: Buffer, at: int, end: int, one: Instruction) -> None:
    for number, wire, a, b in fields(data, at, end):
        if number == 1 and wire == BYTES:
            one.replica_groups += (tuple(_repeated(data, a, b, (1,))[0]),)
        elif number == 2 and wire == BYTES:
            one.iota_groups = _iota_groups(data, a, b)


def _iota_groups(data: Buffer, at: int, end: int) -> IotaGroups:
    groups, size, dims, order = _repeated(data, at, end, (1, 2, 3, 4))
    return IotaGroups(next(iter(groups), 0), next(iter(size), 0), tuple(dims), tuple(order))


def _metadata(data: Buffer, at: int, end: int, one: Instruction) -> None:
    for number, wire, a, b in fields(data, at, end):
        if wire == BYTES and number in (1, 2, 3, 12):
            setattr(one, {1: "op_type", 2: "op_name", 3: "source_file", 12: "deduplicated"}[number], text(data, a, b))
        elif number == 4 and wire == VARINT:
            one.source_line = signed(a)
        elif number == 15 and wire == VARINT:
            one.stack_frame = a


def _window_dim(data: Buffer, at: int, end: int) -> WindowDim:
    held = {number: signed(a) for number, wire, a, _ in fields(data, at, end) if wire == VARINT}
    return WindowDim(held.get(1, 0), held.get(2, 0), held.get(3, 0), held.get(4, 0), held.get(5, 0), held.get(6, 0), bool(held.get(7, 0)))


def _conv_dims(data: Buffer, at: int, end: int) -> ConvDims:
    one = {number: signed(a) for number, wire, a, _ in fields(data, at, end) if wire == VARINT}
    kernel, inputs, outputs = _repeated(data, at, end, (6, 11, 12))
    return ConvDims(
        input_batch=one.get(7, 0),
        input_feature=one.get(8, 0),
        input_spatial=tuple(inputs),
        kernel_input=one.get(3, 0),
        kernel_output=one.get(4, 0),
        kernel_spatial=tuple(kernel),
        output_batch=one.get(9, 0),
        output_feature=one.get(10, 0),
        output_spatial=tuple(outputs),
    )


def _repeated(data: Buffer, at: int, end: int, wanted: tuple[int, ...]) -> list[list[int]]:
    found: dict[int, list[int]] = {number: [] for number in wanted}
    for number, wire, a, b in fields(data, at, end):
        if number in found:
            found[number] += numbers(data, wire, a, b)
    return [found[number] for number in wanted]


def _stack_frames(data: Buffer, at: int, end: int) -> list[str]:
    """StackFrameIndexProto: files, functions, locations (file, function, line, column), frames (location, parent)."""
    files: list[str] = []
    locations: list[tuple[int, int, int]] = []
    frames: list[tuple[int, int]] = []
    for number, wire, a, b in fields(data, at, end):
        if wire != BYTES:
            continue
        if number == 1:
            files.append(text(data, a, b))
        elif number == 3:
            held = _varints(data, a, b)
            locations.append((held.get(1, 0), held.get(3, 0), held.get(4, 0)))
        elif number == 4:
            held = _varints(data, a, b)
            frames.append((held.get(1, 0), held.get(2, 0)))
    return ["".join(_lines(frame, files, locations, frames)) for frame in range(1, len(frames) + 1)]


def _lines(frame: int, files: list[str], locations: list[tuple[int, int, int]], frames: list[tuple[int, int]]) -> Iterator[str]:
    chain: list[str] = []
    seen: set[int] = set()
    while 0 < frame <= len(frames) and frame not in seen:
        seen.add(frame)
        location, frame = frames[frame - 1]
        if 0 < location <= len(locations):
            file, line, column = locations[location - 1]
            chain.append(f"{files[file - 1] if 0 < file <= len(files) else ''}:{line}:{column}\n")
    yield from chain


def _varints(data: Buffer, at: int, end: int) -> dict[int, int]:
    return {number: a for number, wire, a, _ in fields(data, at, end) if wire == VARINT}
