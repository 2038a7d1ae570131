"""What a reader must know of a row of the roofline: above its roof and why, bounds instead of figures, caches, recomputation.

A million rows say few different things: what their flags are told by is worked out for all at once, and sentences are made for each
that differs. A few rows are told one by one, which costs less.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add, or_
from typing import NamedTuple

import numpy as np
import polars as pl

from roofterm.analysis.bounds import PS, Caches
from roofterm.analysis.host_work import CPU
from roofterm.analysis.op_roles import ROLE_COLUMNS
from roofterm.analysis.steps import US
from roofterm.results import DeviceInfo
from roofterm.text.units import duration_us

MANY = 150
"""From so many rows on it pays to tell all at once: that takes 2 ms for up to 500 of them, and one by one 1.2 ms for 100, 3.1 for 200."""

_IMPLAUSIBLE_PCT = 300.0
"""No cache and no sparsity lifts work this far over its roof."""


class _Told(NamedTuple):
    """What the flags of a row are told by; what they would not say is null."""

    estimate: str | None
    in_l2: bool
    in_cache: bool
    """the last one before memory"""
    partial_pct: float | None
    roles_pct: float | None
    recomputed: bool
    moved_ps: float | None
    """of asynchronous transfers"""
    above: int
    """calls that lie above the roof; the rest is null where there are none"""
    calls: int | None
    """None: all of them lie above"""
    too_coarse: bool | None
    waits: bool | None
    """the end of an asynchronous op"""
    compute: bool | None
    fast_algorithm: bool | None
    implausible: bool | None


def flags(rows: pl.DataFrame, device: DeviceInfo | None, caches: Caches) -> pl.Series:
    """Flags of each row of `levels.with_shares`, a list of strings; none for what the rows have no column of.

    `above-roof` comes first, with the causes that fit; `text` is the row's name.
    """
    if rows.height < MANY:
        one_by_one = [_sentences(_told_of(row, caches), device) for row in rows.iter_rows(named=True)]
        return pl.Series("flags", one_by_one, dtype=pl.List(pl.String))
    told = rows.select(**_told(rows.schema, caches), row=pl.int_range(pl.len()))
    groups = told.group_by(_Told._fields, maintain_order=True).agg("row")
    sentences = [_sentences(_Told(*row), device) for row in groups.drop("row").iter_rows()]
    of_row = np.empty(rows.height, np.int64)
    of_row[groups["row"].explode().to_numpy()] = np.repeat(np.arange(groups.height), groups["row"].list.len().to_numpy())
    return pl.Series("flags", sentences, dtype=pl.List(pl.String))[of_row]


def _told_of(row: Mapping[str, object], caches: Caches) -> _Told:
    """What the flags of one row are told by."""

    def number(name: str) -> float | None:
        value = row.get(name)
        return float(value) if isinstance(value, int | float) else None

    estimate, bound_by, text = (str(row.get(name) or "") for name in ("estimate", "bound_by", "text"))
    largest = number("largest_bytes") if bound_by == "hbm" else None
    rate_s, time_ps, rate_ps, moved = number("rate_s"), number("time_ps"), number("rate_ps"), number("hbm_bytes")
    of_roles = [size for column in ROLE_COLUMNS if (size := number(column)) is not None]
    named = sum(of_roles)
    above, calls, worst = int(number("above") or 0), int(number("calls") or 0), number("worst_pct")
    whole_transfers = rate_s is None and number("seconds") is None and rate_ps is not None and time_ps is not None
    return _Told(
        estimate=estimate or None,
        in_l2=bool(largest and caches.l2 is not None and largest <= caches.l2),
        in_cache=bool(largest and caches.last is not None and largest <= caches.last),
        partial_pct=_whole(100 * rate_s * PS / time_ps) if rate_s and time_ps and rate_s * PS < 0.999 * time_ps else None,
        roles_pct=_whole(100 * named / moved) if moved and of_roles and named < 0.995 * moved else None,
        recomputed=row.get("recomputed") is True,
        moved_ps=rate_ps if whole_transfers and rate_ps and rate_ps > 1.001 * (time_ps or 0.0) else None,
        above=above,
        calls=calls if above < calls else None,
        too_coarse=number("above_clock") == 0,
        waits=text.partition(".")[0].endswith("-done"),
        compute=bound_by == "compute",
        fast_algorithm=bool(row.get("fast_algorithm")),
        implausible=worst is None or worst > _IMPLAUSIBLE_PCT,
    )


def _whole(share: float) -> float:
    """A share of a part in whole percent: 0 and 100 stand for some and for nearly all."""
    return 0.0 if share < 1 else 100.0 if share > 99 else float(round(share))


def _told(schema: pl.Schema, caches: Caches) -> dict[str, pl.Expr]:
    """The same of all rows: the columns of `_Told`. Of causes nothing is told where no call lies above the roof."""

    def known(name: str, dtype: type[pl.DataType]) -> pl.Expr:
        return pl.col(name).cast(dtype) if name in schema else pl.lit(None, dtype)

    def number(name: str) -> pl.Expr:
        return known(name, pl.Float64)

    estimate, bound_by = known("estimate", pl.String), known("bound_by", pl.String)
    largest = pl.when(bound_by == "hbm", number("largest_bytes") > 0).then(number("largest_bytes"))
    rate_s, time_ps, rate_ps, moved = number("rate_s"), number("time_ps"), number("rate_ps"), number("hbm_bytes")
    partial = (rate_s != 0) & (time_ps != 0) & (rate_s * PS < 0.999 * time_ps)
    of_roles = [number(column) for column in ROLE_COLUMNS]
    named = reduce(add, (size.fill_null(0.0) for size in of_roles))
    some_unnamed = (moved != 0) & reduce(or_, (size.is_not_null() for size in of_roles)) & (named < 0.995 * moved)
    asynchronous = rate_s.is_null() & number("seconds").is_null() & (rate_ps > 1.001 * time_ps)
    above, calls = known("above", pl.Int64).fill_null(0), known("calls", pl.Int64).fill_null(0)
    done = known("text", pl.String).str.contains(r"^[^.]*-done(\.|$)")
    told = {
        "estimate": pl.when(estimate != "").then(estimate),
        "in_l2": _fits(largest, caches.l2),
        "in_cache": _fits(largest, caches.last),
        "partial_pct": pl.when(partial).then(_whole_pct(100 * rate_s * PS / time_ps)),
        "roles_pct": pl.when(some_unnamed).then(_whole_pct(100 * named / moved)),
        "recomputed": known("recomputed", pl.Boolean).fill_null(False),
        "moved_ps": pl.when(asynchronous).then(rate_ps),
        "above": above,
        "calls": pl.when(above < calls).then(calls),
        "too_coarse": (known("above_clock", pl.Int64) == 0).fill_null(False),
        "waits": done.fill_null(False),
        "compute": (bound_by == "compute").fill_null(False),
        "fast_algorithm": known("fast_algorithm", pl.Boolean).fill_null(False),
        "implausible": (number("worst_pct") > _IMPLAUSIBLE_PCT).fill_null(True),  # unknown: it took no time at all
    }
    of_causes = ("calls", "too_coarse", "waits", "compute", "fast_algorithm", "implausible")
    return told | {name: pl.when(above != 0).then(told[name]) for name in of_causes}


def _whole_pct(share: pl.Expr) -> pl.Expr:
    return pl.when(share < 1).then(0.0).when(share > 99).then(100.0).otherwise(share.round(0))


def _percent(whole: float) -> str:
    return {0.0: "less than 1 %", 100.0: "more than 99 %"}.get(whole, f"{whole:.0f} %")


def _fits(largest: pl.Expr, size: int | None) -> pl.Expr:
    """Whether the largest operands of a row go into a cache of this size, bytes."""
    return pl.lit(False) if size is None else (largest <= size).fill_null(False)


def _sentences(told: _Told, device: DeviceInfo | None) -> list[str]:
    found = []
    if told.above:
        some = f"{told.above} of {told.calls} calls, " if told.calls is not None else ""
        found.append(f"above-roof: {some}" + "; ".join(_causes(told, device)))
    if told.estimate is not None:
        found.append(f"estimate: {told.estimate}")
    if told.in_l2:
        found.append("cache: the working set fits the L2")
    if told.partial_pct is not None:
        found.append(f"partial: costs are known for {_percent(told.partial_pct)} of this time; rates and shares are of that part")
    if told.roles_pct is not None:
        found.append(f"roles: known for {_percent(told.roles_pct)} of the bytes")
    if told.recomputed:
        found.append("recomputed: forward work done again in the backward pass")
    if device is not None and device.partition is not None:
        found.append(f"scaled: {device.partition}")
    if told.moved_ps is not None:
        found.append(f"asynchronous: rates are of whole transfers, {duration_us(told.moved_ps / US)} in all; this op waits for their end")
    return found


def _causes(told: _Told, device: DeviceInfo | None) -> list[str]:
    """Causes that fit."""
    if told.too_coarse:
        return ["the clock of this file is too coarse for so short a time"]
    if told.waits:
        return ["an asynchronous op: this is the wait for its end, the transfer began before"]
    causes = []
    if told.in_cache:
        causes.append("operands came from a cache, not from memory")
    estimate = told.estimate or ""
    if "upper bound" in estimate or "both counted" in estimate or "all pairs" in estimate or "as many as" in estimate:
        causes.append(f"an estimate: {estimate}")
    if told.compute:
        if told.implausible:
            causes.append("the time is too short for this work: a lost or asynchronous end")
        elif told.fast_algorithm:
            causes.append("Winograd or FFT kernels do fewer products than the direct form counts")
        else:
            causes.append("a sparse or narrower type than the recorded one, or work that was skipped")
    elif device is not None and device.kind == CPU and not told.in_cache:
        causes.append("operands were in a cache of the CPU, not in memory")
    elif told.implausible and not told.in_cache:
        causes.append("the time is too short for these bytes: an asynchronous transfer, or most of them were not touched")
    elif not told.in_cache:
        causes.append("part of the operands was still in a cache, or was not touched")
    if device is not None and device.roofs_from == "derived":
        causes.append("the roof itself is derived")
    return causes
