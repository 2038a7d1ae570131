"""Changes between two profiles for people: titles of the levels, and a row's values as texts in its own unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofterm.analysis.categories.short import short_name
from roofterm.text.units import UNKNOWN, bytes_text, duration_us, pct, si

LEVEL_TITLES = {
    "step": "figures",
    "phase": "phases, device time",
    "category": "categories, device time",
    "module": "modules, device time",
    "op": "ops, own device time",
    "op with shapes": "ops by shape, own device time",
    "kernel": "kernels, device time",
    "host phase": "phases, own host time",
    "host op": "ops, own host time",
}
"""What is told of each level of `compare.CHANGES`, in the order in which they are shown."""


def change_texts(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its values as text, each in its own unit."""
    text = _TEXTS[row["unit"]]
    change = row["change"]
    sign = "+" if change is not None and change > 0 else ""
    name = short_name(row["name"]) if row["level"] == "kernel" else row["name"]
    return row | {
        "name": name,
        "base": text(row["base"]),
        "new": text(row["new"]),
        "change": UNKNOWN if change is None else sign + text(change),
        "spread": "" if row["spread"] is None else text(row["spread"]),
        "limiter": limiter_text(row["base_bound_by"], row["new_bound_by"]),
        "status": STATUS.get(row["status"], row["status"]),
    }


STATUS = {"changed": "", "differs": "", "added": "new", "removed": "gone", "within spread": "~ spread"}


def limiter_text(base: str | None, new: str | None) -> str:
    """What binds a row on both sides; one word where nothing moved."""
    if base is None or new is None or base == new:
        return base or new or ""
    return f"{base} -> {new}"


_TEXTS: dict[str, Callable[[float | None], str]] = {"us": duration_us, "pct": pct, "bytes": bytes_text, "count": si}
