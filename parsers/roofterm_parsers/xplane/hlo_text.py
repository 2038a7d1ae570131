"""An instruction as HLO text, and its category as the compiler names it (xla HloInstruction::ToString, ToCategory)."""

from __future__ import annotations

from roofterm_parsers.xplane.hlo_attributes import attributes
from roofterm_parsers.xplane.hlo_proto import Instruction, Module

ELEMENTWISE = frozenset(
    {
        "abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan2", "atanh", "bitcast-convert", "cbrt", "ceil", "clamp",
        "compare", "complex", "constant", "convert", "copy", "cosh", "cosine", "count-leading-zeros", "divide", "erf", "exponential",
        "exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic", "map", "maximum", "minimum",
        "multiply", "negate", "not", "or", "popcnt", "power", "real", "reduce-precision", "remainder", "rng", "round-nearest-afz",
        "round-nearest-even", "rsqrt", "select", "shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine",
        "sinh", "sqrt", "stochastic-convert", "subtract", "tan", "tanh", "xor",
    }
)  # fmt: skip
"""Opcodes whose result element depends on the operands' elements of the same index alone."""
_FORMATTING = frozenset({"transpose", "copy", "reshape", "dynamic-reshape"})
_FUSIONS = {"kLoop": "loop fusion", "kInput": "input fusion", "kOutput": "output fusion", "kCustom": "custom fusion"}
OPERANDS_A_MARK = 5


def category(one: Instruction) -> str:
    """XProf's HLO category."""
    if one.opcode in _FORMATTING:
        return "data formatting"
    if one.opcode == "fusion":
        return _FUSIONS.get(one.fusion_kind, "fusion")
    if one.opcode == "convolution":
        dilated = ["base-dilated"] * any(dim.base_dilation > 1 for dim in one.window)
        dilated += ["window-dilated"] * any(dim.window_dilation > 1 for dim in one.window)
        return " ".join(["convolution", *dilated])
    return "non-fusion elementwise" if one.opcode in ELEMENTWISE else one.opcode


def instruction_text(module: Module, one: Instruction) -> str:
    """`%fusion.1 = bf16[8,128]{1,0} fusion(bf16[8,128]{1,0} %p.1), kind=kLoop, calls=%fused_computation`."""
    operands = []
    for i, operand in enumerate(module.operands(one)):
        mark = f"/*index={i}*/" if i and i % OPERANDS_A_MARK == 0 else ""
        operands.append(f"{mark}{operand.shape} %{operand.name}")
    inside = str(one.parameter) if one.opcode == "parameter" else ", ".join(operands)
    return ", ".join([f"%{one.name} = {one.shape} {one.opcode}({inside})", *attributes(module, one)])
