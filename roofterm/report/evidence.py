"""The evidence of a finding for people: its figures by name, each in its unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from roofterm.report.fields import words
from roofterm.text.units import UNKNOWN, bytes_text, duration_us, figures, pct

MOST = 8
"""entries of a list or a mapping that are named"""

_BY_SUFFIX: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_us", duration_us),
    ("_ps", lambda value: duration_us(value / 1e6)),
    ("_pct", pct),
    ("_bytes", bytes_text),
)


class Evidence(NamedTuple):
    name: str
    """key of the finding's evidence, as in the JSON"""
    label: str
    text: str


def evidence_of(evidence: Mapping[str, Any]) -> list[Evidence]:
    """Each entry with a label and its value as text; mappings (by rank, by step) as "key: value" pairs."""
    return [Evidence(name, _label(name), _text(name, value)) for name, value in evidence.items()]


def _label(name: str) -> str:
    """The name in words: what its unit says anyway is left out, but for a time, which a count of the same name may stand beside."""
    for suffix, word in (("_us", " time"), ("_ps", " time"), ("_pct", " share"), ("_bytes", " size")):
        name = name.removesuffix(suffix) + word if name.endswith(suffix) else name.replace(f"{suffix}_", f"{word}_", 1)
    return name.replace("_", " ")


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
    for suffix, show in _BY_SUFFIX:
        if f"{name}_".find(f"{suffix}_") >= 0:
            return show(value)
    return f"{value:,.0f}" if value == int(value) else figures(value)


def _several(texts: list[str]) -> str:
    more = f", and {len(texts) - MOST} more" if len(texts) > MOST else ""
    return ", ".join(texts[:MOST]) + more if texts else "none"
