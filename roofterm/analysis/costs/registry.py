"""The table of cost rules, keyed by op name. Each family module fills it; `cost` answers from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.model import Cost, Work
from roofterm.analysis.costs.signature import Inputs

Rule = Callable[[Inputs], Work | None]


class Entry(NamedTuple):
    category: Category
    rule: Rule
    source: str
    """paper, page or table that the formula is from"""


REGISTRY: dict[str, Entry] = {}


def register(category: Category, source: str, *names: str) -> Callable[[Rule], Rule]:
    """Enter a rule for these ops. An op has one rule: a second one for a name is a mistake."""

    def enter(rule: Rule) -> Rule:
        for name in names:
            if name in REGISTRY:
                raise ValueError(f"{name} has a cost rule already")
            REGISTRY[name] = Entry(category, rule, source)
        return rule

    return enter


def cost(
    name: str,
    dims: str | Sequence[Any] | None,
    types: str | Sequence[Any] | None = None,
    strides: str | Sequence[Any] | None = None,
    concrete: str | Sequence[Any] | None = None,
    fallback: str | None = None,
) -> Cost | None:
    """What one call of an op costs, from its recorded inputs (JSON text as in `Profile.signatures`, or decoded).

    None if the op has no rule, or its inputs were not recorded or cannot be (ragged, text, negative, empty): never 0 for
    unknown. `fallback`: the type of tensors whose type the file does not name.
    """
    entry = lookup(name)
    if entry is None:
        return None
    inputs = Inputs(dims, types, strides, concrete, fallback)
    if len(inputs) == 0:
        return None
    work = entry.rule(inputs)
    if work is None or not (work.flops or work.read_bytes or work.write_bytes):
        return None
    model_flops = work.flops if work.model_flops is None else work.model_flops
    return Cost(
        category=entry.category,
        flops=work.flops,
        model_flops=model_flops,
        whole_flops=model_flops if work.whole_flops is None else work.whole_flops,
        read_bytes=work.read_bytes,
        write_bytes=work.write_bytes,
        dtype=work.dtype,
        estimate=work.estimate,
        source=entry.source,
    )


def lookup(name: str) -> Entry | None:
    """The entry for an op: by its name, its name without the overload, or (generated kernels) by its prefix."""
    found = REGISTRY.get(name)
    if found is None and "." in name:
        found = REGISTRY.get(name.partition(".")[0])
    if found is None and name.startswith("triton_"):
        found = REGISTRY.get(f"{name[:11]}*") or REGISTRY.get("triton_*")
    return found
