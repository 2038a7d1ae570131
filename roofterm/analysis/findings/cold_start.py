"""Does the window hold what is paid once: contexts, modules, workspaces, the first call of each library?"""

from __future__ import annotations

import numpy as np

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.host_causes import SLOW_START_PS, Cause
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.findings.whole_file import doing, outside_of_steps, whole_file
from roofterm.analysis.intervals import NONE, Intervals, union
from roofterm.analysis.steps import US
from roofterm.results import Finding

LEAST_PCT = 1.0
LEAST_US = 1000.0


@rule(
    "cold-start",
    question="Does the window hold costs that are paid only once?",
    definition="""
    Time in which the device waits while the host is in calls of start-up that take longer than 100 us (contexts, streams,
    lazy loading of modules, handles of libraries), in the first launch of a kernel or the first call of an op that takes
    longer than 1 ms and five times its later ones, or, outside of the steady steps, in allocations. From 1 ms and 1 % of
    the file; at stake once. An occupancy query before a launch is no fault: it tells of an adaptive kernel (GEMM,
    convolution).
    """,
    source="torch.profiler guide (cold-start overhead)",
)
def cold_start(e: Evidence) -> Finding | None:
    if not e.has_work:
        return None
    file = whole_file(e)
    starting = file.host_wait.get(Cause.START_UP, {})
    allocating = outside_of_steps(e, file.host_wait.get(Cause.ALLOCATION, {}))
    claimed = _together(starting, allocating)
    stake = sum(intervals.length for intervals in claimed.values())
    if stake < LEAST_US * US or 100 * stake < LEAST_PCT * file.length_ps:
        return None
    did = doing(e, file.gaps, claimed)
    worst = e.text(did["name"][0]) or "nothing recorded"
    calls = e.study.dur_ps[e.causes.slices(Cause.START_UP, Cause.ALLOCATION)]
    evidence = {
        "waiting_us": stake / US,
        "start_up_us": sum(i.length for i in starting.values()) / US,
        "allocation_us": sum(i.length for i in allocating.values()) / US,
        "slow_calls": int((calls >= SLOW_START_PS).sum()),
        "longest_call_us": float(np.max(calls)) / US if calls.size else None,
        "worst": worst,
        "worst_us": int(did["idle_ps"][0]) / US,
    }
    title = f"Cold start: the device waits for what is done once, most of all in {worst}"
    advice = (
        "Run a few iterations of the same shapes before the window (schedule(wait=..., warmup=...)); in production warm up before the "
        "first "
        "request, or load modules eagerly (CUDA_MODULE_LOADING=EAGER)."
    )
    return e.finding_once(title, stake, file.length_ps, evidence, advice, view="timeline", filter=f'name:"{worst}"')


def _together(a: dict[int, Intervals], b: dict[int, Intervals]) -> dict[int, Intervals]:
    joined = {}
    for device in a.keys() | b.keys():
        x, y = a.get(device, NONE), b.get(device, NONE)
        joined[device] = union(np.concatenate((x.start, y.start)), np.concatenate((x.end, y.end)))
    return joined
