"""Which op each piece of device work belongs to, for the roofline: the innermost op around its launch that has a cost.

A nest such as conv2d > convolution > _convolution > cudnn_convolution thus counts once, at the innermost. Where an op of
the tensor-core families holds another one that launched work, it is that other one's wrapper and its own cost is void, so
that the kernels which the wrapper launched beside (a bias, a layout change) do not count the product again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.costs import Cost, cost, lookup
from roofterm.analysis.costs.signature import dtype_name
from roofterm.analysis.host_work import CPU
from roofterm.analysis.lookup import ABSENT, looked_up
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import ROOT, Profile

NO_COST = -1
NO_SIGNATURE = -1


class Owners(NamedTuple):
    """Owner of each distinct launching op."""

    op: NDArray[np.uint32]
    """distinct ops that launched work, ascending"""
    owner: NDArray[np.uint32]
    """slice of the op that the work counts for (the launching op itself where none around it has a cost)"""
    cost: NDArray[np.int64]
    """row of `costs`, or NO_COST"""
    signature: NDArray[np.int64]
    """of the owner, row of `profile.signatures`, or NO_SIGNATURE"""
    recomputed: NDArray[np.bool_]
    """forward work that a backward pass did again (activation checkpointing)"""
    costs: Sequence[Cost]

    def rows_of(self, ops: pl.Series) -> NDArray[np.int64]:
        """The row of each of these ops; ABSENT for null and for ops that launched nothing when the owners were found."""
        wanted = ops.cast(pl.Int64).fill_null(-1).to_numpy()
        rows = np.searchsorted(self.op, wanted)
        there = (rows < self.op.size) & (self.op[np.minimum(rows, self.op.size - 1)] == wanted) if self.op.size else wanted < -1
        return np.where(there, rows, ABSENT)


def find_owners(profile: Profile, work: pl.DataFrame, facts: pl.DataFrame) -> Owners:
    """Owners of the ops that launched `work` (schema `work.WORK`); `facts`: schema `categories.FACTS`."""
    ops = work["op"].drop_nulls().unique().sort().to_numpy()
    if ops.size == 0:
        none = np.zeros(0, np.int64)
        return Owners(ops, ops, none, none, np.zeros(0, np.bool_), ())
    calls = _Calls(profile)
    calls.fallback = _fallback_types(calls, work, facts)
    on_cpu = bool((profile.devices["kind"] == CPU).any())
    calls.sole_type = _sole_type(profile) if on_cpu else None
    owner, found = _climb(profile, ops, calls)
    found = _without_wrappers(profile, owner, found, calls.costs)
    if on_cpu:
        found = _without_outer(profile, owner, found, calls.costs)
    return Owners(ops, owner, found, calls.signature[owner], _recomputed(profile, ops), calls.costs)


class _Calls:
    """Costs of distinct (op name, signature) pairs, each computed once."""

    def __init__(self, profile: Profile) -> None:
        self.names = profile.names["text"]
        self.name = profile.slices["name"].to_numpy()
        self.signature = np.full(profile.slices.height, NO_SIGNATURE, np.int64)
        """of each slice, -1 for none"""
        signature = profile.ops["signature"]
        signed = signature.is_not_null()
        self.signature[profile.ops["slice"].filter(signed).to_numpy()] = signature.drop_nulls().to_numpy()
        self.signatures = profile.signatures
        self.fallback: dict[int, str] = {}
        """type of the elements of calls whose inputs name none, by key"""
        self.sole_type: str | None = None
        """type of the elements of all other calls whose inputs name none"""
        self.costs: list[Cost] = []
        self._known: dict[int, int] = {}

    def of(self, slices: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Row of `costs` for each op, NO_COST where it has none."""
        found = np.full(slices.size, NO_COST, np.int64)
        signed = np.flatnonzero(self.signature[slices] >= 0)
        if signed.size:
            keys = _key(self.name[slices[signed]], self.signature[slices[signed]])
            distinct, back = np.unique(keys, return_inverse=True)
            found[signed] = np.array([self._cost(key) for key in distinct.tolist()], np.int64)[back]
        return found

    def _cost(self, key: int) -> int:
        if key not in self._known:
            name, signature = self.names[key >> 32], key & 0xFFFFFFFF
            found = None
            if lookup(name) is not None:
                dims, types, strides, concrete = self.signatures.row(signature)
                found = cost(name, dims, types, strides, concrete, self.fallback.get(key, self.sole_type))
            self._known[key] = NO_COST if found is None else len(self.costs)
            if found is not None:
                self.costs.append(found)
        return self._known[key]


def _climb(profile: Profile, ops: NDArray[np.uint32], calls: _Calls) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """For each op the innermost op around it, itself included, that has a cost; itself where none has."""
    parent = profile.slices["parent"].to_numpy()
    owner = ops.copy()
    found = np.full(ops.size, NO_COST, np.int64)
    active, current = np.arange(ops.size), ops.copy()
    while active.size:
        costs = calls.of(current)
        hit = costs != NO_COST
        owner[active[hit]] = current[hit]
        found[active[hit]] = costs[hit]
        active, current = active[~hit], parent[current[~hit]]
        inside = current != ROOT
        active, current = active[inside], current[inside]
    return owner, found


def _without_wrappers(profile: Profile, owner: NDArray[np.uint32], found: NDArray[np.int64], costs: Sequence[Cost]) -> NDArray[np.int64]:
    """The costs, void for owners that hold another owner of the tensor-core families."""
    tensor = _tensor(costs)[found]
    owners = occurring(owner[tensor])
    if owners.size == 0:
        return found
    return np.where(tensor & _holders(profile, owners)[owner], NO_COST, found)


def _without_outer(profile: Profile, owner: NDArray[np.uint32], found: NDArray[np.int64], costs: Sequence[Cost]) -> NDArray[np.int64]:
    """The costs, void for owners outside the tensor-core families that hold any other owner: on a CPU a wrapper has time of its own."""
    outer = (found != NO_COST) & ~_tensor(costs)[found]
    if not outer.any():
        return found
    return np.where(outer & _holders(profile, occurring(owner[found != NO_COST]))[owner], NO_COST, found)


def _tensor(costs: Sequence[Cost]) -> NDArray[np.bool_]:
    """For each row of `costs`, and for NO_COST at the end, whether it is of the tensor-core families."""
    return np.array([cost.is_gemm_or_attention for cost in costs] + [False], np.bool_)


def _holders(profile: Profile, owners: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """For each slice whether it is one of these owners and holds another one of them."""
    parent = profile.slices["parent"].to_numpy()
    is_owner = np.zeros(parent.size, np.bool_)
    is_owner[owners] = True
    holds = np.zeros(parent.size, np.bool_)
    current = parent[owners]
    current = occurring(current[current != ROOT])
    while current.size:
        holds[current[is_owner[current]]] = True
        current = parent[current]
        current = occurring(current[current != ROOT])
    return holds


_BACKWARD = r"^autograd::engine::evaluate_function|CheckpointFunctionBackward"
_FORWARD_ONLY = r"^aten::(linear|addmm|conv[123]d|convolution|conv_transpose[123]d|scaled_dot_product_attention)$|^CheckpointFunction$"


def _recomputed(profile: Profile, ops: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether each op runs a forward inside the backward pass.

    Autograd's own formulas never call the composite forward ops (linear, conv2d, scaled_dot_product_attention): one of
    them between a backward node and the work means that activations are computed again.
    """
    texts = profile.names["text"]
    backward_name = texts.str.contains(_BACKWARD).to_numpy()
    forward_name = texts.str.contains(_FORWARD_ONLY).to_numpy()
    recomputed = np.zeros(ops.size, np.bool_)
    if not (backward_name.any() and forward_name.any()):
        return recomputed
    parent, name = profile.slices["parent"].to_numpy(), profile.slices["name"].to_numpy()
    forward = np.zeros(ops.size, np.bool_)
    active, current = np.arange(ops.size), ops.copy()
    while active.size:
        recomputed[active] |= forward[active] & backward_name[name[current]]
        forward[active] |= forward_name[name[current]]
        current = parent[current]
        inside = (current != ROOT) & ~recomputed[active]
        active, current = active[inside], current[inside]
    return recomputed


def _fallback_types(calls: _Calls, work: pl.DataFrame, facts: pl.DataFrame) -> dict[int, str]:
    """Type of the elements by the kernels' names, for calls whose inputs name none: {key of (name, signature): type}."""
    stored = looked_up(facts["stored"], facts["slice"], calls.name.size, work["slice"])
    linked = pl.DataFrame({"op": work["op"], "stored": stored.cast(pl.String)}).drop_nulls()
    op = linked["op"].to_numpy()
    signed = calls.signature[op] >= 0
    op = op[signed]
    pairs = pl.DataFrame({"key": _key(calls.name[op], calls.signature[op]), "stored": linked["stored"].filter(pl.Series(signed))})
    named = pairs.unique().group_by("key").agg(pl.col("stored").min())
    return dict(named.iter_rows())


def _sole_type(profile: Profile) -> str | None:
    """The floating type of the tensors that name one, if it is one and the same in all of the profile."""
    recorded = profile.signatures["types"].drop_nulls().str.json_decode(pl.List(pl.String)).explode().drop_nulls().unique()
    found = {name for one in recorded.to_list() if (name := dtype_name(one)) is not None and name.startswith(("fp", "bf"))}
    return found.pop() if len(found) == 1 else None


def _key(name: NDArray[np.uint32], signature: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for a name and a signature, both known."""
    key: NDArray[np.int64] = (name.astype(np.int64) << 32) | signature
    return key
