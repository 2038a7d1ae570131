"""Are there chains of memory-bound kernels that one fused kernel could replace?"""

from __future__ import annotations

import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding
from roofterm_parsers.profile import Kind

LEAST_PCT = 3.0
LEAST_CHAINS = 5
SMALLEST_PS = 5_000_000
"""A kernel under 5 us is bound by its launch, not by memory."""
ALIKE = 4.0
"""Neighbours whose lengths differ by more than this factor do not work on the same tensor."""

REMAINS = 6
"""Of so many kernels of a chain one remains after fusion: long chains have more than one result."""

CHAINABLE = (
    Category.ELEMENTWISE, Category.REDUCTION, Category.NORM, Category.SOFTMAX, Category.ROPE, Category.COPY, Category.FILL,
    Category.LAYOUT, Category.QUANTIZATION, Category.RNG,
)  # fmt: skip
FUSED = r"^triton_|_fusion|fused|multi_tensor|_fused_"


@rule(
    "memory-bound-chains",
    question="Could neighbouring memory-bound kernels be one?",
    definition="""
    Kernels that only move memory (elementwise, reductions, norms, softmax, casts, layout) and follow each other directly on
    one stream, each of at least 5 us and within a factor of four of its neighbour's length; fused kernels, those that XLA
    compiled, those of the optimizer and those that attention-not-flash claims do not count. A fused kernel reads and writes
    once; one in six is taken to remain. So at stake is each chain's time alone on the device, where the step waits for it,
    without its longest kernels, one for every six. From 3 % of the step and five chains.
    """,
    source="torch.profiler guide (fusion); triage questions 9 and 13",
    of_device=True,
)
def memory_bound_chains(e: Evidence) -> Finding | None:
    kernels = e.by_stream.filter(pl.col("kind") == int(Kind.KERNEL))
    fused = e.profile.names["text"].str.contains(FUSED)[kernels["name"]]
    compiled = kernels["slice"].is_in(e.profile.hlo["slice"].implode())
    joins = (
        kernels["category"].is_in([int(c) for c in CHAINABLE])
        & (kernels["dur_ps"] >= SMALLEST_PS)
        & ~fused
        & ~compiled
        & ~pl.Series(e.in_optimizer(kernels))
        & ~kernels["slice"].is_in(e.attention.between["slice"].implode())
    )
    rows = kernels.with_columns(joins=joins)
    before = pl.col("dur_ps").shift(1)
    follows = (
        pl.col("joins")
        & pl.col("joins").shift(1).fill_null(False)
        & (pl.col("track") == pl.col("track").shift(1))
        & (pl.col("dur_ps") <= before * ALIKE)
        & (pl.col("dur_ps") * ALIKE >= before)
    )
    rows = rows.with_columns(chain=(~follows.fill_null(False)).cum_sum()).filter("joins")
    chains = rows.group_by("chain", maintain_order=True).agg(
        pl.len().alias("kernels"),
        won_ps=pl.col("critical_ps").sum() - pl.col("critical_ps").sort(descending=True).head((pl.len() + REMAINS - 1) // REMAINS).sum(),
        inside_ps=pl.col("inside_ps").sum(),
        names=pl.col("name"),
    )
    chains = chains.filter(pl.col("kernels") >= 2)
    if chains.height == 0:
        return None
    stake = int(chains["won_ps"].sum())
    if chains.height < LEAST_CHAINS or e.pct(stake) < LEAST_PCT:
        return None
    alike = chains.group_by("names").agg(pl.len(), pl.col("won_ps").sum(), pl.col("inside_ps").sum()).sort("won_ps", descending=True)
    worst = alike.row(0, named=True)
    taken = int(chains["inside_ps"].sum())
    kernels_of = f"{int(chains['kernels'].sum()) / e.count:,.0f}"
    evidence = {
        "chains": chains.height / e.count,
        "kernels": int(chains["kernels"].sum()) / e.count,
        "chains_us": e.mean_us(taken),
        "saved_by_fusion_us": e.mean_us(stake),
        "worst_chain": [e.short(name) for name in worst["names"][:8]],
        "worst_chain_times": worst["len"] / e.count,
        "worst_chain_us": e.mean_us(worst["inside_ps"]),
    }
    title = f"Memory-bound chains: {kernels_of} elementwise, norm and copy kernels take {e.time(taken)}"
    longest = f"{' > '.join(e.short(name) for name in worst['names'][:4])}{' ...' if len(worst['names']) > 4 else ''}"
    how = "one jit over them" if e.is_xla else "torch.compile"
    advice = f"Fuse them: {how}, or a fused kernel for the longest chain ({longest}, {worst['len'] / e.count:,.0f} times)."
    return e.finding(title, stake, "compute", evidence, advice, view="ops", filter="cat:elementwise|norm|reduction|copy|softmax")
