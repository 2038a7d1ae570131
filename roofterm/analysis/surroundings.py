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
    unmarked = len(Place)
    mark_of_name = np.full(texts.len(), unmarked, np.uint8)
    for marked, pattern in reversed(_MARKS):
        mark_of_name[texts.str.contains(pattern).to_numpy()] = marked
    clipped = texts.str.contains(_CLIPPED).to_numpy()
    is_linear = (texts == "aten::linear").to_numpy()
    is_composite = texts.is_in(["aten::matmul", "aten::scaled_dot_product_attention"]).to_numpy()
    backward = np.zeros(parent.size, np.bool_)
    backward[profile.ops["slice"].filter(profile.ops["forward_thread"].is_not_null()).to_numpy()] = True
    signed = profile.ops["signature"].cast(pl.Int64).fill_null(-1).to_numpy()
    signature = np.full(parent.size, -1, np.int64)
    signature[profile.ops["slice"].to_numpy()] = signed

    place = np.full(ops.size, unmarked, np.uint8)
    linear, in_step = np.zeros(ops.size, np.bool_), np.zeros(ops.size, np.bool_)
    composite = np.full(ops.size, -1, np.int64)
    steps = texts.str.contains(r"^Optimizer\.step#").to_numpy()
    active, current = np.arange(ops.size), ops
    while active.size:
        mark = mark_of_name[name[current]]
        mark = np.where((mark == unmarked) & backward[current], np.uint8(Place.BACKWARD), mark)
        place[active] = np.where(place[active] == unmarked, mark, place[active])
        linear[active] |= is_linear[name[current]]
        in_step[active] |= steps[name[current]]
        around = is_composite[name[current]] & (composite[active] < 0)
        composite[active] = np.where(around, signature[current], composite[active])
        above = parent[current]
        inside = above != ROOT
        active, current = active[inside], above[inside].astype(np.int64)
    place[place == unmarked] = Place.FORWARD
    place[clipped[name[ops]] & ~in_step] = Place.GRADIENT
    return Surroundings(place, linear, composite)
