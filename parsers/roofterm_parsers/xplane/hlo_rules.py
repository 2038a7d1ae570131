"""The two ways in which HLO is costed: `OURS`, and `XPROF` for the comparison with its tables on GPUs."""

from __future__ import annotations

import numpy as np

from roofterm_parsers.xplane.hlo_convolution import convolution_flops
from roofterm_parsers.xplane.hlo_costs import Cost, CostAnalysis, Rules, exchanges_result, starts_copy
from roofterm_parsers.xplane.hlo_custom_calls import custom_call_cost, is_convolution, matmul_flops
from roofterm_parsers.xplane.hlo_proto import Instruction, Module
from roofterm_parsers.xplane.hlo_shapes import Shape
from roofterm_parsers.xplane.hlo_xprof_cycles import CYCLES, OTHERS

_ARITHMETIC = frozenset(
    {
        "abs", "add", "atan2", "cbrt", "ceil", "clamp", "cosine", "divide", "erf", "exponential", "exponential-minus-one", "floor",
        "log", "log-plus-one", "logistic", "maximum", "minimum", "multiply", "negate", "power", "remainder", "round-nearest-afz",
        "round-nearest-even", "rsqrt", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "acos", "acosh", "asin", "asinh", "atanh",
        "cosh", "sinh",
    }
)  # fmt: skip


def _our_element_flops(opcode: str, shape: Shape) -> float:
    """1 for arithmetic of any kind, as for an addition; 0 for conversions, comparisons, selections, logic and moves."""
    return 1.0 if opcode in _ARITHMETIC else 0.0


XPROF_CONCATENATE_FLOPS = 6.0
XPROF_RAGGED_CONCATENATE_FLOPS = 400.0


def _xprof_element_flops(opcode: str, shape: Shape) -> float:
    if opcode.startswith("concatenate:"):
        return XPROF_RAGGED_CONCATENATE_FLOPS if opcode.endswith("True") else XPROF_CONCATENATE_FLOPS
    if opcode == "sort":
        return 1.0
    return CYCLES.get(shape.dtype, {}).get(opcode, OTHERS)


def _xprof_custom_call(module: Module, one: Instruction, cost: Cost) -> bool:
    """cuBLASLt and cuDNN convolutions by their shapes; every other custom call, legacy cuBLAS included, is nothing to XProf."""
    operands = module.operands(one)
    if one.target.startswith("__cublas$lt$matmul"):
        cost.flops = _float32(matmul_flops(module, one) or 0.0)
        result = one.shape.tuple_shapes[0] if one.shape.is_tuple else one.shape
        cost.bytes = _float32(sum(operand.shape.bytes for operand in operands) + result.bytes)
        return True
    if is_convolution(one.target):
        result = one.shape.tuple_shapes[0] if one.shape.is_tuple else one.shape
        cost.flops = _float32(convolution_flops(one, operands[0].shape, operands[1].shape, result))
        cost.bytes = _float32(sum(operand.shape.bytes for operand in operands) + result.bytes)
        cost.written = {(): _float32(result.bytes)}
        return True
    cost.flops, cost.bytes = 0.0, 0.0
    cost.read, cost.written = {}, {}
    return True


def _float32(value: float) -> float:
    """XLA keeps costs as 32-bit floats."""
    return float(np.float32(value))


def _exact(value: float) -> float:
    return value


def _xprof_gathers(analysis: CostAnalysis, one: Instruction, cost: Cost) -> None:
    """XLA's ring: each of n ranks writes all ranks' parts and all but one of them again, and reads each once."""
    result = one.shape.tuple_shapes[-1] if one.opcode == "all-gather-start" and one.shape.is_tuple else one.shape
    _ring(one, cost, result.array_bytes)


def _xprof_scatters(analysis: CostAnalysis, one: Instruction, cost: Cost) -> None:
    _ring(one, cost, sum(operand.shape.array_bytes for operand in analysis.module.operands(one)))
    function = analysis.module.computation.get(one.called[0]) if one.called else None
    if function is not None:
        operation = function.root()
        cost.flops = _float32(_xprof_element_flops(operation.opcode, operation.shape) * one.shape.elements)


def _ring(one: Instruction, cost: Cost, size: int) -> None:
    ranks = one.ranks()
    cost.bytes = _float32(size // ranks * (3 * ranks - 1))


def _xprof_starts_reduction(analysis: CostAnalysis, one: Instruction, cost: Cost) -> None:
    """As the whole all-reduce, but that only the results count."""
    analysis.exchanges(one, cost)
    cost.bytes = _float32(one.shape.array_bytes)


_OWN = {"all-gather-start": exchanges_result, "collective-permute-start": exchanges_result, "copy-start": starts_copy}
_XPROF_OWN = {
    "all-gather": _xprof_gathers,
    "all-gather-start": _xprof_gathers,
    "reduce-scatter": _xprof_scatters,
    "all-reduce-start": _xprof_starts_reduction,
}
OURS = Rules(element_flops=_our_element_flops, custom_call=custom_call_cost, rounded=_exact, init_per_result=False, own=_OWN)
XPROF = Rules(element_flops=_xprof_element_flops, custom_call=_xprof_custom_call, rounded=_float32, init_per_result=True, own=_XPROF_OWN)
