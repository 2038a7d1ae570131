"""What is said about a timeline's window and the slice under its cursor, as pieces of text with styles."""

from __future__ import annotations

from roofterm.text.safe import cell_width
from roofterm.text.units import count, duration_us, pct
from roofterm.tui.widgets.axis import exact_time
from roofterm.tui.widgets.glyphs import CategoryKey, Look, padded, shown
from roofterm.tui.widgets.lanes import Lanes
from roofterm.tui.widgets.raster import Window
from roofterm.tui.widgets.timeline_window import Extent


def window_text(window: Window, extent: Extent, zero_ps: int, step: str, lanes: str) -> str:
    """Where the window lies, how long it and a cell are, and what part of everything it is."""
    part = window.span_ps * 100 / extent.span_ps
    parts = [
        f"{duration_us(window.span_ps / 1e6)} from {exact_time(window.start_ps - zero_ps)}",
        f"cell {duration_us(window.span_ps / window.cells / 1e6)}",
        "all" if part >= 100 else pct(part),
        step,
        lanes,
    ]
    return "  ".join(part for part in parts if part)


def slice_lines(
    lanes: Lanes, slice_id: int, label: str, others: int, zero_ps: int, key: CategoryKey, width: int, look: Look
) -> tuple[str, str]:
    """Category and whole name; then length, start and lane, and how many more slices lie in the cursor's cell."""
    code = int(lanes.category[slice_id])
    start, dur = int(lanes.start_ps[slice_id]), int(lanes.dur_ps[slice_id])
    category = shown(key.name(code), 20, look)
    name = padded(lanes.text(slice_id), max(width - 7 - cell_width(category), 0), look)
    parts = [f"{duration_us(dur / 1e6)} from {exact_time(start - zero_ps)}", label, f"+{count(others)} more in this cell" if others else ""]
    return f" [{key.letter(code)}] {name} {category} ", shown("     " + "  ".join(part for part in parts if part), width, look)
