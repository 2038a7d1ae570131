"""Roofline rows for tests of plots, with only what a plot looks at."""

from __future__ import annotations

from roofterm.results import Roof, RooflineRow
from roofterm.tui.widgets.glyphs import CategoryKey

KEY = CategoryKey(("gemm", "norm", "copy"), ("g", "n", "m"), ("green", "yellow", "cyan"))


def row(
    name: str = "op",
    *,
    category: str | None = "gemm",
    time_us: float = 1.0,
    intensity: float | None = None,
    flops_per_s: float | None = None,
    bytes_per_s: float | None = None,
    bound_by: str | None = "hbm",
    dtype: str | None = "bf16",
    level: str = "hbm",
) -> RooflineRow:
    return RooflineRow(
        level="op",
        step="steady",
        name=name,
        category=category,
        calls=1,
        time_us=time_us,
        time_per_unit_us=None,
        flops=flops_per_s and flops_per_s * time_us * 1e-6,
        model_flops=None,
        bytes={},
        flops_per_s=flops_per_s,
        bytes_per_s={} if bytes_per_s is None else {level: bytes_per_s},
        intensity={} if intensity is None else {level: intensity},
        bytes_by_role=None,
        bound_by=bound_by,
        limiter=None,
        pct_of_peak_flops=None,
        pct_of_peak_bw=None,
        pct_of_roof=None,
        time_bound_us=None,
        headroom_us=None,
        dtype=dtype,
        flops_from="shapes",
        bytes_from="shapes",
        flags=[],
    )


def compute(value: float, dtype: str = "bf16", source: str = "vendor") -> Roof:
    return Roof("compute", None, dtype, value, "FLOP/s", source)


def memory(value: float, level: str = "hbm", source: str = "vendor") -> Roof:
    return Roof("memory", level, None, value, "B/s", source)
