"""Charts of a few lines: columns, and a curve of memory over time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from roofterm.tui.widgets.glyphs import Look
from roofterm.tui.widgets.raster import Window

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_THIRDS = " .:#"


def column_chart(values: Sequence[float | None], cells: int, lines: int, look: Look, top: float | None = None) -> list[str]:
    """Columns from 0 to `top` (the largest value), top line first, each as wide as there are cells for one value.

    With more values than cells a column is the largest of its neighbours, so that no peak is lost. Anything above 0 shows;
    unknown is blank.
    """
    heights = _spread(values, cells)
    highest = top if top is not None else max((h for h in heights if h is not None), default=0.0)
    ramp = _THIRDS if look.ascii else _EIGHTHS
    steps = len(ramp) - 1
    filled = [0 if not h or highest <= 0 else max(round(min(h / highest, 1.0) * lines * steps), 1) for h in heights]
    return ["".join(ramp[max(0, min(level - line * steps, steps))] for level in filled) for line in reversed(range(lines))]


def _spread(values: Sequence[float | None], cells: int) -> list[float | None]:
    if not values or cells < 1:
        return []
    if len(values) <= cells:
        wide = cells // len(values)
        return [value for value in values for _ in range(wide)]
    bounds = [at * len(values) // cells for at in range(cells + 1)]
    return [max((v for v in values[a:b] if v is not None), default=None) for a, b in pairwise(bounds)]


def memory_curve(
    time_ps: NDArray[np.int64], held_bytes: NDArray[np.int64], window: Window, lines: int, look: Look, top_bytes: int | None = None
) -> list[str]:
    """Bytes held over a window, the most in each cell, on a scale from 0 to `top_bytes` (the most in sight): top line first.

    `held_bytes` holds from its time (ascending) to the next. Before the first one nothing is known, and nothing is drawn.
    """
    highs = most_in_cells(time_ps, held_bytes, window)
    return column_chart(highs, window.cells, lines, look, None if top_bytes is None else float(top_bytes))


def most_in_cells(time_ps: NDArray[np.int64], held_bytes: NDArray[np.int64], window: Window) -> list[float | None]:
    """The most that was held at any moment of each cell; None before the first event."""
    edges = window.edges()
    before = np.searchsorted(time_ps, edges[:-1], "right")
    after = np.searchsorted(time_ps, edges[1:], "left")
    found: list[float | None] = []
    for first, last in zip(before.tolist(), after.tolist(), strict=True):
        begin = max(first - 1, 0)
        found.append(float(held_bytes[begin:last].max()) if last > begin else None)
    return found
