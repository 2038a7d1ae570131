"""From disjoint pieces of time to the cells of a screen line, exact to the picosecond at every zoom.

Each category of a lane keeps its pieces sorted by start with their running total, so that the time it holds in any cell
is the difference of two look-ups: a line costs the same for a hundred slices as for millions, and no slice is sampled away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roofterm.tui.widgets.glyphs import NO_CATEGORY

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]

_NAMED_AT_MOST = 4096
"""pieces of a line among which those wide enough for a name are looked for"""


@dataclass(frozen=True)
class Window:
    """What a line shows: `cells` cells from `start_ps`, together `span_ps` long."""

    start_ps: int
    span_ps: int
    cells: int

    @property
    def end_ps(self) -> int:
        return self.start_ps + self.span_ps

    def edge(self, cell: int) -> int:
        """First picosecond of a cell."""
        return self.start_ps - (-self.span_ps * cell // self.cells)

    def edges(self) -> I64:
        """First picoseconds of all cells, and the window's end: shape (cells + 1,)."""
        whole, rest = divmod(self.span_ps, self.cells)
        cell = np.arange(self.cells + 1, dtype=np.int64)
        return self.start_ps + whole * cell - (-rest * cell // self.cells)

    def cell(self, time_ps: int) -> int:
        """The cell that holds a time; below 0 or at least `cells` outside."""
        return (time_ps - self.start_ps) * self.cells // self.span_ps


@dataclass(frozen=True)
class Pieces:
    """Disjoint pieces in order of time: `total` (one longer) is the time before each, so that an end needs no column."""

    start_ps: I64
    total_ps: I64
    slice: U32

    @classmethod
    def of(cls, start_ps: I64, end_ps: I64, slices: U32 | None = None) -> Pieces:
        total = np.zeros(start_ps.size + 1, np.int64)
        np.cumsum(end_ps - start_ps, out=total[1:])
        return cls(np.ascontiguousarray(start_ps), total, np.zeros(0, np.uint32) if slices is None else slices)

    def __len__(self) -> int:
        return self.start_ps.size

    def end_ps(self, row: int) -> int:
        return int(self.start_ps[row] + self.total_ps[row + 1] - self.total_ps[row])

    def before(self, at_ps: I64) -> tuple[I64, I64]:
        """For each time: how many pieces began before it, and how long they had lasted by then."""
        begun = np.searchsorted(self.start_ps, at_ps)
        if not len(self):
            return begun, np.zeros(at_ps.size, np.int64)
        last = np.maximum(begun - 1, 0)
        over = self.start_ps[last] + self.total_ps[last + 1] - self.total_ps[last] - at_ps
        return begun, self.total_ps[begun] - np.where(begun > 0, np.maximum(over, 0), 0)

    def within(self, begin_ps: int, end_ps: int) -> tuple[int, int]:
        """Rows first to last (exclusive) of the pieces that touch a stretch of time."""
        first, last = np.searchsorted(self.start_ps, np.array([begin_ps, end_ps], np.int64)).tolist()
        if first and self.end_ps(first - 1) > begin_ps:
            first -= 1
        return first, last


@dataclass(frozen=True)
class Hit:
    """The slice that fills most of a stretch of time, and how many pieces touch it."""

    slice: int
    category: int
    pieces: int


@dataclass(frozen=True)
class Cells:
    """One line: the category that fills most of each cell (`NO_CATEGORY`: no slice touches it), and the time filled."""

    category: U8
    filled_ps: I64


@dataclass
class Lane:
    """The pieces of one lane, by category code."""

    pieces: dict[int, Pieces] = field(default_factory=dict)

    @classmethod
    def of(cls, start_ps: I64, end_ps: I64, slices: U32, category: U8) -> Lane:
        """From disjoint pieces in order of time; `category` is that of each piece, and not `NO_CATEGORY`."""
        order = np.argsort(category, kind="stable")
        codes, firsts = np.unique(category[order], return_index=True)
        lane = cls()
        if not order.size:
            return lane
        for code, a, b in zip(codes.tolist(), firsts.tolist(), [*firsts.tolist()[1:], order.size], strict=True):
            rows = order[a:b]
            lane.pieces[code] = Pieces.of(start_ps[rows], end_ps[rows], slices[rows])
        return lane

    def __len__(self) -> int:
        return sum(map(len, self.pieces.values()))

    def total_ps(self) -> int:
        """Time of all pieces."""
        return sum(int(pieces.total_ps[-1]) for pieces in self.pieces.values())

    def cells(self, edges: I64) -> Cells:
        """What each cell between two edges shows: most time wins, or most pieces where all are empty; shape (cells,)."""
        width = edges.size - 1
        best = np.full(width, NO_CATEGORY, np.uint8)
        most = np.zeros(width, np.int64)
        count = np.zeros(width, np.int64)
        filled = np.zeros(width, np.int64)
        for code, pieces in self.pieces.items():
            begun, lasted = pieces.before(edges)
            time, number = np.diff(lasted), np.diff(begun)
            filled += time
            wins = (time > most) | ((time == most) & (most == 0) & (number > count))
            best[wins] = code
            most[wins], count[wins] = time[wins], number[wins]
        return Cells(best, filled)

    def hit(self, begin_ps: int, end_ps: int, category: int | None = None) -> Hit | None:
        """The slice with the most time between two moments, of the given category if it has any there."""
        best: Hit | None = None
        most = -1
        touching = 0
        for code, pieces in self.pieces.items():
            first, last = pieces.within(begin_ps, end_ps)
            touching += last - first
            if first == last or (category is not None and code != category):
                continue
            start = pieces.start_ps[first:last]
            length = np.diff(pieces.total_ps[first : last + 1])
            inside = np.minimum(start + length, end_ps) - np.maximum(start, begin_ps)
            row = int(inside.argmax())
            if inside[row] > most:
                most = int(inside[row])
                best = Hit(int(pieces.slice[first + row]), code, 0)
        return None if best is None else Hit(best.slice, best.category, touching)

    def wide(self, window: Window, cells: int) -> Iterator[tuple[int, int, int, int]]:
        """(category, start, end, slice) of the pieces in sight that are at least so many cells long."""
        length_ps = window.span_ps * cells // window.cells
        for code, pieces in self.pieces.items():
            first, last = pieces.within(window.start_ps, window.end_ps)
            if last - first > _NAMED_AT_MOST:
                continue
            length = np.diff(pieces.total_ps[first : last + 1])
            for row in (np.flatnonzero(length >= length_ps) + first).tolist():
                yield code, int(pieces.start_ps[row]), pieces.end_ps(row), int(pieces.slice[row])

    def next_start(self, time_ps: int) -> int | None:
        """When the first piece after a time begins."""
        starts = [int(p.start_ps[at]) for p in self.pieces.values() if (at := int(np.searchsorted(p.start_ps, time_ps, "right"))) < len(p)]
        return min(starts, default=None)

    def previous_start(self, time_ps: int) -> int | None:
        """When the last piece that began before a time begins."""
        starts = [int(p.start_ps[at - 1]) for p in self.pieces.values() if (at := int(np.searchsorted(p.start_ps, time_ps)))]
        return max(starts, default=None)


def busy_ps(parts: Pieces, edges: I64) -> I64:
    """Time of a union in each cell between two edges: exact, shape (cells,)."""
    return np.diff(parts.before(edges)[1])


def longest_gaps(parts: Pieces, most: int = 100) -> list[tuple[int, int]]:
    """(start, end) of the longest stretches between two parts of a union, longest first."""
    if len(parts) < 2:
        return []
    end = parts.start_ps + np.diff(parts.total_ps)
    gap = parts.start_ps[1:] - end[:-1]
    top = np.argsort(-gap, kind="stable")[:most]
    return [(int(end[row]), int(parts.start_ps[row + 1])) for row in top]
