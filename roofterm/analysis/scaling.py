"""Recorded inputs of an op as they would be for another batch: the dimensions that bear sequences and tokens, replaced.

A dimension is taken for one only where its place says so: rows of a product with weights, the leading sizes of
activations ([tokens, ...], [sequences, tokens, ...], [sequences, heads, tokens, ...]), the axes of attention's operands. What does
not fit is left as it is, and told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.attention import operands
from roofterm.analysis.costs.signature import Inputs, decoded
from roofterm.analysis.workload import Shape

_BY_HEADS = frozenset((Category.NORM, Category.ROPE, Category.SOFTMAX))
"""Work whose rows may be a token's heads or experts: a multiple of the tokens. Its parameters are vectors."""

_NO_BATCH = frozenset((Category.OPTIMIZER,))


class Batch(msgspec.Struct, frozen=True):
    """The sizes that a profile's tensors bear, and those that they shall have."""

    rows: int
    """tokens of all sequences"""
    sequences: int | None
    """None: not known, so that only the rows can be scaled"""
    queries: int | None
    keys: int | None
    new: Shape
    widths: frozenset[int] = frozenset()
    """sizes of weights: a matrix with as many rows may be one"""

    @property
    def to(self) -> dict[str, int]:
        """New sizes by what they are."""
        shape = self.new
        sizes = {"rows": shape.rows, "sequences": shape.sequences, "queries": shape.queries, "keys": shape.context}
        return {name: max(1, round(size)) for name, size in sizes.items()}


def scaled(name: str, category: Category, dims: str | Sequence[Any] | None, types: str | None, batch: Batch) -> list[Any] | None:
    """The dims of an op's inputs for another batch; None where none of them bears it."""
    found = decoded(dims)
    if found is None:
        return None
    inputs = Inputs(dims, types)
    if category == Category.ATTENTION and (attention := operands(name, inputs)) is not None:
        axis = attention.sequence_axis
        return _each(found, lambda sizes, _: _of_attention(sizes, axis, batch))
    if category == Category.GEMM:
        return _product(name, found, batch)
    if category == Category.CONV:
        return _convolution(name, found, batch)
    if category in _NO_BATCH or name.startswith("aten::_foreach"):
        return None
    return _each(found, lambda sizes, slot: _of_activation(sizes, inputs, slot, batch, category))


_Change = Callable[[list[int], int], "list[int] | None"]
"""New sizes of a tensor in a slot; None: it does not bear the batch."""


def _each(dims: list[Any], change: _Change) -> list[Any] | None:
    """The dims with the sizes of every tensor changed, those in lists too; None where none was."""
    changed = [_changed(sizes, slot, change) for slot, sizes in enumerate(dims)]
    if all(sizes is None for sizes in changed):
        return None
    return [sizes if new is None else new for sizes, new in zip(dims, changed, strict=True)]


def _changed(sizes: Any, slot: int, change: _Change) -> list[Any] | None:
    if _is_shape(sizes):
        return change(sizes, slot)
    if isinstance(sizes, list) and sizes and all(_is_shape(one) and len(one) > 1 for one in sizes):
        return _each(sizes, lambda inner, _: change(inner, slot))
    return None


def _is_shape(sizes: Any) -> bool:
    return isinstance(sizes, list) and bool(sizes) and all(type(size) is int and size >= 0 for size in sizes)


def _of_attention(sizes: list[int], axis: int | None, batch: Batch) -> list[int] | None:
    """q, k, v, the result and gradients: [B, H, S, D] or [B, S, H, D]; packed ones [T, H, D]. Statistics [B, H, S] too."""
    to = batch.to
    if axis is None:
        return [to["rows"], *sizes[1:]] if len(sizes) == 3 and sizes[0] == batch.rows else None
    if len(sizes) < 3 or sizes[0] != batch.sequences:
        return None
    new = [to["sequences"], *sizes[1:]]
    at = axis if len(sizes) == 4 else 2
    new[at] = to["queries"] if sizes[at] == batch.queries else to["keys"]
    return new


_OPERANDS = {
    **dict.fromkeys(("aten::addmm", "aten::addmm_", "aten::_addmm_activation", "aten::baddbmm", "aten::baddbmm_", "aten::addbmm"), (1, 2)),
    **dict.fromkeys(("_C::cutlass_scaled_mm", "vllm::cutlass_scaled_mm", "_C::cutlass_scaled_mm_azp"), (1, 2)),
    **dict.fromkeys(("_C::cutlass_scaled_fp4_mm", "sgl_kernel::cutlass_scaled_fp4_mm"), (1, 2)),
    **dict.fromkeys(("_rocm_C::wvSplitK", "_rocm_C::LLMM1"), (1, 0)),
}
"""Slots of the two operands where they are not the first two; the one with rows first."""


def _product(name: str, dims: list[Any], batch: Batch) -> list[Any] | None:
    """A product's operands: rows of the first, or (gradients of weights) the dimension that is summed over."""
    first, second = _OPERANDS.get(name.partition(".")[0], (0, 1))
    if len(dims) <= max(first, second) or not _is_shape(dims[first]) or not _is_shape(dims[second]):
        return None
    a, b = dims[first], dims[second]
    new = list(dims)
    if len(a) == len(b) == 3:
        made = _batched(a, b, batch)
        if made is None:
            return None
        new[first], new[second] = made
        return new
    rows = _rows(a[:-1], batch)
    if rows is not None:
        new[first] = [*rows, a[-1]]
        return new
    if len(a) == 2 and a[1] == batch.rows == b[0]:
        new[first], new[second] = [a[0], batch.to["rows"]], [batch.to["rows"], *b[1:]]
        return new
    return None


def _convolution(name: str, dims: list[Any], batch: Batch) -> list[Any] | None:
    """Input of a convolution, and of its backward the gradient of the result too: [N, C, ...] with all rows as N."""
    images = batch.rows if batch.sequences is None else batch.sequences
    slots = (0, 1) if "backward" in name else (0,)
    if any(slot >= len(dims) or not _is_shape(dims[slot]) or dims[slot][0] != images for slot in slots):
        return None
    count = batch.to["rows"] if batch.sequences is None else batch.to["sequences"]
    return [[count, *sizes[1:]] if slot in slots else sizes for slot, sizes in enumerate(dims)]


def _rows(leading: list[int], batch: Batch) -> list[int] | None:
    to = batch.to
    if leading == [batch.sequences, batch.queries]:
        return [to["sequences"], to["queries"]]
    if math.prod(leading) == batch.rows:
        return [to["rows"]] if len(leading) == 1 else None
    return [to["sequences"]] if leading == [batch.sequences] else None


def _batched(a: list[int], b: list[int], batch: Batch) -> tuple[list[int], list[int]] | None:
    """[B H, Sq, D] by [B H, D, Sk], and the like."""
    if not batch.sequences or a[0] % batch.sequences or a[0] != b[0]:
        return None
    known = {batch.queries: batch.to["queries"], batch.keys: batch.to["keys"]}
    if not any(size in known for size in (*a[1:], *b[1:])):
        return None
    count = a[0] // batch.sequences * batch.to["sequences"]
    return [count, *(known.get(size, size) for size in a[1:])], [count, *(known.get(size, size) for size in b[1:])]


def _of_activation(sizes: list[int], inputs: Inputs, slot: int, batch: Batch, category: Category) -> list[int] | None:
    """A tensor that bears the batch in its leading sizes."""
    to = batch.to
    if len(sizes) == 1:
        tensor = inputs.tensor(slot)
        counts = tensor is not None and (tensor.dtype or "").startswith(("int", "bool"))
        if not counts or batch.rows == 1:
            return None
    if len(sizes) > 1 and sizes[0] == batch.sequences and batch.queries is not None:
        if sizes[1] == batch.queries:
            return [to["sequences"], to["queries"], *sizes[2:]]
        if len(sizes) > 3 and sizes[2] in (batch.queries, batch.keys):
            across = to["queries"] if sizes[2] == batch.queries else to["keys"]
            last = to["keys"] if sizes[3] == batch.keys and batch.keys != batch.queries else sizes[3]
            if sizes[2] == batch.queries == sizes[3] and batch.keys == batch.queries:
                last = to["keys"]
            return [to["sequences"], sizes[1], across, last, *sizes[4:]]
    by_heads = category in _BY_HEADS
    if sizes[0] == batch.rows and (by_heads or len(sizes) != 2 or batch.rows not in batch.widths):
        return [to["rows"], *sizes[1:]]
    if by_heads and len(sizes) > 1 and sizes[0] % batch.rows == 0 and sizes[0] > 0:
        return [sizes[0] // batch.rows * to["rows"], *sizes[1:]]
    if len(sizes) > 1 and sizes[0] == 1 and batch.queries is not None and batch.queries > 1:
        for axis in (1, 2):
            if axis < len(sizes) - 1 and sizes[axis] == batch.queries:
                return [*sizes[:axis], to["queries"], *sizes[axis + 1 :]]
    if sizes[0] == batch.sequences:
        return [to["sequences"], *sizes[1:]]
    return None
