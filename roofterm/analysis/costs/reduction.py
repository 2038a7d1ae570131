"""Reductions, losses, scans, sorts and pooling: the input once, the (smaller) result once."""

from __future__ import annotations

import math
from functools import partial

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.convolution import each_axis
from roofterm.analysis.costs.model import Work, sized
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import Inputs, Tensor

_SOURCE = "one FLOP an element of the input (reference/kineto.md 2.3)"

# op: slot of the reduced dimensions, FLOPs an element, type of the result (None: the input's)
_REDUCTIONS: dict[str, tuple[int, int, str | None]] = {
    **{f"aten::{name}": (1, 1, None) for name in ("sum", "mean", "nansum", "prod", "amax", "amin", "logsumexp", "max", "min", "nanmean")},
    "aten::argmax": (1, 1, "int64"),
    "aten::argmin": (1, 1, "int64"),
    "aten::any": (1, 1, "bool"),
    "aten::all": (1, 1, "bool"),
    "aten::var": (1, 4, None),
    "aten::std": (1, 4, None),
    "aten::var_mean": (1, 4, None),
    "aten::norm": (2, 2, None),
    "aten::linalg_vector_norm": (2, 2, None),
    "aten::count_nonzero": (1, 1, "int64"),
}


def _reduced(inputs: Inputs, dims_at: int, flops: int, result: str | None) -> Work | None:
    x = inputs.tensor(0)
    if x is None or x.elements == 0 or inputs.tensor(1) is not None:
        return None
    left = _left(inputs, x, dims_at)
    out = Tensor((), result or x.dtype)
    return Work(flops * x.elements, x.bytes, None if left is None else sized(left, out), x.dtype)


def _left(inputs: Inputs, x: Tensor, dims_at: int) -> int | None:
    """Elements of the result; None where the reduced dimensions are not recorded."""
    overload_without_dims = len(inputs) <= dims_at + 1  # (x) or (x, dtype)
    if overload_without_dims or (inputs.has_concrete and inputs.text(dims_at) in (None, "[]")):
        return 1
    dims = inputs.ints(dims_at)
    if dims is None or any(not -len(x.dims) <= dim < len(x.dims) for dim in dims):
        return None
    gone = {dim % len(x.dims) for dim in dims} if x.dims else set()
    return math.prod(size for axis, size in enumerate(x.dims) if axis not in gone)


_SCAN = "the input once, the result once; comparisons are not counted"


@register(Category.SORT, _SCAN, "aten::cumsum", "aten::cumprod", "aten::cumsum_", "aten::logcumsumexp")
def _scan(inputs: Inputs) -> Work | None:
    x = inputs.tensor(0)
    if x is None or x.elements == 0:
        return None
    wide = x.dtype in ("bool", "int8", "int16", "int32")
    return Work(x.elements, x.bytes, sized(x.elements, Tensor((), "int64" if wide else x.dtype)), x.dtype)


@register(Category.SORT, _SCAN + "; with their indices", "aten::sort", "aten::argsort", "aten::msort")
def _sort(inputs: Inputs) -> Work | None:
    x = inputs.tensor(0)
    if x is None or x.elements == 0:
        return None
    values = sized(x.elements, x)
    return Work(None, x.bytes, None if values is None else values + 8 * x.elements, x.dtype)


@register(Category.SORT, "the input once, k values and indices of each row", "aten::topk")
def _topk(inputs: Inputs) -> Work | None:
    x, k = inputs.tensor(0), inputs.integer(1)
    if x is None or x.elements == 0 or not x.dims:
        return None
    dim = inputs.integer(2) or -1
    if k is None or not -len(x.dims) <= dim < len(x.dims):
        return Work(None, x.bytes, None, x.dtype)
    kept = x.elements // x.dims[dim] * k
    values = sized(kept, x)
    return Work(None, x.bytes, None if values is None else values + 8 * kept, x.dtype)


@register(Category.REDUCTION, "one value of each row and the targets", "aten::nll_loss_forward", "aten::nll_loss2d_forward")
def _nll_loss(inputs: Inputs) -> Work | None:
    x, target = inputs.tensor(0), inputs.tensor(1)
    if x is None or target is None or target.elements == 0:
        return None
    picked = sized(target.elements, x)
    indices = target.bytes
    return Work(2 * target.elements, None if picked is None or indices is None else picked + indices, sized(2, x), x.dtype)


@register(
    Category.REDUCTION,
    "the targets, one value of each row written: the zeros around it are those of aten::zero_ inside",
    "aten::nll_loss_backward",
    "aten::nll_loss2d_backward",
)
def _nll_loss_backward(inputs: Inputs) -> Work | None:
    x, target = inputs.tensor(1), inputs.tensor(2)
    if x is None or target is None or x.elements == 0:
        return None
    return Work(target.elements, target.bytes, sized(target.elements, x), x.dtype)


_POOL = "one FLOP for each element of a window; the input once, the result once"


@register(Category.POOLING, _POOL + ", with its indices", "aten::max_pool2d_with_indices", "aten::max_pool3d_with_indices")
def _max_pool(inputs: Inputs) -> Work | None:
    return _pooled(inputs, 2 if len(_dims(inputs)) in (3, 4) else 3, dilation=4, index_bytes=8)


@register(Category.POOLING, _POOL, "aten::avg_pool2d", "aten::avg_pool3d")
def _avg_pool(inputs: Inputs) -> Work | None:
    return _pooled(inputs, 2 if len(_dims(inputs)) in (3, 4) else 3, dilation=None, index_bytes=0)


@register(Category.POOLING, "the gradient and indices once, the input's gradient once", "aten::max_pool2d_with_indices_backward")
def _max_pool_backward(inputs: Inputs) -> Work | None:
    grad, x = inputs.tensor(0), inputs.tensor(1)
    if grad is None or x is None or x.elements == 0:
        return None
    read = grad.bytes
    return Work(grad.elements, None if read is None else read + 8 * grad.elements, sized(x.elements, x), grad.dtype)


@register(Category.POOLING, _POOL, "aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool3d", "aten::adaptive_max_pool2d")
@register(Category.POOLING, "the input once, the result once", "aten::upsample_nearest1d", "aten::upsample_nearest2d")
@register(
    Category.POOLING,
    "the input once, the result once",
    "aten::upsample_bilinear2d",
    "aten::upsample_bicubic2d",
    "aten::_upsample_nearest_exact2d",
)
def _resized(inputs: Inputs) -> Work | None:
    x, size = inputs.tensor(0), inputs.ints(1)
    if x is None or x.elements == 0 or len(x.dims) < 3:
        return None
    if size is None:
        return Work(x.elements, x.bytes, None, x.dtype)
    out = math.prod((*x.dims[: max(0, len(x.dims) - len(size))], *size))
    return Work(max(x.elements, out), x.bytes, sized(out, x), x.dtype)


def _pooled(inputs: Inputs, rank: int, dilation: int | None, index_bytes: int) -> Work | None:
    x = inputs.tensor(0)
    if x is None or x.elements == 0 or len(x.dims) <= rank:
        return None
    kernel = each_axis(inputs, 1, rank, None)
    stride = each_axis(inputs, 2, rank, None) or kernel
    padding = each_axis(inputs, 3, rank, None)
    reach = each_axis(inputs, dilation, rank, None) if dilation is not None else [1] * rank
    if kernel is None or stride is None or padding is None or reach is None or 0 in stride:
        return Work(None, x.bytes, None, x.dtype, estimate="windows are not recorded: the result's size is unknown")
    ceil = bool(inputs.flag(5 if dilation is not None else 4))
    spatial = []
    for n, k, s, p, d in zip(x.dims[-rank:], kernel, stride, padding, reach, strict=True):
        over = n + 2 * p - d * (k - 1) - 1
        spatial.append(max(0, (-(-over // s) if ceil else over // s) + 1))
    out = math.prod(x.dims[:-rank]) * math.prod(spatial)
    values = sized(out, x)
    return Work(out * math.prod(kernel), x.bytes, None if values is None else values + index_bytes * out, x.dtype)


def _dims(inputs: Inputs) -> tuple[int, ...]:
    x = inputs.tensor(0)
    return () if x is None else x.dims


for _name, (_dims_at, _flops, _result) in _REDUCTIONS.items():
    _rule = partial(_reduced, dims_at=_dims_at, flops=_flops, result=_result)
    register(Category.REDUCTION, _SOURCE, _name)(_rule)
