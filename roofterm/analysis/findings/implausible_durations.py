"""Are there durations that cannot be so?"""

from __future__ import annotations

import numpy as np

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding
from roofterm.text.units import count, duration_us, pct
from roofterm_parsers.profile import ROOT, TrackKind

COVERED_PS = 100_000_000
LEAST_COVERED = 2


@rule(
    "implausible-durations",
    question="Are the kernels' durations to be believed?",
    definition="""
    Kernels that cover at least two later kernels of their own stream for more than 100 us: work of one stream does not
    overlap but for dependent launches, so their ends are wrong (ROCm writes durations of seconds now and then). No time is
    at stake; busy time and totals are too high by up to what is covered.
    """,
    source="TraceLens issue 669, Hyperloom issue 1116",
)
def implausible_durations(e: Evidence) -> Finding | None:
    study, slices = e.study, e.profile.slices
    if any(kind == "tpu" for kind in e.profile.devices["kind"].to_list()):
        return None
    parent = slices["parent"].to_numpy()
    on_stream = (e.profile.tracks["kind"] == int(TrackKind.DEVICE)).to_numpy()[slices["track"].to_numpy()]
    inside = np.flatnonzero((parent != ROOT) & on_stream)
    if inside.size == 0:
        return None
    over, covered = np.unique(parent[inside], return_counts=True)
    first = np.full(parent.size, np.iinfo(np.int64).max)
    np.minimum.at(first, parent[inside], study.start_ps[inside])
    overhang = study.start_ps[over] + study.dur_ps[over] - first[over]
    rows = over[(overhang > COVERED_PS) & (covered >= LEAST_COVERED)]
    if rows.size == 0:
        return None
    doubtful = int(np.sum(overhang[(overhang > COVERED_PS) & (covered >= LEAST_COVERED)]))
    longest = int(rows[np.argmax(study.dur_ps[rows])])
    busy = sum(line.busy.length for line in e.lines.values())
    share = 100.0 * min(doubtful, busy) / busy if busy else None
    evidence = {
        "kernels": int(rows.size),
        "doubtful_us": doubtful / 1e6,
        "doubtful_pct_of_busy": share,
        "longest": e.text(slices["name"][longest]),
        "longest_us": int(study.dur_ps[longest]) / 1e6,
    }
    title = (
        f"Implausible durations: {count(int(rows.size))} kernels cover later ones of their stream, {duration_us(doubtful / 1e6)} in "
        f"doubt ({pct(share)} of busy time)"
    )
    advice = (
        "Do not trust totals of these kernels or the busy time around them; record again with a newer profiler (rocprofiler-sdk), or "
        "leave them out with a filter."
    )
    severity = "high" if share is not None and share >= 10 else "medium"
    return e.finding(
        title, None, "", evidence, advice, view="timeline", filter=f"dur>={study.dur_ps[rows].min() / 1e6:.0f}us", severity=severity
    )
