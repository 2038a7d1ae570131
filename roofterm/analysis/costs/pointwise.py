"""Element by element: one FLOP an element of the result (more where a table says so), broadcast inputs at their own size.

The general rule of aten's pointwise ops: the result has the shape that the inputs broadcast to and the type they promote
to; an op in place writes its first input; comparisons write one byte. FLOPs an element: TraceLens' weights (exp 4, gelu 8,
rsqrt 2), else the number of operations of the formula.
"""

from __future__ import annotations

import math
from functools import partial

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.gemm import SCALAR_TYPES, broadcast
from roofterm.analysis.costs.model import Work, sized, stored
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import Inputs, Tensor

_SOURCE = "one FLOP an element of the result; inputs at their unique elements (reference/kineto.md 2.3)"

_UNARY = """
    abs neg exp exp2 expm1 log log1p log2 log10 sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh sigmoid
    relu gelu silu mish elu selu celu leaky_relu hardtanh hardswish hardsigmoid softplus softshrink threshold clamp_min clamp_max
    clamp floor ceil round trunc sign sgn erf erfc erfinv frac nan_to_num isnan isinf isfinite logical_not bitwise_not tril triu
    logit log_sigmoid log_sigmoid_forward glu lgamma digamma deg2rad rad2deg relu6 positive conj_physical angle real imag i0
    masked_scale
"""
_BINARY = """
    add sub mul div rsub pow atan2 eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor maximum
    minimum fmax fmin fmod remainder masked_fill floor_divide true_divide divide multiply subtract prelu heaviside hypot xlogy
    logaddexp __and__ __or__ __xor__ __lshift__ __rshift__ bitwise_left_shift bitwise_right_shift mse_loss l1_loss smooth_l1_loss
    huber_loss binary_cross_entropy copysign nextafter float_power polar complex greater less
    threshold_backward sigmoid_backward tanh_backward gelu_backward silu_backward leaky_relu_backward hardtanh_backward
    hardswish_backward hardsigmoid_backward elu_backward softplus_backward mish_backward logit_backward native_dropout_backward
    glu_backward log_sigmoid_backward
"""
_TERNARY = """
    where addcmul addcdiv lerp mse_loss_backward l1_loss_backward smooth_l1_loss_backward huber_loss_backward binary_cross_entropy_backward
"""
_FLOPS_OF = {
    "exp": 4, "gelu": 8, "gelu_backward": 16, "rsqrt": 2, "silu": 6, "silu_backward": 9, "sigmoid": 5, "sigmoid_backward": 3, "tanh": 5,
    "tanh_backward": 3, "addcmul": 3, "addcdiv": 3, "lerp": 3, "mse_loss": 2, "mse_loss_backward": 3, "where": 1, "square": 1, "clamp": 2,
}  # fmt: skip
_COMPARISONS = {
    "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite",
    "greater", "less",
}  # fmt: skip
_NO_FLOPS = {"masked_fill", "tril", "triu", "real", "imag", "positive"}
_WIDTH = ("bool", "int8", "int16", "int32", "int64", "fp8", "fp16", "bf16", "fp32", "fp64", "complex64", "complex128")
_LOSSES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"}


def promoted(tensors: list[Tensor]) -> str | None:
    """The type that inputs promote to (torch's result type): the widest of those with dimensions, fp16 with bf16 to fp32."""
    known = [tensor.dtype for tensor in tensors if tensor.dims] or [tensor.dtype for tensor in tensors]
    if not known or any(dtype is None for dtype in known):
        return None
    kinds = {dtype for dtype in known if dtype is not None}
    if {"fp16", "bf16"} <= kinds and not kinds & {"fp32", "fp64"}:
        return "fp32"
    return max(kinds, key=lambda dtype: _WIDTH.index(dtype) if dtype in _WIDTH else -1)


def _pointwise(inputs: Inputs, plain: str, slots: tuple[int, ...], in_place: bool) -> Work | None:
    tensors = [tensor for slot in slots if (tensor := inputs.tensor(slot)) is not None]
    if not tensors or (in_place and inputs.tensor(0) is None):
        return None
    shape = broadcast(*(tensor.dims for tensor in tensors))
    if shape is None or 0 in shape:
        return None
    first = tensors[0]
    if in_place and shape != first.dims:
        return None
    elements = math.prod(shape)
    if plain.startswith("glu"):
        elements //= 2
    dtype = first.dtype if in_place else promoted(tensors)
    out = Tensor(shape, "bool" if plain in _COMPARISONS and not in_place else dtype)
    flops = 0 if plain in _NO_FLOPS else _FLOPS_OF.get(plain, 1) * elements
    return Work(flops, stored(tensors), sized(elements, out), dtype)


def _register() -> None:
    for names, slots in ((_UNARY, (0,)), (_BINARY, (0, 1)), (_TERNARY, (0, 1, 2))):
        for plain in names.split():
            for suffix in ("", "_"):
                rule = partial(_pointwise, plain=plain, slots=slots, in_place=bool(suffix))
                register(Category.ELEMENTWISE, _SOURCE, f"aten::{plain}{suffix}")(rule)


@register(Category.COPY, "the source once, the destination once; no FLOPs", "aten::copy_", "aten::copy")
def _copy(inputs: Inputs) -> Work | None:
    target, origin = inputs.tensor(0), inputs.tensor(1)
    if target is None or origin is None or target.elements == 0 or broadcast(target.dims, origin.dims) != target.dims:
        return None
    return Work(0, origin.bytes, sized(target.elements, target), target.dtype)


@register(Category.COPY, "the input once, the result once; no FLOPs", "aten::clone", "aten::contiguous", "aten::flip", "aten::roll")
def _clone(inputs: Inputs) -> Work | None:
    x = inputs.tensor(0)
    if x is None or x.elements == 0:
        return None
    return Work(0, x.bytes, sized(x.elements, x), x.dtype)


@register(Category.COPY, "the input once, the result in its own type; no FLOPs", "aten::_to_copy")
def _to_copy(inputs: Inputs) -> Work | None:
    x = inputs.tensor(0)
    code = inputs.integer(1)
    if x is None or x.elements == 0:
        return None
    out = Tensor(x.dims, SCALAR_TYPES.get(code) if code is not None else x.dtype)
    return Work(0, x.bytes, out.bytes, out.dtype)


@register(
    Category.COPY, "every part once, the result once; no FLOPs", "aten::cat", "aten::stack", "aten::_cat", "aten::concat", "aten::hstack"
)
def _cat(inputs: Inputs) -> Work | None:
    parts = inputs.tensors(0)
    if not parts or sum(part.elements for part in parts) == 0:
        return None
    dtype = promoted(parts)
    written = sized(sum(part.elements for part in parts), Tensor((), dtype))
    return Work(0, stored(parts), written, dtype)


@register(Category.FILL, "the tensor written once; no FLOPs", "aten::fill_", "aten::zero_", "aten::zeros", "aten::ones", "aten::full")
@register(Category.FILL, "the tensor written once; no FLOPs", "aten::fill", "aten::zeros_like", "aten::ones_like", "aten::full_like")
def _fill(inputs: Inputs) -> Work | None:
    x = inputs.tensor(0)
    return None if x is None or x.elements == 0 else Work(0, 0.0, x.bytes, x.dtype)


@register(Category.RNG, "the tensor written once", "aten::uniform_", "aten::normal_", "aten::random_")
@register(Category.RNG, "the tensor written once", "aten::bernoulli_", "aten::exponential_", "aten::cauchy_", "aten::geometric_")
def _random(inputs: Inputs) -> Work | None:
    x = inputs.tensor(0)
    return None if x is None or x.elements == 0 else Work(None, 0.0, x.bytes, x.dtype)


@register(Category.RNG, "the input once, the result and a byte of mask once; one multiplication an element", "aten::native_dropout")
def _dropout(inputs: Inputs) -> Work | None:
    x = inputs.tensor(0)
    if x is None or x.elements == 0:
        return None
    out = sized(x.elements, x)
    return Work(x.elements, x.bytes, None if out is None else out + x.elements, x.dtype)


@register(Category.ELEMENTWISE, "one half through an activation (6 FLOPs), times the other half", "_C::silu_and_mul")
@register(Category.ELEMENTWISE, "as _C::silu_and_mul", "_C::gelu_and_mul", "_C::gelu_tanh_and_mul", "_C::mul_and_silu")
@register(Category.ELEMENTWISE, "as _C::silu_and_mul", "sgl_kernel::silu_and_mul", "sgl_kernel::gelu_and_mul", "aiter::silu_and_mul")
def _gated(inputs: Inputs) -> Work | None:
    out, x = inputs.tensor(0), inputs.tensor(1)
    if out is None or x is None or x.elements == 0 or x.elements != 2 * out.elements:
        return None
    return Work(7 * out.elements, x.bytes, sized(out.elements, out), x.dtype)


_register()
