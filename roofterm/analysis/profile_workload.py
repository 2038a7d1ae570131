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

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs import cost
from roofterm.analysis.costs.signature import ITEM_BYTES
from roofterm.analysis.model_workload import ALL_REDUCES
from roofterm.analysis.profile_calls import ANY_TYPE, DistinctCall, distinct_call, grouped
from roofterm.analysis.profile_parts import all_reduces, base_part, multiplied, rescaled, share_of, times
from roofterm.analysis.scaling import Batch, scaled
from roofterm.analysis.workload import Part, Shape, WhatIfError
from roofterm_parsers.profile import Profile

SHARED = 0.8
"""The tokens of a step are known if products with this share of the FLOPs with weights have them as rows."""


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
        self._groups = grouped(items, measured.steps)
        self._distinct = [distinct_call(profile, row) for row in self._groups]
        self.rows = _rows(self._weighted())
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

    def _weighted(self) -> list[tuple[DistinctCall, dict[str, Any]]]:
        return [pair for pair in zip(self._distinct, self._groups, strict=True) if pair[1]["weight_read"] and pair[0].m]

    def _batch(self, shape: Shape) -> Batch:
        if self.rows is None:
            raise WhatIfError("the batch of these steps cannot be told")
        base = self.shape
        widths = frozenset(size for one, _ in self._weighted() for size in (one.k, one.n))
        if base is None:
            return Batch(self.rows, None, None, None, shape, widths)
        return Batch(self.rows, round(base.sequences), round(base.queries), round(base.context), shape, widths)

    def _part(self, one: DistinctCall, row: dict[str, Any], batch: Batch | None) -> Part:
        base = base_part(one, row)
        # The head runs once in a step, and formats leave it alone.
        base = msgspec.structs.replace(base, kept=bool(one.n) and self.layers > 1 and row["calls"] <= 1)
        if batch is None or base.unmodelled:
            return base
        if one.compiled:
            return multiplied(base, batch.to["rows"] / batch.rows) if row["has_roles"] else msgspec.structs.replace(base, rescaled=False)
        if one.category == Category.COMMUNICATION:
            return self._communication(one, base, batch)
        if row["annotated"]:
            return self._annotated(base, batch)
        dims = scaled(one.text, one.category, one.dims, one.types, batch)
        if dims is None or one.cost is None:
            return msgspec.structs.replace(base, rescaled=False)
        again = cost(one.text, dims, one.types, one.strides, one.concrete, one.dtype or ANY_TYPE)
        if again is None:
            return msgspec.structs.replace(base, rescaled=False)
        return rescaled(base, one, again, dims)

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

    def _communication(self, one: DistinctCall, base: Part, batch: Batch) -> Part:
        """A collective over activations grows with the tokens; one over gradients does not."""
        if not one.elements or self.hidden is None or one.elements % (batch.rows * self.hidden):
            return msgspec.structs.replace(base, rescaled=False)
        return times(base, batch.to["rows"] / batch.rows)

    def _split_among(self, parts: Sequence[Part], devices: int, rows: int | None) -> list[Part]:
        """Every layer split among so many devices: weights, heads and what lies between; norms and residual sums stay whole."""
        if not self.layers:
            raise WhatIfError("no attention with recorded shapes is in these steps, so their layers cannot be counted for --tp")
        if self.hidden is None or rows is None:
            raise WhatIfError("the width of the model cannot be told from these steps, so they cannot be split; give --model config.json")
        share = self.devices / devices
        made = [share_of(part, one, share, self.hidden) for part, one in zip(parts, self._distinct, strict=True)]
        made = [times(part, share) if self._is_of_gradients(part, one) else part for part, one in zip(made, self._distinct, strict=True)]
        if self.devices > 1:
            factor = (devices - 1) / devices / ((self.devices - 1) / self.devices)
            return [
                msgspec.structs.replace(part, wire_bytes=part.wire_bytes * factor) if part.category == Category.COMMUNICATION else part
                for part in made
            ]
        message = rows * self.hidden * self._item_bytes()
        return [*made, all_reduces(ALL_REDUCES * self.layers, message, devices)]

    def _is_of_gradients(self, part: Part, one: DistinctCall) -> bool:
        """Whether a collective moves what belongs to weights, of which each device then has a share."""
        of_tokens = self.rows is not None and self.hidden is not None and one.elements % (self.rows * self.hidden) == 0
        return part.category == Category.COMMUNICATION and bool(one.elements) and not of_tokens

    def _item_bytes(self) -> float:
        dtypes = [(one.dtype, row["flops"]) for one, row in self._weighted()]
        return ITEM_BYTES.get(str(_mode(dtypes) or "bf16"), 2)


def _rows(weighted: Sequence[tuple[DistinctCall, dict[str, Any]]]) -> int | None:
    """The rows that the products with weights share; None if they do not."""
    shares = [(one.m, row["flops"] or 0.0) for one, row in weighted]
    rows = _mode(shares)
    total = sum(flops for _, flops in shares)
    agreed = sum(flops for m, flops in shares if m == rows)
    return int(rows) if rows and total and agreed >= SHARED * total else None


def _shape(distinct: Sequence[DistinctCall], rows: int | None, annotated: Shape | None) -> Shape | None:
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


def _split(distinct: Sequence[DistinctCall], groups: Sequence[dict[str, Any]], rows: int | None, hidden: int | None) -> int:
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
