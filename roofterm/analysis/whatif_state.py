"""The step that a what-if starts from, what is asked of it, and the step as it would then be."""

from __future__ import annotations

from typing import Protocol

import msgspec

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
    kv_dtype: str | None = None
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
        ratio = ITEM_BYTES[change.kv_dtype] / ITEM_BYTES[kv_dtype(base)]
        parts = [with_kv(part, ratio) for part in parts]
    told = shape if base.shape is not None else None
    return State(told, devices, parts, [least(part, machine) for part in parts])


def expected_tokens(drafts: int, accept: float) -> float:
    """Tokens that a step with speculation gives on average: (1 - a^(k+1)) / (1 - a) (Leviathan 2023, equation 1)."""
    return drafts + 1.0 if accept >= 1 else (1 - accept ** (drafts + 1)) / (1 - accept)


def _shape(base: Base, change: Change) -> Shape | None:
    """The shape that is asked for."""
    shape = base.shape
    asked = [change.batch, change.batch_times, change.prompt, change.context, change.drafts or None]
    if all(one is None for one in asked):
        return shape
    if shape is None:
        if base.rows is not None and change.batch_times is not None and asked.count(None) == len(asked) - 1:
            return Shape(base.rows * change.batch_times, 1, 1)
        if base.rows is None:
            raise WhatIfError(
                "the batch of these steps cannot be told: their products with weights do not share their rows; "
                "choose steps that do the same with --step, or give --model config.json"
            )
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


def kv_dtype(base: Base) -> str:
    """Type of the KV cache's elements as it is: told, or that of the model."""
    return base.kv_dtype or (base.model.dtype if base.model is not None else "bf16")


def kv_token_bytes(base: Base, change: Change, then: State) -> float | None:
    """Bytes of the KV cache that one token takes on one device; None where nothing tells it."""
    if base.model is not None:
        return cache_bytes(base.model, then.devices, change.kv_dtype)
    written, rows = total(then.parts, "kv_write"), then.shape.rows if then.shape is not None else base.rows
    if written and rows:
        return written / rows
    read = total(then.parts, "kv_read")
    return read / (then.shape.sequences * then.shape.context) if read and then.shape is not None else None


def weights_held(base: Base, change: Change, devices: int) -> float | None:
    """Bytes of all weights on one device, as the change stores them; None where no model tells them."""
    if base.model is None:
        return None
    weights = change.weights
    if weights is None and change.dtype is not None and ITEM_BYTES["fp32" if change.dtype == "tf32" else change.dtype] < ITEM_BYTES["bf16"]:
        weights = Storage(change.dtype, 8 * ITEM_BYTES[change.dtype])
    return weights_on(base.model, devices, weights)


def memory_held(base: Base, change: Change, then: State) -> float | None:
    """Weights and KV cache in one device's memory; None where no model tells them."""
    weights, token = weights_held(base, change, then.devices), kv_token_bytes(base, change, then)
    if weights is None or token is None or then.shape is None:
        return None
    return weights + token * then.shape.sequences * then.shape.context


def step_s(base: Base, state: State) -> float:
    """The least time of a step: of its parts, and of its launches, which run beside them."""
    return max(state.bound_s, (base.launches or 0.0) * base.launch_s)
