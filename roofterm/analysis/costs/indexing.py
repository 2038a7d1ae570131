"""Embeddings, gathers and scatters: the rows that are touched, not the table (an index may repeat: counted each time)."""

from __future__ import annotations

import math

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.model import Work, sized, stored
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import Inputs, Tensor

_ROWS = "rows touched once read and written, indices read (reference/kineto.md 2.3); no FLOPs"


@register(Category.EMBEDDING, _ROWS, "aten::embedding")
def _embedding(inputs: Inputs) -> Work | None:
    table, index = inputs.tensor(0), inputs.tensor(1)
    if table is None or index is None or len(table.dims) != 2 or index.elements == 0:
        return None
    return _moved(index, sized(index.elements * table.dims[1], table), table)


@register(Category.EMBEDDING, _ROWS + " but one addition an element; a result for each bag", "aten::_embedding_bag", "aten::embedding_bag")
def _embedding_bag(inputs: Inputs) -> Work | None:
    table, index, offsets = inputs.tensor(0), inputs.tensor(1), inputs.tensor(2)
    if table is None or index is None or offsets is None or len(table.dims) != 2 or index.elements == 0:
        return None
    rows = sized(index.elements * table.dims[1], table)
    read = stored((index, offsets, inputs.tensor(6)))
    bags = offsets.elements - bool(inputs.flag(7))
    total = None if read is None or rows is None else read + rows
    return Work(index.elements * table.dims[1], total, sized(bags * table.dims[1], table), table.dtype)


@register(Category.EMBEDDING, _ROWS, "aten::index_select")
def _index_select(inputs: Inputs) -> Work | None:
    table, index = inputs.tensor(0), inputs.tensor(2)
    if table is None or index is None or not table.dims or 0 in (*table.dims, index.elements):
        return None
    dim = inputs.integer(1) or 0
    if not -len(table.dims) <= dim < len(table.dims):
        return None
    return _moved(index, sized(table.elements // table.dims[dim] * index.elements, table), table)


@register(Category.EMBEDDING, _ROWS, "aten::gather")
def _gather(inputs: Inputs) -> Work | None:
    table, index = inputs.tensor(0), inputs.tensor(2)
    if table is None or index is None or index.elements == 0:
        return None
    return _moved(index, sized(index.elements, table), table)


@register(
    Category.EMBEDDING,
    _ROWS + " but one addition an element",
    "aten::scatter_add_",
    "aten::scatter_add",
    "aten::index_add_",
    "aten::index_add",
)
def _scatter_add(inputs: Inputs) -> Work | None:
    table, index, values = inputs.tensor(0), inputs.tensor(2), inputs.tensor(3)
    if table is None or index is None or values is None or values.elements == 0:
        return None
    touched = sized(values.elements, table)
    read = stored((index, values))
    return Work(values.elements, None if read is None or touched is None else read + touched, touched, table.dtype)


@register(Category.EMBEDDING, _ROWS, "aten::scatter_", "aten::scatter", "aten::index_copy_", "aten::index_copy")
def _scatter(inputs: Inputs) -> Work | None:
    table, index, values = inputs.tensor(0), inputs.tensor(2), inputs.tensor(3)
    if table is None or index is None or index.elements == 0:
        return None
    moved = values.elements if values is not None and values.dims else index.elements
    return Work(0, stored((index, values)), sized(moved, table), table.dtype)


@register(
    Category.EMBEDDING, _ROWS + "; indices of a list are not recorded", "aten::index_put_", "aten::_index_put_impl_", "aten::index_put"
)
def _index_put(inputs: Inputs) -> Work | None:
    table, values = inputs.tensor(0), inputs.tensor(2)
    if table is None or values is None or values.elements == 0:
        return None
    return Work(0, values.bytes, sized(values.elements, table), table.dtype, estimate="indices are not recorded: values only")


@register(
    Category.EMBEDDING,
    "rows read and added to the table's gradient, each once: its zeros are those of aten::zero_ inside",
    "aten::embedding_dense_backward",
)
def _embedding_backward(inputs: Inputs) -> Work | None:
    grad, index, rows = inputs.tensor(0), inputs.tensor(1), inputs.integer(2)
    if grad is None or index is None or not grad.dims or grad.elements == 0:
        return None
    most = grad.elements if rows is None or rows <= 0 else min(grad.elements, rows * grad.dims[-1])
    estimate = "how many rows are distinct is not recorded"
    return Work(grad.elements, stored((grad, index)), sized(most, grad), grad.dtype, estimate=estimate)


@register(Category.EMBEDDING, "the mask once, the input once; how many are kept is not recorded", "aten::masked_select", "aten::nonzero")
def _selected(inputs: Inputs) -> Work | None:
    tensors = [tensor for slot in (0, 1) if (tensor := inputs.tensor(slot)) is not None]
    if not tensors or math.prod(tensors[0].dims) == 0:
        return None
    return Work(None, stored(tensors), None, tensors[0].dtype, estimate="how many are kept is not recorded")


def _moved(index: Tensor, rows_bytes: float | None, table: Tensor) -> Work | None:
    read = index.bytes
    return Work(0, None if read is None or rows_bytes is None else read + rows_bytes, rows_bytes, table.dtype)
