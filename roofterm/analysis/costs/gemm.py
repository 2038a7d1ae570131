"""Matrix products: 2 FLOPs a multiply-add, operands and result once (reference: torch.utils.flop_counter; kineto.md 2.3)."""

from __future__ import annotations

import math

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.model import Work, sized, stored
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import ITEM_BYTES, Inputs, Tensor

_TORCH = "torch.utils.flop_counter (mm, addmm, bmm, baddbmm): 2 M N K"
_SERVING = "2 M N K by the shapes of the custom op; stored types of weights and scales"

SCALAR_TYPES = {
    **{0: "int8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "fp16", 6: "fp32", 7: "fp64", 11: "bool", 15: "bf16"},
    **dict.fromkeys(range(23, 27), "fp8"),
}
"""torch's ScalarType numbers, as concrete inputs give them (c10/core/ScalarType.h)."""


@register(Category.GEMM, _TORCH, "aten::mm", "aten::_sparse_mm", "aiter::hipb_mm", "aten::hspmm")
def _mm(inputs: Inputs) -> Work | None:
    return _product(inputs.tensor(0), inputs.tensor(1))


@register(Category.GEMM, _TORCH, "aten::addmm", "aten::_addmm_activation", "aten::addmm_")
def _addmm(inputs: Inputs) -> Work | None:
    return _product(inputs.tensor(1), inputs.tensor(2), extra=(_used_bias(inputs, beta=3),))


@register(Category.GEMM, _TORCH, "aten::bmm")
def _bmm(inputs: Inputs) -> Work | None:
    return _batched(inputs.tensor(0), inputs.tensor(1))


@register(Category.GEMM, _TORCH, "aten::baddbmm", "aten::baddbmm_")
def _baddbmm(inputs: Inputs) -> Work | None:
    return _batched(inputs.tensor(1), inputs.tensor(2), extra=(_used_bias(inputs, beta=3),))


@register(Category.GEMM, _TORCH + "; the products of a batch are added", "aten::addbmm")
def _addbmm(inputs: Inputs) -> Work | None:
    a, b = inputs.tensor(1), inputs.tensor(2)
    work = _batched(a, b, extra=(_used_bias(inputs, beta=3),))
    if work is None or a is None or b is None:
        return None
    return Work(work.flops, work.read_bytes, sized(a.dims[1] * b.dims[2], a), work.dtype)


@register(Category.GEMM, _TORCH + " of x [.., K] with the weight [N, K]; counted only where no mm or addmm runs inside", "aten::linear")
@register(Category.GEMM, _SERVING, "vllm::rocm_unquantized_gemm", "vllm::rocm_unquantized_gemm_impl", "aiter::tuned_gemm")
@register(Category.GEMM, _SERVING, "mkldnn::_linear_pointwise")
def _linear(inputs: Inputs) -> Work | None:
    x, weight = inputs.tensor(0), inputs.tensor(1)
    if x is None or weight is None or not x.dims or len(weight.dims) != 2:
        return None
    flat = Tensor((math.prod(x.dims[:-1]), x.dims[-1]), x.dtype)
    work = _product(flat, Tensor(weight.dims[::-1], weight.dtype))
    return None if work is None else Work(work.flops, stored((x, weight, inputs.tensor(2))), work.write_bytes, work.dtype)


@register(Category.GEMM, _TORCH + " over broadcast batches; counted only where no product runs inside", "aten::matmul")
def _matmul(inputs: Inputs) -> Work | None:
    a, b = inputs.tensor(0), inputs.tensor(1)
    if a is None or b is None or not a.dims or not b.dims:
        return None
    left = a.dims if len(a.dims) > 1 else (1, *a.dims)
    right = b.dims if len(b.dims) > 1 else (*b.dims, 1)
    batch = broadcast(left[:-2], right[:-2])
    if batch is None or left[-1] != right[-2]:
        return None
    m, k, n = left[-2], left[-1], right[-1]
    count = math.prod(batch)
    if 0 in (count, m, k, n):
        return None
    return Work(2 * count * m * n * k, stored((a, b)), sized(count * m * n, a), a.dtype)


@register(Category.GEMM, "2 M N", "aten::mv")
def _mv(inputs: Inputs) -> Work | None:
    return _vector(inputs.tensor(0), inputs.tensor(1), ())


@register(Category.GEMM, "2 M N", "aten::addmv", "aten::addmv_")
def _addmv(inputs: Inputs) -> Work | None:
    return _vector(inputs.tensor(1), inputs.tensor(2), (_used_bias(inputs, beta=3),))


@register(Category.GEMM, "2 N", "aten::dot", "aten::vdot")
def _dot(inputs: Inputs) -> Work | None:
    a, b = inputs.tensor(0), inputs.tensor(1)
    if a is None or b is None or len(a.dims) != 1 or a.dims != b.dims or a.elements == 0:
        return None
    return Work(2 * a.elements, stored((a, b)), sized(1, a), a.dtype)


@register(Category.GEMM, "torch.utils.flop_counter (_scaled_mm): 2 M N K; result in its out_dtype", "aten::_scaled_mm")
def _scaled_mm(inputs: Inputs) -> Work | None:
    a, b = _unpacked(inputs, 0, -1), _unpacked(inputs, 1, 0)
    code = inputs.integer(6)
    out = "bf16" if code is None else SCALAR_TYPES.get(code, "bf16")
    return _product(a, b, extra=tuple(inputs.tensor(slot) for slot in (2, 3, 4)), out_dtype=out)


@register(Category.GEMM, "2 M N K; lists of scales, result in its out_dtype", "aten::_scaled_mm_v2")
def _scaled_mm_v2(inputs: Inputs) -> Work | None:
    code = inputs.integer(9)
    out = "bf16" if code is None else SCALAR_TYPES.get(code, "bf16")
    scales = [scale for slot in (2, 5) for scale in inputs.tensors(slot) or []]
    return _product(_unpacked(inputs, 0, -1), _unpacked(inputs, 1, 0), extra=(*scales, inputs.tensor(8)), out_dtype=out)


@register(Category.GEMM, "2 M N K of int8; the result is int32", "aten::_int_mm")
def _int_mm(inputs: Inputs) -> Work | None:
    return _product(inputs.tensor(0), inputs.tensor(1), out_dtype="int32")


_GROUPED = "2 M N K: the groups split M, N or K among them"


@register(Category.GEMM, _GROUPED, "aten::_grouped_mm")
def _grouped_mm(inputs: Inputs) -> Work | None:
    return _grouped(inputs, offsets=2, scales=(), out_code=inputs.integer(4))


@register(Category.GEMM, _GROUPED, "aten::_scaled_grouped_mm")
def _scaled_grouped_mm(inputs: Inputs) -> Work | None:
    return _grouped(inputs, offsets=4, scales=(2, 3), out_code=inputs.integer(7))


def _grouped(inputs: Inputs, offsets: int, scales: tuple[int, ...], out_code: int | None) -> Work | None:
    """`offsets`: slot of where the groups end; `out_code`: torch's number of the result's type, bf16 where none is given."""
    a, b = inputs.tensor(0), inputs.tensor(1)
    if a is None or b is None or not {len(a.dims), len(b.dims)} <= {2, 3} or a.dims[-1] != b.dims[-2]:
        return None
    m, k, n = a.dims[-2], a.dims[-1], b.dims[-1]
    groups = a.dims[0] if len(a.dims) == 3 else b.dims[0] if len(b.dims) == 3 else None
    if len(a.dims) == len(b.dims) == 3 and a.dims[0] != b.dims[0]:
        return None
    if len(a.dims) == len(b.dims):
        ends = inputs.tensor(offsets)
        batch = groups or 1
        results = batch * m * n if groups else m * n * (ends.elements if ends is not None and len(ends.dims) == 1 else 1)
    else:
        batch, results = 1, m * n
    if 0 in (batch, m, k, n):
        return None
    scaling = [scale for slot in scales if (scale := inputs.tensor(slot)) is not None]
    out = "bf16" if out_code is None else SCALAR_TYPES.get(out_code, "bf16")
    return Work(2 * batch * m * n * k, stored((a, b, *scaling)), ITEM_BYTES[out] * results, a.dtype)


@register(Category.GEMM, "2 M N K; 8 rows of the weight in one of its first dimension", "aten::_weight_int4pack_mm")
def _int4pack_mm(inputs: Inputs) -> Work | None:
    x, packed = inputs.tensor(0), inputs.tensor(1)
    if x is None or packed is None or len(x.dims) != 2 or len(packed.dims) != 4:
        return None
    return _packed(x, packed.dims[0] * 8, (x, packed, inputs.tensor(3)))


@register(Category.GEMM, "2 M N K; the weight [N, K] is int8", "aten::_weight_int8pack_mm")
def _int8pack_mm(inputs: Inputs) -> Work | None:
    x, weight = inputs.tensor(0), inputs.tensor(1)
    if x is None or weight is None or len(x.dims) != 2 or len(weight.dims) != 2:
        return None
    return _packed(x, weight.dims[0], (x, weight, inputs.tensor(2)))


@register(Category.GEMM, _SERVING, "_C::cutlass_scaled_mm", "vllm::cutlass_scaled_mm")
def _cutlass_scaled_mm(inputs: Inputs) -> Work | None:
    out = inputs.tensor(0)
    extra = tuple(inputs.tensor(slot) for slot in (3, 4, 5))
    return _product(inputs.tensor(1), inputs.tensor(2), extra=extra, out_dtype=out.dtype if out is not None else None)


@register(Category.GEMM, _SERVING, "_C::gptq_gemm")
def _gptq_gemm(inputs: Inputs) -> Work | None:
    x, weight = inputs.tensor(0), inputs.tensor(1)
    if x is None or weight is None or len(x.dims) != 2 or len(weight.dims) != 2:
        return None
    return _packed(x, weight.dims[1], (x, weight, inputs.tensor(2), inputs.tensor(3)))


@register(Category.GEMM, _SERVING + "; 8 columns in one int32", "_C::awq_gemm")
def _awq_gemm(inputs: Inputs) -> Work | None:
    x, weight = inputs.tensor(0), inputs.tensor(1)
    if x is None or weight is None or len(x.dims) != 2 or len(weight.dims) != 2:
        return None
    return _packed(x, weight.dims[1] * 8, (x, weight, inputs.tensor(2), inputs.tensor(3)))


@register(Category.GEMM, _SERVING, "aiter::gemm_a8w8", "aiter::gemm_a8w8_CK", "aiter::gemm_a8w8_blockscale")
def _gemm_a8w8(inputs: Inputs) -> Work | None:
    x, weight = inputs.tensor(0), inputs.tensor(1)
    if x is None or weight is None or len(x.dims) != 2 or len(weight.dims) != 2:
        return None
    extra = (inputs.tensor(2), inputs.tensor(3))
    return _product(x, Tensor(weight.dims[::-1], weight.dtype), extra=extra, out_dtype="bf16")


@register(Category.GEMM, _SERVING + "; the weight [N, K] comes first", "_rocm_C::wvSplitK", "_rocm_C::LLMM1")
def _skinny(inputs: Inputs) -> Work | None:
    weight, x = inputs.tensor(0), inputs.tensor(1)
    return None if weight is None or len(weight.dims) != 2 else _product(x, Tensor(weight.dims[::-1], weight.dtype))


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that these broadcast to; None if they do not."""
    rank = max((len(shape) for shape in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, start=rank - len(shape)):
            if size != 1:
                if result[axis] not in (1, size):
                    return None
                result[axis] = size
    return tuple(result)


def _product(a: Tensor | None, b: Tensor | None, extra: tuple[Tensor | None, ...] = (), out_dtype: str | None = None) -> Work | None:
    """[M, K] by [K, N], with what else is read (bias, scales)."""
    if a is None or b is None or len(a.dims) != 2 or len(b.dims) != 2 or a.dims[1] != b.dims[0]:
        return None
    (m, k), n = a.dims, b.dims[1]
    if 0 in (m, k, n):
        return None
    return Work(2 * m * n * k, stored((a, b, *extra)), sized(m * n, Tensor((), out_dtype or a.dtype)), a.dtype)


def _batched(a: Tensor | None, b: Tensor | None, extra: tuple[Tensor | None, ...] = ()) -> Work | None:
    if a is None or b is None or len(a.dims) != 3 or len(b.dims) != 3 or a.dims[0] != b.dims[0] or a.dims[2] != b.dims[1]:
        return None
    (batch, m, k), n = a.dims, b.dims[2]
    if 0 in (batch, m, k, n):
        return None
    return Work(2 * batch * m * n * k, stored((a, b, *extra)), sized(batch * m * n, a), a.dtype)


def _vector(a: Tensor | None, x: Tensor | None, extra: tuple[Tensor | None, ...]) -> Work | None:
    if a is None or x is None or len(a.dims) != 2 or len(x.dims) != 1:
        return None
    return _product(a, Tensor((*x.dims, 1), x.dtype, x.strides and (*x.strides, 1)), extra)


def _packed(x: Tensor, n: int, read: tuple[Tensor | None, ...]) -> Work | None:
    m, k = x.dims
    return None if 0 in (m, k, n) else Work(2 * m * n * k, stored(read), sized(m * n, x), x.dtype)


def _used_bias(inputs: Inputs, beta: int) -> Tensor | None:
    """The first operand, unless beta is 0: then it is not read."""
    return None if inputs.text(beta) in ("0", "0.", "0.0") else inputs.tensor(0)


def _unpacked(inputs: Inputs, slot: int, axis: int) -> Tensor | None:
    """A tensor in its logical shape: two fp4 values share one stored element."""
    tensor = inputs.tensor(slot)
    if tensor is None or len(tensor.dims) != 2 or "x2" not in (inputs.type_text(slot) or ""):
        return tensor
    dims = list(tensor.dims)
    dims[axis] *= 2
    return Tensor(tuple(dims), tensor.dtype)
