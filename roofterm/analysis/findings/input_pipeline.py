"""Does XProf's input pipeline analysis call the program input-bound?"""

from __future__ import annotations

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.input_bound import input_bound
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding
from roofterm.text.units import pct

_SEVERITY = {"high": "high", "moderate": "medium", "potential": "info"}


@rule(
    "input-pipeline",
    question="Does XProf's input pipeline analysis call the program input-bound?",
    definition="""
    XProf's verdict on an XPlane profile, over its own steps: waiting for input (host waits for the iterator, copies to the device; on a
    TPU infeed) takes 20 % of their time (highly), 5 % (moderately), or no event explains 3 % (perhaps). Silent where input-bound
    already says what the device waits for. What no event explains is at stake nowhere: it may be Python or unrecorded work as well.
    """,
    source="XProf, op_stats_to_input_pipeline_analysis.cc",
)
def input_pipeline(e: Evidence) -> Finding | None:
    xla = e.study.xla_overview()
    pipeline = xla.input_pipeline if xla is not None else None
    if pipeline is None or pipeline.verdict not in _SEVERITY or input_bound(e) is not None:
        return None
    waiting = pipeline.verdict != "potential"
    stake = pipeline.input_pct / 100 * e.whole_ps if waiting and pipeline.input_pct is not None else None
    evidence = {
        "verdict": pipeline.verdict,
        "steps_by_xprof": pipeline.steps,
        "input_pct": pipeline.input_pct,
        "unexplained_pct": pipeline.other_pct,
        **{f"host_{name}_us": us for name, us in pipeline.host_input_us.items() if us >= 1e-3},
        "longest": pipeline.ops[0].name if pipeline.ops else None,
    }
    if waiting:
        title = f"Input-bound by XProf: {pct(pipeline.input_pct)} of its steps wait for input"
        advice = _PREPARE.get(_most(pipeline.host_input_us), _PREPARE[""])
    else:
        title = f"Perhaps input-bound, says XProf: no event explains {pct(pipeline.other_pct)} of its steps"
        advice = (
            "See in the timeline what the host does in the gaps; annotate the loading of a batch (jax.profiler.TraceAnnotation), so that "
            "it can be told from Python."
        )
    return e.finding(title, stake, "idle", evidence, advice, view="timeline", severity=_SEVERITY[pipeline.verdict])


_PREPARE = {
    "enqueue": "Send larger chunks less often, and begin before they are needed: keep two batches on their way to the device.",
    "demanded_file_read": "Read ahead: tf.data prefetch and interleave, or reader processes of a loader.",
    "advanced_file_read": "Read faster: more parallel readers (interleave cycle_length), larger read buffers, local files.",
    "preprocessing": "Prepare in parallel (map with num_parallel_calls), on the device, or once and for all on disk.",
    "": "Prepare the input ahead: more loader workers with a deeper prefetch, heavy transforms on the device or done once and stored.",
}
"""What helps against what the host's input time is spent on most"""


def _most(host_us: dict[str, float]) -> str:
    name = max(host_us, key=lambda part: host_us[part], default="")
    return name if host_us.get(name, 0.0) > 0 else ""
