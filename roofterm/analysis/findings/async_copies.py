"""Does a core wait for copies that it started itself?"""

from __future__ import annotations

import re

import polars as pl

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.lookup import looked_up
from roofterm.analysis.work import WorkClass
from roofterm.results import Finding
from roofterm.text.units import bytes_text
from roofterm_parsers.profile import Kind

LEAST_PCT = 5.0
_IN_HOST_MEMORY = re.compile(r"\bS\(5\)")
"""The memory space of the host in a layout of XLA's text (xla/layout_util.h, kHostMemorySpace)"""


@rule(
    "async-copies",
    question="Does a core wait for asynchronous copies that it started itself?",
    definition="""
    Time that a core spends in the done op of an asynchronous copy (copy-done, async-done) and in which nothing else runs on it,
    from 5 % of the step. Whether the copy goes to or comes from the host's memory is told by the memory space in its HLO text, S(5).
    """,
    source="XLA: asynchronous ops; memory spaces of layouts (kHostMemorySpace); XProf counts copy-done as compute",
    of_device=True,
)
def async_copies(e: Evidence) -> Finding | None:
    waits = e.pieces.filter((pl.col("work_class") == int(WorkClass.COPY)) & (pl.col("kind") == int(Kind.KERNEL)))
    size = e.profile.slices.height
    waits = waits.with_columns(hlo=looked_up(e.profile.hlo["op"], e.profile.hlo["slice"], size, waits["slice"])).drop_nulls("hlo")
    stake = min(int(waits["critical_ps"].sum()), e.breakdown_ps.get("exposed_copy", 0))
    if waits.height == 0 or e.pct(stake) < LEAST_PCT:
        return None
    by_op = waits.group_by("hlo").agg(pl.len(), pl.col("inside_ps").sum()).sort("inside_ps", "hlo", descending=[True, False])
    texts = e.profile.hlo_ops["text"][by_op["hlo"]].to_list()
    offloaded = [bool(_IN_HOST_MEMORY.search(text or "")) for text in texts]
    on_host_ps = int(by_op["inside_ps"].filter(pl.Series(offloaded)).sum())
    worst, name = by_op.row(0, named=True), e.profile.hlo_ops["name"][by_op["hlo"][0]]
    moved = e.profile.hlo_ops["bytes"][worst["hlo"]]
    evidence = {
        "waits": waits.height / e.count,
        "waiting_us": e.mean_us(int(waits["inside_ps"].sum())),
        "for_host_memory_us": e.mean_us(on_host_ps),
        "worst": name,
        "worst_copies": worst["len"] / e.count,
        "worst_mean_us": worst["inside_ps"] / worst["len"] / 1e6,
        "worst_bytes": moved,
    }
    host = 2 * on_host_ps > int(waits["inside_ps"].sum())
    where = " to or from the host's memory" if host else ""
    title = f"Waiting for copies{where}: {worst['len'] / e.count:,.0f} x {name} of {bytes_text(moved)}"
    advice = (
        "Leave on the device what fits there (fewer arrays in pinned_host memory, a checkpoint policy that offloads less), and begin the "
        "rest earlier, so that it arrives while the core computes."
        if host
        else "Give the copy something to run beside: begin it earlier, prefetch one layer ahead, or leave the data where it is used."
    )
    return e.finding(title, stake, "exposed_copy", evidence, advice, view="ops", filter=f"name:{name}")
