"""What is said about a roofline and the point under its cursor, as pieces of text with styles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofterm.results import RooflineRow
from roofterm.text.safe import cell_width
from roofterm.text.units import count, duration_us, pct, si
from roofterm.tui.themes import Palette
from roofterm.tui.widgets.glyphs import CategoryKey, Look, padded, shown
from roofterm.tui.widgets.legend import category_style
from roofterm.tui.widgets.line_widget import Piece
from roofterm.tui.widgets.plot_points import Points
from roofterm_parsers.occurring import occurring


def header_pieces(texts: tuple[str, list[str]], width: int, palette: Palette, look: Look) -> list[Piece]:
    """Coverage at the left, which is always in sight, and at its right as much of the rest as there is room for."""
    coverage, rest = texts
    dot = " | " if look.ascii else " · "
    left = shown(f" {coverage}" if coverage else "", width, look)
    room = width - cell_width(left) - 2
    right = ""
    for part in rest:
        longer = f"{right}{dot}{shown(part, width, look)}" if right else shown(part, width, look)
        if cell_width(longer) > room:
            break
        right = longer
    gap = " " * max(width - cell_width(left) - cell_width(right) - 1, 0)
    return [(left, palette.text), (gap, palette.text), (right, palette.muted)]


def categories_by_time(points: Points, limit: NDArray[np.bool_] | None) -> list[int]:
    """Codes of the categories with a point among the rows shown, the one with most time first."""
    rows = points.order if limit is None else points.order[limit[points.order]]
    time = np.bincount(points.category[rows], points.time_us[rows], minlength=256)
    return sorted(occurring(points.category[rows]).tolist(), key=lambda code: -time[code])


def point_lines(
    row: RooflineRow | Mapping[str, Any], key: CategoryKey, memory: str, place: str, width: int, palette: Palette, look: Look
) -> list[list[Piece]]:
    """Two lines about a row: what it is and how long it took; where it stands and what holds it back."""
    get = row.get if isinstance(row, Mapping) else lambda name: getattr(row, name)
    code = key.code(get("category"))
    right = f"{get('category') or '--'} {get('dtype') or '--'}  {count(get('calls'))}x  {duration_us(get('time_us'))}  {place} "
    right = shown(right, max(width // 2, width - 28, 1), look)
    name = padded(str(get("name")), max(width - cell_width(right) - 7, 0), look)
    first: list[Piece] = [(f" [{key.letter(code)}] ", category_style(code, key, palette, look)), (f"{name}  {right}", palette.text)]
    rate, intensity = (get("bytes_per_s") or {}).get(memory), (get("intensity") or {}).get(memory)
    parts = [
        "" if rate or get("flops_per_s") else "neither FLOPs nor bytes known: no place on the plot",
        f"{pct(get('pct_of_roof'))} of roof" if get("pct_of_roof") is not None else "",
        f"{get('limiter') or get('bound_by')}" if get("limiter") or get("bound_by") else "",
        f"headroom {duration_us(get('headroom_us'))}" if get("headroom_us") is not None else "",
        f"{si(intensity)} FLOP/B" if intensity else "",
        f"{si(get('flops_per_s'), 'FLOP/s')} {_share(get('pct_of_peak_flops'))}" if get("flops_per_s") else "",
        f"{si(rate, 'B/s')} {_share(get('pct_of_peak_bw'))}" if rate else "",
        *(f"! {flag}" for flag in get("flags") or []),
        str(get("shapes") or ""),
    ]
    second = shown("  ".join(" ".join(part.split()) for part in parts if part), max(width - 5, 0), look)
    return [first, [("     " + second, palette.muted)]]


def _share(value: float | None) -> str:
    return "" if value is None else f"({pct(value)})"
