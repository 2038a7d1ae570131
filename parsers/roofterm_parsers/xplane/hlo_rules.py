"""The two ways in which HLO is costed: `OURS`, and `XPROF` for the comparison with its tables on GPUs."""

from __future__ import annotations

import numpy as np

from roofterm_parsers.xplane.hlo_convolution import convolution_flops
from roofterm_parsers.xplane.hlo_costs import Cost, Rules
from roofterm_parsers.xplane.hlo_custom_calls import custom_call_cost, is_convolution, matmul_flops
from roofterm_parsers.xplane.hlo_proto import Instruction, Module
from roofterm_parsers.xplane.hlo_shapes import Shape

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


XPROF_ELEMENT_FLOPS = 3.0
"""XLA's GPU model counts clock cycles for FLOPs: this many for what its table of measured cycles does not list."""
XPROF_CONCATENATE_FLOPS = 6.0
XPROF_RAGGED_CONCATENATE_FLOPS = 400.0
_XPROF_CYCLES: dict[tuple[str, str], float] = {
    ("cosine", "f32"): 662.0,
    ("exponential", "f32"): 86.0,
    ("sine", "f32"): 662.0,
    ("sqrt", "f32"): 75.0,
    ("tanh", "f32"): 190.0,
}
"""(opcode, dtype): cycles of XLA's default profile (sm_86, xla/service/gpu/model/hlo_op_profiles_data.h)"""


def _xprof_element_flops(opcode: str, shape: Shape) -> float:
    if opcode.startswith("concatenate:"):
        return XPROF_RAGGED_CONCATENATE_FLOPS if opcode.endswith("True") else XPROF_CONCATENATE_FLOPS
    if opcode == "sort":
        return 1.0
    return _XPROF_CYCLES.get((opcode, shape.dtype), XPROF_ELEMENT_FLOPS)


def _xprof_custom_call(module: Module, one: Instruction, cost: Cost) -> bool:
    """cuBLASLt and cuDNN convolutions by their shapes; every other custom call, legacy cuBLAS included, is nothing to XProf."""
    operands = module.operands(one)
    if one.target.startswith("__cublas$lt$matmul"):
        cost.flops = _float32(matmul_flops(module, one) or 0.0)
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


OURS = Rules(element_flops=_our_element_flops, custom_call=custom_call_cost, rounded=_exact, init_per_result=False)
XPROF = Rules(element_flops=_xprof_element_flops, custom_call=_xprof_custom_call, rounded=_float32, init_per_result=True)
