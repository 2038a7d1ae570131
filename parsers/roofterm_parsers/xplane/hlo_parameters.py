"""What a compiled program's parameters are: weights, an optimizer's state, KV caches, activations; by the program alone.

In a program that trains, a parameter of which an updated version comes out is state: a weight if anything but its own update
uses it, else the optimizer's. In any other program a matrix that computed values are multiplied by is a weight, a table that
is gathered from by integers too, and what comes out with some of its slices replaced is a cache. The names that the program's
author gave (JAX keeps them: `params['w']`, `opt_state`, `cache`) go before these rules. What nothing tells stays unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from roofterm_parsers.xplane.hlo_proto import Computation, Instruction
from roofterm_parsers.xplane.hlo_shapes import Shape
from roofterm_parsers.xplane.hlo_sources import Flow, Multiplied, Path, Value

Key = tuple[int, Path]
"""A leaf of an instruction's result: its id and the index path."""

WEIGHT, KV, ACTIVATION, GRADIENT, OPTIMIZER = "weight", "kv", "activation", "gradient", "optimizer"

_LABELS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (OPTIMIZER, re.compile(r"opt_state|optimizer|(?:^|[.\['])(?:mu|nu|momentum|moments?)\b", re.IGNORECASE)),
    (KV, re.compile(r"kv_?cache|(?:^|[.\['_])(?:key|value|[kv])?_?cache(?:d|s|_\w+)?\b", re.IGNORECASE)),
    (WEIGHT, re.compile(r"param|weight|kernel|embedding|(?:^|[.\['_])w(?:s|[qkvoi]|\d+)?(?:$|[\]'.\[_\d])", re.IGNORECASE)),
    (ACTIVATION, re.compile(r"(?:^|[.\['_])(?:batch|inputs?|tokens?|images?|activations?|positions?|hidden_states?)\b", re.IGNORECASE)),
)
"""What the names of a function's arguments say, the first that fits. The metadata of a parameter holds the name."""

_REPLACES = ("dynamic-update-slice", "scatter")
_MATRIX = 2
_MAKES = ("parameter", "dot", "convolution", "custom-call", "while")
"""What makes a value that is no update of its operands."""


@dataclass
class Parameters:
    """Roles of the entry's parameters, by instruction id and path; and how the program updates what it gives back."""

    roles: dict[Key, str] = field(default_factory=dict)
    training: bool = False
    updates: dict[Key, list[Key]] = field(default_factory=dict)
    """a result that is an updated parameter: value to the parameters that it may be an update of"""
    updated_shapes: set[tuple[int, tuple[int, ...]]] = field(default_factory=set)
    """type and dims of the weights that the program updates"""

    def of(self, value: Value) -> str | None:
        return self.roles.get((value.one.id, value.path))


def parameters(flow: Flow, entry: Computation) -> Parameters:
    """What the parameters of a program are."""
    return _Finder(flow, entry).found


class _Finder:
    """The rules, in their order."""

    def __init__(self, flow: Flow, entry: Computation) -> None:
        self.flow, self.module, self.entry = flow, flow.module, entry
        self.leaves = {(one.id, path): leaf for one in entry.instructions if one.opcode == "parameter" for path, leaf in one.shape.leaves()}
        self.reached = _reached(flow, entry)
        self.found = Parameters()
        products = [product for one in self.reached for product in flow.multiplied(one)]
        operands = {self._key(value) for product in products for value in product.operands if value is not None}
        replaced = self._note_updates()
        updated = {key for keys in self.found.updates.values() for key in keys}
        self.found.training = bool(updated & operands)
        if self.found.training:
            self._split_state(updated, operands)
        else:
            self.found.updates.clear()
            self.found.roles |= dict.fromkeys(replaced, KV)
            updated = set()
        self._by_name(updated)
        for product in [*products, *products]:  # what one tells of a weight tells of what others multiply
            self._by_product(product)
        self._by_tables()
        if WEIGHT in self.found.roles.values():
            self._by_shape()
        self.found.updated_shapes = {_shape(self.leaves[key]) for key in updated if self.found.roles.get(key) == WEIGHT}

    def _key(self, value: Value) -> Key:
        return _key(self.flow.source(value))

    def _note_updates(self) -> set[Key]:
        """Note the results that are updates of parameters; returns the parameters that come out with slices replaced."""
        replaced = set()
        root = self.entry.root()
        for path, leaf in root.shape.leaves():
            value = self.flow.source(Value(root, path))
            behind = self._replaced(value)
            if behind in self.leaves:
                replaced.add(behind)
                continue
            if value.one.opcode in _MAKES or not leaf.dims:
                continue
            inputs = [self._key(Value(operand, at)) for operand in self.module.operands(value.one) for at, _ in operand.shape.leaves()]
            keys = [key for key in inputs if key in self.leaves and _shape(self.leaves[key]) == _shape(leaf)]
            if keys:
                self.found.updates[_key(value)] = list(dict.fromkeys(keys))
        return replaced

    def _replaced(self, value: Value, depth: int = 0) -> Key | None:
        """The parameter that a value is but for some of its slices; None: it is none."""
        one = value.one
        if one.opcode in _REPLACES:
            return self._key(Value(self.module.operands(one)[0]))
        if one.opcode not in ("fusion", "while") or depth > 1:
            return None
        for function in self.flow.functions(one)[:1]:
            inner = self.flow.source(Value(function.root(), value.path))
            if one.opcode == "while":
                return self._replaced(inner, depth + 1)
            if inner.one.opcode in _REPLACES:
                outer = self.flow.outside(one, Value(self.module.operands(inner.one)[0]))
                return None if outer is None else self._key(outer)
        return None

    def _split_state(self, updated: set[Key], operands: set[Key]) -> None:
        """Weights are multiplied, or used beside their update; the rest of what is updated is the optimizer's."""
        updaters: dict[Key, set[int]] = {}
        for (number, _), keys in self.found.updates.items():
            for key in keys:
                updaters.setdefault(key, set()).add(number)
        used = set(operands)
        for one in self.reached:
            if one.opcode in ("tuple", "get-tuple-element", "while"):
                continue
            given_on = {self._key(Value(one, path)) for path, _ in one.shape.leaves()}
            for operand in self.module.operands(one):
                for path, _ in operand.shape.leaves():
                    key = self._key(Value(operand, path))
                    if key in updated and one.id not in updaters[key] and key not in given_on:
                        used.add(key)
        self.found.roles |= {key: WEIGHT if key in used else OPTIMIZER for key in updated}

    def _by_name(self, updated: set[Key]) -> None:
        """What the author's names say of parameters that are not seen to be updated."""
        for one in self.entry.instructions:
            role = next((role for role, pattern in _LABELS if pattern.search(one.op_name)), None) if one.opcode == "parameter" else None
            if role is not None:
                self.found.roles |= {(one.id, path): role for path, _ in one.shape.leaves() if (one.id, path) not in updated}

    def _by_product(self, product: Multiplied) -> None:
        """What multiplies a weight is an activation; a matrix that a batch shares, or that multiplies what was computed, a weight."""
        keys = [None if value is None else self._key(value) for value in product.operands]
        for side in (0, 1):
            mine, other = keys[side], keys[1 - side]
            if mine not in self.leaves or mine is None or mine in self.found.roles:
                continue
            if other is not None and self.found.roles.get(other) == WEIGHT:
                self.found.roles[mine] = ACTIVATION
            elif product.convolves:
                self.found.roles[mine] = WEIGHT if side == 1 else ACTIVATION
            elif product.batched or len(product.shapes[side].dims) != _MATRIX:
                continue
            elif other is None or other not in self.leaves or len(self.leaves[other].dims) > _MATRIX:
                self.found.roles[mine] = WEIGHT

    def _by_tables(self) -> None:
        """A matrix of numbers that rows are gathered from by integers is a table of embeddings."""
        for one in self.reached:
            inner = [two for function in self.flow.functions(one) for two in function.instructions] if one.opcode == "fusion" else [one]
            for gather in [two for two in inner if two.opcode == "gather"]:
                operands = self.module.operands(gather)
                if len(operands) < 2 or operands[1].shape.dtype[0] not in "su" or operands[0].shape.dtype[0] in "sup":
                    continue
                table = Value(operands[0]) if gather is one else self.flow.outside(one, Value(operands[0]))
                key = None if table is None else self._key(table)
                if key in self.leaves and key is not None and len(self.leaves[key].dims) == _MATRIX:
                    self.found.roles.setdefault(key, WEIGHT)

    def _by_shape(self) -> None:
        """Beside known weights: integers and masks are activations, vectors of numbers scales and biases."""
        for key, leaf in self.leaves.items():
            if key in self.found.roles:
                continue
            if leaf.dtype[0] in "sup":
                self.found.roles[key] = ACTIVATION
            elif len(leaf.dims) == 1:
                self.found.roles[key] = WEIGHT


def _reached(flow: Flow, entry: Computation) -> list[Instruction]:
    """The entry's instructions and those of its loops and branches; not what is inside fusions."""
    order: list[Instruction] = []
    seen, waiting = {entry.id}, [entry]
    while waiting:
        for one in waiting.pop().instructions:
            order.append(one)
            if one.opcode in ("while", "conditional"):
                for computation in flow.functions(one):
                    if computation.id not in seen:
                        seen.add(computation.id)
                        waiting.append(computation)
    return order


def _key(value: Value) -> Key:
    return value.one.id, value.path


def _shape(leaf: Shape) -> tuple[int, tuple[int, ...]]:
    return leaf.element, leaf.dims
