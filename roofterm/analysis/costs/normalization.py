"""Norms and softmax: a few FLOPs an element, the input and the result once (kineto.md 2.3; compulsory bytes).

Per element: mean 1, variance 3, centring and scaling 2, weight and bias 2 when present. Their backwards: 8 and 2. RMS norm
leaves the mean out. Softmax: maximum, subtraction, exponential, sum, division.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.model import Work, sized, stored
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import Inputs, Tensor

_SOURCE = "operations counted an element; bytes: reference/kineto.md 2.3"


class Norm(NamedTuple):
    x: int
    weight: int | None
    bias: int | None = None
    grad: int | None = None
    """slot of the result's gradient: a backward"""
    flops: int = 6
    """an element, without weight and bias"""
    residual: int | None = None
    """slot of a tensor that is added first; the sum is a second result"""
    out: int | None = None
    """slot of a result given by the caller"""


NORMS: dict[str, Norm] = {
    "aten::native_layer_norm": Norm(0, 2, 3),
    "aten::layer_norm": Norm(0, 2, 3),
    "aten::native_group_norm": Norm(0, 1, 2),
    "aten::group_norm": Norm(0, 2, 3),
    "aten::native_batch_norm": Norm(0, 1, 2),
    "aten::_native_batch_norm_legit": Norm(0, 1, 2),
    "aten::_batch_norm_with_update": Norm(0, 1, 2),
    "aten::cudnn_batch_norm": Norm(0, 1, 2),
    "aten::miopen_batch_norm": Norm(0, 1, 2),
    "aten::batch_norm": Norm(0, 1, 2),
    "aten::_fused_rms_norm": Norm(0, 2, flops=4),
    "aten::rms_norm": Norm(0, 2, flops=4),
    "aten::native_layer_norm_backward": Norm(1, 5, 6, grad=0, flops=8),
    "aten::native_group_norm_backward": Norm(1, 4, grad=0, flops=8),
    "aten::native_batch_norm_backward": Norm(1, 2, grad=0, flops=8),
    "aten::batch_norm_backward": Norm(1, 2, grad=0, flops=8),
    "aten::cudnn_batch_norm_backward": Norm(0, 2, grad=1, flops=8),
    "aten::miopen_batch_norm_backward": Norm(0, 2, grad=1, flops=8),
    "aten::_fused_rms_norm_backward": Norm(1, 4, grad=0, flops=6),
    "_C::rms_norm": Norm(1, 2, flops=4, out=0),
    "_C::rms_norm_static_fp8_quant": Norm(1, 2, flops=5, out=0),
    "_C::rms_norm_dynamic_per_token_quant": Norm(1, 2, flops=6, out=0),
    "_C::fused_add_rms_norm": Norm(0, 2, flops=5, residual=1),
    "_C::fused_add_rms_norm_static_fp8_quant": Norm(1, 3, flops=6, residual=2, out=0),
    "sgl_kernel::rmsnorm": Norm(1, 2, flops=4, out=0),
    "sgl_kernel::gemma_rmsnorm": Norm(1, 2, flops=5, out=0),
    "sgl_kernel::fused_add_rmsnorm": Norm(0, 2, flops=5, residual=1),
    "sgl_kernel::gemma_fused_add_rmsnorm": Norm(0, 2, flops=6, residual=1),
    "aiter::rmsnorm": Norm(1, 2, flops=4, out=0),
    "aiter::rms_norm": Norm(0, 1, flops=4),
    "aiter::rmsnorm2d_fwd": Norm(0, 1, flops=4),
    "aiter::add_rmsnorm": Norm(1, 4, flops=5, residual=2, out=0),
    "aiter::rmsnorm2d_fwd_with_add": Norm(1, 4, flops=5, residual=2, out=0),
    "aiter::layernorm2d_fwd": Norm(0, 1, 2),
    "aiter::_groupnorm_run": Norm(0, 2, 3),
}


def _norm(inputs: Inputs, norm: Norm) -> Work | None:
    x = inputs.tensor(norm.x)
    if x is None or x.elements == 0:
        return None
    weight = inputs.tensor(norm.weight) if norm.weight is not None else None
    bias = inputs.tensor(norm.bias) if norm.bias is not None else None
    flops = x.elements * (norm.flops + (weight is not None) + (bias is not None))
    if norm.grad is not None:
        grad = inputs.tensor(norm.grad)
        if grad is None or grad.elements != x.elements:
            return None
        parameters = stored((weight, bias if bias is not None or norm.bias is not None else weight))
        gradients = sized(x.elements, x)
        written = None if gradients is None or parameters is None else gradients + parameters
        return Work(flops, stored((x, grad, weight)), written, x.dtype)
    out = inputs.tensor(norm.out) if norm.out is not None else x
    written = sized(x.elements, out if out is not None else x)
    residual = inputs.tensor(norm.residual) if norm.residual is not None else None
    if residual is not None and written is not None:
        second = sized(residual.elements, residual)
        written = None if second is None else written + second
    return Work(flops, stored((x, residual, weight, bias)), written, x.dtype)


_SOFTMAX_FLOPS = 5
_SOFTMAX_BACKWARD_FLOPS = 4


@register(Category.SOFTMAX, _SOURCE, "aten::_softmax", "aten::_log_softmax", "aten::softmax", "aten::log_softmax", "aten::_safe_softmax")
@register(Category.SOFTMAX, _SOURCE, "aten::_masked_softmax")
def _softmax(inputs: Inputs) -> Work | None:
    x = inputs.tensor(0)
    if x is None or x.elements == 0:
        return None
    out = Tensor(x.dims, "fp32") if inputs.flag(2) and x.dtype in ("fp16", "bf16") else Tensor(x.dims, x.dtype)
    return Work(_SOFTMAX_FLOPS * x.elements, x.bytes, out.bytes, x.dtype)


@register(Category.SOFTMAX, _SOURCE, "aten::_softmax_backward_data", "aten::_log_softmax_backward_data", "aten::_masked_softmax_backward")
def _softmax_backward(inputs: Inputs) -> Work | None:
    grad, result = inputs.tensor(0), inputs.tensor(1)
    if grad is None or result is None or grad.elements == 0 or grad.dims != result.dims:
        return None
    return Work(_SOFTMAX_BACKWARD_FLOPS * grad.elements, stored((grad, result)), sized(grad.elements, grad), grad.dtype)


for _name, _entry in NORMS.items():
    register(Category.NORM, _SOURCE, _name)(partial(_norm, norm=_entry))
