"""Model FLOP utilisation: useful work over what the devices could have done (definitions.md, MFU and HFU)."""

from __future__ import annotations

import msgspec
import polars as pl

from roofterm.analysis.categories.kinds import TENSOR_CATEGORIES

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
