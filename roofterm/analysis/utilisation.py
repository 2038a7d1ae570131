"""Utilisation: useful work, or useful bytes, over what the devices could have done (definitions.md, MFU, HFU and MBU)."""

from __future__ import annotations

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


class WorkSums(msgspec.Struct, frozen=True):
    """What utilisation is told from: sums over some items of device work (schema `costed.ITEMS`, with `traffic.ROLE_COLUMNS`)."""

    devices: int
    """that they ran on"""
    tensor_ps: float
    """time of the tensor-core families"""
    tensor_known_ps: float
    """of it, of items whose FLOPs are known"""
    counted: int
    """items of the tensor-core families whose FLOPs are known"""
    flops: float
    model_flops: float
    whole_flops: float
    attention_ps: float
    attention_known_ps: float
    """of attention that reads a KV cache"""
    products_ps: float
    """time of dense products and mixtures of experts"""
    products_known_ps: float
    """of those whose weights are known"""
    weight_read: float
    kv_read: float


_TENSOR = np.isin(np.arange(256), list(TENSOR_CATEGORIES))
"""Whether a category is of the tensor-core families, by its number."""


def work_of(items: pl.DataFrame) -> WorkSums:
    """The sums over items."""
    return _sums(items, np.zeros(items.height, np.int64), 1)[0]


def work_by_step(items: pl.DataFrame, steps: int) -> list[WorkSums]:
    """The sums over the items of each of so many steps (rows of `profile.steps`), in their order."""
    mine = items.filter(pl.col("step").is_not_null())
    return _sums(mine, mine["step"].cast(pl.Int64).to_numpy(), steps)


def _sums(items: pl.DataFrame, group: NDArray[np.int64], count: int) -> list[WorkSums]:
    category, time = items["category"].to_numpy(), items["time_ps"].to_numpy().astype(np.float64)
    tensor = _TENSOR[category]
    known = tensor & items["flops"].is_not_null().to_numpy()
    attention = category == Category.ATTENTION
    products = (category == Category.GEMM) | (category == Category.MOE)
    cached = attention & (items["kv_read"].fill_null(0).to_numpy() > 0)
    weighed = products & items["weight_read"].is_not_null().to_numpy()

    def timed(chosen: NDArray[np.bool_]) -> list[float]:
        return list(np.bincount(group[chosen], time[chosen], count).tolist())

    def summed(column: str) -> list[float]:
        return list(np.bincount(group, items[column].fill_null(0).to_numpy(), count).tolist())

    device = items["device"].to_numpy().astype(np.int64)
    most = int(device.max(initial=0)) + 1
    devices = np.bincount(group * most + device, minlength=count * most).reshape(count, most) > 0
    columns = {
        "devices": devices.sum(axis=1).tolist(),
        "tensor_ps": timed(tensor),
        "tensor_known_ps": timed(known),
        "counted": np.bincount(group[known], minlength=count).tolist(),
        "attention_ps": timed(attention),
        "attention_known_ps": timed(cached),
        "products_ps": timed(products),
        "products_known_ps": timed(weighed),
        **{column: summed(column) for column in ("flops", "model_flops", "whole_flops", "weight_read", "kv_read")},
    }
    return [WorkSums(**dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)]


def mfu(work: WorkSums, seconds: float, devices: int, peak_flops: float | None) -> Utilisation:
    """Utilisation by work that took `seconds` on `devices` devices of `peak_flops` each.

    `peak_flops` is the vendor's dense bf16 peak, or fp16's where there is none (`hardware.roofs.mfu_peak`): measured roofs
    never change it.
    """
    if not peak_flops or seconds <= 0 or devices <= 0 or not work.counted:
        return NOTHING
    possible = seconds * devices * peak_flops / 100
    return Utilisation(
        mfu_pct=work.model_flops / possible,
        mfu_palm_pct=work.whole_flops / possible,
        hfu_pct=work.flops / possible,
        at_least=work.tensor_known_ps < ENOUGH * work.tensor_ps,
    )


def decode_bytes(work: WorkSums, phase: str | None) -> float | None:
    """Weights and KV cache that a step of decode reads, each once, bytes of all its devices together.

    `work`: of the step; `phase`: what an engine's annotation says. None where the step is not decode, or where weights are known
    for less than 95 % of the products' time or the cache for less of attention's.
    """
    if phase not in (None, "decode"):
        return None
    if not _mostly(work.attention_known_ps, work.attention_ps) or not _mostly(work.products_known_ps, work.products_ps):
        return None
    return work.weight_read + work.kv_read


def mbu(read_bytes: float | None, seconds: float, devices: int, bandwidth: float | None) -> float | None:
    """Bytes that had to be read over what the memories could have moved (percent); `bandwidth` is one device's, the vendor's."""
    if read_bytes is None or not bandwidth or seconds <= 0 or devices <= 0:
        return None
    return 100 * read_bytes / (seconds * devices * bandwidth)


def _mostly(known_ps: float, whole_ps: float) -> bool:
    """Whether something is known of at least 95 % of some time, and there is any."""
    return whole_ps > 0 and known_ps >= ENOUGH * whole_ps
