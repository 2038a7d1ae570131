"""Does the host do something else than launching, for long stretches?"""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.gaps import doing
from roofterm.results import Finding
from roofterm_parsers.profile import Kind

LEAST_PCT = 2.0
UNRECORDED = "code that was not recorded"


@rule(
    "host-pauses",
    question="What are the longest waits of the device for the host?",
    definition="""
    Idle time of the device in stretches of a millisecond and more during which the host launches nothing and does none of
    what has a finding of its own (input, compilation, start-up, allocation, copies, waiting). What the host did in them is
    named: the innermost slice that covers most of each. From 2 % of the step.
    """,
    source="triage question 17; Nsight Systems rule gpu_gaps",
    host_bound=True,
)
def host_pauses(e: Evidence) -> Finding | None:
    stake = e.host_wait_ps(Cause.PAUSE)
    if e.thin or e.lacks_work or e.pct(stake) < LEAST_PCT:
        return None
    did = _what_the_host_did(e)
    top = did.row(0, named=True)
    known = top["name"] is not None
    name = e.text(top["name"]) if known else UNRECORDED
    longest = int(did["longest_ps"].max())  # type: ignore[arg-type]
    evidence = {
        "pauses": int(did["len"].sum()) / e.count,
        "pauses_us": e.mean_us(stake),
        "longest_us": longest / 1e6,
        "longest_doing": name,
        "longest_doing_us": e.mean_us(top["paused_ps"]),
        "longest_doing_times": top["len"] / e.count,
    }
    title = f"Host pauses: the device waits for stretches of 1 ms and more, most of all in {name}"
    advice = (
        f"Record {'with the Python tracer (python_tracer_level=1)' if e.is_xla else 'with_stack=True'} to see what the host does there."
        if top["name"] is None
        else f"Take {name} off the way between launches: do it in a thread or less often, before the step, or while the device works."
    )
    return e.finding(
        title,
        stake,
        "idle",
        evidence,
        advice,
        view="timeline",
        filter=f'name:"{name.rsplit("/", 1)[-1]}"' if top["name"] is not None else "",
    )


def _what_the_host_did(e: Evidence) -> pl.DataFrame:
    """Pauses by the name of the host slice that covers most of each: name, len, paused_ps, longest_ps."""
    parts = []
    for device, pauses in e.host_wait[Cause.PAUSE].items():
        gaps = e.gaps.filter((pl.col("device") == device) & pl.col("track").is_not_null()).sort("start_ps")
        at = np.searchsorted(gaps["start_ps"].to_numpy(), pauses.start, side="right") - 1
        source = e.profile.devices["source"][pl.repeat(device, at.size, dtype=pl.UInt32, eager=True)]
        host = doing(e.study, gaps["track"][pl.Series(np.maximum(at, 0))], source, pauses.start, pauses.end)
        # Under nothing but the step's own mark the host runs Python that was not recorded.
        steps = e.profile.slices["kind"][host] == int(Kind.STEP)
        named = e.profile.slices["name"][host].set(steps.fill_null(False), None)
        parts.append(pl.DataFrame({"name": named, "paused_ps": pauses.end - pauses.start}))
    rows = pl.concat(parts)
    grouped = rows.group_by("name").agg(pl.len(), pl.col("paused_ps").sum(), longest_ps=pl.col("paused_ps").max())
    return grouped.sort("paused_ps", "name", descending=[True, False])
