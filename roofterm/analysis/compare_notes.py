"""What a comparison comes to, in sentences: the step, where its change lies, what the host and the kernels have to do with it."""

from __future__ import annotations

from typing import Any

import polars as pl

from roofterm.analysis.compare import Comparison
from roofterm.text.units import UNKNOWN, duration_us, pct

PARTS = {
    "compute_us": "compute",
    "exposed_comm_us": "exposed communication",
    "exposed_copy_us": "exposed copies",
    "idle_us": "idle",
}
"""Parts of a step, which add up to it."""

TOLD = 3
"""So many rows of a kind are named."""

NOTABLE_PCT = 0.1
"""A row whose change is less than this share of a step is not worth a sentence."""


def notes(found: Comparison) -> list[str]:
    """Sentences on a comparison, the step first. Nothing is claimed that the steps' own spread may account for."""
    told = [_step(found), _parts(found), _kernels(found), _host(found), _limiters(found), _judged(found)]
    return [sentence for sentence in told if sentence]


def _step(found: Comparison) -> str | None:
    row = _figure(found, "step_us" if found.per_step else "span_us")
    if row is None or row["status"] == "unknown":
        return None
    what = "step" if found.per_step else "span of the whole file"
    if row["status"] == "same":
        return f"{what}: {duration_us(row['base'])} on both sides"
    return f"{what}: {duration_us(row['base'])} -> {duration_us(row['new'])}, {_change(row)}{_judgement(found, row)}"


def _parts(found: Comparison) -> str | None:
    """Parts of the step that changed, the largest first."""
    if not found.per_step:
        return None
    rows = [row for name in PARTS if (row := _figure(found, name)) is not None and _counts(row) and _notable(found, row)]
    rows.sort(key=lambda row: -abs(row["change"]))
    return "of which " + "; ".join(f"{PARTS[row['name']]} {_signed(row)}{_of_idle(found, row)}" for row in rows) if rows else None


def _of_idle(found: Comparison, row: dict[str, Any]) -> str:
    wait = _figure(found, "host_wait_us") if row["name"] == "idle_us" else None
    return f" (of it waiting for the host {_signed(wait)})" if wait is not None and _counts(wait) and _notable(found, wait) else ""


def _kernels(found: Comparison) -> str | None:
    total = _figure(found, "compute_us" if found.per_step else "kernel_us")
    if total is None or total["status"] == "unknown" or total["base"] == total["new"] == 0:
        return None
    if total["status"] in ("same", "within spread"):
        said = (
            "kernel time unchanged" if total["status"] == "same" else f"kernel time unchanged: {_signed(total)} is within the steps' spread"
        )
        return said
    level = "op" if found.two_vendors else "kernel"
    rows = _largest(found, level)
    if not rows:
        return None
    return f"{level}s: " + "; ".join(_row(row) for row in rows)


def _host(found: Comparison) -> str | None:
    rows = _largest(found, "host phase") + _largest(found, "host op")
    seen: list[str] = []
    for row in rows:
        if row["name"] not in ("other", "ProfilerStep*"):
            seen.append(_row(row))
    return "host, own time: " + "; ".join(seen[:TOLD]) if seen else None


def _limiters(found: Comparison) -> str | None:
    """Categories that are bound by something else now."""
    both = pl.col("base_bound_by").is_not_null() & pl.col("new_bound_by").is_not_null()
    moved = found.changes.filter((pl.col("level") == "category") & both & (pl.col("base_bound_by") != pl.col("new_bound_by")))
    if moved.height == 0:
        return None
    texts = [f"{row['name']} {row['base_bound_by']} -> {row['new_bound_by']}" for row in moved.head(TOLD).iter_rows(named=True)]
    return "bound by: " + "; ".join(texts)


def _judged(found: Comparison) -> str:
    if found.two_vendors:
        return "two vendors' devices: their kernels have no names in common; ops and modules are what compares"
    if not found.per_step:
        return "no steps to judge changes by: a file has none, or --step all asks for whole files"
    if found.changes.filter((pl.col("level") == "step") & pl.col("spread").is_not_null()).height == 0:
        return "one step on a side: no spread to judge changes by"
    return ""


def _largest(found: Comparison, level: str) -> list[dict[str, Any]]:
    rows = found.changes.filter(pl.col("level") == level).sort(pl.col("change").abs(), descending=True, maintain_order=True)
    return [row for row in rows.head(TOLD * 2).iter_rows(named=True) if _counts(row) and _notable(found, row)][:TOLD]


def _counts(row: dict[str, Any]) -> bool:
    return row["status"] in ("changed", "differs", "added", "removed")


def _notable(found: Comparison, row: dict[str, Any]) -> bool:
    whole = max((found.facts["step_us" if found.per_step else "span_us"][side] or 0.0 for side in (0, 1)), default=0.0)
    return abs(float(row["change"] or 0.0)) >= whole * NOTABLE_PCT / 100


def _row(row: dict[str, Any]) -> str:
    word = {"added": " (new)", "removed": " (gone)"}.get(row["status"], "")
    return f"{row['name']} {_signed(row)}{word}"


def _change(row: dict[str, Any]) -> str:
    share = UNKNOWN if row["change_pct"] is None else ("+" if row["change_pct"] > 0 else "") + pct(row["change_pct"])
    return f"{_signed(row)} ({share})"


def _judgement(found: Comparison, row: dict[str, Any]) -> str:
    """What the steps' spread says of the step's change, with the lengths of both sides' steps."""
    if row["spread"] is None or found.base_steps_us is None or found.new_steps_us is None:
        return ""
    sides = [
        f"{side} {duration_us(low)} to {duration_us(high)}"
        for side, (low, high) in (("base", found.base_steps_us), ("new", found.new_steps_us))
    ]
    return f", {'beyond' if row['status'] == 'changed' else 'within'} the steps' own spread ({', '.join(sides)})"


def _signed(row: dict[str, Any]) -> str:
    return ("+" if row["change"] > 0 else "") + duration_us(row["change"])


def _figure(found: Comparison, name: str) -> dict[str, Any] | None:
    rows = found.changes.filter((pl.col("level") == "step") & (pl.col("name") == name))
    return rows.row(0, named=True) if rows.height else None
