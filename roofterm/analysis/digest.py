"""The steps in one record: how long a step takes, how steady it is and how busy the device is, over the steady ones."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec

from roofterm.results import StepRow, Summary


class StepDigest(msgspec.Struct, frozen=True):
    """Figures over the steps spoken of: the steady ones, else the complete ones, else all. Times in us, means unless named."""

    steps: int
    """step rows of the profile"""
    counted: int
    """steps spoken of"""
    counted_as: str
    """steady, complete or incomplete"""
    p50_us: float | None
    p99_us: float | None
    slowest: str | None
    slowest_us: float | None
    busy_pct: float | None
    compute_busy_pct: float | None
    launches: float | None
    comm_us: float | None
    mfu_pct: float | None


def digest(rows: Sequence[StepRow]) -> StepDigest:
    """The digest of all step rows of a profile (one row a step and rank)."""
    counted, counted_as = steps_counted(rows)
    lengths = [row.dur_us for row in counted]
    slowest = max(counted, key=lambda row: row.dur_us, default=None)
    return StepDigest(
        steps=len(rows),
        counted=len(counted),
        counted_as=counted_as,
        p50_us=_quantile(lengths, 0.5),
        p99_us=_quantile(lengths, 0.99),
        slowest=slowest.name if slowest else None,
        slowest_us=slowest.dur_us if slowest else None,
        busy_pct=_share(counted, "busy_pct", lengths),
        compute_busy_pct=_share(counted, "compute_busy_pct", lengths),
        launches=_mean([row.launches for row in counted]),
        comm_us=_mean([row.comm_us for row in counted]),
        mfu_pct=_share(counted, "mfu_pct", lengths),
    )


def whole_breakdown(summary: Summary) -> dict[str, float] | None:
    """Time (us) of each part of the file's span over all devices, by `breakdown.PARTS`; None where no device worked.

    Busy time is the union of compute, communication and copies, so what is neither of the first two is exposed copies.
    """
    window = summary.span_us * summary.devices
    if not window or summary.compute_busy_pct is None:
        return None
    compute = summary.compute_busy_pct / 100 * window
    exposed_copy = max(summary.gpu_busy_us - compute - summary.exposed_comm_us, 0.0)
    return {
        "compute": compute,
        "exposed_comm": summary.exposed_comm_us,
        "exposed_copy": exposed_copy,
        "host_wait": 0.0,
        "kernel_gap": 0.0,
        "idle_other": max(window - summary.gpu_busy_us, 0.0),
    }


def steps_counted(rows: Sequence[StepRow]) -> tuple[list[StepRow], str]:
    """The steps that averages speak of: the steady ones, else the complete ones, else all; and which it was."""
    for name in ("steady", "complete"):
        chosen = [row for row in rows if getattr(row, name)]
        if chosen:
            return chosen, name
    return list(rows), "incomplete"


def _quantile(values: Sequence[float], share: float) -> float | None:
    """The value below which a share of them lies, linear between neighbours as numpy's `quantile`; None without any."""
    if not values:
        return None
    import numpy as np  # only here: the record itself is wanted before numpy is there

    return float(np.quantile(values, share))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _share(rows: Sequence[StepRow], name: str, lengths: Sequence[float]) -> float | None:
    """A share over several steps: weighted by their lengths, so that it is the share of their whole time."""
    values = [getattr(row, name) for row in rows]
    pairs = [(value, weight) for value, weight in zip(values, lengths, strict=True) if value is not None]
    whole = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / whole if whole else None
