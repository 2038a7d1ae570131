"""Utilisation: useful work, or useful bytes, over what the devices could have done (definitions.md, MFU, HFU and MBU)."""

from __future__ import annotations

import msgspec
import polars as pl

from roofterm.analysis.categories.kinds import TENSOR_CATEGORIES, Category

ENOUGH = 0.95
"""Share of GEMM and attention time that must have FLOPs; with less, the figures are lower limits."""


class Utilisation(msgspec.Struct, frozen=True):
    """Shares of the vendor's dense peak (percent); None: unknown."""

    mfu_pct: float | None
    """model_flops: without recomputation, visible pairs only"""
    mfu_palm_pct: float | None
    """as mfu, causal attention counted whole (PaLM appendix B, torchtitan)"""
    hfu_pct: float | None
    """flops: all that was executed"""
    at_least: bool
    """less than 95 % of GEMM and attention time has FLOPs: shown with >="""


NOTHING = Utilisation(None, None, None, False)


def mfu(items: pl.DataFrame, seconds: float, devices: int, peak_flops: float | None) -> Utilisation:
    """Utilisation by items (schema `costed.ITEMS`) of a time of `seconds` on `devices` devices of `peak_flops` each.

    `peak_flops` is the vendor's dense bf16 peak, or fp16's where there is none (`hardware.roofs.mfu_peak`): measured roofs
    never change it.
    """
    if not peak_flops or seconds <= 0 or devices <= 0:
        return NOTHING
    tensor = items.filter(pl.col("category").is_in([int(category) for category in TENSOR_CATEGORIES]))
    known = tensor.filter(pl.col("flops").is_not_null())
    if known.height == 0:
        return NOTHING
    possible = seconds * devices * peak_flops / 100
    total = int(tensor["time_ps"].sum())
    at_least = total > 0 and int(known["time_ps"].sum()) < ENOUGH * total
    return Utilisation(
        mfu_pct=float(items["model_flops"].sum()) / possible,
        mfu_palm_pct=float(items["whole_flops"].sum()) / possible,
        hfu_pct=float(items["flops"].sum()) / possible,
        at_least=at_least,
    )


def decode_bytes(items: pl.DataFrame, phase: str | None) -> float | None:
    """Weights and KV cache that a step of decode reads, each once, bytes of all its devices together.

    `items`: those of the step, with `traffic.ROLE_COLUMNS`; `phase`: what an engine's annotation says. None where the step
    is not decode, or where weights are known for less than 95 % of the products' time or the cache for less of attention's.
    """
    attention = items.filter(pl.col("category") == int(Category.ATTENTION))
    products = items.filter(pl.col("category").is_in([int(Category.GEMM), int(Category.MOE)]))
    cached = pl.col("kv_read").fill_null(0) > 0
    if phase not in (None, "decode") or not _mostly(attention, cached) or not _mostly(products, pl.col("weight_read").is_not_null()):
        return None
    return float(items["weight_read"].sum()) + float(items["kv_read"].sum())


def mbu(read_bytes: float | None, seconds: float, devices: int, bandwidth: float | None) -> float | None:
    """Bytes that had to be read over what the memories could have moved (percent); `bandwidth` is one device's, the vendor's."""
    if read_bytes is None or not bandwidth or seconds <= 0 or devices <= 0:
        return None
    return 100 * read_bytes / (seconds * devices * bandwidth)


def _mostly(items: pl.DataFrame, known: pl.Expr) -> bool:
    """Whether something is known of at least 95 % of the time of some work, and there is any."""
    total = int(items["time_ps"].sum())
    return total > 0 and int(items.filter(known)["time_ps"].sum()) >= ENOUGH * total
