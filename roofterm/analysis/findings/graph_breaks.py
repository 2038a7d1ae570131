"""Does torch.compile break the model into several graphs?"""

from __future__ import annotations

from roofterm.analysis.findings.compiled_regions import idle_within, merged, regions
from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.intervals import union, without
from roofterm.results import Finding
from roofterm_parsers.occurring import occurring

LEAST_PCT = 2.0
FAR_PS = 10_000_000_000
"""Regions further apart (10 ms) are no parts of one call."""


@rule(
    "graph-breaks",
    question="Does the compiled model leave its graphs?",
    definition="""
    Several compiled frames (Torch-Compiled Region: 0/..., 1/..., ...) follow each other within 10 ms: between them Python
    runs the code that broke the graph. At stake is the device's idle time between such regions while the host dispatches.
    From 2 % of the step. Versions above 0 of a frame tell of recompilations.
    """,
    source="torch.profiler guide (torch.compile); reference list of findings",
    host_bound=True,
)
def graph_breaks(e: Evidence) -> Finding | None:
    found = regions(e)
    frames = occurring(found.frame)
    if frames.size < 2:
        return None
    gap = found.start_ps[1:] - found.end_ps[:-1]
    between = (gap > 0) & (gap < FAR_PS) & (found.frame[1:] != found.frame[:-1])
    if not between.any():
        return None
    outside = without(union(found.end_ps[:-1][between], found.start_ps[1:][between]), merged(e, found.slice))
    stake = idle_within(e, outside)
    if e.pct(stake) < LEAST_PCT:
        return None
    evidence = {
        "compiled_frames": int(frames.size),
        "regions": found.slice.size / e.count,
        "breaks": int(between.sum()) / e.count,
        "between_regions_us": e.mean_us(outside.length),
        "idle_between_us": e.mean_us(stake),
        "recompiled_versions": int(found.version.max()),
    }
    title = f"Graph breaks: {frames.size} compiled frames with Python between them"
    advice = (
        "Find what breaks the graph with TORCH_LOGS=graph_breaks (prints, .item(), unsupported calls), move it out or use "
        "fullgraph=True to be told."
    )
    return e.finding(title, stake, "idle", evidence, advice, view="timeline", filter='name:"Torch-Compiled Region"')
