"""Kernels that a compiler made (Inductor's Triton): bounds from the tensors they were given.

The recorded inputs mix what is read and what is written, and a gather lists the whole table that it takes rows of, so
the sum is an upper bound of the bytes (reference/kineto.md 2.3); FLOPs are unknown.
"""

from __future__ import annotations

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.model import Work, stored
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import Inputs

UPPER_BOUND = "every tensor argument once: an upper bound"


@register(Category.FUSED_ELEMENTWISE, "sum of the kernel's tensor arguments, an upper bound", "triton_*")
def _triton(inputs: Inputs) -> Work | None:
    tensors = [tensor for tensor in inputs.all_tensors if tensor.dims]
    if not tensors or sum(tensor.elements for tensor in tensors) == 0:
        return None
    return Work(None, stored(tensors), None, tensors[0].dtype, estimate=UPPER_BOUND)
