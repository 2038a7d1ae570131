"""Optimizers: what one step reads and writes of parameters, gradients and states (fused), or one op of it (foreach)."""

from __future__ import annotations

from functools import partial

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.model import Work, stored
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import Inputs, Tensor

_ADAM_FLOPS = 12
"""an element: two moving averages (3 and 4), bias corrections and root (3), the update (2); weight decay not counted"""


@register(
    Category.OPTIMIZER,
    "Adam (Kingma 2014): 12 FLOPs a parameter; p, g, m, v read, p, m, v written (28 N bytes in fp32)",
    "aten::_fused_adam_",
    "aten::_fused_adamw_",
)
def _adam(inputs: Inputs) -> Work | None:
    params, grads, first, second = (inputs.tensors(slot) for slot in range(4))
    if not params or not grads or not first or not second or _count(params) == 0:
        return None
    largest = inputs.tensors(4) or []
    read = stored((*params, *grads, *first, *second, *largest))
    return Work(_ADAM_FLOPS * _count(params), read, stored((*params, *first, *second, *largest)), params[0].dtype)


@register(Category.OPTIMIZER, "SGD: 2 FLOPs a parameter, 4 with momentum; p, g, momentum read, p, momentum written", "aten::_fused_sgd_")
def _sgd(inputs: Inputs) -> Work | None:
    params, grads, momentum = (inputs.tensors(slot) for slot in range(3))
    if not params or not grads or _count(params) == 0:
        return None
    states = momentum or []
    flops = (4 if states else 2) * _count(params)
    return Work(flops, stored((*params, *grads, *states)), stored((*params, *states)), params[0].dtype)


@register(Category.OPTIMIZER, "Adagrad: 6 FLOPs a parameter; p, g, sum read, p, sum written", "aten::_fused_adagrad_")
def _adagrad(inputs: Inputs) -> Work | None:
    params, grads, sums = (inputs.tensors(slot) for slot in range(3))
    if not params or not grads or not sums or _count(params) == 0:
        return None
    return Work(6 * _count(params), stored((*params, *grads, *sums)), stored((*params, *sums)), params[0].dtype)


# op: slots of the lists that are read, FLOPs an element
_FOREACH: dict[str, tuple[tuple[int, ...], int]] = {
    **{name: ((0, 1), 1) for name in ("add", "sub", "mul", "div", "maximum", "minimum", "pow")},
    **{name: ((0,), 1) for name in ("sqrt", "neg", "abs", "reciprocal", "sign", "exp", "clamp_min", "clamp_max", "rsqrt")},
    "lerp": ((0, 1), 3),
    "addcmul": ((0, 1, 2), 3),
    "addcdiv": ((0, 1, 2), 3),
}


def _foreach(inputs: Inputs, slots: tuple[int, ...], flops: int) -> Work | None:
    lists = [tensors for slot in slots if (tensors := inputs.tensors(slot))]
    if not lists or inputs.tensors(0) is None or _count(lists[0]) == 0:
        return None
    return Work(flops * _count(lists[0]), stored(t for tensors in lists for t in tensors), stored(lists[0]), lists[0][0].dtype)


@register(Category.COPY, "the source lists once, the target lists once; no FLOPs", "aten::_foreach_copy_")
def _foreach_copy(inputs: Inputs) -> Work | None:
    targets, origins = inputs.tensors(0), inputs.tensors(1)
    if not targets or not origins or _count(targets) == 0:
        return None
    return Work(0, stored(origins), stored(targets), targets[0].dtype)


@register(Category.OPTIMIZER, "the lists written once; no FLOPs", "aten::_foreach_zero_")
def _foreach_zero(inputs: Inputs) -> Work | None:
    targets = inputs.tensors(0)
    return None if not targets or _count(targets) == 0 else Work(0, 0.0, stored(targets), targets[0].dtype)


@register(Category.OPTIMIZER, "2 FLOPs an element; the lists read once", "aten::_foreach_norm")
@register(Category.OPTIMIZER, "2 FLOPs an element; the lists read once", "aten::_amp_foreach_non_finite_check_and_unscale_")
def _foreach_norm(inputs: Inputs) -> Work | None:
    tensors = inputs.tensors(0)
    return None if not tensors or _count(tensors) == 0 else Work(2 * _count(tensors), stored(tensors), 0.0, tensors[0].dtype)


def _count(tensors: list[Tensor]) -> int:
    return sum(tensor.elements for tensor in tensors)


for _plain, (_slots, _flops) in _FOREACH.items():
    for _suffix in ("", "_"):
        register(Category.OPTIMIZER, "one op of an optimizer over lists of tensors", f"aten::_foreach_{_plain}{_suffix}")(
            partial(_foreach, slots=_slots, flops=_flops)
        )
