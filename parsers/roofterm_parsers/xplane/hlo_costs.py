"""What an HLO instruction costs: FLOPs, and bytes between the device's memory and its chip.

The structure is that of XLA's cost analysis (xla/service/hlo_cost_analysis.cc and gpu_hlo_cost_analysis.cc): an instruction
reads its operands and writes its result once; a fusion does the work of its computation but touches memory only for its
parameters and results, each as far as it is used. What an element's operation counts, how custom calls are told and how
numbers are rounded are `Rules`: ours, or those that give XProf's figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil, log2, prod

from roofterm_parsers.xplane.hlo_convolution import convolution_flops
from roofterm_parsers.xplane.hlo_fusion import fusion_cost
from roofterm_parsers.xplane.hlo_proto import Computation, Instruction, Module
from roofterm_parsers.xplane.hlo_shapes import Shape
from roofterm_parsers.xplane.hlo_text import ELEMENTWISE

Path = tuple[int, ...]


@dataclass(slots=True)
class Cost:
    """Costs of one instruction, once executed. None: no rule for it."""

    flops: float | None = 0.0
    bytes: float | None = 0.0
    read: dict[tuple[int, Path], float] = field(default_factory=dict)
    """bytes read of each operand, by the index path in a tuple"""
    written: dict[Path, float] = field(default_factory=dict)
    used: dict[int, float] = field(default_factory=dict)
    """share of each operand's elements that the instruction needs, where it is not 1"""
    total: float = 0.0
    """share of the instruction's own elements that the fusion around it needs"""


@dataclass(frozen=True, slots=True)
class Rules:
    element_flops: Callable[[str, Shape], float]
    """FLOPs of an elementwise opcode for one element of this shape"""
    custom_call: Callable[[Module, Instruction, Cost], bool]
    """fill in a custom call's cost; False: no rule for its target"""
    rounded: Callable[[float], float]
    """how a number is kept"""
    init_per_result: bool
    """let a reduction read its initial value once for each result"""
    own: Mapping[str, Callable[[CostAnalysis, Instruction, Cost], None]]
    """rules for opcodes that go before the common ones"""


class CostAnalysis:
    """Costs of all instructions of a module that are reached from its entry."""

    def __init__(self, module: Module, rules: Rules) -> None:
        self.module, self.rules = module, rules
        self.costs: dict[int, Cost] = {}
        self.unknown: dict[str, int] = {}
        """opcodes and custom-call targets without a rule, with their number"""
        self._sums: dict[int, tuple[float | None, float | None]] = {}
        entry = module.computation.get(module.entry_id)
        if entry is not None:
            self._visit(entry)

    def of(self, one: Instruction) -> Cost | None:
        return self.costs.get(one.id)

    def device_bytes(self, one: Instruction) -> float:
        """Bytes of the instruction's operands and results that lie in the device's main memory (space 0)."""
        cost = self.costs[one.id]
        total = 0.0
        for i, operand in enumerate(self.module.operands(one)):
            total += sum(_whole(cost.read.get((i, path), 0.0)) for path, leaf in operand.shape.leaves() if _in_main(leaf))
        return total + sum(_whole(cost.written.get(path, 0.0)) for path, leaf in one.shape.leaves() if _in_main(leaf))

    def _visit(self, computation: Computation) -> tuple[float | None, float | None]:
        """Costs of a computation's instructions, added up: FLOPs, bytes."""
        if computation.id in self._sums:
            return self._sums[computation.id]
        self._sums[computation.id] = (0.0, 0.0)  # a call to itself adds nothing
        flops: float | None = 0.0
        size: float | None = 0.0
        for one in computation.instructions:
            cost = self._cost(one)
            self.costs[one.id] = cost
            flops = None if flops is None or cost.flops is None else self.rules.rounded(flops + cost.flops)
            size = None if size is None or cost.bytes is None else self.rules.rounded(size + cost.bytes)
        self._sums[computation.id] = (flops, size)
        return flops, size

    def _cost(self, one: Instruction) -> Cost:
        cost = self._default(one)
        if one.opcode in ELEMENTWISE and one.opcode not in ("constant", "map", "copy", "rng"):
            cost.flops = self.rules.rounded(self.rules.element_flops(one.opcode, one.shape) * one.shape.elements)
            return cost
        rule = self.rules.own.get(one.opcode) or _RULES.get(one.opcode)
        if rule is None:
            self._count_unknown(one.opcode)
            cost.flops = cost.bytes = None
            return cost
        rule(self, one, cost)
        return cost

    def _default(self, one: Instruction) -> Cost:
        """Every operand read and the result written once."""
        rounded = self.rules.rounded
        cost = Cost(written={(): rounded(one.shape.array_bytes)})
        total = rounded(one.shape.array_bytes)
        for i, operand in enumerate(self.module.operands(one)):
            cost.read[i, ()] = rounded(operand.shape.bytes)
            total = rounded(total + operand.shape.bytes)
        cost.bytes = total
        return cost

    def _count_unknown(self, name: str) -> None:
        self.unknown[name] = self.unknown.get(name, 0) + 1

    def _called(self, one: Instruction, index: int = 0) -> Computation | None:
        return self.module.computation.get(one.called[index]) if len(one.called) > index else None

    # Rules, one an opcode or family

    def free(self, one: Instruction, cost: Cost) -> None:
        """No work and no memory: parameters, constants, views."""
        cost.bytes = 0.0
        cost.written[()] = 0.0
        for key in cost.read:
            cost.read[key] = 0.0

    def moves(self, one: Instruction, cost: Cost) -> None:
        """Memory only, operands and result whole."""

    def gathers_pointers(self, one: Instruction, cost: Cost) -> None:
        cost.bytes = self.rules.rounded(one.shape.bytes)
        for key in cost.read:
            cost.read[key] = 0.0

    def slices(self, one: Instruction, cost: Cost) -> None:
        """Only what is taken is read; a dynamic slice reads its start indices too (XLA counts the first)."""
        operands = self.module.operands(one)
        taken = self.rules.rounded(one.shape.bytes)
        cost.read[0, ()] = taken
        cost.written[()] = taken
        cost.used[0] = one.shape.elements / max(operands[0].shape.elements, 1)
        index = operands[1].shape.bytes if one.opcode == "dynamic-slice" and len(operands) > 1 else 0
        cost.bytes = self.rules.rounded(taken * 2 + index)

    def updates_slice(self, one: Instruction, cost: Cost) -> None:
        """The operand is the result, in place: only the update is read and written."""
        operands = self.module.operands(one)
        update = self.rules.rounded(operands[1].shape.bytes)
        index = operands[2].shape.bytes if len(operands) > 2 else 0
        cost.bytes = self.rules.rounded(update * 2 + index)
        cost.read[0, ()] = 0.0
        cost.written[()] = update
        elements = max(one.shape.elements, 1)
        cost.used[0] = (elements - operands[1].shape.elements) / elements

    def gathers(self, one: Instruction, cost: Cost) -> None:
        operands = self.module.operands(one)
        taken = self.rules.rounded(one.shape.bytes)
        cost.read[0, ()] = taken
        cost.used[0] = one.shape.elements / max(operands[0].shape.elements, 1)
        cost.bytes = self.rules.rounded(taken * 2 + operands[1].shape.bytes)

    def scatters(self, one: Instruction, cost: Cost) -> None:
        """The places of the updates are read and written, the updates and indices read."""
        operands = self.module.operands(one)
        n = (len(operands) - 1) // 2
        updates = sum(operand.shape.bytes for operand in operands[n + 1 :])
        for i in range(n):
            cost.read[i, ()] = self.rules.rounded(operands[n + 1 + i].shape.bytes)
        cost.written[()] = self.rules.rounded(updates)
        cost.bytes = self.rules.rounded(updates * 3 + operands[n].shape.bytes)
        self._times_function(one, cost, operands[n + 1].shape.elements)

    def dots(self, one: Instruction, cost: Cost) -> None:
        operands = self.module.operands(one)
        contracted = prod(operands[0].shape.dims[dim] for dim in (one.dot.lhs_contracting if one.dot else ()))
        cost.flops = self.rules.rounded(2 * one.shape.elements * contracted)

    def convolves(self, one: Instruction, cost: Cost) -> None:
        lhs, rhs = (operand.shape for operand in self.module.operands(one)[:2])
        cost.flops = self.rules.rounded(convolution_flops(one, lhs, rhs, one.shape))

    def reduces(self, one: Instruction, cost: Cost) -> None:
        result = one.shape.tuple_shapes[0] if one.shape.is_tuple else one.shape
        operands = self.module.operands(one)
        self._times_function(one, cost, operands[0].shape.elements - result.elements)
        if self.rules.init_per_result and cost.bytes is not None:
            for i, init in enumerate(operands[len(operands) // 2 :], len(operands) // 2):
                cost.used[i] = float(result.elements)
                cost.read[i, ()] = self.rules.rounded(init.shape.bytes * result.elements)
                cost.bytes = self.rules.rounded(cost.bytes + init.shape.bytes * (result.elements - 1))

    def reduces_windows(self, one: Instruction, cost: Cost) -> None:
        result = one.shape.tuple_shapes[0] if one.shape.is_tuple else one.shape
        self._times_function(one, cost, (prod(dim.size for dim in one.window) - 1) * result.elements)

    def selects_and_scatters(self, one: Instruction, cost: Cost) -> None:
        source = self.module.operands(one)[1].shape.elements
        cost.flops = 0.0
        for index, times in ((0, source * (prod(dim.size for dim in one.window) - 1)), (1, source)):
            function = self._called(one, index)
            flops = self._visit(function)[0] if function is not None else None
            cost.flops = None if flops is None or cost.flops is None else cost.flops + flops * times

    def maps(self, one: Instruction, cost: Cost) -> None:
        self._times_function(one, cost, one.shape.elements)

    def _times_function(self, one: Instruction, cost: Cost, times: int) -> None:
        function = self._called(one)
        flops = self._visit(function)[0] if function is not None else None
        cost.flops = None if flops is None else self.rules.rounded(flops * times)

    def sorts(self, one: Instruction, cost: Cost) -> None:
        """n log n comparisons, which are no FLOPs in our count and are in XLA's."""
        elements = self.module.operands(one)[0].shape.elements
        cost.flops = self.rules.element_flops("sort", one.shape) * elements * ceil(log2(max(elements, 1)))

    def transforms(self, one: Instruction, cost: Cost) -> None:
        """FFT: XLA's 8 N times the product of the lengths' logarithms."""
        operand = self.module.operands(one)[0].shape
        shape = operand.tuple_shapes[0] if operand.is_tuple else operand
        cost.flops = self.rules.rounded(8 * prod(max(length, 1).bit_length() - 1 for length in one.fft_length) * shape.elements)

    def solves_triangle(self, one: Instruction, cost: Cost) -> None:
        a, b = (operand.shape for operand in self.module.operands(one)[:2])
        cost.read[0, ()] = a.bytes / 2
        cost.bytes = self.rules.rounded(one.shape.bytes + a.bytes / 2 + b.bytes)
        cost.flops = self.rules.rounded(2 * a.dims[-1] * b.elements)

    def factors(self, one: Instruction, cost: Cost) -> None:
        """Cholesky: n^3 / 3."""
        a = self.module.operands(one)[0].shape
        cost.read[0, ()] = cost.written[()] = a.bytes / 2
        cost.bytes = self.rules.rounded(a.bytes)
        cost.flops = self.rules.rounded(a.dims[-1] * a.elements // 3)

    def exchanges(self, one: Instruction, cost: Cost) -> None:
        """A collective: all arrays read and written; an all-reduce or reduce-scatter combines elements."""
        self.exchanges_arrays(one, cost, one.shape.array_bytes)

    def exchanges_arrays(self, one: Instruction, cost: Cost, written: int) -> None:
        read = sum(operand.shape.array_bytes for operand in self.module.operands(one))
        cost.bytes = self.rules.rounded(written + read)
        cost.written = {(): self.rules.rounded(written)}
        function = self._called(one)
        if function is not None and one.opcode.startswith(("all-reduce", "reduce-scatter")):
            operation = function.root()
            elements = max(one.shape.elements, sum(operand.shape.elements for operand in self.module.operands(one)))
            cost.flops = self.rules.rounded(self.rules.element_flops(operation.opcode, operation.shape) * elements)

    def concatenates(self, one: Instruction, cost: Cost) -> None:
        """Moves memory; XLA's model for GPUs charges the choice of an operand."""
        cost.flops = self.rules.rounded(
            self.rules.element_flops(f"concatenate:{_ragged(self.module, one)}", one.shape) * one.shape.elements
        )

    def runs(self, one: Instruction, cost: Cost) -> None:
        """A call, or the start of something asynchronous: the work of its computation."""
        function = self._called(one)
        if function is not None:
            cost.flops, cost.bytes = self._visit(function)

    def loops(self, one: Instruction, cost: Cost) -> None:
        """One iteration: how many there are is known at run time only."""
        totals = [self._visit(function) for i in range(len(one.called)) if (function := self._called(one, i)) is not None]
        cost.flops = _sum(flops for flops, _ in totals)
        cost.bytes = _sum(size for _, size in totals)

    def branches(self, one: Instruction, cost: Cost) -> None:
        """The costliest branch."""
        totals = [self._visit(function) for i in range(len(one.called)) if (function := self._called(one, i)) is not None]
        flops, sizes = [flops for flops, _ in totals], [size for _, size in totals]
        cost.flops = None if None in flops else max((value for value in flops if value is not None), default=0.0)
        cost.bytes = None if None in sizes else max((value for value in sizes if value is not None), default=0.0)

    def calls_custom(self, one: Instruction, cost: Cost) -> None:
        if not self.rules.custom_call(self.module, one, cost):
            self._count_unknown(f"custom-call {one.target}")
            cost.flops = cost.bytes = None
            cost.read, cost.written = {}, {}

    def transposes(self, one: Instruction, cost: Cost) -> None:
        """A transpose whose layout makes it a view is free."""
        operand = self.module.operands(one)[0].shape
        if _is_view(one, operand):
            self.free(one, cost)

    def fuses(self, one: Instruction, cost: Cost) -> None:
        function = self._called(one)
        if function is None:
            cost.flops = cost.bytes = None
            return
        self._visit(function)
        fusion_cost(self, one, function, cost)


def exchanges_result(analysis: CostAnalysis, one: Instruction, cost: Cost) -> None:
    """A collective that starts: its result holds the operands once more, beside what is written."""
    result = one.shape.tuple_shapes[1] if one.shape.is_tuple and len(one.shape.tuple_shapes) > 1 else one.shape
    analysis.exchanges_arrays(one, cost, result.array_bytes)


def starts_copy(analysis: CostAnalysis, one: Instruction, cost: Cost) -> None:
    """Of the result only the copy is written: the others are the operand and a token."""
    copied = one.shape.tuple_shapes[0].bytes if one.shape.is_tuple and one.shape.tuple_shapes else one.shape.bytes
    cost.written = {(): float(copied)}
    cost.bytes = sum(cost.read.values()) + copied


def _sum(values: Iterable[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _whole(size: float) -> int:
    return int(size)


def _in_main(shape: Shape) -> bool:
    return shape.minor_to_major is not None and shape.memory_space == 0


def _ragged(module: Module, one: Instruction) -> bool:
    """Whether a warp meets two operands of a concatenation along an inner dimension, by the first one's length as XLA has it."""
    dim = one.dimensions[0] if one.dimensions else 0
    first = module.operands(one)[0].shape
    return dim != 0 and first.dims[dim] % 32 != 0


def _is_view(one: Instruction, operand: Shape) -> bool:
    """Whether the elements keep their places in memory: dimensions longer than 1 come in the same order."""
    if operand.minor_to_major is None or one.shape.minor_to_major is None or len(one.dimensions) != len(operand.dims):
        return False
    source = [dim for dim in operand.minor_to_major if operand.dims[dim] != 1]
    result = [one.dimensions[dim] for dim in one.shape.minor_to_major if one.shape.dims[dim] != 1]
    return source == result


_RULES: dict[str, Callable[[CostAnalysis, Instruction, Cost], None]] = {
    **dict.fromkeys(
        (
            "parameter", "constant", "get-tuple-element", "bitcast", "domain", "after-all", "add-dependency", "opt-barrier",
            "async-done", "async-update", "all-reduce-done", "all-gather-done", "collective-permute-done", "copy-done",
            "send-done", "recv-done", "get-dimension-size", "rng-get-and-update-state",
        ),
        CostAnalysis.free,
    ),
    **dict.fromkeys(
        (
            "copy", "copy-start", "broadcast", "pad", "reshape", "dynamic-reshape", "reverse", "iota", "rng", "rng-bit-generator",
            "partition-id", "replica-id", "infeed", "outfeed", "send", "recv", "set-dimension-size", "topk", "stochastic-convert",
        ),
        CostAnalysis.moves,
    ),
    **dict.fromkeys(
        (
            "all-reduce", "all-reduce-start", "reduce-scatter", "all-gather", "all-gather-start", "all-to-all",
            "ragged-all-to-all", "collective-permute", "collective-permute-start", "collective-broadcast",
        ),
        CostAnalysis.exchanges,
    ),
    "tuple": CostAnalysis.gathers_pointers,
    "slice": CostAnalysis.slices,
    "dynamic-slice": CostAnalysis.slices,
    "dynamic-update-slice": CostAnalysis.updates_slice,
    "gather": CostAnalysis.gathers,
    "scatter": CostAnalysis.scatters,
    "dot": CostAnalysis.dots,
    "convolution": CostAnalysis.convolves,
    "reduce": CostAnalysis.reduces,
    "reduce-window": CostAnalysis.reduces_windows,
    "select-and-scatter": CostAnalysis.selects_and_scatters,
    "map": CostAnalysis.maps,
    "sort": CostAnalysis.sorts,
    "fft": CostAnalysis.transforms,
    "triangular-solve": CostAnalysis.solves_triangle,
    "cholesky": CostAnalysis.factors,
    "concatenate": CostAnalysis.concatenates,
    "call": CostAnalysis.runs,
    "async-start": CostAnalysis.runs,
    "while": CostAnalysis.loops,
    "conditional": CostAnalysis.branches,
    "custom-call": CostAnalysis.calls_custom,
    "transpose": CostAnalysis.transposes,
    "fusion": CostAnalysis.fuses,
}  # fmt: skip
