"""Does the profiler itself stand in the way?"""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.intervals import covered, union
from roofterm.results import Finding

LEAST_PCT = 1.0


@rule(
    "profiler-overhead",
    question="How much of the idle time is the profiler's own?",
    definition="""
    Time of the profiler's own slices within the step (Activity Buffer Request, Instrumentation, Resource, Command Buffer
    Full), from 1 % of it; at stake is what the device idles meanwhile. No other finding counts that idle time. The
    synchronisation by which the profiler flushes its buffers at the end of the window is excluded from the verdict too.
    """,
    source="torch.profiler guide (Activity Buffer Requests; synchronisation at the end)",
)
def profiler_overhead(e: Evidence) -> Finding | None:
    rows = e.causes.slices(Cause.PROFILER)
    if rows.size == 0:
        return None
    start, end = e.study.start_ps[rows], e.study.start_ps[rows] + e.study.dur_ps[rows]
    own = union(start, end)
    spans = e.spans
    within = int(np.sum(covered(own, spans["start_ps"].to_numpy(), spans["end_ps"].to_numpy())))
    if e.pct(within) < LEAST_PCT:
        return None
    idle = e.host_wait_ps(Cause.PROFILER)
    names = pl.DataFrame({"name": e.profile.slices["name"][pl.Series(rows)], "dur": e.study.dur_ps[rows]})
    names = names.group_by("name").agg(pl.col("dur").sum(), pl.len()).sort("dur", "name", descending=[True, False])
    evidence = {
        "profiler_us": e.mean_us(within),
        "idle_meanwhile_us": e.mean_us(idle),
        "longest": e.text(names["name"][0]),
        "longest_calls": int(names["len"][0]),
    }
    title = f"Profiler overhead: {e.time(within)} is the profiler's own, most of all {e.text(names['name'][0])}"
    advice = (
        "Do not mend the job for it: the other findings leave this time out. Record fewer steps, or give the profiler a warm-up step, "
        "to see less of it."
    )
    return e.finding(title, idle, "idle", evidence, advice, view="timeline", filter="cat:overhead", severity="info")
