"""The evidence of a finding for people: its figures by name, each in its unit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from roofterm.report.fields import words
from roofterm.text.units import UNKNOWN, bytes_text, duration_us, figures, pct

MOST = 8
"""entries of a list or a mapping that are named"""
_WHOLE = 1000
"""counts (a step on average) from which on fractions say nothing"""

_UNITS: Mapping[str, tuple[Callable[[float], str], str]] = {
    "us": (duration_us, "time"),
    "ps": (lambda value: duration_us(value / 1e6), "time"),
    "pct": (pct, "share"),
    "bytes": (bytes_text, "size"),
    "bytes_per_s": (lambda value: f"{bytes_text(value)}/s", "rate"),
}
"""How a number of a unit is shown, and the word that its label says instead of the unit."""
_UNIT = re.compile(r"(?<!\d)_(bytes_per_s|bytes|us|ps|pct)(?=_|$)")
"""A unit in a name; behind a number it is part of what is counted (kernels_under_10_us)."""


class Evidence(NamedTuple):
    name: str
    """key of the finding's evidence, as in the JSON"""
    label: str
    text: str


def evidence_of(evidence: Mapping[str, Any]) -> list[Evidence]:
    """Each entry with a label and its value as text; mappings (by rank, by step) as "key: value" pairs."""
    return [Evidence(name, _label(name), _text(name, value)) for name, value in evidence.items()]


def _label(name: str) -> str:
    """The name in words, with the kind of figure for the unit: a count of the same name may stand beside it."""
    found = _unit_of(name)
    if found is not None:
        word = _UNITS[found[1]][1]
        said = word in name.split("_") or name.startswith("occupancy") or "_occupancy" in name
        name = name[: found.start()] + ("" if said else f"_{word}") + name[found.end() :]
    return name.replace("_", " ")


def _unit_of(name: str) -> re.Match[str] | None:
    """The last unit that a name holds is that of its figures."""
    return next(reversed(list(_UNIT.finditer(name))), None)


def _text(name: str, value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _number(name, value)
    if isinstance(value, Mapping):
        return _several([f"{words(key)}: {_text(name, one)}" for key, one in value.items()])
    if isinstance(value, (list, tuple)):
        return _several([_text(name, one) for one in value])
    return words(value)


def _number(name: str, value: float) -> str:
    found = _unit_of(name)
    if found is not None:
        return _UNITS[found[1]][0](value)
    return f"{value:,.0f}" if value == int(value) or abs(value) >= _WHOLE else figures(value)


def _several(texts: list[str]) -> str:
    more = f", and {len(texts) - MOST} more" if len(texts) > MOST else ""
    return ", ".join(texts[:MOST]) + more if texts else "none"
