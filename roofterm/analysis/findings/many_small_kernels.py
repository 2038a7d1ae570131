"""Is the device's work cut into many kernels that are shorter than their launch?"""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.gaps import UNEXPLAINED
from roofterm.analysis.intervals import NONE, covered
from roofterm.results import Finding
from roofterm_parsers.profile import Kind

SHORT_PS = 10_000_000
LEAST_PCT = 5.0
LEAST_SHARE = 0.5
LEAST_KERNELS = 50


@rule(
    "many-small-kernels",
    question="Does the time go into the gaps between kernels that are too short?",
    definition="""
    At least half of a step's kernels, and 50 of them, take less than 10 us. At stake is the idle time directly in front of
    such kernels: kernel gaps, and host wait while the host dispatches, without what blocking-syncs claims. It is a part of
    the same idle time that overhead-bound is about and is not to be added to it. From 5 % of the step.
    """,
    source="triage question 7; HTA (launch statistics: short kernels)",
    host_bound=True,
)
def many_small_kernels(e: Evidence) -> Finding | None:
    kernels = e.pieces.filter(pl.col("kind") == int(Kind.KERNEL)) if e.has_work else e.study.work.clear()
    if kernels.height == 0:
        return None
    short = kernels.filter(pl.col("dur_ps") < SHORT_PS)
    if e.lacks_work or short.height < LEAST_KERNELS * e.count or short.height < LEAST_SHARE * kernels.height:
        return None
    mine = e.gaps.filter((pl.col("reason") != UNEXPLAINED) & pl.col("after").is_in(short["slice"].implode()))
    between = int(mine["kernel_gap_ps"].sum())
    waiting = 0
    for (device,), group in mine.group_by("device"):
        dispatch = e.host_wait.get(Cause.DISPATCH, {}).get(int(device), NONE)
        start = group["start_ps"].to_numpy()
        waiting += int(np.sum(covered(dispatch, start, start + group["host_wait_ps"].to_numpy())))
    waiting = max(0, waiting - e.won_by_waits_ps)
    stake = between + waiting
    if e.pct(stake) < LEAST_PCT:
        return None
    worst = short.group_by("name").agg(pl.len()).sort("len", "name", descending=[True, False]).row(0, named=True)
    replayed = _replayed(e, kernels)
    evidence = {
        "kernels": kernels.height / e.count,
        "kernels_under_10_us": short.height / e.count,
        "under_10_us_pct": 100.0 * short.height / kernels.height,
        "short_kernels_us": e.mean_us(int(short["inside_ps"].sum())),
        "kernel_gaps_us": e.mean_us(between),
        "host_wait_us": e.mean_us(waiting),
        "most_frequent": e.text(worst["name"]),
        "most_frequent_calls": worst["len"] / e.count,
        "replayed_by_graph_pct": 100.0 * replayed / kernels.height,
    }
    title = (
        f"Many small kernels: {short.height / e.count:,.0f} of {kernels.height / e.count:,.0f} take less than 10 us, with gaps before them"
    )
    advice = (
        "Merge them: one jit over the whole step, a larger batch, lax.scan for loops; command buffers "
        "(--xla_gpu_enable_command_buffer) shorten the gaps that remain."
        if e.is_xla
        else "Merge them: torch.compile, fused or foreach versions of the ops, a larger batch; capture the step in a CUDA/HIP graph to "
        "shorten the gaps that remain."
    )
    return e.finding(title, stake, "idle", evidence, advice, view="ops", filter="dur<10us")


def _replayed(e: Evidence, kernels: pl.DataFrame) -> int:
    """Kernels that a graph launch started."""
    graphs = e.profile.names["text"].str.contains("GraphLaunch").arg_true()
    return int(e.profile.slices["name"][kernels["launch"]].is_in(graphs.implode()).sum())
