"""The step of a profile as parts of a workload, and the same step for another batch: costs computed anew from scaled shapes.

What the parts are of is told by the products with weights: the rows that they share are the step's tokens. Attention's
operands, or an engine's annotation, tell how many sequences these are and what each attends to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from roofterm.analysis.cache_traffic import BY_ANNOTATION
from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costed import LEVELS
from roofterm.analysis.costs import Cost, collective_kind, cost
from roofterm.analysis.costs.attention import operands
from roofterm.analysis.costs.signature import ITEM_BYTES, Inputs
from roofterm.analysis.model_workload import ALL_REDUCES
from roofterm.analysis.scaling import Batch, scaled
from roofterm.analysis.traffic import ROLE_COLUMNS, Circumstances, Roles, roles
from roofterm.analysis.workload import Part, Shape, WhatIfError, all_reduce_wire
from roofterm_parsers.profile import Profile

SHARED = 0.8
"""The tokens of a step are known if products with this share of the FLOPs with weights have them as rows."""

_KEYS = ("text", "name", "signature", "category", "dtype", "tensor_core", "unmodelled", "has_roles", "annotated", "message")
_KNOWN_FORWARD = Circumstances(forward=True, linear=True)


_ANY = "bf16"
"""Type of tensors that the file names no type for: costs are only used in proportion."""


class Measured(NamedTuple):
    """What the profile says of the step beside its parts."""

    steps: int
    """steps, of all devices together, that the parts are the mean of"""
    time_us: float | None
    """mean length of a step; None: the profile has no steps"""
    launches: float
    """calls that launch its work"""
    context: Shape | None = None
    """by an engine's annotation"""


class ProfileStep:
    """The mean step of some items on one device."""

    def __init__(self, profile: Profile, items: pl.DataFrame, measured: Measured) -> None:
        """`items`: `roofline.Bounded.items` of the steps."""
        self._profile = profile
        self.measured = measured
        self._groups = _grouped(items, measured.steps)
        self._distinct = [_distinct(profile, row) for row in self._groups]
        self.rows = _rows(self._distinct)
        self.shape = _shape(self._distinct, self.rows, measured.context)
        self.hidden: int | None = _mode([(one.k, row["flops"]) for one, row in self._weighted() if one.k])
        self.layers = sum(row["calls"] for row in self._groups if row["category"] == Category.ATTENTION and not row["unmodelled"])
        self.devices = _split(self._distinct, self._groups, self.rows, self.hidden)

    def parts(self, shape: Shape | None = None, devices: int | None = None) -> list[Part]:
        """The step's parts; for another shape or split, with their costs computed anew. Always in the same order.

        Raises WhatIfError where the profile does not tell what is asked for.
        """
        batch = self._batch(shape) if shape is not None else None
        parts = [self._part(one, row, batch) for one, row in zip(self._distinct, self._groups, strict=True)]
        if devices is None or devices == self.devices:
            return parts
        return self._split_among(parts, devices, self.rows if batch is None else batch.to["rows"])

    def _weighted(self) -> list[tuple[_Distinct, dict[str, Any]]]:
        return [pair for pair in zip(self._distinct, self._groups, strict=True) if pair[1]["weight_read"] and pair[0].m]

    def _batch(self, shape: Shape) -> Batch:
        if self.rows is None:
            raise WhatIfError("the batch of these steps cannot be told")
        base = self.shape
        widths = frozenset(size for one, _ in self._weighted() for size in (one.k, one.n))
        if base is None:
            return Batch(self.rows, None, None, None, shape, widths)
        return Batch(self.rows, round(base.sequences), round(base.queries), round(base.context), shape, widths)

    def _part(self, one: _Distinct, row: dict[str, Any], batch: Batch | None) -> Part:
        base = _base_part(one, row)
        # The head runs once in a step, and formats leave it alone.
        base = msgspec.structs.replace(base, kept=bool(one.n) and self.layers > 1 and row["calls"] <= 1)
        if batch is None or base.unmodelled:
            return base
        if one.category == Category.COMMUNICATION:
            return self._communication(one, base, batch)
        if row["annotated"]:
            return self._annotated(base, batch)
        dims = scaled(one.text, one.category, one.dims, one.types, batch)
        if dims is None or one.cost is None:
            return msgspec.structs.replace(base, rescaled=False)
        again = cost(one.text, dims, one.types, one.strides, one.concrete, one.dtype or _ANY)
        if again is None:
            return msgspec.structs.replace(base, rescaled=False)
        return _rescaled(base, one, again, dims)

    def _annotated(self, base: Part, batch: Batch) -> Part:
        """Attention whose keys an annotation told: its products grow with the pairs, its cache with the tokens in it."""
        if self.shape is None:
            return msgspec.structs.replace(base, rescaled=False)
        old, new = self.shape, batch.new
        rows, held = new.rows / old.rows, new.sequences * new.context / (old.sequences * old.context)
        return msgspec.structs.replace(
            base,
            flops=base.flops * new.pairs / old.pairs,
            kv_read=base.kv_read * held,
            activation_read=base.activation_read * rows,
            activation_write=base.activation_write * rows,
            other_bytes=base.other_bytes * rows,
        )

    def _communication(self, one: _Distinct, base: Part, batch: Batch) -> Part:
        """A collective over activations grows with the tokens; one over gradients does not."""
        if not one.elements or self.hidden is None or one.elements % (batch.rows * self.hidden):
            return msgspec.structs.replace(base, rescaled=False)
        return _times(base, batch.to["rows"] / batch.rows)

    def _split_among(self, parts: Sequence[Part], devices: int, rows: int | None) -> list[Part]:
        """Every layer split among so many devices: weights, heads and what lies between; norms and residual sums stay whole."""
        if not self.layers:
            raise WhatIfError("no attention with recorded shapes is in these steps, so their layers cannot be counted for --tp")
        if self.hidden is None or rows is None:
            raise WhatIfError("the width of the model cannot be told from these steps, so they cannot be split; give --model config.json")
        share = self.devices / devices
        made = [_share_of(part, one, share, self.hidden) for part, one in zip(parts, self._distinct, strict=True)]
        made = [_times(part, share) if self._is_of_gradients(part, one) else part for part, one in zip(made, self._distinct, strict=True)]
        if self.devices > 1:
            factor = (devices - 1) / devices / ((self.devices - 1) / self.devices)
            return [
                msgspec.structs.replace(part, wire_bytes=part.wire_bytes * factor) if part.category == Category.COMMUNICATION else part
                for part in made
            ]
        message = rows * self.hidden * self._item_bytes()
        return [*made, _all_reduces(ALL_REDUCES * self.layers, message, devices)]

    def _is_of_gradients(self, part: Part, one: _Distinct) -> bool:
        """Whether a collective moves what belongs to weights, of which each device then has a share."""
        of_tokens = self.rows is not None and self.hidden is not None and one.elements % (self.rows * self.hidden) == 0
        return part.category == Category.COMMUNICATION and bool(one.elements) and not of_tokens

    def _item_bytes(self) -> float:
        dtypes = [(one.dtype, row["flops"]) for one, row in self._weighted()]
        return ITEM_BYTES.get(str(_mode(dtypes) or "bf16"), 2)


class _Distinct(NamedTuple):
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


def _grouped(items: pl.DataFrame, steps: int) -> list[dict[str, Any]]:
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


def _distinct(profile: Profile, row: dict[str, Any]) -> _Distinct:
    text, category = str(row["text"]), Category(int(row["category"]))
    dtype = str(row["dtype"]) if row["dtype"] is not None else None
    if category == Category.COMMUNICATION:
        elements, group = _message(profile, row)
        return _Distinct(text, category, dtype, elements=elements, group=group)
    if row["signature"] is None:
        return _Distinct(text, category, dtype)
    dims, types, strides, concrete = profile.signatures.row(int(row["signature"]))
    found = cost(text, dims, types, strides, concrete, dtype or _ANY)
    inputs = Inputs(dims, types, strides, concrete, dtype or _ANY)
    made = roles(text, inputs, found, _KNOWN_FORWARD) if found is not None and row["has_roles"] else None
    tensors = inputs.all_tensors
    m, k, n = _product_sizes(text, inputs, category)
    item, summed = _stored_weights(inputs, category, made, k, n)
    return _Distinct(
        text, category, dtype, dims, types, strides, concrete, found, made, m, k, n,
        tensors[0].dims[-1] if tensors and tensors[0].dims else 0, item, summed, _attention_sizes(text, inputs, category),
    )  # fmt: skip


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


def _product_sizes(name: str, inputs: Inputs, category: Category) -> tuple[int, int, int]:
    """Rows, the dimension that is summed, and columns of a product with a matrix of weights; zeros for all else."""
    if category != Category.GEMM:
        return 0, 0, 0
    first = 1 if name.partition(".")[0] in ("aten::addmm", "aten::_addmm_activation", "_C::cutlass_scaled_mm") else 0
    a, b = inputs.tensor(first), inputs.tensor(first + 1)
    if a is None or b is None or len(a.dims) < 2 or len(b.dims) != 2:
        return 0, 0, 0
    rows, k = int(np.prod(a.dims[:-1])), a.dims[-1]
    n = b.dims[1] if b.dims[0] == k and name != "aten::linear" else b.dims[0] if b.dims[1] == k else 0
    return rows, k, n


def _attention_sizes(name: str, inputs: Inputs, category: Category) -> tuple[int, int, int] | None:
    found = operands(name, inputs) if category == Category.ATTENTION else None
    if found is None or found.sequence_axis is None:
        return None
    axis = found.sequence_axis
    return found.q.dims[0], found.q.dims[axis], found.k.dims[axis]


def _rows(distinct: Sequence[_Distinct]) -> int | None:
    """The rows that the products with weights share; None if they do not."""
    weighted = [
        (one.m, one.cost.flops or 0.0) for one in distinct if one.roles is not None and one.roles.weight_read and one.m and one.cost
    ]
    rows = _mode(weighted)
    total = sum(flops for _, flops in weighted)
    agreed = sum(flops for m, flops in weighted if m == rows)
    return int(rows) if rows and total and agreed >= SHARED * total else None


def _shape(distinct: Sequence[_Distinct], rows: int | None, annotated: Shape | None) -> Shape | None:
    """Sequences, new tokens and context: by attention's operands where their sequences and tokens make the rows, else by annotation."""
    if rows is None:
        return None
    found = [one.attention for one in distinct if one.attention is not None]
    fitting = [sizes for sizes in found if sizes[0] * sizes[1] == rows]
    if fitting:
        sequences, queries = _mode([((b, q), 1.0) for b, q, _ in fitting])
        keys = [k for b, q, k in fitting if (b, q) == (sequences, queries)]
        return Shape(sequences, queries, float(np.mean(keys)))
    if annotated is not None and round(annotated.rows) == rows:
        return annotated
    return None


def _split(distinct: Sequence[_Distinct], groups: Sequence[dict[str, Any]], rows: int | None, hidden: int | None) -> int:
    """Among how many devices the layers are split already: the group of all-reduces whose messages are the tokens' activations."""
    if rows is None or hidden is None:
        return 1
    found = [(one.group, row["calls"]) for one, row in zip(distinct, groups, strict=True) if one.elements == rows * hidden and one.group]
    return int(_mode(found) or 1)


def _mode(values: Sequence[tuple[Any, float]]) -> Any:
    """The value with the most weight; None of none."""
    totals: dict[Any, float] = {}
    for value, weight in values:
        totals[value] = totals.get(value, 0.0) + weight
    return max(totals, key=lambda value: totals[value]) if totals else None


def _base_part(one: _Distinct, row: dict[str, Any]) -> Part:
    time_us = row["time_ps"] / 1e6
    if row["unmodelled"]:
        return Part(one.text, one.category, row["calls"], time_us=time_us, unmodelled=True, shapes=one.dims)
    roles_known = bool(row["has_roles"])
    named = sum(row[column] for column in ROLE_COLUMNS) if roles_known else 0.0
    if row["pcie_bytes"]:
        return Part(one.text, one.category, row["calls"], time_us=time_us, bound_s=row["bound_s"], rescaled=False, shapes=one.dims)
    weight_read = row["weight_read"] if roles_known else 0.0
    weights = weight_read / one.weight_item if one.weight_item else 0.0
    return Part(
        one.text,
        one.category,
        row["calls"],
        dtype=one.dtype,
        tensor_core=None if row["tensor_core"] is None else bool(row["tensor_core"]),
        flops=row["flops"] or 0.0,
        weights=weights,
        channels=weights / one.summed if one.summed else 0.0,
        weight_bytes=weight_read,
        weight_type=one.dtype,
        product=bool(one.n) or one.category in (Category.CONV, Category.MOE),
        kv_read=row["kv_read"] if roles_known else 0.0,
        kv_write=row["kv_write"] if roles_known else 0.0,
        activation_read=row["activation_read"] if roles_known else 0.0,
        activation_write=row["activation_write"] if roles_known else 0.0,
        other_bytes=max(0.0, (row["hbm_bytes"] or 0.0) - named),
        wire_bytes=row["link_bytes"] or 0.0,
        time_us=time_us,
        shapes=one.dims,
    )


def _rescaled(base: Part, one: _Distinct, again: Cost, dims: list[Any]) -> Part:
    """The part with each amount in the proportion of the new cost to the old."""
    if one.cost is None:
        return base
    flops = _ratio(again.flops, one.cost.flops)
    if one.roles is None:
        moved = _ratio(again.bytes, one.cost.bytes)
        return msgspec.structs.replace(base, flops=base.flops * flops, other_bytes=base.other_bytes * moved)
    new = roles(one.text, Inputs(dims, one.types, one.strides, one.concrete, one.dtype or _ANY), again, _KNOWN_FORWARD)
    if new is None:
        return msgspec.structs.replace(base, rescaled=False)
    old = one.roles
    return msgspec.structs.replace(
        base,
        flops=base.flops * flops,
        weight_bytes=base.weight_bytes * _ratio(new.weight_read, old.weight_read),
        kv_read=base.kv_read * _ratio(new.kv_read, old.kv_read),
        kv_write=base.kv_write * _ratio(new.kv_write, old.kv_write),
        activation_read=base.activation_read * _ratio(new.activation_read, old.activation_read),
        activation_write=base.activation_write * _ratio(new.activation_write, old.activation_write),
    )


def _ratio(new: float | None, old: float | None) -> float:
    return new / old if new is not None and old else 1.0


def _times(part: Part, factor: float) -> Part:
    return msgspec.structs.replace(
        part,
        wire_bytes=part.wire_bytes * factor,
        other_bytes=part.other_bytes * factor,
        activation_read=part.activation_read * factor,
        activation_write=part.activation_write * factor,
    )


def _share_of(part: Part, one: _Distinct, share: float, hidden: int) -> Part:
    """One device's share of a part. A product that widens keeps its input whole, one that narrows its result."""
    if part.unmodelled or part.category == Category.COMMUNICATION or part.bound_s is not None:
        return part
    is_product = bool(one.n) or part.category in (Category.ATTENTION, Category.CONV, Category.MOE, Category.KV_CACHE, Category.OPTIMIZER)
    if not is_product and one.last == hidden:
        return part
    read = 1.0 if one.n and one.k == hidden else share
    written = 1.0 if one.n and one.n == hidden and one.k != hidden else share
    return msgspec.structs.replace(
        part,
        flops=part.flops * share,
        weights=part.weights * share,
        channels=part.channels * written,
        weight_bytes=part.weight_bytes * share,
        kv_read=part.kv_read * share,
        kv_write=part.kv_write * share,
        activation_read=part.activation_read * read,
        activation_write=part.activation_write * written,
        other_bytes=part.other_bytes * share,
        dequantised=part.dequantised * share,
    )


def _all_reduces(calls: float, message_bytes: float, devices: int) -> Part:
    return Part(
        "all-reduce of tensor parallelism", Category.COMMUNICATION, calls, wire_bytes=calls * all_reduce_wire(message_bytes, devices),
        activation_read=calls * message_bytes, activation_write=calls * message_bytes,
    )  # fmt: skip
