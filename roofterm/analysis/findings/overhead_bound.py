"""Is the job bound by the host: by Python, operators and launches?"""

from __future__ import annotations

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.host_balance import OVERHEAD, overhead_ps
from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.steps import US
from roofterm.results import Finding
from roofterm.text.units import duration_us
from roofterm_parsers.profile import Kind


@rule(
    "overhead-bound",
    question="Does the device wait for Python, operators and launches?",
    definition="""
    Host self time without synchronising calls exceeds the device's busy time over the steady steps, and the device is idle
    for at least 10 % of them while the host neither loads input, compiles, starts up, allocates, copies, waits nor pauses
    (a millisecond and more without a launch: host-pauses). At stake is that idle time, without what blocking-syncs claims
    of it. The raw ratio of the torch.profiler guide, Self CPU time total to Self CUDA time total, stands beside it.
    """,
    source="torch.profiler guide (overhead-bound or compute-bound); triage question 7",
    host_bound=True,
)
def overhead_bound(e: Evidence) -> Finding | None:
    balance = e.host_balance
    if balance is None or balance.reading != OVERHEAD:
        return None
    launches = e.launches.height / e.count
    mean_work_us = int(e.pieces["dur_ps"].sum()) / e.pieces.height / US
    by_kind = {name: e.mean_us(e.host_self_of(*kinds)) for name, kinds in _KINDS.items()}
    evidence = {
        "idle_while_dispatching_us": e.mean_us(e.host_wait_ps(Cause.DISPATCH)),
        "host_self_us": balance.host_self_us,
        "device_busy_us": balance.device_busy_us,
        "host_to_device_ratio": balance.host_to_device_ratio,
        "raw_self_cpu_us": balance.self_cpu_us,
        "raw_self_device_us": balance.self_device_us,
        "raw_ratio": balance.raw_ratio,
        "launches": launches,
        "mean_work_us": mean_work_us,
        **{f"{name}_self_us": value for name, value in by_kind.items()},
    }
    python = by_kind["python"] > by_kind["op"] + by_kind["call"]
    what = "Python" if python else "operators and launches"
    title = f"Overhead-bound: the device idles while the host runs {what}"
    how = (
        'torch.compile (mode="reduce-overhead") or CUDA/HIP graphs'
        if e.study.is_torch
        else "one jit over the whole step, lax.scan for loops"
    )
    advice = (
        f"Give each launch more work or launch less: a larger batch, {how}; {launches:,.0f} launches start work of "
        f"{duration_us(mean_work_us)} on average."
    )
    return e.finding(title, overhead_ps(e), "idle", evidence, advice, view="timeline", filter="")


_KINDS = {
    "python": (Kind.PYTHON,),
    "op": (Kind.OP,),
    "call": (Kind.RUNTIME,),
    "annotation": (Kind.ANNOTATION, Kind.STEP),
}
