"""Batches of decode at which its nature changes: its ridge, the device's memory, the longest time between tokens allowed."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.whatif_state import Base, Change, State, expected_tokens, kv_token_bytes, state_of, step_s, weights_held
from roofterm.analysis.workload import DECODE, Machine, Part, WhatIfError
from roofterm.results import WhatIfLimit

LARGEST_BATCH = 1 << 20
"""Up to here a batch is looked for."""


def limits(base: Base, change: Change, machine: Machine, then: State, itl_us: float | None = None) -> list[WhatIfLimit]:
    """Batches of decode at which its nature changes: the ridge of its products, of the whole step, the memory, the ITL."""
    if then.shape is None or then.shape.phase != DECODE:
        if itl_us is not None:
            raise WhatIfError("--slo itl speaks of decode with a known batch: give --model config.json, or choose decode steps with --step")
        return []

    def at(batch: int) -> State:
        return state_of(base, msgspec.structs.replace(change, batch=batch, batch_times=None), machine)

    def crosses(state: State, products: bool) -> bool:
        pairs = [one for part, one in zip(state.parts, state.least, strict=True) if not products or _is_product(part)]
        return sum(one.compute_s for one in pairs) >= sum(one.hbm_s for one in pairs)

    products = _first(lambda batch: crosses(at(batch), True))
    step = _first(lambda batch: crosses(at(batch), False)) if products is not None else None
    found = [
        WhatIfLimit("ridge_products", products, "products with weights need as long for their FLOPs as for their bytes from this batch on")
        if products is not None
        else WhatIfLimit("ridge_products", None, "at no batch do products with weights need as long for their FLOPs as for their bytes"),
        WhatIfLimit("ridge_step", step, "so does the whole step, its KV cache included")
        if step is not None
        else WhatIfLimit("ridge_step", None, "at no batch does the whole step: each sequence brings a KV cache of its own to be read"),
    ]
    room = _batch_in_memory(base, change, machine, then)
    if room is not None:
        found.append(WhatIfLimit("memory", room, "largest batch whose weights and KV cache fit in the device's memory"))
    if itl_us is not None:
        tokens = expected_tokens(change.drafts, change.accept)
        beyond = _first(lambda batch: step_s(base, at(batch)) * 1e6 / tokens > itl_us)
        largest = None if beyond == 1 else LARGEST_BATCH if beyond is None else beyond - 1
        found.append(WhatIfLimit("slo_itl", largest, f"largest batch whose time between tokens keeps {itl_us / 1e3:g} ms at the bound"))
    return found


def _first(holds: Callable[[int], bool]) -> int | None:
    """The least batch for which a condition holds that stays true from there on; None up to LARGEST_BATCH."""
    high = 1
    while not holds(high):
        if high >= LARGEST_BATCH:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _is_product(part: Part) -> bool:
    return part.category in (Category.GEMM, Category.MOE) and bool(part.weights)


def _batch_in_memory(base: Base, change: Change, machine: Machine, then: State) -> int | None:
    memory, per_token = machine.device.memory_bytes, kv_token_bytes(base, change, then)
    weights = weights_held(base, change, then.devices)
    if weights is None or not memory or not per_token or then.shape is None:
        return None
    return max(0, int((memory - weights) // (per_token * then.shape.context)))
