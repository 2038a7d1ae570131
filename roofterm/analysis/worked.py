"""What the roofline knows of a table's rows: FLOPs, bytes, what bounds them and their share of the roof, by name."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from roofterm.analysis.bounds import caches_of
from roofterm.analysis.flags import flags
from roofterm.analysis.levels import SHARED, TOLD, kernel_pieces, summed, with_shares
from roofterm.analysis.op_roles import ROLE_COLUMNS
from roofterm.analysis.roofline import Bounded
from roofterm.results import DeviceInfo
from roofterm_parsers.profile import Profile

COLUMNS = ("flops", "bytes", "bound_by", "pct_of_roof", "limiter", "limit", "flags")

_FIGURES = (*SHARED, *ROLE_COLUMNS)


def modelled(profile: Profile, found: Bounded, facts: pl.DataFrame) -> pl.DataFrame:
    """Pieces (`levels.kernel_pieces`) whose work is known: the time of the others (orphans, ops without shapes) says nothing of a roof."""
    pieces = kernel_pieces(profile, found.costed, found.items, facts, _FIGURES, TOLD)
    return pieces.filter(pl.col("bound_s").is_not_null())


def by_kernel(pieces: pl.DataFrame, device: DeviceInfo | None) -> pl.DataFrame:
    """Columns `name` (the kernel's) and `COLUMNS` of pieces of `modelled`: each kernel with its share of the work of its ops."""
    return _columns(summed(pieces, ["kernel"], _FIGURES).rename({"kernel": "text"}), "text", device)


def by_category(pieces: pl.DataFrame, device: DeviceInfo | None) -> pl.DataFrame:
    """Columns `name` (the category's number) and `COLUMNS` of pieces of `modelled`."""
    return _columns(summed(pieces, ["category"], _FIGURES), "category", device)


def by_key(pieces: pl.DataFrame, keys: pl.DataFrame, device: DeviceInfo | None) -> pl.DataFrame:
    """Columns `key` and `COLUMNS` of pieces of `modelled`; `keys`: `slice, key` of each piece that counts."""
    keyed = pieces.join(keys.select("slice", "key"), on="slice", how="inner", maintain_order="left")
    return _columns(summed(keyed, ["key"], _FIGURES), "key", device).rename({"name": "key"})


def by_op(found: Bounded, device: DeviceInfo | None, split: Callable[[pl.Series], pl.Series] | None = None) -> pl.DataFrame:
    """Columns `name` (of the op that the work was counted for), `COLUMNS` and `dtype`; with `split` also what that gives for each op's
    slice, and a row for each."""
    items = found.items.filter(pl.col("op").is_not_null())
    keys = ["text"]
    if split is not None:
        parts = split(items["op"])
        items, keys = items.with_columns(parts), [*keys, parts.name]
    rows = summed(items, keys, _FIGURES)
    return _columns(rows, "text", device).with_columns(rows["dtype"], *(rows[key] for key in keys[1:]))


def _columns(rows: pl.DataFrame, name: str, device: DeviceInfo | None) -> pl.DataFrame:
    """`COLUMNS` of rows of `levels.summed`, and `name`, the column of that name."""
    rows = with_shares(rows)
    rows = rows.with_columns(flags(rows, device, caches_of(device)), bytes="hbm_bytes")
    return rows.select(pl.col(name).alias("name"), *COLUMNS)
