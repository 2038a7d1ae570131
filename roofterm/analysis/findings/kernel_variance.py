"""Does the same kernel take different times from step to step?"""

from __future__ import annotations

import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding
from roofterm_parsers.profile import Kind

LEAST_PCT = 3.0
LEAST_STEPS = 3
VARIES = 1.1


@rule(
    "kernel-variance",
    question="Does a kernel take longer in one step than in another?",
    definition="""
    Kernels (collectives apart) of one name, grid and block that run equally often in each of at least three steps of a
    device. At stake is what their time alone exceeds the median of the steps, where a step takes more than 1.1 medians for
    a kernel and waits for it: clocks, heat, power, or another job on the device. From 3 % of the step.
    """,
    source="torch.profiler guide (runtime variance)",
    of_device=True,
)
def kernel_variance(e: Evidence) -> Finding | None:
    if not e.in_steps:
        return None
    steps = e.spans.group_by("device").agg(pl.col("step").n_unique().alias("steps"))
    rows = e.pieces.filter((pl.col("kind") == int(Kind.KERNEL)) & (pl.col("category") != int(Category.COMMUNICATION))).drop_nulls("step")
    rows = rows.filter(pl.col("step").is_in(e.spans["step"].drop_nulls().implode()))
    # A name that takes less than a thousandth of the steps cannot vary by a share of them that matters.
    rows = rows.filter(pl.col("exclusive_ps").sum().over("name") >= e.whole_ps // 1000)
    key = ["device", "name", "grid_x", "grid_y", "grid_z", "block_x"]
    totals = rows.group_by([*key, "step"]).agg(pl.len().alias("calls"), pl.col("exclusive_ps", "critical_ps").sum())
    whole = totals.group_by(key).agg(
        pl.col("calls").n_unique().alias("counts"),
        pl.col("step").n_unique().alias("seen"),
        pl.col("exclusive_ps").median().alias("median_ps"),
    )
    whole = whole.join(steps, on="device", how="inner").filter(
        (pl.col("counts") == 1) & (pl.col("seen") == pl.col("steps")) & (pl.col("steps") >= LEAST_STEPS)
    )
    totals = totals.join(whole, on=key, how="inner", nulls_equal=True)
    slow = totals.filter(pl.col("exclusive_ps") > VARIES * pl.col("median_ps"))
    slow = slow.with_columns(more_ps=(pl.col("exclusive_ps") - pl.col("median_ps")) * pl.col("critical_ps") / pl.col("exclusive_ps"))
    stake = float(slow["more_ps"].sum())
    if slow.height == 0 or e.pct(stake) < LEAST_PCT:
        return None
    names = slow.group_by("name").agg(pl.col("more_ps").sum()).sort("more_ps", "name", descending=[True, False])
    by_step = slow.group_by("step").agg(pl.col("more_ps").sum()).sort("more_ps", descending=True)
    step = str(e.profile.steps["name"][int(by_step["step"][0])])
    evidence = {
        "kernels": names.height,
        "beyond_median_us": e.mean_us(stake),
        "slowest_step": step,
        "slowest_step_more_us": float(by_step["more_ps"][0]) / 1e6,
        "worst": e.text(names["name"][0]),
        "worst_more_us": e.mean_us(float(names["more_ps"][0])),
    }
    title = f"Kernels vary over the steps, most of all {e.short(names['name'][0])} in {step}"
    advice = (
        "Watch clocks, temperature and power while it runs (nvidia-smi -q -d CLOCK,PERFORMANCE; rocm-smi), lock the clocks for a "
        "comparison, and look for other jobs on the device."
    )
    return e.finding(title, stake, "compute", evidence, advice, view="steps", filter="")
