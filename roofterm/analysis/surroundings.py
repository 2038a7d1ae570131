"""What stands around an op and tells what its operands are: a pass of autograd, an optimizer's step, aten::linear."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.profile import ROOT, Profile


class Place(IntEnum):
    """The part of a step that an op runs in, as far as the roles of its bytes depend on it."""

    FORWARD = 0
    """under no mark, or computed again in a backward pass"""
    BACKWARD = 1
    GRADIENT = 2
    """where gradients of parameters are added up, exchanged, scaled or set to zero"""
    OPTIMIZER = 3


_MARKS: tuple[tuple[Place, str], ...] = (
    (Place.GRADIENT, r"AccumulateGrad$|^Optimizer\.zero_grad#"),
    (Place.OPTIMIZER, r"^Optimizer\.step#|^aten::_fused_(adam|adamw|sgd|adagrad)_?(\.|$)|^aten::_foreach_"),
    (
        Place.FORWARD,
        r"^CheckpointFunctionBackward$|torch/utils/checkpoint\.py\(\d+\): (recompute_fn|unpack_hook)$"
        r"|^aten::(linear|conv[123]d|scaled_dot_product_attention|layer_norm|batch_norm)$",
    ),
    (Place.BACKWARD, r"^autograd::engine::|^\w+Backward\d*$|^(struct |class )?torch::autograd::|_backward(\.|$)"),
)
"""Names that mark a place; of an op's own and those around it the innermost counts. No backward formula runs aten::linear or
another of the composite forward ops, so what lies inside one is a forward, done again where a backward is around it."""

_CLIPPED = r"^aten::_(foreach_(norm|mul_|zero_)|amp_foreach_non_finite_check_and_unscale_)(\.|$)"
"""Outside of an optimizer's step: clipping, unscaling and zeroing of gradients (torch.nn.utils.clip_grad_norm_, GradScaler)."""


class Surroundings(NamedTuple):
    """One value for each op that was asked for."""

    place: NDArray[np.uint8]
    """Place"""
    linear: NDArray[np.bool_]
    """inside aten::linear"""
    composite: NDArray[np.int64]
    """signature of the aten::matmul or attention around it, -1: none"""


def surroundings(profile: Profile, ops: NDArray[np.int64]) -> Surroundings:
    """What stands around ops, by their slice ids."""
    texts = profile.names["text"]
    name, parent = profile.slices["name"].to_numpy(), profile.slices["parent"].to_numpy()
    facts = _facts_of_names(texts)[name] if texts.len() else np.zeros(0, np.uint8)
    by_thread = profile.ops["slice"].filter(profile.ops["forward_thread"].is_not_null()).to_numpy()
    facts[by_thread] |= np.where(facts[by_thread] & _MARKED, 0, 1 + Place.BACKWARD).astype(np.uint8)
    signature = np.full(parent.size, -1, np.int64)
    signature[profile.ops["slice"].to_numpy()] = profile.ops["signature"].cast(pl.Int64).fill_null(-1).to_numpy()

    place = np.zeros(ops.size, np.uint8)
    linear, in_step = np.zeros(ops.size, np.bool_), np.zeros(ops.size, np.bool_)
    composite = np.full(ops.size, -1, np.int64)
    active, current = np.arange(ops.size), ops
    while active.size:
        told = facts[current]
        some = np.flatnonzero(told)
        row, here, told = active[some], current[some], told[some]
        place[row] = np.where(place[row] == 0, told & _MARKED, place[row])
        linear[row] |= (told & _LINEAR) > 0
        in_step[row] |= (told & _STEP) > 0
        around = ((told & _COMPOSITE) > 0) & (composite[row] < 0)
        composite[row] = np.where(around, signature[here], composite[row])
        above = parent[current]
        inside = above != ROOT
        active, current = active[inside], above[inside]
    place = np.where(place == 0, Place.FORWARD, place - 1).astype(np.uint8)
    clipped = texts.str.contains(_CLIPPED).to_numpy()
    place[clipped[name[ops]] & ~in_step] = Place.GRADIENT
    return Surroundings(place, linear, composite)


_MARKED, _LINEAR, _COMPOSITE, _STEP = 0x0F, 0x10, 0x20, 0x40
"""Bits of what a name tells: one more than the place that it marks, and whether it is one of three kinds of op."""


def _facts_of_names(texts: pl.Series) -> NDArray[np.uint8]:
    facts = np.zeros(texts.len(), np.uint8)
    for marked, pattern in reversed(_MARKS):
        facts[texts.str.contains(pattern).to_numpy()] = 1 + marked
    facts[(texts == "aten::linear").to_numpy()] |= _LINEAR
    facts[texts.is_in(["aten::matmul", "aten::scaled_dot_product_attention"]).to_numpy()] |= _COMPOSITE
    facts[texts.str.contains(r"^Optimizer\.step#").to_numpy()] |= _STEP
    return facts
