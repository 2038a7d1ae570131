"""Does the device wait for input?"""

from __future__ import annotations

import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.findings.evidence import Evidence, of_category
from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.intervals import both
from roofterm.results import Finding

LEAST_PCT = 5.0


@rule(
    "input-bound",
    question="Does the device wait for the data loader or for input prepared on the host?",
    definition="""
    Idle time of the device while the thread that launches its next work is in a data loader
    (enumerate(DataLoader)#....__next__), tf.data, or frames that prepare input; on a TPU the infeed's own time; without
    device work the loader's time on the main thread. Reported from 5 % of the step.
    """,
    source="torch-tb-profiler (DataLoader role and its 5 % rule); triage question 6",
    host_bound=True,
)
def input_bound(e: Evidence) -> Finding | None:
    pool = "idle" if e.has_work else "host"
    stake = e.host_wait_ps(Cause.INPUT) if e.has_work else _on_main_threads(e)
    infeed = int(of_category(e.pieces, Category.HOST_IO)["exclusive_ps"].sum()) if e.has_work else 0
    if infeed > stake:
        stake = infeed
    if e.pct(stake) < LEAST_PCT:
        return None
    rows = e.causes.slices(Cause.INPUT)
    rows = rows[e.host_rows[rows]]
    frame = pl.DataFrame({"name": e.profile.slices["name"][pl.Series(rows)], "dur": e.study.dur_ps[rows]})
    names = frame.group_by("name").agg(pl.col("dur").sum(), pl.len()).sort("dur", "name", descending=[True, False])
    loader = e.text(names["name"][0]) if names.height else "infeed"
    single = "SingleProcess" in loader
    evidence = {
        "waiting_us": e.mean_us(stake),
        "longest": loader,
        "longest_us": e.mean_us(int(names["dur"][0])) if names.height else None,
        "calls": names["len"][0] / e.count if names.height else None,
    }
    advice = (
        "The loader runs in the training process: set num_workers > 0, persistent_workers=True and pin_memory=True, then raise "
        "prefetch_factor."
        if single
        else "Prepare the input ahead: more loader workers with a deeper prefetch, heavy transforms on the device or done once and stored."
    )
    title = f"Input-bound: the device waits for {_short(loader)}"
    return e.finding(title, stake, pool, evidence, advice, view="timeline", filter=f'name:"{_short(loader)}"')


def _on_main_threads(e: Evidence) -> int:
    """Time of the loader on the main threads within the spans, where no device worked."""
    spans = e.covered_spans.get(-1)
    if spans is None:
        return 0
    return sum(both(spans, e.causes.on(track, Cause.INPUT)).length for track in set(e.main_threads.values()))


def _short(name: str) -> str:
    """A loader's or frame's name without its path."""
    return name.rsplit("/", 1)[-1].removeprefix("enumerate(DataLoader)#_").removesuffix(".__next__")
