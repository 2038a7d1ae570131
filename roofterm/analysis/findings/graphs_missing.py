"""Does decode run without CUDA or HIP graphs?"""

from __future__ import annotations

import numpy as np

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.intervals import both, covered, union
from roofterm.results import Finding
from roofterm_parsers.profile import Kind

DECODE = r"(?i)(_|\b)generation_[1-9]|\bdecode\b|\[DECODE"
CAPTURE = r"(?i)capture|warm_?up"
LEAST_PCT = 5.0
LEAST_LAUNCHES = 30


@rule(
    "graphs-missing-in-decode",
    question="Is decode launched kernel by kernel?",
    definition="""
    Iterations that an annotation calls decode (vLLM's ..._generation_N, SGLang's DECODE, or the word) launch at least 30
    times each and none of it by a graph. At stake is the device's idle time in them while the host dispatches. From 5 % of
    the step; a part of what overhead-bound is about.
    """,
    source="triage questions 18 and 20",
    host_bound=True,
)
def graphs_missing_in_decode(e: Evidence) -> Finding | None:
    names = e.profile.names["text"]
    decode = (names.str.contains(DECODE) & ~names.str.contains(CAPTURE)).to_numpy()
    if not decode.any() or not e.has_work:
        return None
    rows = np.flatnonzero(decode[e.profile.slices["name"].to_numpy()] & (e.study.kind == int(Kind.ANNOTATION)) & e.host_rows)
    if rows.size == 0:
        return None
    iterations = union(e.study.start_ps[rows], e.study.start_ps[rows] + e.study.dur_ps[rows])
    calls = e.launches["slice"].to_numpy()
    inside = covered(iterations, e.study.start_ps[calls], e.study.start_ps[calls] + 1) > 0
    graphs = names.str.contains("GraphLaunch").to_numpy()[e.profile.slices["name"].to_numpy()[calls]]
    count = iterations.start.size
    if (inside & graphs).any() or inside.sum() < LEAST_LAUNCHES * count:
        return None
    stake = sum(both(idle, iterations).length for idle in e.host_wait.get(Cause.DISPATCH, {}).values())
    if e.pct(stake) < LEAST_PCT:
        return None
    evidence = {
        "iterations": count / e.count,
        "launches_in_them": int(inside.sum()) / count,
        "idle_us": e.mean_us(stake),
        "annotation": e.text(int(e.profile.slices["name"][int(rows[0])])),
    }
    title = f"Decode without graphs: {int(inside.sum()) / count:,.0f} launches an iteration"
    advice = (
        "Capture decode in CUDA/HIP graphs (vLLM without --enforce-eager, SGLang without --disable-cuda-graph, torch.compile "
        'mode="reduce-overhead").'
    )
    return e.finding(title, stake, "idle", evidence, advice, view="timeline", filter="cat:runtime")
