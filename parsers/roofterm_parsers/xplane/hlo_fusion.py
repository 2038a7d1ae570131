"""Costs of a fusion: the work of its computation as far as it is needed, memory only for parameters and results.

How much of an instruction is needed goes from the root back to the parameters (GpuHloCostAnalysis::FusionCalculateUtilizations):
elementwise users of the same result need the same elements; any other user needs its own share of its operand.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from roofterm_parsers.xplane.hlo_proto import Computation, Instruction
from roofterm_parsers.xplane.hlo_text import ELEMENTWISE

LARGE_CONSTANT_ELEMENTS = 8
"""Constants up to this size are part of the code of a kernel and read no memory."""

if TYPE_CHECKING:
    from roofterm_parsers.xplane.hlo_costs import Cost, CostAnalysis


def fusion_cost(analysis: CostAnalysis, fusion: Instruction, function: Computation, cost: Cost) -> None:
    """Fill in the cost of a fusion whose computation's instructions are costed already."""
    special = _gather_or_scatter(fusion, function)
    if special is not None:
        inner = analysis.costs[special.id]
        cost.flops, cost.bytes, cost.read, cost.written = inner.flops, inner.bytes, dict(inner.read), dict(inner.written)
        return
    rounded = analysis.rules.rounded
    root = function.root()
    cost.read, cost.written = {}, {}
    total = 0.0
    for path, leaf in fusion.shape.leaves():
        size = rounded(leaf.bytes)
        written = root if not path else analysis.module.operands(root)[path[0]] if root.opcode == "tuple" and len(path) == 1 else None
        if written is not None and written.opcode == "dynamic-update-slice":
            size = rounded(analysis.module.operands(written)[1].shape.bytes)
            analysis.costs[written.id].used[0] = 0.0
        cost.written[path] = size
        total = rounded(total + size)
    cost.flops = _needed(analysis, function, root)
    for one in function.instructions:
        if one.opcode == "constant" and one.shape.elements > LARGE_CONSTANT_ELEMENTS:
            total = rounded(total + rounded(one.shape.bytes * min(analysis.costs[one.id].total, 1.0)))
    parameters = sorted((one for one in function.instructions if one.opcode == "parameter"), key=lambda one: one.parameter)
    for parameter in parameters:
        size = _read(analysis, parameter, cost)
        total = rounded(total + size)
    cost.bytes = total


def _gather_or_scatter(fusion: Instruction, function: Computation) -> Instruction | None:
    if fusion.fusion_kind != "kCustom":
        return None
    return next((one for one in function.instructions if one.opcode in ("gather", "scatter")), None)


def _needed(analysis: CostAnalysis, function: Computation, root: Instruction) -> float | None:
    """Set the share that is needed of each instruction; returns the FLOPs of all."""
    module, rounded = analysis.module, analysis.rules.rounded
    roots: dict[int, dict[int, None]] = {one.id: {} for one in function.instructions}
    share: dict[int, float] = {one.id: 0.0 for one in function.instructions}
    roots[root.id][root.id] = None
    share[root.id] = 1.0
    flops: float | None = 0.0
    for one in reversed(_operands_first(analysis, function, root)):
        cost = analysis.costs[one.id]
        cost.total = 0.0
        for use in roots[one.id]:
            cost.total = rounded(cost.total + share[use])
        if cost.flops is None:
            flops = None
        elif flops is not None:
            flops = rounded(flops + rounded(cost.total * cost.flops))
        through = one.opcode in ELEMENTWISE or one.opcode in ("tuple", "get-tuple-element")
        for i, operand in enumerate(module.operands(one)):
            if operand.id not in share:
                continue
            if through:
                roots[operand.id].update(roots[one.id])
                continue
            roots[operand.id][operand.id] = None
            elements = operand.shape.elements
            used = rounded(cost.total * rounded(cost.used.get(i, 1.0)))
            share[operand.id] = rounded(share[operand.id] + (rounded(ceil(rounded(used * elements)) / elements) if elements else 0.0))
    return flops


def _operands_first(analysis: CostAnalysis, function: Computation, root: Instruction) -> list[Instruction]:
    """The computation's instructions that the root needs, every operand before its users."""
    inside = {one.id for one in function.instructions}
    order: list[Instruction] = []
    done: set[int] = set()
    stack: list[tuple[Instruction, bool]] = [(root, False)]
    while stack:
        one, ready = stack.pop()
        if one.id in done:
            continue
        if ready:
            done.add(one.id)
            order.append(one)
            continue
        stack.append((one, True))
        stack += [
            (operand, False) for operand in reversed(analysis.module.operands(one)) if operand.id in inside and operand.id not in done
        ]
    return order


def _read(analysis: CostAnalysis, parameter: Instruction, cost: Cost) -> float:
    """Bytes read of a parameter, noted by the leaves of its shape."""
    total = 0.0
    for path, leaf in parameter.shape.leaves():
        one: Instruction | None = parameter
        for index in path:
            users = analysis.module.users.get(one.id, []) if one is not None else []
            one = next((user for user in users if user.opcode == "get-tuple-element" and user.tuple_index == index), None)
        share = min(analysis.costs[one.id].total, 1.0) if one is not None else 0.0
        size = float(int(analysis.rules.rounded(leaf.bytes * share)))
        cost.read[parameter.parameter, path] = size
        total += size
    return total
