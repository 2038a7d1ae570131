"""The FLOPs that torch's profiler itself counts (`with_flops`), apart from roofterm's own costs.

The exported trace holds none of them: they exist in `key_averages()` alone and follow from the recorded shapes. The
formulas are those of torch/csrc/profiler/util.cpp (`computeFlops`), slips included: an addition or multiplication counts
its first input, the bias of an addmm counts nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from roofterm.analysis.costs.signature import decoded, int_list


def profiler_flops(name: str, dims: str | Sequence[Any] | None, concrete: str | Sequence[Any] | None) -> int:
    """FLOPs of one call of an op as `with_flops` counts them; 0 where the profiler counts none.

    `dims` and `concrete` are the op's Input Dims and Concrete Inputs, as JSON text (`Profile.signatures`) or decoded.
    """
    formula = _FORMULAS.get(name)
    if formula is None:
        return 0
    shapes = decoded(dims)
    return formula(shapes, decoded(concrete) or []) if shapes else 0


def _matmul(left: int, right: int) -> Callable[[list[Any], list[Any]], int]:
    def flops(shapes: list[Any], _: list[Any]) -> int:
        a, b = _shape(shapes, left), _shape(shapes, right)
        if not a or b is None or a[-1] == 0:
            return 0
        return 2 * (math.prod(a) // a[-1]) * math.prod(b)

    return flops


def _batched(left: int, right: int) -> Callable[[list[Any], list[Any]], int]:
    def flops(shapes: list[Any], _: list[Any]) -> int:
        a, b = _shape(shapes, left), _shape(shapes, right)
        if not a or b is None or a[0] == 0 or a[-1] == 0:
            return 0
        return 2 * (math.prod(a) // a[-1] // a[0]) * math.prod(b)

    return flops


def _first_input(shapes: list[Any], _: list[Any]) -> int:
    first = _shape(shapes, 0)
    return 0 if first is None else math.prod(first)


def _conv2d(shapes: list[Any], concrete: list[Any]) -> int:
    x, w = _shape(shapes, 0), _shape(shapes, 1)
    if x is None or w is None or len(x) != 4 or len(w) != 4 or len(concrete) < 7:
        return 0
    stride, padding, dilation = (int_list(concrete[slot]) for slot in (3, 4, 5))
    groups = int_list(concrete[6])
    if not (stride and padding and dilation and groups) or 0 in stride or groups[0] == 0:
        return 0
    out = [
        (x[2 + axis] + 2 * padding[min(axis, len(padding) - 1)] - dilation[min(axis, len(dilation) - 1)] * (w[2 + axis] - 1) - 1)
        // stride[min(axis, len(stride) - 1)]
        + 1
        for axis in (0, 1)
    ]
    return max(0, 2 * x[0] * math.prod(out) * w[2] * w[3] * x[1] * w[0] // groups[0])


def _shape(shapes: list[Any], slot: int) -> list[int] | None:
    """Sizes of one input, or None if it is absent, a list of tensors or not a shape."""
    shape = shapes[slot] if slot < len(shapes) else None
    if not isinstance(shape, list) or any(type(size) is not int or size < 0 for size in shape):
        return None
    return shape


_FORMULAS: dict[str, Callable[[list[Any], list[Any]], int]] = {
    "aten::mm": _matmul(0, 1),
    "aten::addmm": _matmul(1, 2),
    "aten::bmm": _batched(0, 1),
    "aten::baddbmm": _batched(1, 2),
    "aten::conv2d": _conv2d,
    "aten::mul": _first_input,
    "aten::add": _first_input,
}
