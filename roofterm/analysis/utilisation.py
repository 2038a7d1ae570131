"""Utilisation: useful work, or useful bytes, over what the devices could have done (definitions.md, MFU, HFU and MBU)."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

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

COUNTED = ("device", "category", "time_ps", "flops", "model_flops", "whole_flops", "weight_read", "kv_read")
"""Columns of items that the figures here are made of."""

_TENSOR = np.isin(np.arange(256), list(TENSOR_CATEGORIES))
"""Whether a category is of the tensor-core families, by its number."""


def mfu(items: pl.DataFrame, seconds: float, devices: int, peak_flops: float | None) -> Utilisation:
    """Utilisation by items (schema `costed.ITEMS`) of a time of `seconds` on `devices` devices of `peak_flops` each.

    `peak_flops` is the vendor's dense bf16 peak, or fp16's where there is none (`hardware.roofs.mfu_peak`): measured roofs
    never change it.
    """
    if not peak_flops or seconds <= 0 or devices <= 0:
        return NOTHING
    tensor = _TENSOR[items["category"].to_numpy()]
    known = tensor & items["flops"].is_not_null().to_numpy()
    if not known.any():
        return NOTHING
    possible = seconds * devices * peak_flops / 100
    time = items["time_ps"].to_numpy()
    total = int(time[tensor].sum())
    at_least = total > 0 and int(time[known].sum()) < ENOUGH * total
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
    if phase not in (None, "decode"):
        return None
    category, time = items["category"].to_numpy(), items["time_ps"].to_numpy()
    attention = category == Category.ATTENTION
    if not attention.any() or not _mostly(time, attention, items["kv_read"].to_numpy() > 0):
        return None
    products = (category == Category.GEMM) | (category == Category.MOE)
    if not _mostly(time, products, items["weight_read"].is_not_null().to_numpy()):
        return None
    return float(items["weight_read"].sum()) + float(items["kv_read"].sum())


def by_step(items: pl.DataFrame, steps: int) -> list[pl.DataFrame]:
    """The items of each of so many steps (rows of `profile.steps`), in their order, with the columns `COUNTED`."""
    step = items["step"].cast(pl.Int64).fill_null(-1).to_numpy()
    order = np.argsort(step, kind="stable")
    bounds = np.searchsorted(step[order], np.arange(steps + 1)).tolist()
    ordered = items.select(COUNTED)[order]
    return [ordered.slice(first, last - first) for first, last in pairwise(bounds)]


def mbu(read_bytes: float | None, seconds: float, devices: int, bandwidth: float | None) -> float | None:
    """Bytes that had to be read over what the memories could have moved (percent); `bandwidth` is one device's, the vendor's."""
    if read_bytes is None or not bandwidth or seconds <= 0 or devices <= 0:
        return None
    return 100 * read_bytes / (seconds * devices * bandwidth)


def _mostly(time: NDArray[np.int64], mine: NDArray[np.bool_], known: NDArray[np.bool_]) -> bool:
    """Whether something is known of at least 95 % of the time of some items (`mine`), and there is any."""
    total = int(time[mine].sum())
    return total > 0 and int(time[mine & known].sum()) >= ENOUGH * total
