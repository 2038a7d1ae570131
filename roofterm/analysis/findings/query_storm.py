"""Does the host ask the driver the same again and again?"""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.intervals import both, union
from roofterm.results import Finding
from roofterm_parsers.profile import HOST_CALL_KINDS

QUERY = (
    r"^(cuda|hip)(GetDeviceProperties\w*|DeviceGetAttribute|PointerGetAttributes?|FuncGetAttributes|GetDeviceCount|DriverGetVersion|"
    r"StreamGetCaptureInfo\w*)$"
)
LEAST_PCT = 1.0
LEAST_CALLS = 200


@rule(
    "query-storm",
    question="Does the host query the driver over and over?",
    definition="""
    At least 200 calls a step that ask the driver for properties (hipGetDeviceProperties, cudaDeviceGetAttribute and the
    like); at stake is the device's idle time meanwhile. From 1 % of the step. An occupancy query before a launch is no
    fault.
    """,
    source="reference list of findings (hipGetDeviceProperties storms)",
    host_bound=True,
)
def query_storm(e: Evidence) -> Finding | None:
    names = e.profile.names["text"].str.contains(QUERY).to_numpy()
    calls = np.isin(e.study.kind, [int(kind) for kind in HOST_CALL_KINDS]) & e.host_rows
    rows = np.flatnonzero(calls & names[e.profile.slices["name"].to_numpy()]) if names.any() else np.zeros(0, np.int64)
    if rows.size < LEAST_CALLS * e.count:
        return None
    asking = union(e.study.start_ps[rows], e.study.start_ps[rows] + e.study.dur_ps[rows])
    stake = sum(both(idle, asking).length for idle in e.host_wait.get(Cause.DISPATCH, {}).values())
    if e.pct(stake) < LEAST_PCT:
        return None
    by_name = pl.DataFrame({"name": e.profile.slices["name"][pl.Series(rows)]}).group_by("name").agg(pl.len()).sort("len", descending=True)
    worst = e.text(by_name["name"][0])
    evidence = {
        "calls": rows.size / e.count,
        "calls_us": e.mean_us(asking.length),
        "idle_meanwhile_us": e.mean_us(stake),
        "most_frequent": worst,
    }
    title = f"Driver queries: {rows.size / e.count:,.0f} calls of {worst} and its like"
    advice = "Ask once and keep the answer: update the library that asks before each launch, or report it there."
    return e.finding(title, stake, "idle", evidence, advice, view="ops", filter=f"name:{worst}")
