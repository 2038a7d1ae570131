"""Convolutions: 2 FLOPs a multiply-add of the direct form, whatever algorithm ran (Winograd and FFT do less).

Forward: 2 N prod(out spatial) prod(weight); transposed: the input's spatial size instead of the output's. A backward
does that work once for each gradient asked for (torch.utils.flop_counter; kineto.md 2.3).
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.model import Work, sized, stored
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import Inputs, Tensor

_TORCH = "torch.utils.flop_counter (conv_flop_count)"
_NO_MASK = "which gradients were asked for is not recorded: both counted"


class Slots(NamedTuple):
    """Where an op keeps its arguments."""

    stride: int
    padding: int
    dilation: int
    groups: int
    bias: int | None = None
    output_padding: int | None = None
    transposed: int | bool = False
    """the slot of the flag, or the flag itself"""


FORWARD: dict[str, Slots] = {
    **{f"aten::conv{rank}d": Slots(3, 4, 5, 6, bias=2) for rank in (1, 2, 3)},
    **{f"aten::conv_transpose{rank}d": Slots(3, 4, 7, 6, bias=2, output_padding=5, transposed=True) for rank in (1, 2, 3)},
    "aten::convolution": Slots(3, 4, 5, 8, bias=2, output_padding=7, transposed=6),
    "aten::_convolution": Slots(3, 4, 5, 8, bias=2, output_padding=7, transposed=6),
    "aten::convolution_overrideable": Slots(3, 4, 5, 8, bias=2, output_padding=7, transposed=6),
    "aten::cudnn_convolution": Slots(3, 2, 4, 5),
    "aten::cudnn_convolution_relu": Slots(3, 4, 5, 6, bias=2),
    "aten::cudnn_convolution_add_relu": Slots(5, 6, 7, 8, bias=4),
    "aten::cudnn_convolution_transpose": Slots(4, 2, 5, 6, output_padding=3, transposed=True),
    "aten::miopen_convolution": Slots(4, 3, 5, 6, bias=2),
    "aten::miopen_depthwise_convolution": Slots(4, 3, 5, 6, bias=2),
    "aten::miopen_convolution_relu": Slots(3, 4, 5, 6, bias=2),
    "aten::miopen_convolution_transpose": Slots(5, 3, 6, 7, bias=2, output_padding=4, transposed=True),
    "aten::mkldnn_convolution": Slots(4, 3, 5, 6, bias=2),
    "aten::_conv_depthwise2d": Slots(4, 5, 6, -1, bias=3),
    "aten::conv_depthwise3d": Slots(4, 5, 6, -1, bias=3),
    "aten::_slow_conv2d_forward": Slots(4, 5, -1, -1, bias=3),
    "aten::slow_conv3d_forward": Slots(4, 5, -1, -1, bias=3),
    "aten::slow_conv_dilated2d": Slots(4, 5, 6, -1, bias=3),
}


class Backward(NamedTuple):
    """Where the backward of a convolution keeps its arguments."""

    grad: int
    """the gradient of the output"""
    x: int
    weight: int
    transposed: int | bool
    """the slot of the flag, or the flag itself"""
    mask: int
    """which gradients are wanted: of the input, the weight, the bias"""


BACKWARD: dict[str, Backward] = {
    "aten::convolution_backward": Backward(0, 1, 2, 7, 10),
    "aten::convolution_backward_overrideable": Backward(0, 1, 2, 6, 9),
    "aten::cudnn_convolution_backward": Backward(1, 0, 2, False, 10),
    "aten::cudnn_convolution_transpose_backward": Backward(1, 0, 2, True, 11),
    "aten::miopen_convolution_backward": Backward(1, 0, 2, False, 9),
    "aten::mkldnn_convolution_backward": Backward(1, 0, 2, False, 7),
}


def _register() -> None:
    for name, slots in FORWARD.items():
        register(Category.CONV, _TORCH, name)(partial(_convolution, slots=slots))
    for name, places in BACKWARD.items():
        register(Category.CONV, _TORCH + ", once for each gradient of the output mask", name)(partial(_convolution_backward, places=places))


def _convolution(inputs: Inputs, slots: Slots) -> Work | None:
    x, weight = inputs.tensor(0), inputs.tensor(1)
    bias = inputs.tensor(slots.bias) if slots.bias is not None else None
    if x is None or weight is None or x.elements == 0 or weight.elements == 0 or len(weight.dims) < 3:
        return None
    if len(x.dims) == len(weight.dims) - 1:  # without a batch dimension
        x = Tensor((1, *x.dims), x.dtype, x.strides and (0, *x.strides))
    if len(x.dims) != len(weight.dims):
        return None
    read = stored((x, weight, bias))
    transposed = slots.transposed if isinstance(slots.transposed, bool) else inputs.flag(slots.transposed)
    spatial = None if transposed is None else _output(inputs, slots, x.dims[2:], weight.dims[2:], transposed)
    if spatial is None or not inputs.has_concrete:
        return Work(None, read, None, x.dtype, estimate="strides are not recorded: the result's size is unknown")
    if 0 in spatial:
        return None
    groups = inputs.integer(slots.groups) or 1
    channels = weight.dims[1] * groups if transposed else weight.dims[0]
    if (x.dims[1] != weight.dims[0]) if transposed else (slots.groups >= 0 and x.dims[1] != weight.dims[1] * groups):
        return None
    out = Tensor((x.dims[0], channels, *spatial), x.dtype)
    return Work(_flops(x if transposed else out, weight), read, out.bytes, x.dtype)


def _convolution_backward(inputs: Inputs, places: Backward) -> Work | None:
    grad, x, weight = inputs.tensor(places.grad), inputs.tensor(places.x), inputs.tensor(places.weight)
    if not _fit(grad, weight) or not _fit(x, weight) or grad is None or x is None or weight is None:
        return None
    transposed = places.transposed if isinstance(places.transposed, bool) else bool(inputs.flag(places.transposed))
    once = _flops(x if transposed else grad, weight)
    mask = inputs.flags(places.mask)
    if mask is None or len(mask) < 2:
        return Work(2 * once, stored((grad, x, weight)), stored((x, weight)), grad.dtype, estimate=_NO_MASK)
    written = [tensor for tensor, wanted in zip((x, weight), mask, strict=False) if wanted]
    read = [grad] + ([weight] if mask[0] else []) + ([x] if mask[1] else [])
    bias = sized(grad.dims[1], grad) if len(mask) > 2 and mask[2] else 0.0
    out = stored(Tensor(tensor.dims, tensor.dtype) for tensor in written)
    flops = once * len(written) + (grad.elements if len(mask) > 2 and mask[2] else 0) * (not written)
    return Work(flops, stored(read), None if out is None or bias is None else out + bias, grad.dtype)


def _flops(spatial_of: Tensor, weight: Tensor) -> int:
    return 2 * spatial_of.dims[0] * math.prod(spatial_of.dims[2:]) * math.prod(weight.dims)


def _fit(tensor: Tensor | None, weight: Tensor | None) -> bool:
    return tensor is not None and weight is not None and len(tensor.dims) == len(weight.dims) >= 3 and 0 not in (*tensor.dims, *weight.dims)


def _output(inputs: Inputs, slots: Slots, size: tuple[int, ...], kernel: tuple[int, ...], transposed: bool) -> list[int] | None:
    """Spatial size of the result; None if a value is not recorded."""
    stride = each_axis(inputs, slots.stride, len(size), 1)
    dilation = each_axis(inputs, slots.dilation, len(size), 1)
    named = inputs.text(slots.padding)
    if named in ("same", "valid") and stride is not None and dilation is not None:
        reach = [step * (width - 1) for step, width in zip(dilation, kernel, strict=True)]
        return list(size) if named == "same" else [(n - r - 1) // s + 1 for n, r, s in zip(size, reach, stride, strict=True)]
    padding = each_axis(inputs, slots.padding, len(size), None)
    if stride is None or dilation is None or padding is None or 0 in stride:
        return None
    if transposed:
        extra = each_axis(inputs, slots.output_padding if slots.output_padding is not None else -1, len(size), 0)
        if extra is None:
            return None
        rows = zip(size, kernel, stride, padding, dilation, extra, strict=True)
        return [max(0, (n - 1) * s - 2 * p + d * (k - 1) + 1 + e) for n, k, s, p, d, e in rows]
    rows5 = zip(size, kernel, stride, padding, dilation, strict=True)
    return [max(0, (n + 2 * p - d * (k - 1) - 1) // s + 1) for n, k, s, p, d in rows5]


def each_axis(inputs: Inputs, slot: int, rank: int, default: int | None) -> list[int] | None:
    """A value for each spatial axis; one value holds for all. `default` where the op has no such argument (slot -1)."""
    if slot < 0:
        return None if default is None else [default] * rank
    values = inputs.ints(slot)
    if values is None or any(value < 0 for value in values):
        return None
    return values * rank if len(values) == 1 else values if len(values) == rank else None


_register()
