"""Roofs as lines in log10 space, which of them are worth drawing, and where their labels go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Literal

from roofterm.results import Roof
from roofterm.tui.widgets.axis import engineering

RoofChoice = Literal["bound", "all", "none"]
"""Which roofs are drawn: those that hold some op back, all, or none."""

NEXT_CHOICE: dict[RoofChoice, RoofChoice] = {"bound": "all", "all": "none", "none": "bound"}


@dataclass(frozen=True)
class RoofLine:
    """A line from (x0, y0) to (x1, y1), both ends infinite where a roof has no corner there."""

    kind: Literal["compute", "memory", "link"]
    label: str
    level: float
    """log10 of FLOP/s, or of bytes/s: y = level, or y = level + x"""
    ridge: float
    """log10 FLOP/byte of the corner where memory roofs meet compute roofs"""

    def segment(self, x0: float, x1: float, y0: float, y1: float) -> tuple[float, float, float, float] | None:
        """The part of the roof inside a window, as (xa, ya, xb, yb); None if there is none."""
        if self.kind == "compute":
            a, b = max(x0, self.ridge), x1
            return (a, self.level, b, self.level) if a < b and y0 <= self.level <= y1 else None
        a, b = max(x0, y0 - self.level), min(x1, y1 - self.level, self.ridge)
        return (a, a + self.level, b, b + self.level) if a < b else None


def roof_lines(roofs: Sequence[Roof], choice: RoofChoice, bound_by: frozenset[str], dtypes: frozenset[str]) -> list[RoofLine]:
    """The lines to draw, highest first. `bound_by` and `dtypes` are the resources and types that the ops in sight are held by.

    A memory's line is drawn only if an op is bound there or all are asked for (XProf's rule); a compute roof only if an op
    has its type; where none has (a program, a device that holds all types against one peak) those that the profile's ops are
    held against. The main memory and a compute roof are drawn in any case, so that a ridge is in sight.
    """
    if choice == "none":
        return []
    compute = _distinct([r for r in roofs if r.kind == "compute" and r.value > 0], "dtype")
    memory = _distinct([r for r in roofs if r.kind == "memory" and r.value > 0], "level")
    link = _distinct([r for r in roofs if r.kind == "link" and r.value > 0], "level") if choice == "all" else []
    if choice == "bound":
        held = [r for r in compute if r.dtype in dtypes]
        compute = held or [r for r in compute if r.drawn] or compute[:1]
        memory = [r for r in memory if r.level in bound_by or r.level == "hbm"] or memory[-1:]
    sources = {r.source for r in (*compute, *memory, *link)}
    tag = len(sources) > 1
    top = max((log10(r.value) for r in compute), default=float("inf"))
    steepest = max((log10(r.value) for r in memory), default=float("inf"))
    lines = [RoofLine("compute", _label(r, r.dtype, "", tag), log10(r.value), log10(r.value) - steepest) for r in compute]
    lines += [RoofLine("memory", _label(r, r.level, "B/s", tag), log10(r.value), top - log10(r.value)) for r in memory]
    lines += [RoofLine("link", _label(r, r.level, "B/s", tag), log10(r.value), top - log10(r.value)) for r in link]
    return lines


def sources(roofs: Sequence[Roof]) -> str:
    """Where the roofs come from, in words: "vendor", "measured, vendor"."""
    return ", ".join(sorted({roof.source for roof in roofs}))


def launch_text(roofs: Sequence[Roof]) -> str:
    """The launch roof, which is a time and no line of this plot: "launch 4.5 us"."""
    found = [roof for roof in roofs if roof.kind == "launch" and roof.value > 0]
    return f"launch {found[0].value * 1e6:.3g} us" if found else ""


def _distinct(roofs: list[Roof], by: Literal["dtype", "level"]) -> list[Roof]:
    """One roof a type or level, highest first; a measured one stands for the vendor's."""
    best: dict[str | None, Roof] = {}
    for roof in sorted(roofs, key=lambda r: (r.source != "measured", -r.value)):
        best.setdefault(getattr(roof, by), roof)
    return sorted(best.values(), key=lambda r: -r.value)


def _label(roof: Roof, of: str | None, unit: str, tag: bool) -> str:
    name = (of or "").upper() if roof.kind == "memory" and of in ("hbm", "l1", "l2", "l3", "vmem", "cmem", "smem") else of or ""
    return " ".join(part for part in (f"{engineering(float(f'{roof.value:.3g}'))}{unit}", name, roof.source if tag else "") if part)
