"""Flags of one row of the roofline, told step by step: what those of many rows at once must equal."""

from __future__ import annotations

from roofterm.analysis.bounds import Caches
from roofterm.analysis.host_work import CPU
from roofterm.analysis.op_roles import ROLE_COLUMNS
from roofterm.results import DeviceInfo


def plain_flags(row: dict[str, object], device: DeviceInfo | None, caches: Caches) -> list[str]:
    """What a reader must know of a row: `above-roof` with the causes that fit, bounds instead of figures, cache, recomputation."""
    found = []
    if get_estimate := _text(row.get("estimate")):
        found.append(f"estimate: {get_estimate}")
    largest = _number(row.get("largest_bytes"))
    cacheable = row.get("bound_by") == "hbm" and largest is not None and largest > 0
    if cacheable and largest is not None and caches.l2 is not None and largest <= caches.l2:
        found.append("cache: the working set fits the L2")
    in_cache = cacheable and largest is not None and caches.last is not None and largest <= caches.last
    rate_s, time_ps = _number(row.get("rate_s")), _number(row.get("time_ps"))
    if rate_s and time_ps and rate_s * 1e12 < 0.999 * time_ps:
        found.append(f"partial: costs are known for {100 * rate_s * 1e12 / time_ps:.0f} % of this time; rates and shares are of that part")
    moved, of_roles = _number(row.get("hbm_bytes")), [_number(row.get(column)) for column in ROLE_COLUMNS]
    named = sum(size for size in of_roles if size is not None)
    if moved and any(size is not None for size in of_roles) and named < 0.995 * moved:
        found.append(f"roles: known for {100 * named / moved:.0f} % of the bytes")
    if row.get("recomputed") is True:
        found.append("recomputed: forward work done again in the backward pass")
    if device is not None and device.partition is not None:
        found.append(f"scaled: {device.partition}")
    moved_ps = _number(row.get("rate_ps"))
    if moved_ps and time_ps is not None and row.get("rate_s") is None and row.get("seconds") is None and moved_ps > 1.001 * time_ps:
        found.append(f"asynchronous: rates are of whole transfers, {moved_ps / 1e6:,.1f} us in all; this op waits for their end")
    above, calls = int(_number(row.get("above")) or 0), int(_number(row.get("calls")) or 0)
    if above:
        worst = _number(row.get("worst_pct"))
        some = f"{above} of {calls} calls, " if above < calls else ""
        found.insert(0, f"above-roof: {some}" + "; ".join(_causes(row, device, in_cache, worst)))
    return found


def _causes(row: dict[str, object], device: DeviceInfo | None, in_cache: bool, worst: float | None) -> list[str]:
    """Causes that fit; `worst`: the share of the roof of the call farthest above, None: it took no time at all."""
    share = float("inf") if worst is None else worst
    causes = []
    if row.get("above_clock") == 0:
        return ["the clock of this file is too coarse for so short a time"]
    if str(row.get("text")).partition(".")[0].endswith("-done"):
        return ["an asynchronous op: this is the wait for its end, the transfer began before"]
    if in_cache:
        causes.append("operands came from a cache, not from memory")
    estimate = _text(row.get("estimate")) or ""
    if "upper bound" in estimate or "both counted" in estimate or "all pairs" in estimate or "as many as" in estimate:
        causes.append(f"an estimate: {estimate}")
    if row.get("bound_by") == "compute":
        if share > 300:
            causes.append("the time is too short for this work: a lost or asynchronous end")
        elif row.get("fast_algorithm"):
            causes.append("Winograd or FFT kernels do fewer products than the direct form counts")
        else:
            causes.append("a sparse or narrower type than the recorded one, or work that was skipped")
    elif device is not None and device.kind == CPU and not in_cache:
        causes.append("operands were in a cache of the CPU, not in memory")
    elif share > 300 and not in_cache:
        causes.append("the time is too short for these bytes: an asynchronous transfer, or most of them were not touched")
    elif not in_cache:
        causes.append("part of the operands was still in a cache, or was not touched")
    if device is not None and device.roofs_from == "derived":
        causes.append("the roof itself is derived")
    return causes


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str) and value else None
