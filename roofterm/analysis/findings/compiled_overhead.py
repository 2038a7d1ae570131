"""Do compiled regions take the host longer than the device?"""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.findings.compiled_regions import idle_within, merged, regions
from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.intervals import covered
from roofterm.results import Finding

LEAST_PCT = 5.0
LEAST_REGIONS = 2


@rule(
    "compiled-overhead",
    question="Does compiled code cost the host more than the device?",
    definition="""
    The host is longer in compiled regions than the device needs for what they launch: the way through Dynamo, AOTAutograd
    and Inductor costs more than fusion saves. At stake is the device's idle time within the regions while the host
    dispatches; a part of what overhead-bound is about. From two regions and 5 % of the step.
    """,
    source="torch.profiler guide (overhead of torch.compile for small operations)",
    host_bound=True,
)
def compiled_overhead(e: Evidence) -> Finding | None:
    found = regions(e)
    if found.slice.size < LEAST_REGIONS or not e.has_work:
        return None
    where = merged(e, found.slice)
    launch = e.pieces["launch"].fill_null(0).to_numpy()
    inside = (covered(where, e.study.start_ps[launch], e.study.start_ps[launch] + 1) > 0) & e.pieces["launch"].is_not_null().to_numpy()
    device = int(e.pieces["inside_ps"].filter(pl.Series(inside)).sum())
    host = where.length
    stake = idle_within(e, where)
    if host <= device or e.pct(stake) < LEAST_PCT:
        return None
    evidence = {
        "regions": found.slice.size / e.count,
        "host_us": e.mean_us(host),
        "device_us": e.mean_us(device),
        "idle_meanwhile_us": e.mean_us(stake),
        "kernels": int(np.sum(inside)) / e.count,
    }
    title = f"Compiled regions cost the host {e.time(host)} for {e.time(device)} of device work"
    advice = 'Compile with mode="reduce-overhead" (graphs), join the regions, or leave so small a function eager.'
    return e.finding(title, stake, "idle", evidence, advice, view="timeline", filter='name:"Torch-Compiled Region"')
