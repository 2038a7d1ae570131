"""The one module that draws through plotext: frame, ticks and roofs; the points are laid over by the same map of cells.

plotext gets log10 coordinates inside the window, ticks at decades and nothing else: its own logarithmic axes misplace ticks
and fail on zeros. It overpaints within a cell and cannot say which point is in it, so points are ours: in a cell with
several the one with most time gives letter and colour, and `owner` names its row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from roofterm.tui.widgets.axis import log_ticks
from roofterm.tui.widgets.glyphs import CategoryKey, Look, ascii_frame, marks
from roofterm.tui.widgets.plot_labels import TICK, lay_labels
from roofterm.tui.widgets.plot_points import REST, Points
from roofterm.tui.widgets.plot_roofs import RoofLine

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

BLANK, FRAME, COMPUTE, MEMORY, LINK, PATH, GHOST = 0, 1, 3, 4, 5, 7, 8
POINT = 16
"""First style of points: POINT + 4 * category code + tier."""

TRIFLE = 0.002
"""share of the plotted time that the fitted window may leave out"""

ROOF_STYLES = {"compute": COMPUTE, "memory": MEMORY, "link": LINK}

MIN_WIDTH, MIN_HEIGHT = 16, 5

_FIGURE = Lock()
"""plotext draws on one figure of its module"""

_DOTS = {"braille": (2, 4), "quadrant": (2, 2), "ascii": (1, 1)}
_MARKER = {"braille": "braille", "quadrant": "hd"}
_BRAILLE = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], np.uint32)
_QUADRANT = np.array([[0x1, 0x2], [0x4, 0x8]], np.uint32)
_QUADRANTS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"


@dataclass(frozen=True)
class View:
    """The window in log10: FLOP/byte from x0 to x1, FLOP/s from y0 to y1."""

    x0: float
    x1: float
    y0: float
    y1: float

    def moved(self, right: float, up: float) -> View:
        """Shifted by shares of its width and height."""
        dx, dy = (self.x1 - self.x0) * right, (self.y1 - self.y0) * up
        return View(self.x0 + dx, self.x1 + dx, self.y0 + dy, self.y1 + dy)._bounded()

    def zoomed(self, factor: float, x: float, y: float) -> View:
        """`factor` times as wide and high, with (x, y) staying where it is."""
        around = View(x + (self.x0 - x) * factor, x + (self.x1 - x) * factor, y + (self.y0 - y) * factor, y + (self.y1 - y) * factor)
        return around._bounded()

    def centred(self, x: float, y: float) -> View:
        """As wide and high, with (x, y) in the middle."""
        width, height = self.x1 - self.x0, self.y1 - self.y0
        return View(x - width / 2, x + width / 2, y - height / 2, y + height / 2)._bounded()

    def holds(self, x: float, y: float) -> bool:
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1

    def _bounded(self) -> View:
        """Neither beyond what a float's power of ten can say, nor so near that its cells are all alike."""
        return View(*_side(self.x0, self.x1), *_side(self.y0, self.y1))


def _side(low: float, high: float) -> tuple[float, float]:
    span = min(max(high - low, 0.01), 600.0)
    start = min(max((low + high - span) / 2, -300.0), 300.0 - span)
    return start, start + span


@dataclass(frozen=True)
class PlotSpec:
    """Everything that a plot depends on."""

    width: int
    height: int
    view: View
    points: Points
    key: CategoryKey
    roofs: tuple[RoofLine, ...] = ()
    look: Look = field(default_factory=Look)
    shown: NDArray[np.bool_] | None = None
    """rows to draw; None: all"""
    path: bool = False
    """join the points in the order of their rows"""
    ghosts: Points | None = None
    """points of a baseline: drawn where no point stands, and owned by none"""


@dataclass(frozen=True)
class PlotGrid:
    """Cells of shape (height, width): code point, style, and the row of the roofline whose point is there (-1: none)."""

    chars: NDArray[np.uint32]
    style: NDArray[np.uint16]
    owner: NDArray[np.int32]
    left: int
    """first column of the canvas"""
    columns: int
    rows: int
    """canvas rows: 0 to rows - 1, from the top"""
    view: View
    dots: tuple[int, int]
    outside: int
    """points with a place beyond the window"""

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """(column, row) of the cell that holds a place; it may lie outside of the canvas."""
        column = _dot(x, self.view.x0, self.view.x1, self.columns * self.dots[0]) // self.dots[0]
        row = _dot(y, self.view.y0, self.view.y1, self.rows * self.dots[1]) // self.dots[1]
        return self.left + column, self.rows - 1 - row

    def place(self, column: int, row: int) -> tuple[float, float]:
        """(x, y) in log10 at the middle of a cell."""
        across, down = self.dots
        u = ((column - self.left) * across + (across - 1) / 2) / max(self.columns * across - 1, 1)
        v = ((self.rows - 1 - row) * down + (down - 1) / 2) / max(self.rows * down - 1, 1)
        return self.view.x0 + u * (self.view.x1 - self.view.x0), self.view.y0 + v * (self.view.y1 - self.view.y0)

    def nearest(self, column: int, row: int) -> int | None:
        """The row of the roofline whose point is nearest to a cell (a cell is twice as high as wide), None without points."""
        rows, columns, owners = self._owned
        if not owners.size:
            return None
        return int(owners[(((rows - row) * 2) ** 2 + (columns - column) ** 2).argmin()])

    def towards(self, column: int, row: int, right: int, down: int) -> int | None:
        """The row whose point is nearest in a direction: one of (1, 0), (-1, 0), (0, 1), (0, -1)."""
        rows, columns, owners = self._owned
        dx, dy = columns - column, (rows - row) * 2
        ahead, aside = (dx * right, abs(dy)) if right else (dy * down, abs(dx))
        there = ahead > 0
        if not there.any():
            return None
        cost = np.where(there, ahead + 2 * aside, np.iinfo(np.int64).max)
        return int(owners[cost.argmin()])

    @cached_property
    def _owned(self) -> tuple[I64, I64, NDArray[np.int32]]:
        rows, columns = np.nonzero(self.owner >= 0)
        return rows, columns, self.owner[rows, columns]


def draw(spec: PlotSpec) -> PlotGrid:
    """Draw a plot. Pure, for any thread; below `MIN_WIDTH` by `MIN_HEIGHT` the grid is blank."""
    width, height = max(spec.width, 1), max(spec.height, 1)
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        shape = (height, width)
        blank = np.full(shape, ord(" "), np.uint32), np.zeros(shape, np.uint16), np.full(shape, -1, np.int32)
        return PlotGrid(*blank, 0, width, height, spec.view, (1, 1), 0)
    chars, style = _parsed(_built(spec, width, height), width, height)
    corner = int(np.flatnonzero(chars[height - 2] == ord("└"))[0])
    if spec.look.ascii:
        chars = _as_ascii(chars)
    owner = np.full((height, width), -1, np.int32)
    grid = PlotGrid(chars, style, owner, corner + 1, width - corner - 1, height - 2, spec.view, _DOTS[spec.look.glyphs], 0)
    if spec.ghosts is not None:
        _add_ghosts(grid, spec.ghosts, spec.look)
    return _with_points(grid, spec)


def fit(points: Points, roofs: tuple[RoofLine, ...], shown: NDArray[np.bool_] | None = None, trifle: float = TRIFLE) -> View:
    """The window with every ridge and the points that take the time in it, and some air around.

    Points with the last `trifle` of the plotted time would squeeze all others into a corner: they may lie outside, which
    the view counts and zooming out shows.
    """
    rows = points.order if shown is None else points.order[shown[points.order]]
    placed = rows[np.isfinite(points.x[rows])]
    time = points.time_us[placed]
    before = np.cumsum(time) - time
    placed = placed[before <= (1 - trifle) * time.sum()]
    ridges = [(roof.ridge, roof.level if roof.kind == "compute" else roof.level + roof.ridge) for roof in roofs if roof.kind != "link"]
    corners = [(x, y) for x, y in ridges if np.isfinite(x) and np.isfinite(y)]
    xs = np.concatenate((points.x[placed], np.array([x for x, _ in corners])))
    ys = np.concatenate((points.y[placed], np.array([y for _, y in corners]), np.array([r.level for r in roofs if r.kind == "compute"])))
    x0, x1 = _with_air(xs, (-1.0, 3.0), 2.0)
    y0, y1 = _with_air(ys, (9.0, 15.0), 2.0)
    if corners:  # a roof needs some flat part to be read as one
        x1 = max(x1, max(x for x, _ in corners) + 0.8)
    return View(x0, x1, y0, y1)._bounded()


def _with_air(values: F64, otherwise: tuple[float, float], least: float) -> tuple[float, float]:
    if not values.size:
        return otherwise
    low, high = float(values.min()), float(values.max())
    spare = max(least - (high - low), 0) / 2
    return low - spare - 0.25, high + spare + 0.25


def _built(spec: PlotSpec, width: int, height: int) -> str:
    """Frame, ticks and roofs as plotext's text with colours."""
    import plotext

    view = spec.view
    with _FIGURE:
        plotext.clear_figure()
        plotext.limit_size(False, False)
        plotext.plot_size(width, height)
        plotext.theme("clear")
        plotext.xaxes(True, False)
        plotext.yaxes(True, False)
        plotext.xlim(view.x0, view.x1)
        plotext.ylim(view.y0, view.y1)
        across = log_ticks(view.x0, view.x1, max(width // 9, 2))
        up = log_ticks(view.y0, view.y1, max(height // 2, 2))
        plotext.xticks([at for at, _ in across], [label for _, label in across])
        plotext.yticks([at for at, _ in up], [label.rjust(4) for _, label in up] or [" " * 4])
        plotext.plot([view.x0], [view.y0], marker=" ", color=BLANK)  # without any data it draws no axes
        for roof in reversed(spec.roofs):
            part = roof.segment(view.x0, view.x1, view.y0, view.y1)
            if part is not None:
                marker = _MARKER.get(spec.look.glyphs, "-" if roof.kind == "compute" else "/")
                plotext.plot([part[0], part[2]], [part[1], part[3]], marker=marker, color=ROOF_STYLES[roof.kind])
        if spec.path:
            for xs, ys in _legs(spec.points, view):
                plotext.plot(xs, ys, marker=_MARKER.get(spec.look.glyphs, "."), color=PATH)
        text: str = plotext.build()
        plotext.clear_figure()
    return text


def _legs(points: Points, view: View) -> Iterator[tuple[list[float], list[float]]]:
    """Lines from each point to the next one that has a place, where both lie in the window."""
    placed = np.flatnonzero(np.isfinite(points.x) & np.isfinite(points.y)).tolist()
    for a, b in pairwise(placed):
        xs, ys = points.x[[a, b]].tolist(), points.y[[a, b]].tolist()
        if all(view.holds(x, y) for x, y in zip(xs, ys, strict=True)):
            yield xs, ys


_CODE = re.compile(r"\x1b\[([0-9;]*)m")


def _parsed(text: str, width: int, height: int) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]:
    chars = np.full((height, width), ord(" "), np.uint32)
    style = np.full((height, width), FRAME, np.uint16)
    style[height - 1] = TICK
    for y, line in enumerate(text.split("\n")[:height]):
        x, current = 0, FRAME
        for at, part in enumerate(_CODE.split(line)):
            if at % 2:
                current = int(part.rpartition(";")[2]) if part.startswith("38;5;") else FRAME
                continue
            part = part[: width - x]
            chars[y, x : x + len(part)] = [ord(c) for c in part]
            if current != FRAME:
                style[y, x : x + len(part)] = current
            x += len(part)
        axis = np.flatnonzero((chars[y] == ord("┤")) | (chars[y] == ord("│")))
        if axis.size:
            style[y, : axis[0]] = TICK
    return chars, style


def _as_ascii(chars: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return np.array([[ord(c) for c in ascii_frame("".join(map(chr, line)))] for line in chars.tolist()], np.uint32)


def _dot(value: float, low: float, high: float, dots: int) -> int:
    """The dot of an axis that holds a value: by plotext's own rounding, so that points and roofs agree to a dot."""
    return int(np.floor(np.round(0.5 + (dots - 1) * (value - low) / (high - low), 8)))


def _with_points(grid: PlotGrid, spec: PlotSpec) -> PlotGrid:
    points, view = spec.points, spec.view
    rows = points.order[::-1]  # most time last, so that it wins its cell
    if spec.shown is not None:
        rows = rows[spec.shown[rows]]
    edge = np.isfinite(points.rate[rows])
    x = np.where(edge, view.x0, points.x[rows])
    y = np.where(edge, points.rate[rows] + view.x0, points.y[rows])
    y = np.where(edge, np.clip(y, view.y0, view.y1), y)
    inside = (x >= view.x0) & (x <= view.x1) & (y >= view.y0) & (y <= view.y1)
    outside = int((~inside).sum())
    rows, edge, x, y = rows[inside], edge[inside], x[inside], y[inside]
    across, down = grid.dots
    px = np.floor(np.round(0.5 + (grid.columns * across - 1) * (x - view.x0) / (view.x1 - view.x0), 8)).astype(np.int64)
    py = np.floor(np.round(0.5 + (grid.rows * down - 1) * (y - view.y0) / (view.y1 - view.y0), 8)).astype(np.int64)
    py = grid.rows * down - 1 - py
    column, line = px // across + grid.left, py // down
    grid.owner[line, column] = rows
    grid.style[line, column] = POINT + points.category[rows].astype(np.uint16) * 4 + points.tier[rows]
    lettered = np.ones(rows.size, np.bool_) if spec.look.ascii or not spec.look.colour else points.tier[rows] != REST
    dotted = ~lettered & ~edge
    if dotted.any():
        grid.chars[line[dotted], column[dotted]] = _dots(grid, px[dotted], py[dotted], spec.look)[line[dotted], column[dotted]]
    letters = np.array([ord(spec.key.letter(code)) for code in range(256)], np.uint32)
    grid.chars[line[lettered], column[lettered]] = letters[points.category[rows[lettered]]]
    grid.chars[line[edge], column[edge]] = ord(marks(spec.look).rug)
    lay_labels(grid, spec.roofs, spec.look)
    return replace(grid, outside=outside)


def _add_ghosts(grid: PlotGrid, ghosts: Points, look: Look) -> None:
    """A mark in the cell of each point of the baseline that has a place in the window."""
    rows = ghosts.order[np.isfinite(ghosts.x[ghosts.order])]
    for row in rows.tolist():
        x, y = float(ghosts.x[row]), float(ghosts.y[row])
        if grid.view.holds(x, y):
            column, line = grid.cell(x, y)
            grid.chars[line, column], grid.style[line, column] = ord(marks(look).ghost), GHOST


def _dots(grid: PlotGrid, px: I64, py: I64, look: Look) -> NDArray[np.uint32]:
    """Code points of the cells in which dots lie: braille or quadrants, all dots of a cell together."""
    bits = np.zeros(grid.chars.shape, np.uint32)
    across, down = grid.dots
    table = _BRAILLE if look.glyphs == "braille" else _QUADRANT
    np.bitwise_or.at(bits, (py // down, px // across + grid.left), table[py % down, px % across])
    if look.glyphs == "braille":
        return bits + 0x2800
    return np.array([ord(c) for c in _QUADRANTS], np.uint32)[bits]
