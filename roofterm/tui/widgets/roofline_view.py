"""The roofline plot: roofs, points, a cursor that goes from point to point, and the lines that tell about it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from rich.style import Style
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.worker import WorkType

from roofterm.results import Roof
from roofterm.tui.widgets import cell_runs
from roofterm.tui.widgets.glyphs import CategoryKey, marks
from roofterm.tui.widgets.legend import legend
from roofterm.tui.widgets.line_widget import LineWidget, Piece
from roofterm.tui.widgets.plot_adapter import BLANK, COMPUTE, FRAME, GHOST, LINK, MEMORY, POINT, PlotGrid, PlotSpec, View, draw, fit
from roofterm.tui.widgets.plot_labels import LABEL, TICK
from roofterm.tui.widgets.plot_points import MIDDLE, REST, TOP, Points, Rows, memory_levels, points_of
from roofterm.tui.widgets.plot_roofs import NEXT_CHOICE, RoofChoice, RoofLine, launch_text, roof_lines, sources
from roofterm.tui.widgets.point_text import categories_by_time, header_pieces, point_lines

ZOOM = 0.7
PAN = 0.2
_EMPTY_KEY = CategoryKey((), (), ())


class PointHighlighted(Message):
    """The cursor stands on another point."""

    def __init__(self, row: int) -> None:
        self.row = row
        """index of the row as it was given"""
        super().__init__()


class PointSelected(PointHighlighted):
    """The point under the cursor was chosen."""


class RooflineView(LineWidget, can_focus=True):
    """Shows roofline rows among their roofs. Cells are built in a thread, once a change of data, window or size."""

    def __init__(self, key: CategoryKey = _EMPTY_KEY, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.key = key
        self.rows: Rows = []
        self.roofs: Sequence[Roof] = []
        self.coverage = ""
        self.memory = "hbm"
        self.choice: RoofChoice = "bound"
        self.points: Points = points_of([], key, "hbm")
        self.lines: tuple[RoofLine, ...] = ()
        self.view = View(-1, 3, 9, 15)
        self.cursor: int | None = None
        """row of the highlighted point"""
        self.grid: PlotGrid | None = None
        self._limit: NDArray[np.bool_] | None = None
        self._strips: list[Strip] = []
        self._base: Rows | None = None

    def show(self, rows: Rows, roofs: Sequence[Roof], coverage: str = "", *, keep_window: bool = False) -> None:
        """Show rows and roofs; `coverage` says how much of the busy time they are. The cursor goes to the row with most time."""
        self.rows, self.roofs, self.coverage = rows, roofs, coverage
        levels = memory_levels(rows)
        if self.memory not in levels:
            self.memory = levels[0] if levels else "hbm"
        self._limit = None
        self._take()
        self.cursor = int(self.points.order[0]) if self.points.order.size else None
        if not keep_window:
            self.view = self._fitted()
        self._rebuild()
        self._post()

    def hold_against(self, rows: Rows | None) -> None:
        """Draw the points of a baseline too; None: no more."""
        if rows is not None or self._base is not None:
            self._base = rows
            self._rebuild()

    def limit(self, shown: NDArray[np.bool_] | None) -> None:
        """Show only these rows (a mask over those given), None for all; the window stays."""
        if shown is None and self._limit is None:
            return
        self._limit = shown
        if self.cursor is not None and shown is not None and not shown[self.cursor]:
            order = self._order()
            self.cursor = int(order[0]) if order.size else None
            self._post()
        self._rebuild()

    def highlight(self, row: int) -> None:
        """Put the cursor on a row, and the window where it can be seen."""
        self._go(row)

    # What keys do

    def move(self, columns: int, rows: int) -> None:
        """To the nearest point in a direction."""
        if self.grid is None or self.cursor is None:
            return
        column, row = self._cell(self.cursor)
        target = self.grid.towards(column, row, columns, rows)
        if target is not None:
            self._go(target)

    def next(self, direction: int) -> None:
        """To the point with the next less (or, backwards, more) time."""
        order = self._order()
        if not order.size:
            return
        at = np.flatnonzero(order == self.cursor)
        place = int(at[0]) + direction if at.size else 0
        self._go(int(order[max(0, min(place, order.size - 1))]))

    def page(self, pages: float) -> None:
        self.next(round(pages * 20))

    def end(self, direction: int) -> None:
        """To the point with most (-1) or least (1) time."""
        order = self._order()
        if order.size:
            self._go(int(order[-1 if direction > 0 else 0]))

    def zoom(self, direction: int) -> None:
        """In (1) or out (-1) around the cursor, or to everything (0)."""
        if direction == 0:
            self.view = self._fitted()
        else:
            x, y = self._focus()
            self.view = self.view.zoomed(ZOOM if direction > 0 else 1 / ZOOM, x, y)
        self._rebuild()

    def pan(self, right: int, up: int) -> None:
        self.view = self.view.moved(right * PAN, up * PAN)
        self._rebuild()

    def toggle_roofs(self) -> None:
        """Roofs that hold an op back, all, none."""
        self.choice = NEXT_CHOICE[self.choice]
        self._take()
        self._rebuild()

    def next_memory(self, direction: int = 1) -> bool:
        """Intensity against the next memory level; False: the bytes of no other one are known."""
        levels = memory_levels(self.rows)
        if len(levels) > 1:
            at = levels.index(self.memory) if self.memory in levels else 0
            self.memory = levels[(at + direction) % len(levels)]
            self._take()
            self._rebuild()
        return len(levels) > 1

    def select(self) -> None:
        """Choose the point under the cursor."""
        if self.cursor is not None:
            self.post_message(PointSelected(self.cursor))

    # Drawing

    def on_resize(self) -> None:
        self._rebuild()

    def on_focus(self) -> None:
        self._refresh_cursor()

    def on_blur(self) -> None:
        self._refresh_cursor()

    def on_click(self, event: object) -> None:
        offset = getattr(event, "y", 0) - self._plot_top
        if self.grid is not None and (row := self.grid.nearest(getattr(event, "x", 0), offset)) is not None:
            self._go(row)

    def render_line(self, y: int) -> Strip:
        plot = y - self._plot_top
        if y == 0:
            return self.strip(header_pieces(self._header_texts(), self.size.width, self.palette, self.look))
        if 0 <= plot < self._plot_height:
            return self._plot_line(plot)
        below = plot - self._plot_height
        if self._legend_height and below == 0:
            return self.strip(legend(categories_by_time(self.points, self._limit), self.key, self.palette, self.look))
        lines = self._point_lines()
        below -= self._legend_height
        return self.strip(lines[below]) if 0 <= below < len(lines) else self.blank()

    @property
    def _plot_top(self) -> int:
        return 1

    @property
    def _legend_height(self) -> int:
        return 1 if self.size.height >= 14 and len(self.key.names) else 0

    @property
    def _detail_height(self) -> int:
        return 2 if self.size.height >= 10 else 1

    @property
    def _plot_height(self) -> int:
        return max(self.size.height - self._plot_top - self._legend_height - self._detail_height, 0)

    def _plot_line(self, y: int) -> Strip:
        if y >= len(self._strips) or self._strips[y].cell_length != self.size.width:
            return self.blank()
        strip = self._strips[y]
        if self.cursor is None or self.grid is None or not self._in_window(self.cursor):
            return strip
        column, row = self._cell(self.cursor)
        if row != y:
            return strip
        letter = self.key.letter(int(self.points.category[self.cursor]))
        style = self.palette.cursor if self.has_focus else self.palette.blur
        return cell_runs.overlaid(strip, column - 1, f"[{letter}]", style)  # left of the plot there is the axis

    def _header_texts(self) -> tuple[str, list[str]]:
        """Coverage, and what may be left out at its right, the most needed first."""
        counts = [f"{self.points.plotted} points"]
        if self.grid is not None and self.grid.outside:
            counts.append(f"{self.grid.outside} outside")
        if self.points.bytes_only:
            counts.append(f"{self.points.bytes_only} {marks(self.look).rug} bytes only")
        if self.points.time_only:
            counts.append(f"{self.points.time_only} time only")
        memory = [] if self.memory == "hbm" else [f"by {self.memory}"]
        if self._base is not None:
            counts.insert(1, f"{marks(self.look).ghost} baseline")
        roofs = "no roofs" if self.choice == "none" else f"roofs {self.choice} {sources(self.roofs)}".rstrip()
        return self.coverage, [*counts, *memory, roofs, *filter(None, [launch_text(self.roofs)])]

    def _point_lines(self) -> list[list[Piece]]:
        if self.cursor is None:
            return [[(" no op passes the filter" if self.points.order.size else " no op has a place on this plot", self.palette.muted)]]
        order = self._order()
        at = np.flatnonzero(order == self.cursor)
        place = f"{int(at[0]) + 1 if at.size else '-'}/{order.size}"
        row = self.rows.row(self.cursor, named=True) if not isinstance(self.rows, Sequence) else self.rows[self.cursor]
        lines = point_lines(row, self.key, self.memory, place, self.size.width, self.palette, self.look)
        return lines[: self._detail_height]

    # State

    def _take(self) -> None:
        self.points = points_of(self.rows, self.key, self.memory)
        held = self._values("bound_by")
        self.lines = tuple(roof_lines(self.roofs, self.choice, held, self._values("dtype")))

    def _values(self, column: str) -> frozenset[str]:
        values = [getattr(r, column) for r in self.rows] if isinstance(self.rows, Sequence) else self.rows[column].to_list()
        return frozenset(value for value in values if value)

    def _order(self) -> NDArray[np.int64]:
        order = self.points.order
        return order if self._limit is None else order[self._limit[order]]

    def _fitted(self) -> View:
        return fit(self.points, self.lines, self._limit)

    def _where(self, row: int) -> tuple[float, float]:
        """(x, y) of a row in log10; one with bytes only lies on the window's left edge."""
        x, y = float(self.points.x[row]), float(self.points.y[row])
        if np.isfinite(x):
            return x, y
        view = self.view
        return view.x0, float(np.clip(self.points.rate[row] + view.x0, view.y0, view.y1))

    def _in_window(self, row: int) -> bool:
        return self.view.holds(*self._where(row))

    def _cell(self, row: int) -> tuple[int, int]:
        assert self.grid is not None
        return self.grid.cell(*self._where(row))

    def _focus(self) -> tuple[float, float]:
        if self.cursor is not None and self._in_window(self.cursor):
            return self._where(self.cursor)
        return (self.view.x0 + self.view.x1) / 2, (self.view.y0 + self.view.y1) / 2

    def _go(self, row: int) -> None:
        if row == self.cursor:
            return
        self._refresh_cursor()
        told = {y: self.render_line(y) for y in range(self.size.height - self._detail_height, self.size.height)}
        self.cursor = row
        x, y = self._where(row)
        if self.view.holds(x, y) or np.isnan(y):  # a row without a place is told about, and shown nowhere
            self._refresh_cursor()
            self.refresh_changes(told)
        else:
            self.view = self.view.centred(x, y)
            self._rebuild()
        self._post()

    def _refresh_cursor(self) -> None:
        if self.cursor is None or self.grid is None or not self._in_window(self.cursor):
            return
        column, row = self._cell(self.cursor)
        left = max(column - 1, 0)
        self.refresh(Region(left, row + self._plot_top, min(3, self.size.width - left), 1))

    def _post(self) -> None:
        if self.cursor is not None:
            self.post_message(PointHighlighted(self.cursor))

    def _rebuild(self) -> None:
        if self.is_attached and self.size.width and self._plot_height:
            shown = None if self._limit is None else self._limit
            spec = PlotSpec(
                self.size.width,
                self._plot_height,
                self.view,
                self.points,
                self.key,
                self.lines,
                self.look,
                shown,
                ghosts=None if self._base is None else points_of(self._base, self.key, self.memory),
            )
            build: WorkType[None] = partial(self._build, spec)  # no coroutine before it runs: a newer plot may cancel it
            # Textual would describe the work by its arguments, and numpy would write out every point for that.
            self.run_worker(build, group="plot", exclusive=True, description="draws the plot")

    async def _build(self, spec: PlotSpec) -> None:
        """An older plot never overwrites a newer one: the newer worker has cancelled this one by then."""
        grid = await asyncio.to_thread(draw, spec)
        self.grid = grid
        self._strips = cell_runs.strips(grid.chars, self._thrifty(grid), self._styles())
        self.refresh()

    def _thrifty(self, grid: PlotGrid) -> NDArray[np.uint16]:
        """Styles of the cells within the budget of bytes: the points with least time give up their colour first."""
        style = cell_runs.blended(grid.chars, grid.style)
        cost = cell_runs.bytes_a_run(self.palette.text, self.app.console.color_system)
        for tier in (REST, MIDDLE):
            if cell_runs.affordable(grid.chars, style, cost):
                break
            faint = (grid.style >= POINT) & (grid.style % 4 >= tier)
            style = cell_runs.blended(grid.chars, np.where(faint, MEMORY, grid.style).astype(np.uint16))
        return style

    def _styles(self) -> dict[int, Style]:
        p = self.palette
        styles = {
            BLANK: p.text,
            FRAME: p.rule,
            TICK: p.muted,
            COMPUTE: p.text,
            MEMORY: p.muted,
            LINK: p.rule,
            LABEL: p.accent,
            GHOST: p.warn,
        }
        for code in (*range(len(self.key.names)), 255):
            plain = p.text + Style(color=self.key.colour(code)) if self.look.colour else p.text
            for tier in range(3):
                styles[POINT + 4 * code + tier] = plain + Style(bold=True) if tier == TOP else plain
        return styles
