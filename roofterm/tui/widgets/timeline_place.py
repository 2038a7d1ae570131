"""Where one is on a timeline: its window, its open lanes, and the cursor on a lane and a moment. Knows nothing of a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roofterm.tui.widgets import timeline_window
from roofterm.tui.widgets.lanes import Group, Lanes
from roofterm.tui.widgets.raster import Hit, Lane, Window, longest_gaps
from roofterm.tui.widgets.timeline_window import Extent
from roofterm_parsers.profile import TrackKind

PAN = 4
"""a key moves the window by this part of it"""

Step = tuple[int, int, str]
"""start and end in picoseconds, name"""

_NOTHING = Lane()
_NO_GROUP = Group("", TrackKind.HOST)


@dataclass
class Place:
    """Moves by lanes, slices, steps and gaps. `cells` and `lines` are the size of what is in sight."""

    lanes: Lanes
    steps: Sequence[Step] = ()
    cells: int = 80
    lines: int = 10
    start_ps: int = 0
    span_ps: int = 1
    cursor_ps: int = 0
    row: int = 0
    """lane of the cursor: index into `rows`"""
    top: int = 0
    slice_id: int | None = None
    opened: set[int] = field(default_factory=set)
    rows: list[tuple[int, int]] = field(default_factory=list)
    """(group, depth) of every lane that can be scrolled to"""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """stretches in which a device does nothing, the longest first"""
    gap_at: int = -1
    _same: tuple[int, NDArray[np.uint32]] | None = None

    @classmethod
    def at_start(cls, lanes: Lanes, steps: Sequence[Step], cells: int, lines: int) -> Place:
        """Everything in the window, the cursor on the first lane that has slices."""
        place = cls(lanes, steps, cells, lines, lanes.begin_ps, lanes.end_ps - lanes.begin_ps, lanes.begin_ps)
        place.row = next((at for at, group in enumerate(lanes.groups) if group.rows), 0)
        place.gaps = sorted((gap for part in lanes.busy for gap in longest_gaps(part)), key=lambda gap: gap[0] - gap[1])
        place.list_rows()
        first = place.lane(place.row).next_start(lanes.begin_ps - 1)
        place.cursor_ps = lanes.begin_ps if first is None else first
        place.show(place.start_ps, place.span_ps)
        return place

    @property
    def window(self) -> Window:
        return Window(self.start_ps, self.span_ps, self.cells)

    @property
    def extent(self) -> Extent:
        return Extent(self.lanes.begin_ps, self.lanes.end_ps)

    @property
    def column(self) -> int:
        """Cell of the cursor."""
        return max(0, min(self.window.cell(self.cursor_ps), self.cells - 1))

    @property
    def sight(self) -> tuple[object, ...]:
        """All that the drawn lanes depend on."""
        return self.start_ps, self.span_ps, self.top, self.cells, self.lines, tuple(self.rows[self.top : self.top + self.lines])

    def lane(self, row: int) -> Lane:
        depth = self.rows[row][1] if 0 <= row < len(self.rows) else 0
        rows = self.group(row).rows
        return rows[depth] if depth < len(rows) else _NOTHING

    def group(self, row: int) -> Group:
        return self.lanes.groups[self.rows[row][0]] if 0 <= row < len(self.rows) else _NO_GROUP

    def hit(self) -> Hit | None:
        """The slice that fills most of the cursor's cell, of the category that the cell shows."""
        lane = self.lane(self.row)
        edges = np.array([self.window.edge(self.column), self.window.edge(self.column + 1)], np.int64)
        return lane.hit(int(edges[0]), int(edges[1]), int(lane.cells(edges).category[0])) if len(lane) else None

    def step_name(self) -> str:
        return next((name for start, end, name in self.steps if start <= self.cursor_ps < end), "")

    # Window

    def resize(self, cells: int, lines: int) -> None:
        self.cells, self.lines = max(cells, 1), max(lines, 1)
        if self.row < self.lines:
            self.top = 0  # nothing above is hidden without need
        self.show(self.start_ps, self.span_ps)

    def show(self, start_ps: int, span_ps: int) -> None:
        """Another window; the cursor stays at its moment, or at the nearest one in sight."""
        self.start_ps, self.span_ps = timeline_window.clamped(start_ps, span_ps, self.extent, self.cells)
        last = self.window.edge(self.cells - 1) if self.cells > 1 else self.window.end_ps - 1  # one cell: not laid out yet
        self.cursor_ps = max(self.start_ps, min(self.cursor_ps, last))
        self._keep_in_sight()
        self._look_up()

    def show_around(self, begin_ps: int, end_ps: int, margin: float = 0.05) -> None:
        self.show(*timeline_window.around(begin_ps, end_ps, self.extent, self.cells, margin))

    def zoom(self, direction: int) -> None:
        if direction == 0:
            self.show(self.extent.begin_ps, self.extent.span_ps)
        else:
            self.show(*timeline_window.zoomed(self.start_ps, self.span_ps, self.cursor_ps, direction > 0, self.extent, self.cells))

    def pan(self, right: int, down: int) -> None:
        if down:
            self.top = max(0, min(self.top + down, len(self.rows) - self.lines))
            self.row = max(self.top, min(self.row, self.top + self.lines - 1))
        self.show(self.start_ps + right * self.span_ps // PAN, self.span_ps)

    # Cursor

    def to_row(self, row: int) -> None:
        self.row = max(0, min(row, len(self.rows) - 1))
        self._keep_in_sight()
        self._look_up()

    def along(self, direction: int) -> None:
        """To the next or the previous slice of the lane that begins in another cell; on a lane without slices, by a cell."""
        lane, column = self.lane(self.row), self.column
        if not len(lane):
            target: int | None = self.window.edge(column + 1) if direction > 0 else self.window.edge(column) - 1
        elif direction > 0:
            target = lane.next_start(self.window.edge(column + 1) - 1)
        else:
            target = lane.previous_start(self.window.edge(column))
        if target is None:
            return
        self.cursor_ps = max(self.extent.begin_ps, min(target, self.extent.end_ps - 1))
        self.slice_id = None
        if self.start_ps <= self.cursor_ps < self.window.end_ps:
            self._look_up()
        else:
            self.show(self.cursor_ps - self.span_ps // 2, self.span_ps)

    def reveal(self, slice_id: int) -> None:
        """The cursor on a slice, with its lane open and the window where it can be seen."""
        place = self.lanes.place(slice_id)
        if place is None:
            return
        group, depth = place
        if depth != self.lanes.groups[group].head and group not in self.opened:
            self.opened.add(group)
            self.list_rows()
        self.row = self.rows.index((group, depth))
        start = int(self.lanes.start_ps[slice_id])
        end = start + int(self.lanes.dur_ps[slice_id])
        self.start_ps, self.span_ps = timeline_window.in_sight(start, end, self.start_ps, self.span_ps, self.extent, self.cells)
        self.cursor_ps = max(start, self.start_ps)
        self._keep_in_sight()
        self.slice_id = slice_id

    def same_name(self, direction: int) -> None:
        if self.slice_id is None:
            return
        name = int(self.lanes.name[self.slice_id])
        if self._same is None or self._same[0] != name:
            self._same = name, self.lanes.same_name(self.slice_id)
        ids = self._same[1]
        at = np.flatnonzero(ids == self.slice_id)
        to = int(at[0]) + direction if at.size else 0
        if 0 <= to < ids.size:
            self.reveal(int(ids[to]))

    def linked(self) -> None:
        if self.slice_id is not None and (other := self.lanes.linked(self.slice_id)) is not None:
            self.reveal(other)

    def gap(self, direction: int) -> None:
        if self.gaps:
            self.gap_at = max(0, min(self.gap_at + direction, len(self.gaps) - 1))
            begin, end = self.gaps[self.gap_at]
            self.cursor_ps, self.slice_id = begin, None
            self.show_around(begin, end, margin=1.0)

    def step(self, index: int) -> None:
        begin, end, _ = self.steps[index]
        self.cursor_ps, self.slice_id = begin, None
        self.show_around(begin, end)

    def step_index(self) -> int:
        """Place of the step in which the cursor is, or of the last one that began before it; -1 before the first."""
        return int(np.searchsorted([start for start, _, _ in self.steps], self.cursor_ps, "right")) - 1

    # Lanes

    def fold(self) -> None:
        """Open or close the cursor's thread."""
        if not self.group(self.row).folds:
            return
        group, depth = self.rows[self.row]
        self.opened ^= {group}
        self.list_rows()
        self.to_row(self.rows.index((group, depth if group in self.opened else self.lanes.groups[group].head)))

    def list_rows(self) -> None:
        self.rows = [
            (at, depth)
            for at, group in enumerate(self.lanes.groups)
            for depth in (range(max(len(group.rows), 1)) if at in self.opened else (group.head,))
        ]
        self.row = max(0, min(self.row, len(self.rows) - 1))

    def _look_up(self) -> None:
        """The slice that stands out in the cursor's cell; the one that the cursor stands on stays while it is in that cell."""
        if self.slice_id is None or not self._is_under_cursor(self.slice_id):
            hit = self.hit()
            self.slice_id = hit.slice if hit else None

    def _is_under_cursor(self, slice_id: int) -> bool:
        begin = int(self.lanes.start_ps[slice_id])
        end = begin + int(self.lanes.dur_ps[slice_id])
        here = self.row < len(self.rows) and self.lanes.place(slice_id) == self.rows[self.row]
        shown = self.lanes.keep is None or bool(self.lanes.keep[slice_id])
        return here and shown and begin < self.window.edge(self.column + 1) and max(end, begin + 1) > self.window.edge(self.column)

    def _keep_in_sight(self) -> None:
        self.top = max(min(self.top, self.row), self.row - self.lines + 1)
        self.top = max(0, min(self.top, len(self.rows) - self.lines))
