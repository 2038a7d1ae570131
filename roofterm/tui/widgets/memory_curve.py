"""Bytes held by an allocator over time: a curve with its peak and failed allocations marked, and a cursor that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from textual.events import Click
from textual.message import Message
from textual.strip import Strip

from roofterm.text.units import UNKNOWN, bytes_text
from roofterm.tui.messages import EdgeReached
from roofterm.tui.widgets.axis import exact_time, time_ticks
from roofterm.tui.widgets.bars import memory_curve, most_in_cells
from roofterm.tui.widgets.glyphs import shown
from roofterm.tui.widgets.line_widget import LineWidget, Piece, aligned
from roofterm.tui.widgets.raster import Window

SCALE = 10
"""cells of the scale at the left"""

LEAST_SPAN_PS = 1_000
ZOOM = 2

_NO_TIMES = np.zeros(0, np.int64)


class Held(NamedTuple):
    """What the cursor reads: a time and what is held from then on."""

    time_ps: int
    bytes: int | None
    event: int | None
    """place of the event in the curve; None: before the first"""


@dataclass(frozen=True)
class Curve:
    """`held` (bytes) counts from its time to the next; `zero_ps` is where times are counted from."""

    title: str = ""
    time_ps: NDArray[np.int64] = field(default_factory=lambda: _NO_TIMES)
    held: NDArray[np.int64] = field(default_factory=lambda: _NO_TIMES)
    peak: int | None = None
    """place of the peak"""
    failed_ps: Sequence[int] = ()
    """times of failed allocations"""
    zero_ps: int = 0
    note: str = ""


class CurveMoved(Message):
    """The cursor stands on another moment."""


class MemoryCurve(LineWidget, can_focus=True):
    """Lines: title and reading, marks, the curve, the axis of time."""

    DEFAULT_CSS = "MemoryCurve { height: 1fr; }"

    def __init__(self, id: str, empty: str = "no allocation here") -> None:
        super().__init__(id=id)
        self.curve = Curve()
        self.empty = empty
        self.start_ps = 0
        self.span_ps = 1
        self.at = 0
        """cell under the cursor"""
        self._drawn: tuple[object, list[str]] | None = None

    def show(self, curve: Curve, start_ps: int, span_ps: int) -> None:
        """Show a curve over a window of time; the cursor goes to the peak if that is in it."""
        self.curve, self.start_ps, self.span_ps = curve, start_ps, max(span_ps, LEAST_SPAN_PS)
        self._drawn = None
        self.to_peak()
        self.refresh()

    def reading(self) -> Held:
        """The most that is held in the cell under the cursor, and when."""
        curve, edges = self.curve, self.window.edges()
        first, last = np.searchsorted(curve.time_ps, edges[self.at : self.at + 2], "left").tolist()
        begin = max(first - 1, 0)
        if last <= begin or not curve.time_ps.size:
            return Held(int(edges[self.at]), None, None)
        event = begin + int(curve.held[begin:last].argmax())
        return Held(max(int(curve.time_ps[event]), int(edges[self.at])), int(curve.held[event]), event)

    def to_peak(self) -> bool:
        """Put the cursor on the peak; False if there is none in the window."""
        if self.curve.peak is None or not self.size.width:
            return False
        cell = self.window.cell(int(self.curve.time_ps[self.curve.peak]))
        if not 0 <= cell < self._cells:
            return False
        self._go(cell)
        return True

    # Moving

    def move(self, columns: int, rows: int) -> None:
        if rows:
            self.post_message(EdgeReached(self.id or "", 1 if rows > 0 else -1))
        elif columns:
            self._go(self.at + columns)

    def page(self, pages: float) -> None:
        self._go(self.at + round(pages * self._cells / 2))

    def end(self, direction: int) -> None:
        self._go(self._cells - 1 if direction > 0 else 0)

    def zoom(self, direction: int, whole: tuple[int, int]) -> None:
        """In (1) or out (-1) around the cursor, or to `whole` (start, span) again (0)."""
        here = self.reading().time_ps
        if direction == 0:
            self.start_ps, self.span_ps = whole[0], max(whole[1], LEAST_SPAN_PS)
        else:
            span = max(self.span_ps // ZOOM if direction > 0 else min(self.span_ps * ZOOM, whole[1]), LEAST_SPAN_PS)
            start = here - span * self.at // max(self._cells, 1)
            self.start_ps = max(whole[0], min(start, whole[0] + whole[1] - span))
            self.span_ps = span
        self._drawn = None
        self.at = max(0, min(self.window.cell(here), self._cells - 1))
        self.refresh()
        self.post_message(CurveMoved())

    def on_click(self, event: Click) -> None:
        self._go(event.x - SCALE)

    def _go(self, cell: int) -> None:
        cell = max(0, min(cell, self._cells - 1))
        if cell != self.at:
            self.at = cell
            self.refresh_lines_at(0, 1)
            self.post_message(CurveMoved())

    # Drawing

    def render_line(self, y: int) -> Strip:
        if not self.curve.time_ps.size:
            return self.strip([(f" {self.curve.title}: {self.empty}" if y == 0 else "", self.palette.muted)])
        if y == 0:
            return self.strip(self._head())
        if y == 1:
            return self.strip(self._marks())
        if y == self.size.height - 1:
            return self.strip(self._axis())
        return self.strip(self._line(y - 2))

    def on_focus(self) -> None:
        self.refresh_lines_at(0, 1)

    def on_blur(self) -> None:
        self.refresh_lines_at(0, 1)

    def on_resize(self) -> None:
        self._drawn = None
        self.at = max(0, min(self.at, self._cells - 1))
        if not self.has_focus:
            self.to_peak()

    @property
    def window(self) -> Window:
        return Window(self.start_ps, self.span_ps, self._cells)

    @property
    def _cells(self) -> int:
        return max(self.size.width - SCALE - 2, 1)

    @property
    def _chart_lines(self) -> int:
        return max(self.size.height - 3, 1)

    def _chart(self) -> tuple[list[str], float]:
        """The curve's lines from the top, and the bytes of the highest cell."""
        key = (self.start_ps, self.span_ps, self._cells, self._chart_lines)
        if self._drawn is None or self._drawn[0] != key:
            lines = memory_curve(self.curve.time_ps, self.curve.held, self.window, self._chart_lines, self.look)
            self._drawn = (key, lines)
            self._top = max((high for high in most_in_cells(self.curve.time_ps, self.curve.held, self.window) if high), default=0.0)
        return self._drawn[1], self._top

    def _head(self) -> list[Piece]:
        p, reading = self.palette, self.reading()
        pieces: list[Piece] = [(" " + shown(self.curve.title, 40, self.look), p.strong)]
        if not self.has_focus:
            return [*pieces, ("  " + self.curve.note, p.muted)]
        text = UNKNOWN if reading.bytes is None else bytes_text(reading.bytes)
        return [*pieces, (f"  {text} at {exact_time(round_ps(reading.time_ps - self.curve.zero_ps))}", p.text)]

    def _marks(self) -> list[Piece]:
        """The cursor, the peak and failed allocations, above their cells."""
        p, ascii_only = self.palette, self.look.ascii
        cells: dict[int, Piece] = {}
        for time in self.curve.failed_ps:
            cells[self.window.cell(time)] = ("X", p.bad)
        if self.curve.peak is not None:
            cells[self.window.cell(int(self.curve.time_ps[self.curve.peak]))] = ("v" if ascii_only else "▼", p.warn)
        here = cells.get(self.at, ("|" if ascii_only else "│", p.text))[0]
        cells[self.at] = (here, p.cursor if self.has_focus else p.blur)
        pieces: list[Piece] = [(" " * SCALE, p.text)]
        last = 0
        for cell in sorted(one for one in cells if 0 <= one < self._cells):
            pieces += [(" " * (cell - last), p.text), cells[cell]]
            last = cell + 1
        return pieces

    def _line(self, at: int) -> list[Piece]:
        lines, top = self._chart()
        if at >= len(lines):
            return []
        label = bytes_text(top) if at == 0 else "0" if at == len(lines) - 1 else ""
        return [(aligned(label, SCALE - 1, self.look, right=True) + " ", self.palette.muted), (lines[at], self.palette.accent)]

    def _axis(self) -> list[Piece]:
        axis = time_ticks(self.start_ps, self.span_ps, self._cells, self.curve.zero_ps)
        line = [" "] * self._cells
        for cell, label in axis.ticks:
            if cell + len(label) <= self._cells:
                line[cell : cell + len(label)] = label
        return [(aligned(axis.base, SCALE - 1, self.look, right=True) + " ", self.palette.muted), ("".join(line), self.palette.muted)]


def round_ps(time_ps: int) -> int:
    """A time to the nanosecond: an allocation's time is no finer."""
    return time_ps // 1000 * 1000
