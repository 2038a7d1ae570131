"""Roofline rows as arrays of points: what lies on the plot, what is marked at its edge, and what has a time only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.results import RooflineRow
from roofterm.tui.widgets.glyphs import CategoryKey

F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]
I64 = NDArray[np.int64]

TOP, MIDDLE, REST = 0, 1, 2
"""Tiers: the points that hold the first half of the time, up to nine tenths of it, and the rest."""


@dataclass(frozen=True)
class Points:
    """Arrays over the rows that were given: NaN where a row has no such place on the plot."""

    x: F64
    """log10 of the intensity, FLOP/byte"""
    y: F64
    """log10 of the rate, FLOP/s"""
    rate: F64
    """log10 of bytes/s, of rows with bytes and without FLOPs: marked at the left edge"""
    time_us: F64
    category: U8
    tier: U8
    order: I64
    """rows with a place on the plot or at its edge, most time first"""

    @property
    def plotted(self) -> int:
        return int(np.isfinite(self.x).sum())

    @property
    def bytes_only(self) -> int:
        return int(np.isfinite(self.rate).sum())

    @property
    def time_only(self) -> int:
        return self.x.size - self.order.size


Rows = Sequence[RooflineRow] | pl.DataFrame


def memory_levels(rows: Rows) -> list[str]:
    """Memory levels for which any row has bytes, in order of appearance, the device's main memory first."""
    found: dict[str, None] = {}
    for intensity, rates in zip(_column(rows, "intensity"), _column(rows, "bytes_per_s"), strict=True):
        for level, value in [*(intensity or {}).items(), *(rates or {}).items()]:
            if value is not None:
                found[level] = None
    return sorted(found, key=lambda level: level != "hbm")


def points_of(rows: Rows, key: CategoryKey, memory: str) -> Points:
    """Points of roofline rows against one memory level. Rates and intensities of zero or less have no logarithm and no point."""
    time_us = _numbers(_column(rows, "time_us"))
    x = _log10([(intensity or {}).get(memory) for intensity in _column(rows, "intensity")])
    y = _log10(_column(rows, "flops_per_s"))
    rate = _log10([(rates or {}).get(memory) for rates in _column(rows, "bytes_per_s")])
    on_plot = np.isfinite(x) & np.isfinite(y)
    x[~on_plot] = y[~on_plot] = np.nan
    without_flops = np.array([not flops for flops in _column(rows, "flops")], np.bool_)
    rate[on_plot | ~without_flops] = np.nan
    code = {name: key.code(name) for name in set(_column(rows, "category"))}
    category = np.array([code[name] for name in _column(rows, "category")], np.uint8)
    somewhere = np.flatnonzero(on_plot | np.isfinite(rate))
    order = somewhere[np.argsort(-time_us[somewhere], kind="stable")]
    return Points(x, y, rate, time_us, category, _tiers(time_us, order), order)


def _tiers(time_us: F64, order: I64) -> U8:
    tier = np.full(time_us.size, REST, np.uint8)
    total = time_us[order].sum()
    if total > 0:
        before = np.cumsum(time_us[order]) - time_us[order]
        tier[order] = np.where(before < total / 2, TOP, np.where(before < total * 0.9, MIDDLE, REST))
    return tier


def _column(rows: Rows, name: str) -> list[Any]:
    return rows[name].to_list() if isinstance(rows, pl.DataFrame) else [getattr(row, name) for row in rows]


def _numbers(values: list[Any]) -> F64:
    return np.nan_to_num(np.array([0.0 if v is None else v for v in values], np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def _log10(values: list[Any]) -> F64:
    numbers = np.array([np.nan if v is None or not v > 0 else v for v in values], np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    return np.log10(numbers)
