"""Parts of a profile's step, and what becomes of each for another batch or among more devices."""

from __future__ import annotations

from typing import Any

import msgspec

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs import Cost
from roofterm.analysis.costs.signature import Inputs
from roofterm.analysis.op_roles import ROLE_COLUMNS, forward_roles
from roofterm.analysis.profile_calls import ANY_TYPE, KNOWN_FORWARD, DistinctCall
from roofterm.analysis.workload import Part, all_reduce_wire

_STATE = ("weight_write", "gradient_read", "gradient_write", "optimizer_read", "optimizer_write")


def base_part(one: DistinctCall, row: dict[str, Any]) -> Part:
    time_us = row["time_ps"] / 1e6
    if row["unmodelled"]:
        return Part(one.text, one.category, row["calls"], time_us=time_us, unmodelled=True, shapes=one.dims)
    roles_known = bool(row["has_roles"])
    named = sum(row[column] for column in ROLE_COLUMNS) if roles_known else 0.0
    if row["pcie_bytes"]:
        return Part(one.text, one.category, row["calls"], time_us=time_us, bound_s=row["bound_s"], rescaled=False, shapes=one.dims)
    weight_read = row["weight_read"] if roles_known else 0.0
    weights = weight_read / one.weight_item if one.weight_item else 0.0
    return Part(
        one.text,
        one.category,
        row["calls"],
        dtype=one.dtype,
        tensor_core=None if row["tensor_core"] is None else bool(row["tensor_core"]),
        flops=row["flops"] or 0.0,
        weights=weights,
        channels=weights / one.summed if one.summed else 0.0,
        weight_bytes=weight_read,
        weight_type=one.dtype,
        product=_is_product(one, row),
        kv_read=row["kv_read"] if roles_known else 0.0,
        kv_write=row["kv_write"] if roles_known else 0.0,
        activation_read=row["activation_read"] if roles_known else 0.0,
        activation_write=row["activation_write"] if roles_known else 0.0,
        **{column: row[column] for column in _STATE if roles_known},
        other_bytes=max(0.0, (row["hbm_bytes"] or 0.0) - named),
        wire_bytes=row["link_bytes"] or 0.0,
        time_us=time_us,
        shapes=one.dims,
    )


def _is_product(one: DistinctCall, row: dict[str, Any]) -> bool:
    """With weights, or making their gradients."""
    makes_gradients = one.category == Category.GEMM and bool(row["has_roles"]) and bool(row["gradient_write"])
    return bool(one.n) or makes_gradients or one.category in (Category.CONV, Category.MOE)


def multiplied(base: Part, factor: float) -> Part:
    """A compiled instruction for so many times the sequences: its activations, and the FLOPs if it has any, grow alike."""
    if not base.activation_read and not base.activation_write:
        return base
    return msgspec.structs.replace(
        times(base, factor), flops=base.flops * factor, kv_read=base.kv_read * factor, kv_write=base.kv_write * factor
    )


def rescaled(base: Part, one: DistinctCall, again: Cost, dims: list[Any]) -> Part:
    """The part with each amount in the proportion of the new cost to the old."""
    if one.cost is None:
        return base
    flops = base.flops * _ratio(again.flops, one.cost.flops)
    if one.roles is None:
        return msgspec.structs.replace(base, flops=flops, other_bytes=base.other_bytes * _ratio(again.bytes, one.cost.bytes))
    if one.category in _ROLES_MOVE and not base.state_bytes:
        new = forward_roles(one.text, Inputs(dims, one.types, one.strides, one.concrete, one.dtype or ANY_TYPE), again, KNOWN_FORWARD)
        if new is None:
            return msgspec.structs.replace(base, rescaled=False)
        old = one.roles
        return msgspec.structs.replace(
            base,
            flops=flops,
            weight_bytes=base.weight_bytes * _ratio(new.weight_read, old.weight_read),
            kv_read=base.kv_read * _ratio(new.kv_read, old.kv_read),
            kv_write=base.kv_write * _ratio(new.kv_write, old.kv_write),
            activation_read=base.activation_read * _ratio(new.activation_read, old.activation_read),
            activation_write=base.activation_write * _ratio(new.activation_write, old.activation_write),
        )
    held_read = base.weight_bytes + base.gradient_read + base.optimizer_read
    held_write = base.weight_write + base.gradient_write + base.optimizer_write
    return msgspec.structs.replace(
        base,
        flops=flops,
        activation_read=_grown(base.activation_read, held_read, again.read_bytes, one.cost.read_bytes),
        activation_write=_grown(base.activation_write, held_write, again.write_bytes, one.cost.write_bytes),
    )


_ROLES_MOVE = (Category.ATTENTION, Category.KV_CACHE, Category.EMBEDDING, Category.MOE)
"""Work of which not only activations follow the batch: rows looked up, experts reached, keys and values."""


def _grown(grows: float, held: float, new: float | None, old: float | None) -> float:
    """Bytes that follow the batch, beside `held` that do not, where a call's bytes go from `old` to `new`."""
    return grows if not grows else max(0.0, (grows + held) * _ratio(new, old) - held)


def _ratio(new: float | None, old: float | None) -> float:
    return new / old if new is not None and old else 1.0


def times(part: Part, factor: float) -> Part:
    return msgspec.structs.replace(
        part,
        wire_bytes=part.wire_bytes * factor,
        other_bytes=part.other_bytes * factor,
        activation_read=part.activation_read * factor,
        activation_write=part.activation_write * factor,
    )


def share_of(part: Part, one: DistinctCall, share: float, hidden: int) -> Part:
    """One device's share of a part. A product that widens keeps its input whole, one that narrows its result."""
    if part.unmodelled or part.category == Category.COMMUNICATION or part.bound_s is not None:
        return part
    is_product = bool(one.n) or part.category in (Category.ATTENTION, Category.CONV, Category.MOE, Category.KV_CACHE, Category.OPTIMIZER)
    if not is_product and one.last == hidden:
        return part
    read = 1.0 if one.n and one.k == hidden else share
    written = 1.0 if one.n and one.n == hidden and one.k != hidden else share
    return msgspec.structs.replace(
        part,
        flops=part.flops * share,
        weights=part.weights * share,
        channels=part.channels * written,
        weight_bytes=part.weight_bytes * share,
        kv_read=part.kv_read * share,
        kv_write=part.kv_write * share,
        activation_read=part.activation_read * read,
        activation_write=part.activation_write * written,
        **{column: getattr(part, column) * share for column in _STATE},
        other_bytes=part.other_bytes * share,
        dequantised=part.dequantised * share,
    )


def all_reduces(calls: float, message_bytes: float, devices: int) -> Part:
    return Part(
        "all-reduce of tensor parallelism", Category.COMMUNICATION, calls, wire_bytes=calls * all_reduce_wire(message_bytes, devices),
        activation_read=calls * message_bytes, activation_write=calls * message_bytes,
    )  # fmt: skip
