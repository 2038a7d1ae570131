"""Attributes of an instruction in its HLO text, in XLA's order (HloInstruction::ExtraAttributesToString)."""

from __future__ import annotations

from collections.abc import Iterable

from roofterm_parsers.xplane.hlo_proto import ConvDims, Instruction, Module, WindowDim
from roofterm_parsers.xplane.hlo_shapes import numbers
from roofterm_parsers.xplane.wire import BYTES, VARINT, fields, signed

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-broadcast")
_DIMENSIONED = ("transpose", "broadcast", "reduce", "concatenate", "map", "reverse", "sort")
_API_VERSIONS = {
    0: "API_VERSION_UNSPECIFIED",
    2: "API_VERSION_STATUS_RETURNING",
    3: "API_VERSION_STATUS_RETURNING_UNIFIED",
    4: "API_VERSION_TYPED_FFI",
}
_FFT_TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")
_RNG_ALGORITHMS = ("rng_default", "rng_three_fry", "rng_philox")
_DISTRIBUTIONS = {1: "rng_uniform", 2: "rng_normal"}
_PRECISIONS = ("default", "high", "highest", "packed_nibble")
_DOT_ALGORITHMS = {
    1: "dot_any_f8_any_f8_f32", 2: "dot_any_f8_any_f8_f32_fast_accum", 3: "dot_f16_f16_f16", 4: "dot_f16_f16_f32",
    5: "dot_bf16_bf16_bf16", 6: "dot_bf16_bf16_f32", 7: "dot_bf16_bf16_f32_x3", 8: "dot_bf16_bf16_f32_x6", 9: "dot_tf32_tf32_f32",
    10: "dot_tf32_tf32_f32_x3", 11: "dot_f32_f32_f32", 12: "dot_f64_f64_f64", 13: "dot_bf16_bf16_f32_x9",
}  # fmt: skip
_ORDERS = {"TOTALORDER": "TOTAL", "PARTIALORDER": "PARTIAL"}


def attributes(module: Module, one: Instruction) -> list[str]:
    parts = [*_of_shape(one), *_of_product(one), *_of_collective(one)]
    if one.opcode == "get-tuple-element":
        parts.append(f"index={one.tuple_index}")
    if one.opcode == "compare" and one.rare.get(63):
        parts.append(f"direction={_text(one, 63)}")
        parts += [f"order={_ORDERS[kind]}" for kind in [_text(one, 72)] if kind in _ORDERS]
    if one.opcode == "custom-call":
        return [*parts, *_of_custom_call(one)]
    return [*parts, *_called(module, one)]


def _of_shape(one: Instruction) -> list[str]:
    """Dimensions, slices, paddings, index maps."""
    rare, opcode = one.rare, one.opcode
    parts = []
    if one.window:
        parts.append(f"window={{{_window(one.window)}}}")
    if one.conv is not None:
        parts.append(f"dim_labels={_dim_labels(one.conv)}")
    if opcode in _DIMENSIONED:
        parts.append(f"dimensions={_braces(one.dimensions)}")
    if opcode == "iota":
        parts.append(f"iota_dimension={one.dimensions[0] if one.dimensions else 0}")
    if opcode == "slice":
        parts.append(f"slice={{{_slices(rare.get(17, []))}}}")
    if opcode == "pad":
        parts.append(f"padding={_padding(rare.get(21, []))}")
    if opcode == "dynamic-slice":
        parts.append(f"dynamic_slice_sizes={_braces(_integers(one, 20))}")
    if opcode == "gather":
        offsets, collapsed, starts, axis = _messages(rare.get(33, []), (1, 2, 3, 4))
        parts += [f"offset_dims={_braces(offsets)}", f"collapsed_slice_dims={_braces(collapsed)}", f"start_index_map={_braces(starts)}"]
        parts += [f"index_vector_dim={axis[0] if axis else 0}", f"slice_sizes={_braces(_integers(one, 34))}"]
    if opcode == "scatter":
        windows, inserted, scattered, axis = _messages(rare.get(48, []), (1, 2, 3, 4))
        parts += [f"update_window_dims={_braces(windows)}", f"inserted_window_dims={_braces(inserted)}"]
        parts += [f"scatter_dims_to_operand_dims={_braces(scattered)}", f"index_vector_dim={axis[0] if axis else 0}"]
    if opcode in ("gather", "scatter"):
        parts += ["indices_are_sorted=true"] * bool(rare.get(67)) + ["unique_indices=true"] * bool(rare.get(69))
    if opcode == "fft":
        parts += [f"fft_type={_FFT_TYPES[_integer(one, 31) % 4]}", f"fft_length={_braces(one.fft_length)}"]
    if opcode == "rng":
        parts.append(f"distribution={_DISTRIBUTIONS.get(_integer(one, 23), 'rng_invalid')}")
    if opcode == "rng-bit-generator":
        parts.append(f"algorithm={_RNG_ALGORITHMS[_integer(one, 70) % 3]}")
    if opcode == "reduce-precision":
        parts += [f"exponent_bits={_integer(one, 18)}", f"mantissa_bits={_integer(one, 19)}"]
    return parts


def _of_product(one: Instruction) -> list[str]:
    parts = []
    if one.dot is not None:
        for name in ("lhs_batch", "lhs_contracting", "rhs_batch", "rhs_contracting"):
            dims = getattr(one.dot, name)
            if dims:
                parts.append(f"{name}_dims={_braces(dims)}")
    if one.feature_groups > 1:
        parts.append(f"feature_group_count={one.feature_groups}")
    if one.batch_groups > 1:
        parts.append(f"batch_group_count={one.batch_groups}")
    if one.opcode in ("dot", "convolution"):
        precisions, algorithm = _messages(one.rare.get(51, []), (1, 2))
        if any(precisions):
            named = [_PRECISIONS[kind] if kind < len(_PRECISIONS) else str(kind) for kind in precisions]
            parts.append(f"operand_precision={{{','.join(named)}}}")
        parts += [f"algorithm={_DOT_ALGORITHMS[kind]}" for kind in algorithm if kind in _DOT_ALGORITHMS]
    return parts


def _of_collective(one: Instruction) -> list[str]:
    base = one.opcode.removesuffix("-start")
    pairs = base == "collective-permute"
    if base not in COLLECTIVES and not pairs:
        return []
    parts = [f"channel_id={_integer(one, 26)}"] if _integer(one, 26) > 0 else []
    if pairs:
        targets = [
            (next(iter(source), 0), next(iter(target), 0)) for source, target in (_message(pair, (1, 2)) for pair in one.rare.get(52, []))
        ]
        return [*parts, f"source_target_pairs={{{','.join(_braces(pair) for pair in targets)}}}"]
    parts.append(f"replica_groups={_groups(one)}")
    global_ids = ["use_global_device_ids=true"] if one.rare.get(71) else []
    dimensions = [f"dimensions={_braces(one.dimensions)}"] if one.dimensions or base in ("all-gather", "reduce-scatter") else []
    if base == "collective-broadcast":
        parts.append("has_dynamic_root=false")
    return [*parts, *(dimensions + global_ids if base == "all-gather" else global_ids + dimensions)]


def _groups(one: Instruction) -> str:
    if one.iota_groups is not None:
        order = f"T({','.join(map(str, one.iota_groups.order))})" if one.iota_groups.order else ""
        return f"[{one.iota_groups.groups},{one.iota_groups.size}]<=[{','.join(map(str, one.iota_groups.dims))}]{order}"
    return f"{{{','.join(_braces(group) for group in one.replica_groups)}}}"


def _of_custom_call(one: Instruction) -> list[str]:
    parts = [f'custom_call_target="{one.target}"']
    if one.operand_layouts:
        parts.append(f"operand_layout_constraints={{{', '.join(map(str, one.operand_layouts))}}}")
    if one.rare.get(65):
        parts.append("custom_call_has_side_effect=true")
    if one.rare.get(74):
        parts.append(f"output_to_operand_aliasing={{{', '.join(map(_alias, one.rare[74]))}}}")
    if one.api_version in _API_VERSIONS:
        parts.append(f"api_version={_API_VERSIONS[one.api_version]}")
    return parts


def _alias(pair: int | bytes) -> str:
    output, operand, inside = _message(pair, (1, 2, 3))
    return f"{_spaced(output)}: ({operand[0] if operand else 0}, {_spaced(inside)})"


def _called(module: Module, one: Instruction) -> list[str]:
    called = [f"%{module.computation[number].name}" for number in one.called if number in module.computation]
    if one.opcode == "fusion":
        return [f"kind={one.fusion_kind}", f"calls={', '.join(called)}"]
    if one.opcode == "while" and len(called) == 2:
        return [f"condition={called[1]}", f"body={called[0]}"]
    if one.opcode == "select-and-scatter" and len(called) == 2:
        return [f"select={called[0]}", f"scatter={called[1]}"]
    return [f"to_apply={', '.join(called)}"] if called else []


def _text(one: Instruction, number: int) -> str:
    held = next(iter(one.rare.get(number, [])), b"")
    return held.decode("utf-8", "replace") if isinstance(held, bytes) else ""


def _integer(one: Instruction, number: int) -> int:
    held = next(iter(one.rare.get(number, [])), 0)
    return signed(held) if isinstance(held, int) else 0


def _integers(one: Instruction, number: int) -> tuple[int, ...]:
    values: list[int] = []
    for held in one.rare.get(number, []):
        values += [signed(held)] if isinstance(held, int) else numbers(memoryview(held), BYTES, 0, len(held))
    return tuple(values)


def _message(held: int | bytes, wanted: tuple[int, ...]) -> list[list[int]]:
    """Values of the message's integer fields by number."""
    found: dict[int, list[int]] = {number: [] for number in wanted}
    if isinstance(held, bytes):
        data = memoryview(held)
        for number, wire, a, b in fields(data, 0, len(held)):
            if number in found and wire in (VARINT, BYTES):
                found[number] += numbers(data, wire, a, b)
    return [found[number] for number in wanted]


def _messages(held: list[int | bytes], wanted: tuple[int, ...]) -> list[list[int]]:
    return _message(held[0], wanted) if held else [[] for _ in wanted]


def _slices(held: list[int | bytes]) -> str:
    dims = [[next(iter(values), 0) for values in _message(one, (1, 2, 3))] for one in held]
    if all(stride == 1 for _, _, stride in dims):
        return ", ".join(f"[{start}:{limit}]" for start, limit, _ in dims)
    return ", ".join(f"[{start}:{limit}:{stride}]" for start, limit, stride in dims)


def _padding(held: list[int | bytes]) -> str:
    config = held[0] if held else b""
    if not isinstance(config, bytes):
        return ""
    data = memoryview(config)
    dims = [
        [next(iter(values), 0) for values in _message(bytes(data[a:b]), (1, 2, 3))]
        for number, wire, a, b in fields(data, 0, len(config))
        if number == 1 and wire == BYTES
    ]
    interior = any(inside for _, _, inside in dims)
    return "x".join(f"{low}_{high}" + (f"_{inside}" if interior else "") for low, high, inside in dims)


def _braces(values: Iterable[int]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def _spaced(values: Iterable[int]) -> str:
    return f"{{{', '.join(map(str, values))}}}"


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
