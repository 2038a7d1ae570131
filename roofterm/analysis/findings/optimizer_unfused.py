"""Does the optimizer update its parameters one by one, or in many passes?"""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.intervals import NONE, covered
from roofterm.results import Finding
from roofterm_parsers.profile import Kind

LEAST_PCT = 1.0
LEAST_KERNELS = 20
PASSES_SAVED = 1 / 3
"""Of the device time of unfused updates at least a third goes into passes that a fused update does not make: momentum SGD
moves 8 values a parameter instead of 5, Adam 18 instead of 7."""


@rule(
    "optimizer-unfused",
    question="Is the optimizer fused?",
    definition="""
    Kernels launched from an optimizer's step (Optimizer.step#...) that are no fused update: a loop over the parameters (no
    multi_tensor_apply), or foreach. At stake is idle time directly before kernels of a loop while the host dispatches or
    the launch is under way, and a third of the time in which the kernels run alone and the step waits for them: a fused
    update moves at most two thirds of the bytes. It overlaps with overhead-bound and many-small-kernels. From 20 kernels
    and 1 % of the step.
    """,
    source="torch pattern matcher (Optimizer Single Tensor); reference table of bytes (fused Adam 7 values a parameter)",
)
def optimizer_unfused(e: Evidence) -> Finding | None:
    if not e.optimizer_times or e.lacks_work:
        return None
    rows = e.pieces.filter((pl.col("kind") == int(Kind.KERNEL)) & pl.Series(e.in_optimizer(e.pieces)))
    texts = e.profile.names["text"][rows["name"]]
    fused = texts.str.contains(r"(?i)fused|^triton_")
    rows = rows.with_columns(foreach=texts.str.contains("multi_tensor_apply")).filter(~fused)
    if rows.height < LEAST_KERNELS * e.count:
        return None
    loop = rows.filter(~pl.col("foreach"))
    idle = _idle_before(e, loop)
    saved = PASSES_SAVED * float(rows["critical_ps"].sum())
    if e.pct(idle + saved) < LEAST_PCT:
        return None
    looping = loop.height > rows.height / 2
    evidence = {
        "kernels": rows.height / e.count,
        "foreach_kernels": (rows.height - loop.height) / e.count,
        "kernels_us": e.mean_us(int(rows["inside_ps"].sum())),
        "idle_before_us": e.mean_us(idle),
        "passes_saved_us": e.mean_us(saved),
    }
    how = "one parameter after the other" if looping else "in foreach passes"
    title = f"Unfused optimizer: {rows.height / e.count:,.0f} kernels update the parameters {how}"
    advice = "Construct the optimizer with fused=True (foreach=True where it has no fused form), or compile its step."
    return e.finding(title, idle + saved, "idle and compute", evidence, advice, view="timeline", filter='name:"Optimizer.step"')


def _idle_before(e: Evidence, loop: pl.DataFrame) -> int:
    """Idle time directly before some pieces that the host's dispatch or the launch explains."""
    mine = e.gaps.filter(pl.col("after").is_in(loop["slice"].implode()))
    total = int(mine["kernel_gap_ps"].sum())
    for (device,), group in mine.group_by("device"):
        dispatch = e.host_wait.get(Cause.DISPATCH, {}).get(int(device), NONE)
        start = group["start_ps"].to_numpy()
        total += int(np.sum(covered(dispatch, start, start + group["host_wait_ps"].fill_null(0).to_numpy())))
    return total
