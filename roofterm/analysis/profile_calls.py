"""The distinct calls of a profile's mean step: their recorded inputs, and what follows from these for another batch or split."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from roofterm.analysis.cache_traffic import BY_ANNOTATION
from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costed import LEVELS
from roofterm.analysis.costs import Cost, collective_kind, cost
from roofterm.analysis.costs.attention import operands
from roofterm.analysis.costs.signature import Inputs
from roofterm.analysis.op_roles import ROLE_COLUMNS, Circumstances, Roles, forward_roles
from roofterm.analysis.told_shapes import product_sizes
from roofterm_parsers.profile import Profile

_KEYS = ("text", "name", "signature", "category", "dtype", "tensor_core", "hlo", "unmodelled", "has_roles", "annotated", "message")
KNOWN_FORWARD = Circumstances(linear=True)


ANY_TYPE = "bf16"
"""Type of tensors that the file names no type for: costs are only used in proportion."""


class DistinctCall(NamedTuple):
    """One distinct call: its recorded inputs and what follows from them."""

    text: str
    category: Category
    dtype: str | None
    dims: str | None = None
    types: str | None = None
    strides: str | None = None
    concrete: str | None = None
    cost: Cost | None = None
    roles: Roles | None = None
    m: int = 0
    """of a product: rows, summed, columns"""
    k: int = 0
    n: int = 0
    last: int = 0
    """last size of the first tensor"""
    weight_item: float = 0.0
    """bytes that one weight takes as it is stored, scales and bias included; 0: reads none"""
    summed: int = 0
    """weights of one output channel"""
    attention: tuple[int, int, int] | None = None
    """sequences, queries, keys"""
    elements: int = 0
    """of a collective's message"""
    group: int = 0
    compiled: bool = False
    """an instruction of a compiled program: its shapes are fixed, so it can only be asked for so many times the batch"""


def grouped(items: pl.DataFrame, steps: int) -> list[dict[str, Any]]:
    """Distinct calls with their amounts in one step, most time first."""
    moved = [f"{level}_bytes" for level in LEVELS]
    collective = pl.col("category") == int(Category.COMMUNICATION)
    items = items.with_columns(
        unmodelled=pl.col("bound_s").is_null(),
        has_roles=pl.any_horizontal(pl.col(column).is_not_null() for column in ROLE_COLUMNS),
        annotated=pl.col("estimate").fill_null("") == BY_ANNOTATION,
        signature=pl.when(~collective).then("signature"),  # which holds a running number
        message=pl.when(collective).then("hbm_bytes"),
    )
    table = items.group_by(_KEYS, maintain_order=True).agg(
        pl.len().alias("calls"), pl.col("op").first(), pl.col("time_ps", "flops", "bound_s", *moved, *ROLE_COLUMNS).sum()
    )
    table = table.sort("time_ps", descending=True, maintain_order=True)
    scaled_columns = ("calls", "time_ps", "flops", "bound_s", *moved, *ROLE_COLUMNS)
    table = table.with_columns(pl.col(name) / max(steps, 1) for name in scaled_columns)
    return list(table.iter_rows(named=True))


def distinct_call(profile: Profile, row: dict[str, Any]) -> DistinctCall:
    text, category = str(row["text"]), Category(int(row["category"]))
    dtype = str(row["dtype"]) if row["dtype"] is not None else None
    if category == Category.COMMUNICATION:
        elements, group = _message(profile, row)
        return DistinctCall(text, category, dtype, elements=elements, group=group)
    if row["hlo"] is not None:
        return _instruction(profile, row, text, category, dtype)
    if row["signature"] is None:
        return DistinctCall(text, category, dtype)
    dims, types, strides, concrete = profile.signatures.row(int(row["signature"]))
    found = cost(text, dims, types, strides, concrete, dtype or ANY_TYPE)
    inputs = Inputs(dims, types, strides, concrete, dtype or ANY_TYPE)
    made = forward_roles(text, inputs, found, KNOWN_FORWARD) if found is not None and row["has_roles"] else None
    tensors = inputs.all_tensors
    m, k, n = (product_sizes(text, inputs) if category == Category.GEMM else None) or (0, 0, 0)
    item, summed = _stored_weights(inputs, category, made, k, n)
    return DistinctCall(
        text, category, dtype, dims, types, strides, concrete, found, made, m, k, n,
        tensors[0].dims[-1] if tensors and tensors[0].dims else 0, item, summed, _attention_sizes(text, inputs, category),
    )  # fmt: skip


def _instruction(profile: Profile, row: dict[str, Any], text: str, category: Category, dtype: str | None) -> DistinctCall:
    """A compiled instruction, with the sizes of its product as its program tells them."""
    found = profile.hlo_roles.filter(pl.col("op") == int(row["hlo"]))
    m, k, n = (int(found[name][0] or 0) if found.height else 0 for name in ("rows", "summed", "columns"))
    item = row["weight_read"] / row["calls"] / (k * n) if k and n and row["has_roles"] else 0.0
    return DistinctCall(text, category, dtype, m=m, k=k, n=n, weight_item=item, summed=k, compiled=True)


def _stored_weights(inputs: Inputs, category: Category, made: Roles | None, k: int, n: int) -> tuple[float, int]:
    """Bytes of one weight, and weights of one output channel: of a product, of experts, of a convolution."""
    if made is None or not made.weight_read:
        return 0.0, 0
    if k and n:
        return made.weight_read / (k * n), k
    weight = inputs.tensor(1)
    if category not in (Category.MOE, Category.CONV) or weight is None or len(weight.dims) < 3 or not weight.item_bytes:
        return 0.0, 0
    return weight.item_bytes, weight.dims[-1] if category == Category.MOE else int(np.prod(weight.dims[1:]))


def _message(profile: Profile, row: dict[str, Any]) -> tuple[int, int]:
    """Elements and group of a recorded all-reduce; zeros of anything else."""
    if row["op"] is None:
        return 0, 0
    found = profile.collectives.filter(pl.col("slice") == int(row["op"]))
    if found.height == 0 or collective_kind(str(found["collective"][0])) != "all_reduce":
        return 0, 0
    return int(found["in_elements"][0] or 0), int(found["group_size"][0] or 0)


def _attention_sizes(name: str, inputs: Inputs, category: Category) -> tuple[int, int, int] | None:
    found = operands(name, inputs) if category == Category.ATTENTION else None
    if found is None or found.sequence_axis is None:
        return None
    axis = found.sequence_axis
    return found.q.dims[0], found.q.dims[axis], found.k.dims[axis]
