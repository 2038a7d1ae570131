"""What if: the least time of a step for another type, quantisation, batch, context, split, speculation or device.

Both states are sums over the same parts (workload.py), so what differs is only what was asked for; everything that is held
constant, and everything that is not counted, is listed in the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from roofterm.analysis.batch_limits import limits
from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.signature import ITEM_BYTES
from roofterm.analysis.whatif_state import Base, Change, State, expected_tokens, kv_dtype, kv_token_bytes, memory_held, state_of, step_s
from roofterm.analysis.workload import DECODE, PREFILL, Least, Machine, Part, WhatIfError, total
from roofterm.results import WhatIf, WhatIfRow, WhatIfState


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
        kv_token_bytes=kv_token_bytes(base, change, then),
        held=[*base.held, *_held(base, change, now, then, machine)],
    )


def _measured(state: State) -> float | None:
    times = [part.time_us for part in state.parts if part.time_us is not None]
    return sum(times) if times else None


def _summary(base: Base, state: State, change: Change, machine: Machine, estimate_us: float | None) -> WhatIfState:
    shape, parts = state.shape, state.parts
    needs = {name: state.needs(f"{name}_s") for name in ("compute", "hbm", "link")}
    unmodelled = sum(one.bound_s for part, one in zip(parts, state.least, strict=True) if part.unmodelled)
    bound_s = step_s(base, state)
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
        "weight": {"read": total(parts, "weight_bytes"), "write": total(parts, "weight_write")},
        "kv": {"read": total(parts, "kv_read"), "write": total(parts, "kv_write")},
        "activation": {"read": total(parts, "activation_read"), "write": total(parts, "activation_write")},
        "gradient": {"read": total(parts, "gradient_read"), "write": total(parts, "gradient_write")},
        "optimizer": {"read": total(parts, "optimizer_read"), "write": total(parts, "optimizer_write")},
    }
    flops = total(parts, "flops")
    held_bytes = memory_held(base, change, state)
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
        kv_dtype=change.kv_dtype or (kv_dtype(base) if roles["kv"]["read"] or roles["kv"]["write"] else None),
        tp=state.devices,
        drafts=change.drafts,
        accept=change.accept if change.drafts else None,
        device=machine.name,
        bound_us=bound_s * 1e6,
        bound_by=_bound_by({**needs, "work without a model": unmodelled}),
        arithmetic_us=needs["compute"] * 1e6,
        memory_us=needs["hbm"] * 1e6,
        link_us=needs["link"] * 1e6,
        held_us=held * 1e6,
        launch_us=needs["launch"] * 1e6 if "launch" in needs else None,
        flops=flops,
        bytes=moved,
        bytes_by_role={role: ways for role, ways in roles.items() if any(ways.values())},
        held_bytes=held_bytes,
        fits=None if held_bytes is None or not machine.device.memory_bytes else held_bytes <= machine.device.memory_bytes,
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
        state_bytes=part.state_bytes,
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
    reshaped = then.shape != now.shape or change.batch_times is not None
    if kept > 0.0005 * then.bound_s and reshaped:
        said.append(f"{kept * 1e3:,.3f} ms of the bound do not follow the batch and are held as they are")
    if reshaped and any(part.state_bytes for part in then.parts):
        said.append("updates of weights, their gradients and the optimizer's state do not follow the batch")
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
    if change.batch_times is not None and base.shape is None and base.rows is not None:
        rows = f"{base.rows * change.batch_times:,.0f} rows (tokens, or images) instead of {base.rows:,}"
        said.append(f"{rows}; of how many sequences is not known")
    if change.drafts:
        said.append("the draft model takes no time; every draft is accepted with the same probability")
    if base.launches is not None:
        said.append(f"{base.launches:,.0f} launches, as in the profile")
    return said


def _held_types(change: Change, then: State) -> list[str]:
    said = []
    narrow = change.dtype is not None and ITEM_BYTES["fp32" if change.dtype == "tf32" else change.dtype] < ITEM_BYTES["bf16"]
    if narrow:
        said.append(
            f"only products with weights, and those of their gradients, run in {change.dtype}: attention, norms and results keep their "
            "type; turning activations into it is not counted"
        )
    if narrow and any(part.category == Category.GEMM and part.other_bytes and part.dtype == change.dtype for part in then.parts):
        said.append("of products whose operands have no known role all bytes shrink")
    if change.dtype is not None and change.kv_dtype is None and any(part.kv_read for part in then.parts):
        said.append("the KV cache keeps its type")
    if any(part.kept and part.weights for part in then.parts) and (narrow or change.weights is not None):
        said.append("embedding and head keep their type")
    if change.dtype is not None and any(part.category == Category.OPTIMIZER for part in then.parts):
        said.append("the optimizer's step keeps its types")
    if any(part.dequantised for part in then.parts):
        said.append("weights are turned into the type of the arithmetic as they are read: 2 FLOPs each on the vector units")
    return said
