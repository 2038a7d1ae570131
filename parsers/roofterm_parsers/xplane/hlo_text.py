"""An instruction as HLO text, and its category as the compiler names it (xla HloInstruction::ToString, ToCategory)."""

from __future__ import annotations

from roofterm_parsers.xplane.hlo_proto import ConvDims, Instruction, Module, WindowDim

ELEMENTWISE = frozenset(
    {
        "abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "complex", "constant", "convert", "copy", "cosine",
        "count-leading-zeros", "divide", "erf", "exponential", "exponential-minus-one", "floor", "imag", "is-finite", "log",
        "log-plus-one", "logistic", "map", "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power", "real",
        "reduce-precision", "remainder", "rng", "round-nearest-afz", "round-nearest-even", "rsqrt", "select", "shift-left",
        "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sqrt", "stochastic-convert", "subtract", "tan", "tanh",
        "xor", "acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh",
    }
)  # fmt: skip
"""Opcodes whose result element depends on the operands' elements of the same index alone."""
_FORMATTING = frozenset({"transpose", "copy", "reshape", "dynamic-reshape"})
_FUSIONS = {"kLoop": "loop fusion", "kInput": "input fusion", "kOutput": "output fusion", "kCustom": "custom fusion"}
OPERANDS_A_MARK = 5
_API_VERSIONS = {2: "API_VERSION_STATUS_RETURNING", 3: "API_VERSION_STATUS_RETURNING_UNIFIED", 4: "API_VERSION_TYPED_FFI"}


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
    return ", ".join([f"%{one.name} = {one.shape} {one.opcode}({inside})", *_attributes(module, one)])


def _attributes(module: Module, one: Instruction) -> list[str]:
    called = [f"%{module.computation[number].name}" for number in one.called if number in module.computation]
    parts = []
    if one.window:
        parts.append(f"window={{{_window(one.window)}}}")
    if one.conv is not None:
        parts.append(f"dim_labels={_dim_labels(one.conv)}")
    if one.dot is not None:
        for name in ("lhs_batch", "lhs_contracting", "rhs_batch", "rhs_contracting"):
            dims = getattr(one.dot, name)
            if dims:
                parts.append(f"{name}_dims={_braces(dims)}")
    if one.opcode in ("transpose", "broadcast", "reduce", "concatenate", "map", "reverse", "all-gather"):
        parts.append(f"dimensions={_braces(one.dimensions)}")
    if one.opcode == "get-tuple-element":
        parts.append(f"index={one.tuple_index}")
    if one.replica_groups:
        parts.append(f"replica_groups={{{','.join(_braces(group) for group in one.replica_groups)}}}")
    if one.opcode == "compare" and one.direction:
        parts.append(f"direction={one.direction}")
    if one.feature_groups > 1:
        parts.append(f"feature_group_count={one.feature_groups}")
    if one.batch_groups > 1:
        parts.append(f"batch_group_count={one.batch_groups}")
    if one.opcode == "custom-call":
        parts.append(f'custom_call_target="{one.target}"')
        if one.operand_layouts:
            parts.append(f"operand_layout_constraints={{{', '.join(map(str, one.operand_layouts))}}}")
        if one.api_version in _API_VERSIONS:
            parts.append(f"api_version={_API_VERSIONS[one.api_version]}")
    elif one.opcode == "fusion":
        parts += [f"kind={one.fusion_kind}", f"calls={', '.join(called)}"]
    elif one.opcode == "while" and len(called) == 2:
        parts += [f"condition={called[1]}", f"body={called[0]}"]
    elif called:
        parts.append(f"to_apply={', '.join(called)}")
    return parts


def _braces(values: tuple[int, ...]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def _window(dims: tuple[WindowDim, ...]) -> str:
    parts = [f"size={'x'.join(str(dim.size) for dim in dims)}"]
    if any(dim.stride > 1 for dim in dims):
        parts.append(f"stride={'x'.join(str(dim.stride) for dim in dims)}")
    if any(dim.padding_low or dim.padding_high for dim in dims):
        parts.append(f"pad={'x'.join(f'{dim.padding_low}_{dim.padding_high}' for dim in dims)}")
    if any(dim.base_dilation > 1 for dim in dims):
        parts.append(f"lhs_dilate={'x'.join(str(dim.base_dilation) for dim in dims)}")
    if any(dim.window_dilation > 1 for dim in dims):
        parts.append(f"rhs_dilate={'x'.join(str(dim.window_dilation) for dim in dims)}")
    if any(dim.reversal for dim in dims):
        parts.append(f"rhs_reversal={'x'.join(str(int(dim.reversal)) for dim in dims)}")
    return " ".join(parts)


def _dim_labels(conv: ConvDims) -> str:
    """`bf012_oi012->bf012`: batch, feature, input and output feature, spatial dimensions by number."""
    lhs = {conv.input_batch: "b", conv.input_feature: "f", **{dim: str(i) for i, dim in enumerate(conv.input_spatial)}}
    rhs = {conv.kernel_input: "i", conv.kernel_output: "o", **{dim: str(i) for i, dim in enumerate(conv.kernel_spatial)}}
    out = {conv.output_batch: "b", conv.output_feature: "f", **{dim: str(i) for i, dim in enumerate(conv.output_spatial)}}
    left, right, result = ("".join(dims[i] for i in sorted(dims)) for dims in (lhs, rhs, out))
    return f"{left}_{right}->{result}"
