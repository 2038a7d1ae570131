"""What an op's bytes are, for the items of a roofline: each distinct call by its recorded inputs and what stands around it.

The sum of an op's roles is its compulsory traffic. First the forward products, convolutions and embeddings tell the sizes
of the profile's weights; by these, and by the pass that it runs in, every other op is told (`op_roles`, `training_roles`).
Instructions of compiled programs are told by their programs (roofterm_parsers.xplane.hlo_roles).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs import Cost, cost
from roofterm.analysis.costs.signature import Inputs, decoded
from roofterm.analysis.lookup import joined
from roofterm.analysis.op_roles import ROLE_COLUMNS, Circumstances, Roles
from roofterm.analysis.surroundings import Place, surroundings
from roofterm.analysis.told_shapes import Shapes, told_by
from roofterm.analysis.training_roles import roles
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import Profile

_KEY = ("name", "signature", "dtype", "place", "linear", "by_heads", "calls")


def with_roles(profile: Profile, items: pl.DataFrame) -> pl.DataFrame:
    """Items (schema `costed.ITEMS`) with `ROLE_COLUMNS`, Float64, bytes."""
    return _fitting(_with_roles_of_instructions(profile, _with_roles_of_ops(profile, items)))


def _with_roles_of_instructions(profile: Profile, items: pl.DataFrame) -> pl.DataFrame:
    """Roles of compiled instructions, as their program tells them."""
    if profile.hlo_roles.height == 0:
        return items
    told = profile.hlo_roles.select(pl.col("op").alias("hlo"), *(pl.col(column).alias(f"{column}_hlo") for column in ROLE_COLUMNS))
    items = items.join(told, on="hlo", how="left", maintain_order="left")
    return items.with_columns(pl.coalesce(column, f"{column}_hlo").alias(column) for column in ROLE_COLUMNS).drop(
        f"{column}_hlo" for column in ROLE_COLUMNS
    )


def _with_roles_of_ops(profile: Profile, items: pl.DataFrame) -> pl.DataFrame:
    ops = items.select("op", "signature", "dtype").drop_nulls(["op", "signature"]).unique("op", keep="first", maintain_order=True)
    if ops.height == 0:
        return items.with_columns(pl.lit(None, dtype=pl.Float64).alias(column) for column in ROLE_COLUMNS)
    ops = _with_circumstances(profile, ops)
    distinct = ops.select(_KEY).unique(maintain_order=True)
    calls = [_call(profile, row) for row in distinct.iter_rows(named=True)]
    told = _told(calls)
    rows = [_roles(call, told) for call in calls]
    values = pl.DataFrame(
        [row or (None,) * len(ROLE_COLUMNS) for row in rows], schema=dict.fromkeys(ROLE_COLUMNS, pl.Float64), orient="row"
    )
    by_op = ops.join(pl.concat([distinct, values], how="horizontal"), on=_KEY, how="left", maintain_order="left", nulls_equal=True)
    return joined(items, items["op"], by_op.select("op", *ROLE_COLUMNS), "op", profile.slices.height)


class _Call(NamedTuple):
    """A distinct call."""

    name: str
    inputs: Inputs
    cost: Cost | None
    around: Circumstances


def _with_circumstances(profile: Profile, ops: pl.DataFrame) -> pl.DataFrame:
    found = surroundings(profile, ops["op"].to_numpy().astype(np.int64))
    name = profile.slices["name"][ops["op"]]
    every = pl.DataFrame({"name": profile.slices["name"][profile.ops["slice"]], "signature": profile.ops["signature"]})
    counts = every.group_by("name", "signature").agg(calls=pl.len())
    return ops.with_columns(
        name=name,
        place=pl.Series(found.place),
        linear=pl.Series(found.linear),
        by_heads=pl.Series(_by_heads(profile, found.composite)),
    ).join(counts, on=["name", "signature"], how="left", maintain_order="left")


def _by_heads(profile: Profile, composite: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the composite op around is a product of two tensors [B, H, S, D], by its signature (-1: none is around)."""
    signatures = occurring(composite[composite >= 0])
    deep = [row for row in signatures.tolist() if _is_by_heads(profile.signatures["dims"][int(row)])]
    return np.isin(composite, deep)


def _is_by_heads(dims: str | None) -> bool:
    sizes = (decoded(dims) or [])[:2]
    return len(sizes) == 2 and all(isinstance(one, list) and len(one) >= 4 for one in sizes)


def _call(profile: Profile, row: dict[str, object]) -> _Call:
    dims, types, strides, concrete = profile.signatures.row(int(str(row["signature"])))
    text = profile.names["text"][int(str(row["name"]))]
    around = Circumstances(Place(int(str(row["place"]))), bool(row["linear"]), int(str(row["calls"] or 1)), bool(row["by_heads"]))
    fallback = None if row["dtype"] is None else str(row["dtype"])  # of tensors whose type is not recorded, such as those of lists
    inputs = Inputs(dims, types, strides, concrete, fallback)
    return _Call(text, inputs, cost(text, dims, types, strides, concrete, fallback), around)


def _told(calls: list[_Call]) -> Shapes:
    """Sizes of weights by the forward calls that read one, and of attention's scores."""
    found: list[tuple[str, Category, Inputs]] = []
    for call in calls:
        if call.cost is None or call.around.place != Place.FORWARD:
            continue
        if call.cost.category == Category.SOFTMAX:
            found.append((call.name, call.cost.category, call.inputs))
        elif call.cost.category in (Category.GEMM, Category.CONV, Category.EMBEDDING):
            made = roles(call.name, call.inputs, call.cost, call.around)
            if made is not None and made.weight_read:
                found.append((call.name, call.cost.category, call.inputs))
    return told_by(found)


def _roles(call: _Call, told: Shapes) -> Roles | None:
    return None if call.cost is None else roles(call.name, call.inputs, call.cost, call.around._replace(told=told))


def _fitting(items: pl.DataFrame) -> pl.DataFrame:
    """Without the roles of items whose bytes are others than their op's: transfers with the host, of which one end is no memory of
    the device's, and copies that the file states otherwise."""
    named = pl.sum_horizontal(ROLE_COLUMNS)
    fits = pl.Series(items.select(pl.col("pcie_bytes").is_null() & (named <= pl.col("hbm_bytes") * 1.005)).to_series())
    if fits.all(ignore_nulls=False):
        return items
    return items.with_columns(
        pl.when(fits).then(column).alias(column) for column in ROLE_COLUMNS if items[column].null_count() < items.height
    )
