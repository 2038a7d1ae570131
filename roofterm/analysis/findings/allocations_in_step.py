"""Does the step ask the driver for memory?"""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding

LEAST_PCT = 1.0


@rule(
    "allocations-in-step",
    question="Does the allocator go to the driver within the steady steps?",
    definition="""
    Idle time of the device while the host allocates or frees memory with the driver (cudaMalloc, cudaFree, cuMemCreate and
    their HIP likes) inside the steady steps: a caching allocator does so only while it grows or when it runs short. From 1
    % of the step. Before the steady steps, and where none are marked, it belongs to cold-start.
    """,
    source="triage question 19; PyTorch notes on CUDA memory management",
)
def allocations_in_step(e: Evidence) -> Finding | None:
    stake = e.host_wait_ps(Cause.ALLOCATION)
    if not e.in_steps or e.thin or e.pct(stake) < LEAST_PCT:
        return None
    rows = e.causes.slices(Cause.ALLOCATION)
    rows = rows[e.host_rows[rows]]
    calls = pl.DataFrame({"name": e.profile.slices["name"][pl.Series(rows)], "dur": e.study.dur_ps[rows]})
    names = calls.group_by("name").agg(pl.col("dur").sum(), pl.len()).sort("dur", "name", descending=[True, False])
    worst = e.text(names["name"][0])
    evidence = {
        "calls": rows.size / e.count,
        "calls_us": e.mean_us(int(np.sum(e.study.dur_ps[rows]))),
        "idle_meanwhile_us": e.mean_us(stake),
        "worst_call": worst,
        "worst_call_us": e.mean_us(int(names["dur"][0])),
    }
    title = f"Allocations inside the step: {rows.size / e.count:,.0f} calls, most of all {worst}"
    advice = (
        "Keep the caching allocator fed: shapes alike from step to step, no torch.cuda.empty_cache() in the loop, "
        "expandable_segments:True, some memory left free."
    )
    return e.finding(title, stake, "idle", evidence, advice, view="timeline", filter=f"name:{worst}")
