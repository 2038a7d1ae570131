"""A what-if for a row of values: how the step's least time moves over batch, context, prompt, split or drafts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from roofterm.analysis.whatif import what_if
from roofterm.analysis.whatif_state import Base, Change
from roofterm.analysis.workload import Machine, WhatIfError
from roofterm.results import RooflineRow, SweepRow, WhatIfState
from roofterm.text.units import si

MOST_VALUES = 64

FIELDS = {"batch": "batch", "prompt": "prompt", "context": "context", "tp": "tp", "spec": "drafts"}
"""What may be swept, and the field of `Change` that it is."""

_NUMBER = re.compile(r"(\d+)(k?)")


def parse_sweep(text: str) -> tuple[str, list[int]]:
    """Name and values of "batch=1..256" (doubling), "context=1k,4k,32k" or "tp=1..8:1" (in steps). Raises WhatIfError."""
    name, equals, values = text.partition("=")
    if name not in FIELDS or not equals:
        raise WhatIfError(f"--sweep {text}: write NAME=A..B with one of {', '.join(FIELDS)}")
    first, dots, rest = values.partition("..")
    if not dots:
        found = [_number(one, text) for one in values.split(",")]
    else:
        last, _, step = rest.partition(":")
        found = _between(_number(first, text), _number(last, text), _number(step, text) if step else None)
    if not found or len(found) > MOST_VALUES:
        raise WhatIfError(f"--sweep {text}: that is {len(found)} values, and 1 to {MOST_VALUES} are swept")
    return name, list(dict.fromkeys(found))


class Sweep(NamedTuple):
    rows: list[SweepRow]
    """one a value"""
    held: list[str]
    """what is held constant or not counted, in sentences"""


def sweep(base: Base, change: Change, machine: Machine | None, name: str, values: Sequence[int]) -> Sweep:
    """The step at each value. Raises WhatIfError as `what_if` does."""
    rows: list[SweepRow] = []
    held: list[str] = []
    for value in values:
        asked = msgspec.structs.replace(change, **{FIELDS[name]: value})
        found = what_if(base, asked, machine, bare=True)
        rows.append(SweepRow(name, value, found.whatif))
        held = found.held
    return Sweep(rows, held)


def points(rows: Sequence[SweepRow]) -> list[RooflineRow]:
    """The states of a sweep as rows of a roofline: intensity and rate at the bound. Their categories are the values as texts."""
    return [_point(row) for row in rows]


def value_text(value: float) -> str:
    return f"{value / 1024:g}k" if value >= 1024 and value % 1024 == 0 else f"{value:g}" if value < 1e5 else si(value)


def _between(first: int, last: int, step: int | None) -> list[int]:
    if step is not None:
        return list(range(first, last + 1, step)) if step > 0 else []
    found = []
    value = first
    while value < last:
        found.append(value)
        value = max(value * 2, value + 1)
    return [*found, last] if last >= first else []


def _number(text: str, whole: str) -> int:
    found = _NUMBER.fullmatch(text.strip().lower())
    if found is None:
        raise WhatIfError(
            f"--sweep {whole}: {text.strip() or 'nothing'} is no whole number; write for example batch=1..256 or context=1k..32k"
        )
    return int(found[1]) * (1024 if found[2] else 1)


def _point(row: SweepRow) -> RooflineRow:
    state: WhatIfState = row.state
    seconds = state.bound_us / 1e6
    return RooflineRow(
        level="program",
        step=f"{row.name} {value_text(row.value)}",
        name=f"{row.name} {value_text(row.value)}",
        category=value_text(row.value),
        calls=1,
        time_us=state.bound_us,
        time_per_unit_us=None,
        flops=state.flops,
        model_flops=None,
        bytes={"hbm": state.bytes},
        flops_per_s=state.flops / seconds if seconds > 0 else None,
        bytes_per_s={"hbm": state.bytes / seconds} if seconds > 0 else {},
        intensity={"hbm": state.intensity} if state.intensity else {},
        bytes_by_role=state.bytes_by_role,
        bound_by=state.bound_by,
        limiter=None,
        pct_of_peak_flops=None,
        pct_of_peak_bw=None,
        pct_of_roof=None,
        time_bound_us=state.bound_us,
        headroom_us=None,
        dtype=state.dtype,
        flops_from="shapes",
        bytes_from="shapes",
        flags=[],
    )
