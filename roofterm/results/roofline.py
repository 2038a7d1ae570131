"""Rooflines: roofs, rows, and how much of the time they cover."""

from __future__ import annotations

import msgspec


class Roof(msgspec.Struct):
    kind: str
    """compute, memory, link or launch"""
    level: str | None
    dtype: str | None
    value: float
    unit: str
    """FLOP/s, B/s or s"""
    source: str
    """vendor, measured, trace, derived or given"""
    drawn: bool = True
    """some op is held against it; the others are drawn on request"""


class ScopeUse(msgspec.Struct):
    """How well a part of a profile used its devices; times are of all of them together."""

    time_us: float
    busy_us: float
    idle_us: float
    busy_pct: float | None
    mfu_pct: float | None
    hfu_pct: float | None
    at_least: bool
    """MFU and HFU are lower limits: less than 95 % of GEMM and attention time has FLOPs"""
    mbu_pct: float | None
    """of the steps of decode among it"""


class RooflineRow(msgspec.Struct):
    level: str
    """program, phase, category, module, op or kernel"""
    step: str
    name: str
    category: str | None
    calls: int
    time_us: float
    time_per_unit_us: float | None
    flops: float | None
    model_flops: float | None
    bytes: dict[str, float]
    flops_per_s: float | None
    bytes_per_s: dict[str, float]
    intensity: dict[str, float]
    bytes_by_role: dict[str, dict[str, float]] | None
    bound_by: str | None
    limiter: str | None
    pct_of_peak_flops: float | None
    pct_of_peak_bw: float | None
    pct_of_roof: float | None
    time_bound_us: float | None
    headroom_us: float | None
    dtype: str | None
    flops_from: str
    """trace, shapes, hlo or none"""
    bytes_from: str
    flags: list[str]
    shapes: str | None = None
    op: str | None = None
    """for a kernel row: the op whose shapes gave the work"""
    at_stake_us: float | None = None
    """of the headroom, time in which nothing else ran on the device"""
    module_path: str | None = None
    """for a module row: the modules around it, from the outermost"""


class Coverage(msgspec.Struct):
    """Shares of the device's busy time (percent): work with FLOPs, with bytes only, with neither."""

    modelled_pct: float | None
    bytes_only_pct: float | None
    unknown_pct: float | None
    unknown_by: dict[str, float] = {}
    """what the unknown hangs on, most first: shares of busy time by `costed.ORIGINS`"""
    missing: str | None = None
    """what was not recorded that would tell it; None: the profile has what it can have"""


class Roofline(msgspec.Struct):
    coverage: Coverage
    roofs: list[Roof]
    program: list[RooflineRow]
    steps: list[RooflineRow]
    ops: list[RooflineRow]
