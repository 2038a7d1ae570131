"""Where a value of a compiled program comes from: through what only moves or converts it, and into the products inside fusions."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from roofterm_parsers.xplane.hlo_proto import Computation, Instruction, Module
from roofterm_parsers.xplane.hlo_shapes import Shape

Path = tuple[int, ...]

_MOVES = frozenset(
    {
        "bitcast", "bitcast-convert", "convert", "copy", "copy-done", "copy-start", "transpose", "reshape", "slice", "dynamic-slice",
        "all-gather", "all-gather-start", "all-gather-done", "optimization-barrier", "reduce-precision", "reverse",
    }
)  # fmt: skip
"""Opcodes that give their first operand, or a part of it, in another type, layout or place (all-gather: put together again)."""

MOST_NESTED = 16
MOST_STEPS = 64


class Value(NamedTuple):
    """A leaf of an instruction's result."""

    one: Instruction
    path: Path = ()


class Multiplied(NamedTuple):
    """A product, alone or inside a fusion, with the values of the outer computation that it multiplies (None: made inside)."""

    product: Instruction
    operands: tuple[Value | None, Value | None]
    shapes: tuple[Shape, Shape]
    """of the operands as they are multiplied"""

    @property
    def batched(self) -> bool:
        """Whether both operands bear a batch: scores of attention, not a product with one matrix."""
        if self.product.dot is not None:
            return bool(self.product.dot.lhs_batch)
        return bool(_indices(_dot_numbers(self.product).get("lhs_batch_dimensions")))

    @property
    def convolves(self) -> bool:
        return self.product.conv is not None

    def sizes(self, weight: int) -> tuple[int, int, int] | None:
        """Rows, the size that is summed, and columns, where operand `weight` (0 or 1) is a matrix of weights; None: cannot be told.

        A batch that both bear is a sum in pieces (split K), or a matrix for each expert: it counts as summed.
        """
        summed = _summed(self.product)
        matrix, rows = self.shapes[weight], self.shapes[1 - weight]
        dims = summed[weight] if summed is not None else ()
        if not dims or max(dims) >= len(matrix.dims):
            return None
        k = prod(matrix.dims[dim] for dim in dims)
        return (rows.elements // k, k, matrix.elements // k) if k else None


class Flow:
    """Where the values of one module come from."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.loops: dict[int, Instruction] = {
            parameter.id: one
            for computation in module.computations
            for one in computation.instructions
            if one.opcode == "while"
            for number in one.called
            if number in module.computation
            for parameter in module.computation[number].instructions
            if parameter.opcode == "parameter"
        }
        """parameter of a loop's body or condition to the loop"""

    def source(self, value: Value) -> Value:
        """The value that this one is, moved or converted: a parameter, or the result of work. What a loop carries is what it began with."""
        one, path = value
        for _ in range(MOST_STEPS):
            step = self._behind(one, path)
            if step is None:
                break
            one, path = step
        return Value(one, path)

    def multiplied(self, one: Instruction, depth: int = 0) -> list[Multiplied]:
        """The products that an instruction runs."""
        if is_product(one):
            operands = self.module.operands(one)
            if len(operands) < 2:
                return []
            return [Multiplied(one, (Value(operands[0]), Value(operands[1])), (operands[0].shape, operands[1].shape))]
        if one.opcode not in ("fusion", "call") or depth > MOST_NESTED:
            return []
        inside = [inner for function in self.functions(one) for inner in function.instructions]
        found = [product for inner in inside for product in self.multiplied(inner, depth + 1)]
        return [
            product._replace(operands=(self.outside(one, product.operands[0]), self.outside(one, product.operands[1]))) for product in found
        ]

    def functions(self, one: Instruction) -> list[Computation]:
        """The computations that an instruction calls."""
        return [self.module.computation[number] for number in one.called if number in self.module.computation]

    def outside(self, fusion: Instruction, value: Value | None) -> Value | None:
        """The operand of a fusion that a value inside it is; None: the fusion makes it itself."""
        if value is None:
            return None
        found, outer = self.source(value), self.module.operands(fusion)
        if found.one.opcode != "parameter" or found.one.parameter >= len(outer):
            return None
        return Value(outer[found.one.parameter], found.path)

    def _behind(self, one: Instruction, path: Path) -> tuple[Instruction, Path] | None:
        """One step back; None where the value is made."""
        if one.opcode == "parameter":
            loop = self.loops.get(one.id)
            return (self.module.operands(loop)[0], path) if loop is not None and loop.operand_ids else None
        operands = self.module.operands(one)
        if not operands:
            return None
        if one.opcode == "get-tuple-element":
            return operands[0], (one.tuple_index, *path)
        if one.opcode == "tuple" and path:
            return (operands[path[0]], path[1:]) if path[0] < len(operands) else None
        if one.opcode in _MOVES:
            # The start of an asynchronous op gives its result and its operand, and a context.
            return operands[0], path[1:] if one.opcode.endswith("-start") else path
        if one.opcode == "multiply" and not path:
            scaled = [operand for operand in operands if operand.opcode != "broadcast"]
            return (scaled[0], path) if len(scaled) == 1 else None
        if one.opcode in ("fusion", "call") and one.called:
            function = self.module.computation.get(one.called[0])
            if function is not None:
                inner = self.outside(one, Value(function.root(), path))
                return None if inner is None else (inner.one, inner.path)
        return None


def is_product(one: Instruction) -> bool:
    return one.opcode in ("dot", "convolution") or (one.opcode == "custom-call" and one.target.startswith(("__cublas$", "__cudnn$conv")))


def _summed(product: Instruction) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The dimensions of both operands that are none of the result's alone: those that are summed, and the batch."""
    if product.dot is not None:
        dot = product.dot
        return dot.lhs_contracting + dot.lhs_batch, dot.rhs_contracting + dot.rhs_batch
    numbers = _dot_numbers(product)
    lhs, rhs = (
        tuple(dim for kind in ("contracting", "batch") for dim in _indices(numbers.get(f"{side}_{kind}_dimensions")))
        for side in ("lhs", "rhs")
    )
    return (lhs, rhs) if lhs and rhs else None


def _dot_numbers(product: Instruction) -> dict[str, Any]:
    """Dimension numbers of a library's matrix product; empty for what is none."""
    numbers = product.config().get("gemm_backend_config", {}).get("dot_dimension_numbers") if product.opcode == "custom-call" else None
    return numbers if isinstance(numbers, dict) else {}


def _indices(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values) if isinstance(values, list) else ()
