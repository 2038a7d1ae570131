"""Is time lost in changing the layout of tensors?"""

from __future__ import annotations

import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.findings.evidence import Evidence, of_category
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding

LEAST_PCT = 1.0


@rule(
    "layout-changes",
    question="How much time goes into transposes and changes of the data format?",
    definition="""
    Time in which transposes and changes of data format (nchwToNhwc, batched_transpose, XLA transposes) run alone on the
    device and the step waits for them. From 1 % of the step.
    """,
    source="triage question 21; cuDNN and MIOpen layout conversions",
    of_device=True,
)
def layout_changes(e: Evidence) -> Finding | None:
    rows = of_category(e.pieces, Category.LAYOUT)
    stake = int(rows["critical_ps"].sum())
    if rows.height == 0 or e.pct(stake) < LEAST_PCT:
        return None
    names = rows.group_by("name").agg(pl.col("inside_ps").sum(), pl.len()).sort("inside_ps", "name", descending=[True, False])
    ops = rows.drop_nulls("op_name").group_by("op_name").agg(pl.col("inside_ps").sum()).sort("inside_ps", descending=True)
    evidence = {
        "kernels": rows.height / e.count,
        "kernels_us": e.mean_us(int(rows["inside_ps"].sum())),
        "worst": e.text(names["name"][0]),
        "worst_us": e.mean_us(int(names["inside_ps"][0])),
        "worst_op": e.text(ops["op_name"][0]) if ops.height else None,
    }
    title = f"Layout changes: {rows.height / e.count:,.0f} transposes, most of all {e.short(names['name'][0])}"
    how = (
        "dimension_numbers (NHWC) of convolutions in the order in which the data comes"
        if e.is_xla
        else "model.to(memory_format=torch.channels_last) with inputs alike for convolutions"
    )
    advice = f"Keep one layout through the model: {how}, contiguous operands in the order that the kernels want."
    return e.finding(title, stake, "compute", evidence, advice, view="ops", filter="cat:layout")
