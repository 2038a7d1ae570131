"""Products with quantised weights, and quantisation, of vLLM and SGLang.

Operands count as they are stored: packed integers, 8-bit floats, two fp4 values to a byte, with the scales beside them; the
arithmetic of weight-only formats runs in the activations' type. Argument orders: vllm csrc/torch_bindings.cpp and
csrc/libtorch_stable, sglang sgl-kernel/csrc/common_extension.cc.
"""

from __future__ import annotations

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.gemm import SCALAR_TYPES
from roofterm.analysis.costs.model import Work, sized, stored
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import Inputs, Tensor

_PRODUCT = "2 M N K; operands, scales and zero points as they are stored"


@register(Category.GEMM, _PRODUCT, "sgl_kernel::fp8_scaled_mm", "sgl_kernel::int8_scaled_mm", "sgl_kernel::fp8_blockwise_scaled_mm")
def _scaled(inputs: Inputs) -> Work | None:
    """[M, K] by [K, N], two scales, the result's type, a bias."""
    a, b, code = inputs.tensor(0), inputs.tensor(1), inputs.integer(4)
    if a is None or b is None or len(a.dims) != 2 or len(b.dims) != 2 or a.dims[1] != b.dims[0]:
        return None
    out = "bf16" if code is None else SCALAR_TYPES.get(code, "bf16")
    read = stored((a, b, inputs.tensor(2), inputs.tensor(3), inputs.tensor(5)))
    return _work(a.dims[0], b.dims[1], a.dims[1], read, Tensor((), out), a.dtype)


@register(Category.GEMM, _PRODUCT + "; the result comes first", "_C::cutlass_scaled_mm_azp")
def _scaled_with_zero_points(inputs: Inputs) -> Work | None:
    out, a, b = (inputs.tensor(slot) for slot in range(3))
    if out is None or a is None or b is None or len(a.dims) != 2 or len(b.dims) != 2 or a.dims[1] != b.dims[0]:
        return None
    read = stored((a, b, *(inputs.tensor(slot) for slot in (3, 4, 5, 6, 7))))
    return _work(a.dims[0], b.dims[1], a.dims[1], read, out, a.dtype)


@register(Category.GEMM, _PRODUCT + "; two values share a byte", "_C::cutlass_scaled_fp4_mm", "sgl_kernel::cutlass_scaled_fp4_mm")
def _fp4(inputs: Inputs) -> Work | None:
    """The result, [M, K / 2] and [N, K / 2], their block scales."""
    out, a, b = (inputs.tensor(slot) for slot in range(3))
    if out is None or a is None or b is None or not len(out.dims) == len(a.dims) == len(b.dims) == 2 or a.dims[1] != b.dims[1]:
        return None
    read = stored((a, b, inputs.tensor(3), inputs.tensor(4)))
    return _work(a.dims[0], b.dims[0], 2 * a.dims[1], read, out, "fp4")


@register(Category.GEMM, _PRODUCT, "_C::gptq_marlin_gemm", "_C::marlin_gemm", "sgl_kernel::gptq_marlin_gemm")
def _marlin(inputs: Inputs) -> Work | None:
    """[M, K] by packed integers; N is that of the scales [groups, N] behind them, wherever an engine's version puts them."""
    a = inputs.tensor(0)
    if a is None or len(a.dims) != 2:
        return None
    packed = _next_matrix(inputs, 1, integers=True)
    scales = None if packed is None else _next_matrix(inputs, packed + 1, integers=False)
    if packed is None or scales is None:
        return None
    held = inputs.tensor(scales)
    assert held is not None
    zeros = _next_matrix(inputs, scales + 1, integers=True)
    read = stored((a, inputs.tensor(packed), held, inputs.tensor(zeros) if zeros is not None else None))
    return _work(a.dims[0], held.dims[1], a.dims[1], read, a, a.dtype)


def _next_matrix(inputs: Inputs, start: int, integers: bool) -> int | None:
    """The slot of the next matrix of packed integers, or of numbers."""
    for slot in range(start, len(inputs)):
        tensor = inputs.tensor(slot)
        if tensor is not None and len(tensor.dims) == 2 and (tensor.dtype or "").startswith("int") == integers:
            return slot
    return None


def _work(m: int, n: int, k: int, read: float | None, out: Tensor, dtype: str | None) -> Work | None:
    return None if 0 in (m, n, k) else Work(2 * m * n * k, read, sized(m * n, out), dtype)


_QUANTISED = "the input read, the narrow result and its scales written; 2 FLOPs an element"


@register(Category.QUANTIZATION, _QUANTISED, "_C::per_token_group_fp8_quant", "_C::per_token_group_quant_int8")
@register(Category.QUANTIZATION, _QUANTISED, "sgl_kernel::sgl_per_token_group_quant_fp8", "sgl_kernel::sgl_per_token_group_quant_int8")
@register(Category.QUANTIZATION, _QUANTISED, "sgl_kernel::sgl_per_token_group_quant_8bit", "sgl_kernel::sgl_per_token_quant_fp8")
@register(Category.QUANTIZATION, _QUANTISED, "sgl_kernel::sgl_per_tensor_quant_fp8")
def _by_group(inputs: Inputs) -> Work | None:
    x, out, scales = (inputs.tensor(slot) for slot in range(3))
    if x is None or out is None or x.elements == 0 or out.elements != x.elements:
        return None
    return Work(2 * x.elements, x.bytes, stored((_dense(out), scales)), x.dtype)


@register(Category.QUANTIZATION, _QUANTISED + "; two values share a byte", "_C::scaled_fp4_quant", "sgl_kernel::scaled_fp4_quant")
def _to_fp4(inputs: Inputs) -> Work | None:
    """The result, the input, the block scales, the input's scale (the form that gives its results back is not told apart)."""
    out, x, scales, scale = (inputs.tensor(slot) for slot in range(4))
    if out is None or x is None or x.elements == 0 or 2 * out.elements != x.elements:
        return None
    return Work(2 * x.elements, stored((x, scale)), stored((_dense(out), scales)), x.dtype)


def _dense(tensor: Tensor) -> Tensor:
    """A result is written whole."""
    return Tensor(tensor.dims, tensor.dtype)
