"""Is attention made of products and a softmax, with the scores written to memory?"""

from __future__ import annotations

import polars as pl

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding

LEAST_PCT = 3.0
LEAST_PLACES = 2


@rule(
    "attention-not-flash",
    question="Is attention computed by a fused kernel?",
    definition="""
    A softmax between two batched products (bmm) on one stream, at most six kernels from each: attention whose scores are
    written to memory and read again. At stake is the time in which the kernels between the two products run alone and the
    step waits for them (scale, mask, softmax, dropout, casts): a fused kernel keeps them on the chip. From two such places
    and 3 % of the step.
    """,
    source="Dao et al. 2022, FlashAttention (arXiv 2205.14135)",
    of_device=True,
)
def attention_not_flash(e: Evidence) -> Finding | None:
    places, mine = e.attention
    stake = int(mine["critical_ps"].sum())
    if places < LEAST_PLACES or e.pct(stake) < LEAST_PCT:
        return None
    names = mine.group_by("name").agg(pl.col("inside_ps").sum(), pl.len()).sort("inside_ps", "name", descending=[True, False])
    evidence = {
        "attentions": places / e.count,
        "between_products_us": e.mean_us(stake),
        "longest": e.text(names["name"][0]),
        "longest_us": e.mean_us(int(names["inside_ps"][0])),
        "longest_calls": names["len"][0] / e.count,
    }
    title = f"Attention is not fused: {places / e.count:,.0f} times a softmax between two products"
    advice = (
        'Use jax.nn.dot_product_attention(implementation="cudnn") or a Pallas kernel (splash attention on TPUs), and check that mask, type '
        "and head size allow it."
        if e.is_xla
        else 'Use torch.nn.functional.scaled_dot_product_attention (attn_implementation="sdpa" or "flash_attention_2"), and check that '
        "mask, type and "
        "head size allow its flash or efficient kernel."
    )
    return e.finding(title, stake, "compute", evidence, advice, view="ops", filter="cat:softmax")
