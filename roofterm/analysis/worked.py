"""What the roofline knows of a table's rows: FLOPs, bytes, what bounds them and their share of the roof, by name."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from roofterm.analysis.bounded import Bounded
from roofterm.analysis.bounds import PS, caches_of
from roofterm.analysis.flags import flags
from roofterm.analysis.levels import SHARED, TOLD, kernel_pieces, summed, with_shares
from roofterm.analysis.op_roles import ROLE_COLUMNS
from roofterm.results import DeviceInfo
from roofterm_parsers.profile import Profile

COLUMNS = ("flops", "bytes", "bound_by", "pct_of_roof", "limiter", "limit", "flags")

LEAST_KNOWN = 0.5
"""Of a row's time: where less has known costs, what bounds that part says nothing of the row"""

_FIGURES = (*SHARED, *ROLE_COLUMNS)


def modelled(profile: Profile, found: Bounded, facts: pl.DataFrame) -> pl.DataFrame:
    """Pieces (`levels.kernel_pieces`), as `_rated`: by what is known of their items, of whose costs a helping kernel has no share."""
    items = found.items.with_columns(costs_known=_COSTS_KNOWN)
    return _rated(kernel_pieces(profile, found.costed, items, facts, _FIGURES, (*TOLD, "costs_known")), pl.col("costs_known"))


_COSTS_KNOWN = pl.col("bound_s").is_not_null() | pl.col("hbm_bytes").is_not_null() | (pl.col("flops") > 0)


def _rated(frame: pl.DataFrame, known: pl.Expr = _COSTS_KNOWN) -> pl.DataFrame:
    """Items or pieces; of those whose costs nothing tells (orphans, ops without shapes) `rate_ps` is null: it says nothing of a roof."""
    return frame.with_columns(pl.when(known).then(pl.col("rate_ps", "estimate")))


def of_kernels(pieces: pl.DataFrame) -> pl.DataFrame:
    """Pieces of `modelled` added up by kernel and category: what `by_kernel` and `by_category` are sums of."""
    return summed(pieces, ["kernel", "category"], _FIGURES)


def by_kernel(kernels: pl.DataFrame, device: DeviceInfo | None) -> pl.DataFrame:
    """Columns `name` (the kernel's) and `COLUMNS` of `of_kernels`: each kernel with its share of the work of its ops."""
    return _columns(summed(kernels, ["kernel"], _FIGURES).rename({"kernel": "text"}), "text", device)


def by_category(kernels: pl.DataFrame, device: DeviceInfo | None) -> pl.DataFrame:
    """Columns `name` (the category's number) and `COLUMNS` of `of_kernels`."""
    return _columns(summed(kernels, ["category"], _FIGURES), "category", device)


def by_key(pieces: pl.DataFrame, keys: pl.DataFrame, device: DeviceInfo | None) -> pl.DataFrame:
    """Columns `key` and `COLUMNS` of pieces of `modelled`; `keys`: `slice, key` of each piece that counts."""
    keyed = pieces.join(keys.select("slice", "key"), on="slice", how="inner", maintain_order="left")
    return _columns(summed(keyed, ["key"], _FIGURES), "key", device).rename({"name": "key"})


def by_op(found: Bounded, device: DeviceInfo | None, split: Callable[[pl.Series], pl.Series] | None = None) -> pl.DataFrame:
    """Columns `name` (of the op that the work was counted for), `COLUMNS` and `dtype`; with `split` also what that gives for each op's
    slice, and a row for each."""
    items = _rated(found.items.filter(pl.col("op").is_not_null()))
    keys = ["text"]
    if split is not None:
        parts = split(items["op"])
        items, keys = items.with_columns(parts), [*keys, parts.name]
    rows = summed(items, keys, _FIGURES)
    return _columns(rows, "text", device).with_columns(rows["dtype"], *(rows[key] for key in keys[1:]))


def _columns(rows: pl.DataFrame, name: str, device: DeviceInfo | None) -> pl.DataFrame:
    """`COLUMNS` of rows of `levels.summed`, and `name`, the column of that name. Shares are of the time whose costs are known."""
    rate_ps, time_ps = pl.col("rate_ps"), pl.col("time_ps")
    rows = with_shares(rows).with_columns(rate_s=pl.when(rate_ps < time_ps).then(rate_ps / PS))
    told = pl.when(rate_ps > 0, rate_ps >= LEAST_KNOWN * time_ps)
    return rows.select(
        pl.col(name).alias("name"),
        "flops",
        *(told.then(column).alias(column) for column in ("bound_by", "pct_of_roof", "limiter", "limit")),
        bytes="hbm_bytes",
        flags=flags(rows, device, caches_of(device)),
    )
