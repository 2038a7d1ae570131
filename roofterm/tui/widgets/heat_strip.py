"""A strip of cells a row: rows by columns of one figure, darker where it is larger, with a cursor that reads a cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from rich.style import Style
from textual.events import Click
from textual.strip import Strip

from roofterm.text.safe import cell_width
from roofterm.text.units import duration_us
from roofterm.tui.messages import EdgeReached, RowHighlighted
from roofterm.tui.widgets.line_widget import LineWidget, Piece, aligned

WIDEST = 6
"""cells of a column at most"""

FLAT = 0.02
"""share of the largest value by which values must differ to be told apart: less is noise"""

_NO_VALUES = np.zeros((0, 0))


@dataclass(frozen=True)
class Heat:
    """A figure by row and column; NaN where it is not known."""

    title: str = ""
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    values: NDArray[np.float64] = field(default_factory=lambda: _NO_VALUES)
    show: Callable[[float], str] = duration_us


def heat_levels(values: NDArray[np.float64], levels: int) -> NDArray[np.int64]:
    """Level of each value from 0 (the smallest) to `levels` - 1 (the largest); -1: unknown. All 0 where values hardly differ."""
    known = values[np.isfinite(values)]
    if known.size == 0:
        return np.full(values.shape, -1, np.int64)
    low, high = float(known.min()), float(known.max())
    if high - low <= FLAT * abs(high):
        return np.where(np.isfinite(values), 0, -1)
    place = (np.nan_to_num(values, nan=low) - low) / (high - low)
    found = np.minimum((place * levels).astype(np.int64), levels - 1)
    return np.where(np.isfinite(values), found, -1)


class HeatStrip(LineWidget, can_focus=True):
    """The first line says what is shown and reads the cell under the cursor; then a line a row, and the columns' names."""

    DEFAULT_CSS = "HeatStrip { height: 1fr; }"

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.heat = Heat()
        self.row = 0
        self.column = 0
        self.top = 0
        self.left = 0
        self._levels: NDArray[np.int64] = np.zeros((0, 0), np.int64)

    def show(self, heat: Heat) -> None:
        self.heat = heat
        self._levels = heat_levels(heat.values, len(self._ramp))
        self.row = max(0, min(self.row, len(heat.rows) - 1))
        self.column = max(0, min(self.column, len(heat.columns) - 1))
        self._show_cursor()
        self.refresh()

    def lines_wanted(self) -> int:
        return len(self.heat.rows) + 2

    def go(self, row: int | None = None, column: int | None = None) -> None:
        """Put the cursor on a row, a column or both."""
        before = (self.row, self.column, self.top, self.left)
        if row is not None:
            self.row = max(0, min(row, len(self.heat.rows) - 1))
        if column is not None:
            self.column = max(0, min(column, len(self.heat.columns) - 1))
        self._show_cursor()
        if (self.row, self.column, self.top, self.left) == before:
            return
        if (self.top, self.left) == before[2:]:
            self.refresh_lines_at(0, before[0] - self.top + 1, self.row - self.top + 1, self._names_line)
        else:
            self.refresh()

    # Moving

    def move(self, columns: int, rows: int) -> None:
        if rows and not 0 <= self.row + rows < len(self.heat.rows):
            self.post_message(EdgeReached(self.id or "", 1 if rows > 0 else -1))
            return
        self.go(self.row + rows, self.column + columns)
        self._tell()

    def page(self, pages: float) -> None:
        self.go(row=self.row + round(pages * max(self._room_down, 1)))
        self._tell()

    def end(self, direction: int) -> None:
        self.go(row=len(self.heat.rows) - 1 if direction > 0 else 0)
        self._tell()

    def on_click(self, event: Click) -> None:
        at = event.x - self._label - 1
        if event.y and at >= 0:
            self.go(self.top + event.y - 1, self.left + at // self._wide)
            self._tell()

    # Drawing

    def render_line(self, y: int) -> Strip:
        if not self.heat.rows:
            return self.blank()
        if y == 0:
            return self.strip(self._head())
        if y == self._names_line:
            return self.strip(self._column_names())
        at = self.top + y - 1
        if y > self._room_down or at >= len(self.heat.rows):
            return self.blank()
        return self.strip(self._row(at))

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_resize(self) -> None:
        self._show_cursor()
        self.refresh()

    @property
    def _ramp(self) -> str:
        return ".-+*#" if self.look.ascii else "·░▒▓█"

    @property
    def _label(self) -> int:
        """Cells of the rows' names."""
        return min(max((cell_width(name) for name in self.heat.rows), default=0), max(self.size.width // 3, 1))

    @property
    def _wide(self) -> int:
        """Cells of a column."""
        room = max(self.size.width - self._label - 3, 1)
        return max(1, min(WIDEST, room // max(len(self.heat.columns), 1)))

    @property
    def _room_across(self) -> int:
        """Columns that fit."""
        return max((self.size.width - self._label - 3) // self._wide, 1)

    @property
    def _room_down(self) -> int:
        """Rows that fit, between the first line and the columns' names."""
        return max(self.size.height - 2, 1)

    @property
    def _names_line(self) -> int:
        return min(len(self.heat.rows) - self.top, self._room_down) + 1

    def _style(self, level: int) -> Style:
        top = len(self._ramp) - 1
        return self.palette.bad if level == top else self.palette.warn if level == top - 1 else self.palette.accent

    def _head(self) -> list[Piece]:
        p, ramp = self.palette, self._ramp
        heat = self.heat
        known = heat.values[np.isfinite(heat.values)]
        pieces: list[Piece] = [(" " + heat.title, p.strong)]
        if known.size:
            pieces += [("  ", p.text), (ramp[0], self._style(0)), (f" {heat.show(float(known.min()))} to ", p.muted)]
            pieces += [(ramp[-1], self._style(len(ramp) - 1)), (f" {heat.show(float(known.max()))}", p.muted)]
        value = heat.values[self.row, self.column] if heat.values.size else np.nan
        text = heat.show(float(value)) if np.isfinite(value) else "unknown"
        name = f"{heat.rows[self.row]} {heat.columns[self.column]}" if heat.columns else heat.rows[self.row]
        here = f"{name}: {text} " if self.has_focus else ""
        used = sum(cell_width(part) for part, _ in pieces)
        room = self.size.width - used - 2
        return [*pieces, ("  ", p.text), (aligned(here, room, self.look, right=True), p.text)] if room > 8 else pieces

    def _row(self, at: int) -> list[Piece]:
        p = self.palette
        here = at == self.row
        focused = here and self.has_focus
        pieces: list[Piece] = [
            (">" if focused else " ", p.key if focused else p.text),
            (aligned(self.heat.rows[at], self._label, self.look), p.strong if here else p.muted),
            (" ", p.text),
        ]
        for column in range(self.left, min(self.left + self._room_across, len(self.heat.columns))):
            level = int(self._levels[at, column])
            cell = " " * self._wide if level < 0 else self._ramp[level] * self._wide
            if focused and column == self.column:
                cell = f"[{cell[2:]}]" if self._wide > 2 else cell
                pieces.append((cell, p.cursor))
            else:
                pieces.append((cell, self._style(max(level, 0))))
        return pieces

    def _column_names(self) -> list[Piece]:
        """The columns' names where they fit without touching; always that under the cursor."""
        p = self.palette
        last = min(self.left + self._room_across, len(self.heat.columns))
        line = [" "] * max(self.size.width - self._label - 2, 0)
        order = [self.column, *range(self.left, last)]
        for column in order:
            name = self.heat.columns[column]
            start = (column - self.left) * self._wide
            start = max(0, min(start, len(line) - len(name)))
            around = line[max(start - 1, 0) : start + len(name) + 1]
            if all(char == " " for char in around):
                line[start : start + len(name)] = name
        return [(" " * (self._label + 2), p.text), ("".join(line), p.muted)]

    def _show_cursor(self) -> None:
        down, across = self._room_down, self._room_across
        self.top = max(0, min(max(min(self.top, self.row), self.row - down + 1), len(self.heat.rows) - down))
        self.left = max(0, min(max(min(self.left, self.column), self.column - across + 1), len(self.heat.columns) - across))

    def _tell(self) -> None:
        self.post_message(RowHighlighted(self.id or "", self.row))
