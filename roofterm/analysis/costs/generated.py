"""Kernels that a compiler made (Inductor's Triton): bounds from the tensors they were given.

The recorded inputs mix what is read and what is written, and a gather lists the whole table that it takes rows of, so
the sum is an upper bound of the bytes (reference/kineto.md 2.3); FLOPs are unknown. A pointwise kernel or a reduction works
on as many elements as its last arguments say (xnumel, and rnumel or ynumel), so of no tensor more than those are counted.
"""

from __future__ import annotations

import math

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.model import Work
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import Inputs

UPPER_BOUND = "every tensor argument once: an upper bound"
CAPPED = "every tensor argument once, of none more than the kernel's elements: an upper bound"

_SOURCE = "sum of the kernel's tensor arguments, an upper bound (reference/kineto.md 2.3)"


@register(Category.FUSED_ELEMENTWISE, _SOURCE, "triton_*")
def _triton(inputs: Inputs) -> Work | None:
    return _bounded(inputs, None)


@register(Category.FUSED_ELEMENTWISE, _SOURCE + ", each at the kernel's number of elements at most", "triton_poi_*")
def _pointwise(inputs: Inputs) -> Work | None:
    return _bounded(inputs, _elements(inputs))


@register(Category.FUSED_REDUCTION, _SOURCE + ", each at the kernel's number of elements at most", "triton_red_*", "triton_per_*")
def _reduction(inputs: Inputs) -> Work | None:
    return _bounded(inputs, _elements(inputs))


def _bounded(inputs: Inputs, elements: int | None) -> Work | None:
    tensors = [tensor for tensor in inputs.all_tensors if tensor.dims]
    if not tensors or sum(tensor.elements for tensor in tensors) == 0:
        return None
    total, capped = 0.0, False
    for tensor in tensors:
        if tensor.item_bytes is None:
            return Work(None, None, None, tensors[0].dtype, estimate=UPPER_BOUND)
        counted = tensor.unique_elements if elements is None else min(tensor.unique_elements, elements)
        capped |= counted < tensor.unique_elements
        total += tensor.item_bytes * counted
    return Work(None, total, None, tensors[0].dtype, estimate=CAPPED if capped else UPPER_BOUND)


def _elements(inputs: Inputs) -> int | None:
    """Elements that the kernel works on: the product of its last integer arguments; None where none is recorded."""
    sizes: list[int] = []
    for slot in reversed(range(len(inputs))):
        size = inputs.integer(slot)
        if inputs.tensor(slot) is not None or size is None or size <= 0:
            break
        sizes.append(size)
    return math.prod(sizes) if sizes else None
