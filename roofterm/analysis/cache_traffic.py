"""KV cache that decode reads, where the lengths of its sequences stand only in an engine's annotation of the iteration.

A cache's bytes for one token and layer follow from the shapes of any op that writes it, in the profile or in a capture
trace; the tokens attended to (k) from the annotation: k x 2 x Hkv x D x bytes a layer (definitions.md, Devices).
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.signature import Inputs, Tensor
from roofterm_parsers.profile import Profile

BY_ANNOTATION = "keys and values by the iteration's annotation: an upper bound for layers that attend to a window"

_WRITES = r"reshape_and_cache|store_cache|set_kv_buffer|concat_and_cache_mla"
"""Ops with (key, value, key cache, value cache, slots) first; latent ones with (key, rotary part, cache, slots)."""

_NEW_TOKENS = r"^vllm::unified_attention"
"""Ops with (queries, new keys, new values) first."""


LATENT = 0


class CacheLayout(NamedTuple):
    token_bytes: float
    """keys and values of one token in one layer"""
    head_dim: int | None
    """None: heads are not told apart; LATENT: keys are compressed, so queries have another size"""
    dtype: str | None
    """type of the cache's elements"""


def cache_layout(profile: Profile) -> CacheLayout | None:
    """The layout of the KV cache that most writes tell, or where no write is recorded, most calls with new keys (in the type of
    these); None where no op with recorded shapes tells it."""
    calls = profile.ops.select(name=profile.slices["name"][profile.ops["slice"]], signature="signature").drop_nulls()
    texts = profile.names["text"]
    for pattern in (_WRITES, _NEW_TOKENS):
        wanted = texts.str.contains(pattern).arg_true()
        found: dict[CacheLayout, int] = {}
        for name, signature, count in calls.filter(pl.col("name").is_in(wanted.implode())).group_by("name", "signature").len().iter_rows():
            dims, types, strides, concrete = profile.signatures.row(signature)
            layout = _layout(texts[name], Inputs(dims, types, strides, concrete))
            if layout is not None:
                found[layout] = found.get(layout, 0) + count
        if found:
            return max(found, key=lambda layout: (found[layout], layout.token_bytes))
    return None


def with_cache(profile: Profile, items: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Items (with `traffic.ROLE_COLUMNS`) whose attention reads a cache of unknown lengths, with its bytes and products.

    `facts`: columns `context_tokens` and `causal_pairs` of each row of `profile.steps`. An item is filled in if the step's
    annotation says what it attends to and its attention ops are one for each layer, so that each reads the whole of it.
    """
    told = facts.select("context_tokens", "causal_pairs").with_row_index("step").drop_nulls("context_tokens")
    layout = cache_layout(profile) if told.height else None
    if layout is None:
        return items
    open_ones = (
        (pl.col("category") == int(Category.ATTENTION))
        & (pl.col("origin") == "op")
        & pl.col("flops").is_null()
        & ((pl.col("kv_read").fill_null(0) == 0) | pl.col("hbm_bytes").is_null())
    )
    candidates = items.filter(open_ones).join(told.cast({"step": pl.UInt32}), on="step", how="inner")
    if candidates.height == 0:
        return items
    layers = _layers(items)
    each = candidates.group_by("step").len().join(layers, on="step", how="inner").filter(pl.col("len") == pl.col("layers"))
    candidates = candidates.join(each.select("step"), on="step", how="semi")
    widths = _widths(profile, candidates, layout)
    filled = candidates.join(widths, on=["name", "signature"], how="left", nulls_equal=True).select(
        "item",
        cache=pl.col("context_tokens").cast(pl.Float64) * layout.token_bytes,
        products=4.0 * pl.col("width") * pl.col("causal_pairs"),
    )
    items = items.join(filled, on="item", how="left", maintain_order="left")
    read = pl.col("cache").is_not_null()
    return items.with_columns(
        flops=pl.coalesce("flops", "products"),
        model_flops=pl.coalesce("model_flops", "products"),
        whole_flops=pl.coalesce("whole_flops", "products"),
        hbm_bytes=pl.when(read).then(pl.col("hbm_bytes").fill_null(0) + pl.col("cache")).otherwise("hbm_bytes"),
        kv_read=pl.when(read).then(pl.col("kv_read").fill_null(0) + pl.col("cache")).otherwise("kv_read"),
        estimate=pl.when(read).then(pl.lit(BY_ANNOTATION)).otherwise("estimate"),
        flops_from=pl.when(read & pl.col("flops").is_null() & pl.col("products").is_not_null())
        .then(pl.lit("shapes", dtype=items.schema["flops_from"]))
        .otherwise("flops_from"),
        bytes_from=pl.when(read).then(pl.lit("shapes", dtype=items.schema["bytes_from"])).otherwise("bytes_from"),
    ).drop("cache", "products")


def cache_writes(names: pl.Series) -> pl.Series:
    """Whether kernels or ops of these names write new keys and values: one for each layer of an iteration."""
    return names.str.contains(_WRITES) | names.str.contains(r"store_kv_?cache")


def _layers(items: pl.DataFrame) -> pl.DataFrame:
    """How many layers wrote their cache in each step: columns step, layers."""
    writes = items.filter((pl.col("category") == int(Category.KV_CACHE)) & cache_writes(items["text"]) & pl.col("step").is_not_null())
    return writes.group_by("step").agg(layers=pl.len())


def _layout(name: str, inputs: Inputs) -> CacheLayout | None:
    if "concat_and_cache_mla" in name:
        return _latent_layout(inputs)
    if name.startswith("vllm::unified_attention"):
        key, value = inputs.tensor(1), inputs.tensor(2)
        cache, tokens = key, key.dims[0] if key is not None and key.dims else 0
    else:
        key, value, cache, slots = (inputs.tensor(slot) for slot in (0, 1, 2, 4))
        tokens = slots.elements if slots is not None else 0
    if key is None or value is None or cache is None or cache.item_bytes is None or not tokens:
        return None
    elements = key.elements + value.elements
    if elements % tokens:
        return None
    return CacheLayout(elements // tokens * cache.item_bytes, _head_dim(key, tokens), cache.dtype)


def _latent_layout(inputs: Inputs) -> CacheLayout | None:
    """Multi-head latent attention keeps one compressed key and the rotary part of each token."""
    latent, rotary, cache = (inputs.tensor(slot) for slot in range(3))
    if latent is None or rotary is None or cache is None or cache.item_bytes is None or not latent.dims or not latent.dims[0]:
        return None
    elements = latent.elements + rotary.elements
    return None if elements % latent.dims[0] else CacheLayout(elements // latent.dims[0] * cache.item_bytes, LATENT, cache.dtype)


def _head_dim(key: Tensor, tokens: int) -> int | None:
    return key.dims[2] if len(key.dims) == 3 and key.dims[0] == tokens else None


def _widths(profile: Profile, candidates: pl.DataFrame, layout: CacheLayout) -> pl.DataFrame:
    """Query heads times their size of each distinct call, from its first tensor [tokens, heads, D]: name, signature, width."""
    distinct = candidates.select("name", "signature").unique()
    widths = []
    for _, signature in distinct.iter_rows():
        first = None if signature is None else Inputs(*profile.signatures.row(signature)[:2]).tensor(0)
        known = first is not None and len(first.dims) == 3 and layout.head_dim in (None, first.dims[2])
        widths.append(float(first.dims[1] * first.dims[2]) if known and first is not None else None)
    return distinct.with_columns(width=pl.Series(widths, dtype=pl.Float64))
