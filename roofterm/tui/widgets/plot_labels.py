"""Names of roofs and axes, laid over a drawn plot where they cover least."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roofterm.tui.widgets.glyphs import Look, shown
from roofterm.tui.widgets.plot_roofs import RoofLine

if TYPE_CHECKING:
    from roofterm.tui.widgets.plot_adapter import PlotGrid

Mask = NDArray[np.bool_]

LABEL, TICK = 6, 2
_POINT_COST, _LINE_COST, _FORBIDDEN = 10, 1, 10**6


def lay_labels(grid: PlotGrid, roofs: tuple[RoofLine, ...], look: Look, caption: str = "FLOP/s over FLOP/byte") -> None:
    """Write each roof's name beside its line, and the axes' units where there is room. Changes the grid's cells."""
    taken = np.zeros(grid.chars.shape, np.bool_)
    for roof in roofs:
        text = shown(roof.label, max(grid.columns - 2, 0), look)
        costs = [(_cost(grid, taken, column, row, len(text)), column, row) for column, row in _places(grid, roof, len(text))]
        cost, column, row = min(costs, key=lambda found: found[0], default=(_FORBIDDEN, 0, 0))
        if cost < _POINT_COST * len(text):
            _write(grid, taken, column, row, text, LABEL)
    _write_caption(grid, taken, shown(caption, grid.columns, look))


def _places(grid: PlotGrid, roof: RoofLine, length: int) -> Iterator[tuple[int, int]]:
    """Candidate (column, row) of a label, the best ones first."""
    view = grid.view
    part = roof.segment(view.x0, view.x1, view.y0, view.y1)
    if part is None:
        return
    right = grid.left + grid.columns - length
    if roof.kind == "compute":
        first, row = grid.cell(part[0], part[1])
        for line in (row, row - 1, row + 1):
            for column in range(right, max(min(first, right), grid.left) - 1, -1):
                if 0 <= line < grid.rows:
                    yield column, line
        return
    low, high = grid.cell(part[0], part[1])[1], grid.cell(part[2], part[3])[1]
    rows = range(min(low, grid.rows - 1), max(high, 0) - 1, -1)
    start = len(rows) // 4
    for row in (*rows[start:], *rows[:start]):
        y = grid.place(grid.left, row)[1]
        line_column = grid.cell(y - roof.level, y)[0]
        column = line_column - length - 2
        if column > grid.left:
            yield column, row


def _cost(grid: PlotGrid, taken: Mask, column: int, row: int, length: int) -> int:
    cells = (row, slice(max(column - 1, 0), column + length + 1))
    if taken[cells].any():
        return _FORBIDDEN
    under = grid.chars[cells] != ord(" ")
    points = grid.owner[cells] >= 0
    return int(points.sum()) * _POINT_COST + int((under & ~points).sum()) * _LINE_COST


def _write(grid: PlotGrid, taken: Mask, column: int, row: int, text: str, style: int) -> None:
    grid.chars[row, column : column + len(text)] = [ord(c) for c in text]
    grid.style[row, column : column + len(text)] = style
    taken[row, column : column + len(text)] = True


def _write_caption(grid: PlotGrid, taken: Mask, text: str) -> None:
    column = grid.left + 1
    for row in (0, 1):
        if column + len(text) < grid.chars.shape[1] and (grid.chars[row, column : column + len(text) + 1] == ord(" ")).all():
            _write(grid, taken, column, row, text, TICK)
            return
