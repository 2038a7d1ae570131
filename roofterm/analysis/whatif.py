"""What if: the least time of a step for another type, quantisation, batch, context, split, speculation or device.

Both states are sums over the same parts (workload.py), so what differs is only what was asked for; everything that is held
constant, and everything that is not counted, is listed in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.signature import ITEM_BYTES
from roofterm.analysis.model_config import ModelConfig, Storage
from roofterm.analysis.model_workload import cache_bytes, model_parts, weights_on
from roofterm.analysis.workload import (
    DECODE,
    PREFILL,
    Least,
    Machine,
    Part,
    Shape,
    WhatIfError,
    in_arithmetic,
    least,
    total,
    with_kv,
    with_weights,
)
from roofterm.results import WhatIf, WhatIfLimit, WhatIfRow, WhatIfState

LARGEST_BATCH = 1 << 20
"""Up to here a batch is looked for."""


class Change(msgspec.Struct, frozen=True):
    """What is asked for; None: as it is."""

    dtype: str | None = None
    weights: Storage | None = None
    kv_dtype: str | None = None
    batch: float | None = None
    batch_times: float | None = None
    """the batch so many times over, where its size is not known"""
    prompt: float | None = None
    context: float | None = None
    tp: int | None = None
    drafts: int = 0
    """tokens that a draft model proposes in each step"""
    accept: float = 1.0
    """probability that one of them is accepted"""


class Source(Protocol):
    """Where the parts of a step come from."""

    def parts(self, shape: Shape | None = None, devices: int | None = None) -> list[Part]: ...


class ModelStep:
    """Steps of a model by its configuration."""

    def __init__(self, model: ModelConfig) -> None:
        self.model = model

    def parts(self, shape: Shape | None = None, devices: int | None = None) -> list[Part]:
        assert shape is not None
        return model_parts(self.model, shape, devices or 1)


class Base(msgspec.Struct, frozen=True):
    """The step that the question starts from."""

    source: Source
    shape: Shape | None
    """None: the profile does not tell; its parts are those of no shape"""
    machine: Machine
    devices: int = 1
    launches: float | None = None
    launch_s: float = 0.0
    measured_us: float | None = None
    rows: int | None = None
    """tokens of the step, where the shape is not known"""
    model: ModelConfig | None = None
    phase: str | None = None
    held: tuple[str, ...] = ()


class State(msgspec.Struct, frozen=True):
    """A step with the least time of each of its parts."""

    shape: Shape | None
    devices: int
    parts: list[Part]
    least: list[Least]

    @property
    def bound_s(self) -> float:
        return sum(one.bound_s for one in self.least)

    def needs(self, resource: str) -> float:
        return sum(float(getattr(one, resource)) for one in self.least)


def what_if(base: Base, change: Change, machine: Machine | None = None, itl_us: float | None = None, bare: bool = False) -> WhatIf:
    """The step as it is and as it would be on `machine` (None: the same), with the batches at which it changes its nature.

    `itl_us`: the longest time between tokens that is allowed; `bare`: no such batches are looked for. Raises WhatIfError where
    the question has no answer.
    """
    machine = machine or base.machine
    if change.drafts and base.phase not in (DECODE, None):
        raise WhatIfError("--spec speaks of decode: give --context, or choose decode steps with --step")
    now = state_of(base, Change(), base.machine)
    then = state_of(base, change, machine)
    rows = _rows(base, now, then)
    return WhatIf(
        base=_summary(base, now, Change(), base.machine, _measured(now)),
        whatif=_summary(base, then, change, machine, sum(row.estimate_us or 0.0 for row in rows) if _measured(now) else None),
        measured_us=base.measured_us,
        busy_us=_measured(now),
        rows=rows,
        limits=[] if bare else limits(base, change, machine, then, itl_us),
        kv_token_bytes=_kv_token_bytes(base, change, then),
        held=[*base.held, *_held(base, change, now, then, machine)],
    )


def state_of(base: Base, change: Change, machine: Machine) -> State:
    """The step with a change, on a machine."""
    shape = _shape(base, change)
    devices = change.tp or base.devices
    asked = shape if shape != base.shape or base.model is not None else None
    parts = base.source.parts(asked, devices)
    if change.dtype is not None:
        parts = [in_arithmetic(part, change.dtype) for part in parts]
    if change.weights is not None:
        if not any(part.weights and not part.kept for part in parts):
            raise WhatIfError("no product of these steps is known to read a weight, so --weights changes nothing")
        parts = [with_weights(part, change.weights) for part in parts]
    if change.kv_dtype is not None:
        if not any(part.kv_read or part.kv_write for part in parts) and base.phase != PREFILL:
            raise WhatIfError("no op of these steps is known to read a KV cache, so --kv-dtype changes nothing; give --model config.json")
        ratio = ITEM_BYTES[change.kv_dtype] / ITEM_BYTES[_kv_dtype(base)]
        parts = [with_kv(part, ratio) for part in parts]
    return State(shape, devices, parts, [least(part, machine) for part in parts])


def expected_tokens(drafts: int, accept: float) -> float:
    """Tokens that a step with speculation gives on average: (1 - a^(k+1)) / (1 - a) (Leviathan 2023, equation 1)."""
    return drafts + 1.0 if accept >= 1 else (1 - accept ** (drafts + 1)) / (1 - accept)


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
        WhatIfLimit("ridge_products", products, "products with weights need as long for their FLOPs as for their bytes from this batch on"),
        WhatIfLimit("ridge_step", step, "so does the whole step, its KV cache included"),
    ]
    room = _batch_in_memory(base, change, machine, then)
    if room is not None:
        found.append(WhatIfLimit("memory", room, "largest batch whose weights and KV cache fit in the device's memory"))
    if itl_us is not None:
        tokens = expected_tokens(change.drafts, change.accept)
        beyond = _first(lambda batch: _step_s(base, at(batch)) * 1e6 / tokens > itl_us)
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


def _shape(base: Base, change: Change) -> Shape | None:
    """The shape that is asked for."""
    shape = base.shape
    asked = [change.batch, change.batch_times, change.prompt, change.context, change.drafts or None]
    if all(one is None for one in asked):
        return shape
    if shape is None:
        if base.rows is not None and change.batch_times is not None and asked.count(None) == len(asked) - 1:
            return Shape(base.rows * change.batch_times, 1, 1)
        raise WhatIfError(
            "how many sequences and tokens these steps work on is not known: only --batch xN (times as many) can be asked for, "
            "or give --model config.json"
        )
    sequences = change.batch if change.batch is not None else shape.sequences * (change.batch_times or 1.0)
    queries, context = shape.queries, shape.context
    if change.prompt is not None:
        if shape.phase != PREFILL:
            raise WhatIfError("--prompt speaks of prefill, and these steps decode: ask for --context")
        queries = context = change.prompt
    if change.context is not None:
        if shape.phase != DECODE:
            raise WhatIfError("--context speaks of decode, and these steps take prompts in (or train): ask for --prompt")
        context = max(change.context, queries + 1)
    if change.drafts:
        if shape.phase != DECODE:
            raise WhatIfError("--spec speaks of decode, and these steps take prompts in (or train)")
        queries, context = queries * (change.drafts + 1), context + change.drafts
    return Shape(sequences, queries, context)


def _kv_dtype(base: Base) -> str:
    return base.model.dtype if base.model is not None else "bf16"


def _kv_token_bytes(base: Base, change: Change, then: State) -> float | None:
    if base.model is not None:
        return cache_bytes(base.model, then.devices, change.kv_dtype)
    written, rows = total(then.parts, "kv_write"), then.shape.rows if then.shape is not None else base.rows
    if written and rows:
        return written / rows
    read = total(then.parts, "kv_read")
    return read / (then.shape.sequences * then.shape.context) if read and then.shape is not None else None


def _batch_in_memory(base: Base, change: Change, machine: Machine, then: State) -> int | None:
    memory, per_token = machine.device.memory_bytes, _kv_token_bytes(base, change, then)
    if base.model is None or not memory or not per_token or then.shape is None:
        return None
    weights = change.weights
    if weights is None and change.dtype is not None and ITEM_BYTES["fp32" if change.dtype == "tf32" else change.dtype] < ITEM_BYTES["bf16"]:
        weights = Storage(change.dtype, 8 * ITEM_BYTES[change.dtype])
    room = memory - weights_on(base.model, then.devices, weights)
    return max(0, int(room // (per_token * then.shape.context)))


def _measured(state: State) -> float | None:
    times = [part.time_us for part in state.parts if part.time_us is not None]
    return sum(times) if times else None


def _step_s(base: Base, state: State) -> float:
    return max(state.bound_s, (base.launches or 0.0) * base.launch_s)


def _summary(base: Base, state: State, change: Change, machine: Machine, estimate_us: float | None) -> WhatIfState:
    shape, parts = state.shape, state.parts
    needs = {name: state.needs(f"{name}_s") for name in ("compute", "hbm", "link")}
    unmodelled = sum(one.bound_s for part, one in zip(parts, state.least, strict=True) if part.unmodelled)
    bound_s = _step_s(base, state)
    if base.launches is not None:
        needs["launch"] = base.launches * base.launch_s
    moved = total(parts, "hbm_bytes")
    decode = base.phase == DECODE and shape is not None
    tokens = expected_tokens(change.drafts, change.accept) if decode else None
    first = base.phase == PREFILL and shape is not None
    given = shape.sequences * (tokens if tokens is not None else 0.0) if shape is not None and decode else None
    taken = shape.rows if shape is not None and first else None
    rate = given if given is not None else taken
    roles = {
        "weight": {"read": total(parts, "weight_bytes"), "write": 0.0},
        "kv": {"read": total(parts, "kv_read"), "write": total(parts, "kv_write")},
        "activation": {"read": total(parts, "activation_read"), "write": total(parts, "activation_write")},
    }
    flops = total(parts, "flops")
    held = sum(
        one.bound_s
        for part, one in zip(parts, state.least, strict=True)
        if part.unmodelled or part.bound_s is not None or not part.rescaled
    )
    return WhatIfState(
        phase=base.phase,
        sequences=shape.sequences if shape is not None else None,
        tokens=shape.queries if shape is not None else None,
        context=shape.context if shape is not None else None,
        dtype=_dtype(parts),
        weights=_weights_text(parts, change, base),
        kv_dtype=change.kv_dtype or (_kv_dtype(base) if roles["kv"]["read"] or roles["kv"]["write"] else None),
        tp=state.devices,
        drafts=change.drafts,
        accept=change.accept if change.drafts else None,
        device=machine.name,
        bound_us=bound_s * 1e6,
        bound_by=_bound_by({**needs, "work without a model": unmodelled}),
        compute_us=needs["compute"] * 1e6,
        memory_us=needs["hbm"] * 1e6,
        link_us=needs["link"] * 1e6,
        held_us=held * 1e6,
        launch_us=needs["launch"] * 1e6 if "launch" in needs else None,
        flops=flops,
        bytes=moved,
        bytes_by_role={role: ways for role, ways in roles.items() if any(ways.values())},
        intensity=flops / moved if moved else None,
        tokens_per_step=tokens,
        tokens_per_s=rate / bound_s if rate is not None and bound_s > 0 else None,
        itl_us=bound_s * 1e6 / tokens if tokens else None,
        ttft_us=bound_s * 1e6 if first else None,
        estimate_us=estimate_us,
    )


def _bound_by(needs: dict[str, float]) -> str | None:
    return max(needs, key=lambda name: needs[name]) if any(needs.values()) else None


def _dtype(parts: Sequence[Part]) -> str | None:
    """The type in which most of the products' FLOPs are done."""
    totals: dict[str, float] = {}
    for part in parts:
        if part.dtype is not None and part.category in (Category.GEMM, Category.CONV, Category.ATTENTION, Category.MOE):
            totals[part.dtype] = totals.get(part.dtype, 0.0) + part.flops
    return max(totals, key=lambda dtype: totals[dtype]) if totals else None


def _weights_text(parts: Sequence[Part], change: Change, base: Base) -> str | None:
    if change.weights is not None:
        return change.weights.text
    if base.model is not None and change.dtype is None:
        return base.model.weights.text
    totals: dict[str, float] = {}
    for part in parts:
        if part.weight_type is not None and part.weights:
            totals[part.weight_type] = totals.get(part.weight_type, 0.0) + part.weights
    return max(totals, key=lambda name: totals[name]) if totals else None


def _rows(base: Base, now: State, then: State) -> list[WhatIfRow]:
    """The parts side by side: both states list them in the same order, and a split adds its collectives behind."""
    rows = []
    before = list(zip(now.parts, now.least, strict=True))
    after = list(zip(then.parts, then.least, strict=True))
    for row in range(max(len(before), len(after))):
        old = before[row] if row < len(before) else None
        new = after[row] if row < len(after) else None
        rows.append(_row(base, old, new))
    return sorted(rows, key=lambda row: -max(row.bound_us or 0.0, row.whatif_us))


def _row(base: Base, old: tuple[Part, Least] | None, new: tuple[Part, Least] | None) -> WhatIfRow:
    part = new[0] if new is not None else old[0] if old is not None else None
    assert part is not None
    time_us = old[0].time_us if old is not None else None
    before = old[1].bound_s * 1e6 if old is not None else None
    after = new[1].bound_s * 1e6 if new is not None else 0.0
    estimate = time_us * after / before if time_us is not None and before else after if old is None else time_us
    held = part.unmodelled or part.bound_s is not None or not part.rescaled
    return WhatIfRow(
        phase=base.phase,
        name=part.name,
        category=part.category.title,
        calls=part.calls,
        bound_us=before,
        bound_by=old[1].bound_by if old is not None else None,
        whatif_us=after,
        whatif_bound_by=new[1].bound_by if new is not None else None,
        flops=part.flops,
        weight_bytes=part.weight_bytes,
        kv_bytes=part.kv_read + part.kv_write,
        activation_bytes=part.activation_read + part.activation_write,
        other_bytes=part.other_bytes,
        wire_bytes=part.wire_bytes,
        time_us=time_us,
        estimate_us=estimate,
        held=held,
        shapes=part.shapes,
    )


def _held(base: Base, change: Change, now: State, then: State, machine: Machine) -> list[str]:
    """What the answer holds constant or leaves out."""
    said = ["each part at its bound, one after the other: no idle time, no overlap"]
    measured = _measured(now)
    unmodelled = sum(part.time_us or 0.0 for part in then.parts if part.unmodelled)
    if measured:
        said.append("the estimate takes each part to come as near to its bound as it was measured")
    if measured and unmodelled > 0.0005 * measured:
        said.append(f"{unmodelled / 1e3:,.3f} ms of measured time ({100 * unmodelled / measured:.1f} %) has no model and is held as it is")
    kept = sum(one.bound_s for part, one in zip(then.parts, then.least, strict=True) if not part.rescaled and not part.unmodelled)
    if kept > 0.0005 * then.bound_s and then.shape != now.shape:
        said.append(f"{kept * 1e3:,.3f} ms of the bound do not follow the batch and are held as they are")
    if change.weights is not None or change.dtype is not None:
        said += _held_types(change, then)
    if change.weights is not None and base.model is None:
        known = sum(part.flops for part in then.parts if part.category == Category.GEMM and part.weights)
        every = sum(part.flops for part in then.parts if part.category == Category.GEMM)
        if every and known < 0.995 * every:
            said.append(f"weights are told for products with {100 * known / every:.0f} % of the FLOPs; the others are held as they are")
    if then.devices > 1:
        said.append(
            f"all {then.devices} devices in one link domain; a collective takes {machine.collective_s * 1e6:g} us and what it sends at the "
            "link's full rate (ring)"
        )
    if change.drafts:
        said.append("the draft model takes no time; every draft is accepted with the same probability")
    if base.launches is not None:
        said.append(f"{base.launches:,.0f} launches, as in the profile")
    return said


def _held_types(change: Change, then: State) -> list[str]:
    said = []
    narrow = change.dtype is not None and ITEM_BYTES["fp32" if change.dtype == "tf32" else change.dtype] < ITEM_BYTES["bf16"]
    if narrow:
        said.append(f"only products with weights run in {change.dtype}: attention, norms and results keep their type; turning activations "
                    "into it is not counted")  # fmt: skip
    if any(part.kept for part in then.parts) and (narrow or change.weights is not None):
        said.append("embedding and head keep their type")
    if any(part.dequantised for part in then.parts):
        said.append("weights are turned into the type of the arithmetic as they are read: 2 FLOPs each on the vector units")
    return said
