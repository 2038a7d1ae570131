"""The host's own time against the device's: is a job overhead-bound or compute-bound, as the torch.profiler guide asks?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from roofterm.analysis.findings.host_causes import Cause
from roofterm.results import HostBalance

if TYPE_CHECKING:
    from roofterm.analysis.findings.evidence import Evidence

WAITING_PCT = 10.0
"""of the steps: from here on the device waits for the host"""

HALF = 0.5

OVERHEAD, COMPUTE, NEITHER = "overhead-bound", "compute-bound", "neither"


def host_balance(e: Evidence) -> HostBalance | None:
    """The balance over the steady steps, or the window where none are marked; None where no device worked.

    Overhead-bound: the host's self time without synchronising calls exceeds the device's busy time, and the device waits for
    the host's dispatch for at least 10 % of the steps, 5 % of them without what blocking calls cause. Compute-bound: not that,
    compute is at least half of the steps, and the device waits for the host for less than 10 % of them. Else neither: it waits
    for input, for peers or for a host that pauses.
    """
    if not e.has_work or e.count == 0:
        return None
    raw_cpu, raw_device = e.raw_totals_us
    waiting = e.host_wait_ps(Cause.INPUT)
    calls = e.waits.group_by("slice").agg(pl.col("start_ps").first(), pl.col("end_ps").first(), pl.col("busy_ps").max())
    return HostBalance(
        per=e.unit,
        host_self_us=e.mean_us(e.host_self_ps),
        device_busy_us=e.mean_us(e.busy_ps),
        host_to_device_ratio=e.host_self_ps / e.busy_ps if e.busy_ps else None,
        self_cpu_us=raw_cpu,
        self_device_us=raw_device,
        raw_ratio=raw_cpu / raw_device if raw_cpu is not None and raw_device else None,
        dispatch_wait_pct=e.pct(e.host_wait_ps(Cause.DISPATCH)),
        reading=None if e.thin or e.lacks_work else _reading(e),
        input_wait_us=e.mean_us(waiting),
        input_wait_pct=100.0 * waiting / e.whole_ps if e.whole_ps else 0.0,
        blocked_us=e.mean_us(int((calls["end_ps"] - calls["start_ps"]).sum())),
        blocked_busy_us=e.mean_us(int(calls["busy_ps"].sum())),
    )


def overhead_ps(e: Evidence) -> int:
    """Idle time of the device while the host dispatches, without what blocking calls cause: what less overhead can win."""
    return e.host_wait_ps(Cause.DISPATCH) - e.won_by_waits_ps


def _reading(e: Evidence) -> str:
    waiting = e.pct(e.host_wait_ps(Cause.DISPATCH))
    if waiting >= WAITING_PCT and e.pct(overhead_ps(e)) >= HALF * WAITING_PCT and e.host_self_ps > e.busy_ps:
        return OVERHEAD
    computes = e.breakdown_ps.get("compute", 0) >= HALF * e.known_ps
    return COMPUTE if computes and e.pct(e.breakdown_ps.get("host_wait", 0)) < WAITING_PCT else NEITHER
