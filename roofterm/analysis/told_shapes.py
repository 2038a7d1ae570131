"""The sizes of a profile's weights and the rows that are multiplied by them: what tells the operands of all its other ops apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.signature import Inputs, Tensor

_FIRST_OPERAND = {
    name: 1
    for name in (
        "aten::addmm", "aten::_addmm_activation", "aten::addmm_", "_C::cutlass_scaled_mm", "vllm::cutlass_scaled_mm",
        "_C::cutlass_scaled_mm_azp", "_C::cutlass_scaled_fp4_mm", "sgl_kernel::cutlass_scaled_fp4_mm",
    )
}  # fmt: skip
"""Slot of the first operand of a product where it is not the first."""


class Product(NamedTuple):
    """[M, K] by [K, N]"""

    m: int
    k: int
    n: int


class Shapes(NamedTuple):
    """What the forward pass tells of a profile's weights."""

    products: frozenset[Product] = frozenset()
    weights: frozenset[tuple[int, ...]] = frozenset()
    """dims, of matrices also transposed"""
    rows: frozenset[int] = frozenset()
    scores: frozenset[tuple[int, ...]] = frozenset()
    """[batch x heads, queries, keys] of softmaxes: what attention computed in single products hands on"""

    def has_weight(self, tensors: Iterable[Tensor]) -> bool:
        """Whether one of the tensors has the size of a weight."""
        return any(tensor.dims in self.weights for tensor in tensors)

    def is_of_scores(self, a: Tensor | None, b: Tensor | None) -> bool:
        """Whether a batched product makes or takes the scores of an attention, forward or backward."""
        if a is None or b is None or not len(a.dims) == len(b.dims) == 3:
            return False
        (count, m, k), n = a.dims, b.dims[2]
        return any((count, *pair) in self.scores for pair in ((m, n), (m, k), (k, m), (k, n), (n, k)))


NOTHING_TOLD = Shapes()


def product_sizes(name: str, inputs: Inputs) -> Product | None:
    """Rows, the dimension that is summed, and columns of a product with a matrix; None for all else."""
    first = _FIRST_OPERAND.get(name.partition(".")[0], 0)
    a, b = inputs.tensor(first), inputs.tensor(first + 1)
    if a is None or b is None or len(a.dims) < 2 or len(b.dims) != 2:
        return None
    rows, k = int(np.prod(a.dims[:-1])), a.dims[-1]
    if b.dims[0] == k and name != "aten::linear":
        return Product(rows, k, b.dims[1])
    return Product(rows, k, b.dims[0]) if b.dims[1] == k else None


def told_by(calls: Iterable[tuple[str, Category, Inputs]]) -> Shapes:
    """The sizes that forward calls tell: softmaxes, and those that are known to read a weight: (name, category, inputs)."""
    products: set[Product] = set()
    scores: set[tuple[int, ...]] = set()
    weights: set[tuple[int, ...]] = set()
    for name, category, inputs in calls:
        if category == Category.GEMM:
            product = product_sizes(name, inputs)
            if product is not None:
                products.add(product)
                weights |= {(product.k, product.n), (product.n, product.k)}
        elif category in (Category.CONV, Category.EMBEDDING):
            held = inputs.tensor(0 if category == Category.EMBEDDING else 1)
            if held is not None and len(held.dims) > 1:
                weights.add(held.dims)
        elif category == Category.SOFTMAX:
            made = inputs.tensor(0)
            if made is not None and len(made.dims) in (3, 4):
                scores.add((int(np.prod(made.dims[:-2])), *made.dims[-2:]))
    return Shapes(frozenset(products), frozenset(weights), frozenset(product.m for product in products), frozenset(scores))
