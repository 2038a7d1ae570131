"""The least time of a step under other conditions."""

from __future__ import annotations

import msgspec


class WhatIfState(msgspec.Struct):
    """The least time of a step as it is or would be, on one device, and what it is made of."""

    phase: str | None
    """prefill or decode; None: a step of a profile that is neither"""
    sequences: float | None
    tokens: float | None
    """new tokens of a sequence"""
    context: float | None
    """tokens attended to by a sequence's last token"""
    dtype: str | None
    weights: str | None
    """how weights are stored, if it is not as the dtype is"""
    kv_dtype: str | None
    tp: int
    """devices that every layer is split among"""
    drafts: int
    """tokens that speculation proposes in a step"""
    accept: float | None
    device: str
    bound_us: float
    bound_by: str | None
    arithmetic_us: float
    """sums of what each resource needs, part by part"""
    memory_us: float
    link_us: float
    held_us: float
    """measured time of work without a model, and bounds that do not follow the change"""
    launch_us: float | None
    flops: float
    bytes: float
    bytes_by_role: dict[str, dict[str, float]]
    held_bytes: float | None
    """weights and KV cache in one device's memory; None: no model tells them"""
    fits: bool | None
    """whether they fit in it"""
    intensity: float | None
    tokens_per_step: float | None
    """new tokens of a sequence that a step is expected to give"""
    tokens_per_s: float | None
    """of all sequences, at the bound"""
    itl_us: float | None
    """time between a sequence's tokens, at the bound"""
    ttft_us: float | None
    """time to the first token of prompts that start together, at the bound"""
    estimate_us: float | None = None
    """with each part as near to its bound as it was measured"""


class WhatIfRow(msgspec.Struct):
    """One part of the step: now and as asked for."""

    phase: str | None
    name: str
    category: str
    calls: float
    bound_us: float | None
    bound_by: str | None
    whatif_us: float
    whatif_bound_by: str | None
    flops: float
    weight_bytes: float
    kv_bytes: float
    activation_bytes: float
    state_bytes: float
    """what training moves of weights beside reading them: updates, gradients, the optimizer's state"""
    other_bytes: float
    wire_bytes: float
    time_us: float | None
    """measured"""
    estimate_us: float | None
    held: bool
    """kept as it was"""
    shapes: str | None = None


class WhatIfLimit(msgspec.Struct):
    """A batch at which something changes; None: at none."""

    name: str
    batch: int | None
    text: str


class WhatIf(msgspec.Struct):
    base: WhatIfState
    whatif: WhatIfState
    measured_us: float | None
    """length of the step in the profile"""
    busy_us: float | None
    rows: list[WhatIfRow]
    limits: list[WhatIfLimit]
    kv_token_bytes: float | None
    """KV cache of one token on one device"""
    held: list[str]
    """what is held constant or not counted, in sentences"""


class SweepRow(msgspec.Struct):
    name: str
    value: float
    state: WhatIfState
