"""Is time lost in copies that are pageable, small or made again and again?"""

from __future__ import annotations

import polars as pl

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding
from roofterm.text.units import bytes_text
from roofterm_parsers.profile import Kind

LEAST_PCT = 1.0
STAGING_PCT = 2.0
"""idle time in copying calls alone is worth a finding from here"""
SMALL_BYTES = 64 * 1024
MANY = 20
"""small copies in a span: fewer are no habit"""
MUCH_PCT = 5.0
"""exposed copies of any kind are worth a finding from here"""


@rule(
    "copies",
    question="Is time lost in copies, and are they pageable, small or repeated?",
    definition="""
    Copies from or to pageable memory, more than 20 copies of less than 64 KiB in a step, or exposed copies of any kind from
    5 % of it. At stake is the time in which such copies run alone on the device and the step waits for them, and its idle
    time while the host stages a copy in the copying call. Silent below 1 % of the step.
    """,
    source="Nsight Systems rules cuda_memcpy_async and cuda_memcpy_sync; triage question 16",
    of_device=True,
)
def copies(e: Evidence) -> Finding | None:
    made = e.pieces.filter(pl.col("kind") == int(Kind.COPY)).join(
        e.profile.copies.select("slice", "bytes").unique("slice", keep="first"), on="slice", how="left", maintain_order="left"
    )
    if made.height == 0:
        return None
    text = e.profile.names["text"][made["name"]]
    made = made.with_columns(pageable=text.str.contains("Pageable"), small=(pl.col("bytes") < SMALL_BYTES).fill_null(False))
    many_small = int(made["small"].sum()) > MANY * e.count
    exposed = e.breakdown_ps.get("exposed_copy", 0)
    faulty = made if e.pct(exposed) >= MUCH_PCT else made.filter(pl.col("pageable") | (pl.col("small") & many_small))
    staging = e.host_wait_ps(Cause.COPY) if faulty["pageable"].any() else 0
    alone = min(int(faulty["critical_ps"].sum()), exposed)
    stake = alone + staging
    if faulty.height == 0 or e.pct(stake) < LEAST_PCT or (e.pct(alone) < LEAST_PCT and e.pct(staging) < STAGING_PCT):
        return None
    by_name = faulty.group_by("name").agg(
        pl.len(),
        pl.col("inside_ps").sum(),
        pl.col("bytes").sum(),
        pl.col("pageable").first(),
        pl.col("op_name").drop_nulls().mode().first(),
    )
    worst = by_name.sort("inside_ps", descending=True).row(0, named=True)
    size = worst["bytes"] / worst["len"] if worst["bytes"] is not None else None
    evidence = {
        "copies": made.height / e.count,
        "copies_us": e.mean_us(int(made["inside_ps"].sum())),
        "exposed_us": e.mean_us(exposed),
        "idle_while_staging_us": e.mean_us(staging),
        "pageable": int(made["pageable"].sum()) / e.count,
        "small": int(made["small"].sum()) / e.count,
        "worst": e.text(worst["name"]),
        "worst_copies": worst["len"] / e.count,
        "worst_mean_bytes": size,
        "worst_bytes_per_s": worst["bytes"] / (worst["inside_ps"] / 1e12) if worst["bytes"] and worst["inside_ps"] else None,
        "worst_op": e.text(worst["op_name"]) or None,
    }
    title = f"Copies: {worst['len'] / e.count:,.0f} x {e.text(worst['name'])} of {bytes_text(size)} on average"
    if worst["pageable"]:
        advice = (
            "Copy from pinned memory with non_blocking=True (DataLoader(pin_memory=True)) and one batch ahead, so that it runs beside "
            "compute."
        )
    elif worst["len"] > MANY * e.count:
        advice = "Join the small copies: one flat buffer, gradient_as_bucket_view=True for DDP, views instead of clones."
    else:
        advice = "Overlap the copies with compute on a stream of their own, one batch ahead, or leave the data on the device."
    return e.finding(title, stake, "exposed_copy and idle", evidence, advice, view="ops", filter="cat:copy")
