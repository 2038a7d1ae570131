"""Conditions of `compare --fail-on`: a figure, a comparison and a limit.

    step_us>5%      NEW's step is more than 5 % longer than BASE's
    mfu_pct<-2%     NEW's MFU is more than 2 % (of BASE's) lower
    busy_pct<90     NEW is busy for less than 90 % of the step
    idle_us>1.5ms   NEW idles for more than 1.5 ms a step

A limit in percent speaks of the change from BASE, any other of NEW alone.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from math import inf

import msgspec

_FORM = re.compile(r"\s*([a-z][a-z0-9_]*)\s*(>=|<=|>|<)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-zµ%]*)\s*")
_UNITS: dict[str, dict[str, float]] = {
    "us": {"": 1.0, "ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6},
    "bytes": {"": 1.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    "pct": {"": 1.0},
    "count": {"": 1.0, "k": 1e3, "M": 1e6},
}
_COMPARE: dict[str, Callable[[float, float], bool]] = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}


class ConditionError(ValueError):
    """A condition that cannot be judged: one sentence."""


class Condition(msgspec.Struct, frozen=True):
    text: str
    figure: str
    comparison: str
    limit: float
    """percent of BASE, or in the figure's own unit"""
    relative: bool


def parse_condition(text: str, units: Mapping[str, str]) -> Condition:
    """The condition that `text` says; `units` names the unit of each figure there is. Raises ConditionError."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ConditionError(f"--fail-on {text}: write FIGURE>NUMBER, such as step_us>5%")
    figure, comparison, number, unit = found.groups()
    if figure not in units:
        near = get_close_matches(figure, units, n=1)
        raise ConditionError(
            f"--fail-on {text}: no figure is called {figure}; " + (f"did you mean {near[0]}?" if near else ", ".join(units))
        )
    if unit == "%":
        return Condition(text, figure, comparison, float(number), relative=True)
    scales = _UNITS[units[figure]]
    if unit not in scales:
        known = ", ".join(name for name in scales if name) or "no unit"
        raise ConditionError(f"--fail-on {text}: {unit} is no unit of {figure}; it takes {known}, or % of its change")
    return Condition(text, figure, comparison, float(number) * scales[unit], relative=False)


def fires(condition: Condition, base: float | None, new: float | None) -> bool:
    """Whether the condition holds. Raises ConditionError if a figure that it needs is unknown."""
    if new is None or (condition.relative and base is None):
        side = "NEW" if new is None else "BASE"
        raise ConditionError(f"--fail-on {condition.text}: {condition.figure} is unknown in {side}")
    value = new if not condition.relative or base is None else _change_pct(base, new)
    return _COMPARE[condition.comparison](value, condition.limit)


def _change_pct(base: float, new: float) -> float:
    """Change in percent of base; from 0 to anything it is without bound."""
    if base == 0:
        return 0.0 if new == 0 else inf if new > 0 else -inf
    return 100 * (new - base) / abs(base)
