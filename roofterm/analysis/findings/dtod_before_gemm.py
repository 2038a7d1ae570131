"""Is each product preceded by a copy of its bias?"""

from __future__ import annotations

import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding
from roofterm_parsers.profile import Kind

LEAST_PCT = 1.0
LEAST_COPIES = 4


@rule(
    "dtod-before-gemm",
    question="Does a device-to-device copy stand before each GEMM?",
    definition="""
    Copies within the device that are directly followed on their stream by a GEMM which the same op launched: the bias that
    addmm's epilogue adds is first copied into the result. At stake is the time in which those copies run alone and the step
    waits for them. From four copies and 1 % of the step.
    """,
    source="torch.profiler guide (Memcpy DtoD before a GEMM: bias copy of the addmm epilogue)",
    of_device=True,
)
def dtod_before_gemm(e: Evidence) -> Finding | None:
    found = copies_before_gemms(e.by_stream, e.profile.names["text"])
    stake = int(found["critical_ps"].sum())
    if found.height < LEAST_COPIES or e.pct(stake) < LEAST_PCT:
        return None
    op = e.text(found["op_name"].drop_nulls().mode().sort()[0])
    evidence = {"copies": found.height / e.count, "copies_us": e.mean_us(int(found["inside_ps"].sum())), "op": op}
    title = f"Copies before GEMMs: {found.height / e.count:,.0f} device-to-device copies of a bias"
    advice = (
        f"Let the bias be added by the product's own epilogue or a fused kernel: {op} copies it first; max-autotune or a linear "
        "without bias avoids that."
    )
    return e.finding(title, stake, "exposed_copy", evidence, advice, view="ops", filter="cat:copy dtod")


def copies_before_gemms(rows: pl.DataFrame, texts: pl.Series) -> pl.DataFrame:
    """Rows of `Evidence.by_stream` that copy within the device and whose next on the stream is a GEMM of the same op."""
    within = (texts.str.contains(r"(?i)DtoD|Device -> Device|DeviceToDevice")[rows["name"]]) & (rows["kind"] == int(Kind.COPY))
    following = {name: pl.col(name).shift(-1) for name in ("track", "category", "op")}
    gemm = (
        (following["track"] == pl.col("track"))
        & (following["category"] == int(Category.GEMM))
        & (following["op"] == pl.col("op")).fill_null(False)
    )
    return rows.with_columns(within=within).filter(pl.col("within") & gemm)
