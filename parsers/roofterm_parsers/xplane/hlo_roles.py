"""What a compiled instruction's bytes are: weights, KV cache, activations, gradients of weights, an optimizer's state.

Roles go from the program's parameters (hlo_parameters.py) along its values: what only moves or converts a value keeps its
role, what is computed with an activation is one. In a program that trains, what goes into the update of a weight is its
gradient, back to the product or sum that made it. Bytes are those of the cost analysis, in the device's main memory alone.
"""

from __future__ import annotations

from math import prod

from roofterm_parsers.xplane.hlo_costs import CostAnalysis
from roofterm_parsers.xplane.hlo_parameters import ACTIVATION, GRADIENT, KV, OPTIMIZER, WEIGHT, Key, parameters
from roofterm_parsers.xplane.hlo_proto import Computation, Instruction, Module
from roofterm_parsers.xplane.hlo_shapes import Shape
from roofterm_parsers.xplane.hlo_sources import Flow, Value
from roofterm_parsers.xplane.hlo_text import ELEMENTWISE

ROLES = (WEIGHT, KV, ACTIVATION, GRADIENT, OPTIMIZER)
MAIN_MEMORY = 0
_KEEPS = ELEMENTWISE | {"all-reduce", "all-reduce-start", "all-reduce-done", "fusion", "tuple", "get-tuple-element", "bitcast", "transpose"}
"""What a gradient of a weight may pass through on its way to the update, if it keeps its size."""
_CONSTANT = ("constant", "iota", "partition-id", "replica-id", "after-all")


class Roles:
    """Roles of a program's values; none where the program tells no weights."""

    def __init__(self, module: Module, costs: CostAnalysis) -> None:
        self._costs, self._flow = costs, Flow(module)
        self._module = module
        self._of: dict[Key, str | None] = {}
        entry = module.computation.get(module.entry_id)
        if entry is None:
            return
        self._parameters = parameters(self._flow, entry)
        if WEIGHT not in self._parameters.roles.values() and KV not in self._parameters.roles.values():
            return
        self._entry = frozenset(one.id for one in entry.instructions)
        self._weights = self._shapes_of_weights(entry)
        self._gradients = self._find_gradients(entry)
        for computation in self._computations(entry):
            for one in computation.instructions:
                for path, _ in one.shape.leaves():
                    self._of[one.id, path] = self._role(one, path)

    def of(self, one: Instruction) -> dict[str, float | None]:
        """Bytes of one execution by role and way, and the sizes of its product with weights; nothing where no role is known."""
        cost = self._costs.of(one)
        if not self._of or cost is None:
            return {}
        found: dict[str, float | None] = {}
        for i, operand in enumerate(self._module.operands(one)):
            for path, leaf in operand.shape.leaves():
                self._add(found, self._of.get((operand.id, path)), "read", cost.read.get((i, path), 0.0), leaf)
        for path, leaf in one.shape.leaves():
            self._add(found, self._of.get((one.id, path)), "write", cost.written.get(path, 0.0), leaf)
        if not found:
            return {}
        every = {f"{role}_{way}": found.get(f"{role}_{way}", 0.0) for role in ROLES for way in ("read", "write")}
        return every | self._sizes(one)

    def _add(self, found: dict[str, float | None], role: str | None, way: str, size: float, leaf: Shape) -> None:
        if role is not None and size and leaf.memory_space == MAIN_MEMORY:
            found[f"{role}_{way}"] = (found.get(f"{role}_{way}") or 0.0) + size

    def _sizes(self, one: Instruction) -> dict[str, float | None]:
        for product in self._flow.multiplied(one):
            roles = [None if value is None else self._of.get((value.one.id, value.path)) for value in product.operands]
            if WEIGHT in roles:
                sizes = product.sizes(roles.index(WEIGHT))
                if sizes is not None:
                    return dict(zip(("rows", "summed", "columns"), map(float, sizes), strict=True))
        return {}

    def _computations(self, entry: Computation) -> list[Computation]:
        """The entry and the bodies of its loops and branches, outer ones first."""
        order, seen = [entry], {entry.id}
        for computation in order:
            for one in computation.instructions:
                if one.opcode in ("while", "conditional"):
                    inner = [function for function in self._flow.functions(one) if function.id not in seen]
                    seen |= {function.id for function in inner}
                    order += inner
        return order

    def _role(self, one: Instruction, path: tuple[int, ...]) -> str | None:
        parameters, key = self._parameters, (one.id, path)
        if key in parameters.updates:
            return self._of_update(key, path)
        if key in self._gradients:
            return GRADIENT
        behind = self._flow.source(Value(one, path))
        if (behind.one.id, behind.path) != key:
            return self._known((behind.one.id, behind.path))
        if one.opcode == "parameter":
            return parameters.roles.get(key)
        if one.opcode in _CONSTANT:
            return ACTIVATION
        inputs = [
            self._known(self._source_key(Value(operand, at)))
            for operand in self._module.operands(one)
            for at, leaf in operand.shape.leaves()
            if leaf.dims and operand.opcode not in _CONSTANT
        ]
        if one.opcode in ("dynamic-update-slice", "scatter", "fusion", "while") and KV in inputs and self._is_cache(one, path):
            return KV
        return self._computed(one, inputs)

    def _computed(self, one: Instruction, inputs: list[str | None]) -> str | None:
        if not inputs:
            return ACTIVATION
        if ACTIVATION in inputs or KV in inputs:
            # Of a training loop's body nothing tells gradients of weights from those of activations.
            inside = one.opcode in ("dot", "dynamic-update-slice", "while") and self._parameters.training
            return None if inside and self._is_in_loop(one) else ACTIVATION
        kinds = set(inputs)
        if WEIGHT in kinds and self._flow.multiplied(one):  # by something that the instruction makes itself
            return ACTIVATION
        return kinds.pop() if len(kinds) == 1 else None

    def _of_update(self, key: Key, path: tuple[int, ...]) -> str | None:
        """Of several parameters of one size that one instruction updates, each result is one, in their order."""
        alike = self._parameters.updates[key]
        results = sorted(
            at for number, at in self._parameters.updates if number == key[0] and self._parameters.updates[number, at] == alike
        )
        roles = sorted((self._parameters.roles.get(one) or "" for one in alike), reverse=True)
        at = results.index(path)
        return roles[at] or None if at < len(roles) else None

    def _shapes_of_weights(self, entry: Computation) -> set[tuple[int, ...]]:
        """Dims of the weights that gradients can belong to: those that are updated, or all where the program updates none."""
        if self._parameters.training:
            return {dims for _, dims in self._parameters.updated_shapes}
        leaves = [(one.id, path, leaf) for one in entry.instructions if one.opcode == "parameter" for path, leaf in one.shape.leaves()]
        return {leaf.dims for number, path, leaf in leaves if self._parameters.roles.get((number, path)) == WEIGHT and len(leaf.dims) > 1}

    def _find_gradients(self, entry: Computation) -> set[Key]:
        """Values that go into updates of weights alone, or out of the program in the size of one, back to the product that made them."""
        updaters = {number for number, _ in self._parameters.updates}
        elements = {prod(dims) for dims in self._weights}
        training, users = self._parameters.training, self._module.users
        found: set[int] = set()
        for one in reversed(entry.instructions):
            if one.id in updaters or one.opcode in ("parameter", "constant") or not one.shape.dims or one.shape.elements not in elements:
                continue
            uses = users.get(one.id, [])
            inner = [user for user in uses if user.id != entry.root_id]
            given = len(inner) < len(uses) and not training and one.shape.dims in self._weights
            into = [user for user in inner if user.id in updaters or (user.id in found and _keeps(one, user))]
            if (into or given) and all(user in into or not user.shape.dims for user in inner):
                found.add(one.id)
        return {(number, ()) for number in found}

    def _is_cache(self, one: Instruction, path: tuple[int, ...]) -> bool:
        shape = dict(one.shape.leaves())[path]
        return any(
            self._known(self._source_key(Value(operand, at))) == KV and leaf.dims == shape.dims
            for operand in self._module.operands(one)
            for at, leaf in operand.shape.leaves()
        )

    def _is_in_loop(self, one: Instruction) -> bool:
        return one.opcode == "while" or one.id not in self._entry

    def _source_key(self, value: Value) -> Key:
        found = self._flow.source(value)
        return found.one.id, found.path

    def _known(self, key: Key) -> str | None:
        return self._of.get(key) or self._parameters.roles.get(key)


def _keeps(one: Instruction, user: Instruction) -> bool:
    return user.opcode in _KEEPS and user.shape.elements == one.shape.elements
