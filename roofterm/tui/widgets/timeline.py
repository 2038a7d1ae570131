"""The timeline: lanes of devices, streams and threads over a window of time, with a cursor on a lane and a moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from roofterm.text.units import duration_us, pct
from roofterm.tui.widgets import cell_runs
from roofterm.tui.widgets.axis import exact_time, time_ticks
from roofterm.tui.widgets.glyphs import NO_CATEGORY, CategoryKey, contrast, marks, padded, shown
from roofterm.tui.widgets.lanes import Lanes
from roofterm.tui.widgets.legend import legend
from roofterm.tui.widgets.line_widget import LineWidget, name_cell
from roofterm.tui.widgets.raster import busy_ps
from roofterm.tui.widgets.timeline_cells import BUSY, IDLE, NEUTRAL, SOLID, busy_cells, lane_cells, step_cells
from roofterm.tui.widgets.timeline_place import Place, Step
from roofterm.tui.widgets.timeline_text import slice_lines, window_text
from roofterm_parsers.profile import TrackKind

__all__ = ["SliceHighlighted", "SliceSelected", "Step", "TimelineView", "WindowMarked"]

_EMPTY_KEY = CategoryKey((), (), ())


class SliceHighlighted(Message):
    """The cursor stands on another slice, or on none."""

    def __init__(self, slice_id: int | None) -> None:
        self.slice_id = slice_id
        super().__init__()


class SliceSelected(SliceHighlighted):
    """The slice under the cursor was chosen."""


class WindowMarked(Message):
    """A stretch of time was marked, or is no longer."""

    def __init__(self, window_ps: tuple[int, int] | None) -> None:
        self.window_ps = window_ps
        super().__init__()


class TimelineView(LineWidget, can_focus=True):
    """Draws the lanes in sight anew for each window; moving the cursor touches its own lines only."""

    def __init__(self, key: CategoryKey = _EMPTY_KEY, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.key = key
        self.place: Place | None = None
        self.zero_ps = 0
        """time that the axis counts from"""
        self.marked: tuple[int | None, int | None] = (None, None)
        self._present: list[int] = []
        """codes of the categories that any lane shows"""
        self._chars = np.zeros((0, 0), np.uint32)
        self._strips: list[Strip] = []
        self._drawn: tuple[object, ...] = ()

    def show(self, lanes: Lanes, steps: Sequence[Step] = (), *, keep_window: bool = False) -> None:
        """Show lanes; steps are (start, end, name), in order. With `keep_window` window and cursor stay where they were."""
        old = self.place
        self.place = Place.at_start(lanes, steps, max(self._cells, 1), max(self._lane_lines, 1))
        self._present = lanes.categories()
        self._drawn = ()
        self.place.resize(self._cells, self._lane_lines)
        if keep_window and old is not None:
            self.place.cursor_ps, self.place.slice_id = old.cursor_ps, None
            self.place.show(old.start_ps, old.span_ps)
        else:
            self.marked = None, None
        self._act(lambda place: None, slice_before=-1)

    def show_window(self, begin_ps: int, end_ps: int) -> None:
        """Show a stretch of time, with a little room around it."""
        self._act(lambda place: place.show_around(begin_ps, end_ps))

    def reveal(self, slice_id: int) -> None:
        """Put the cursor on a slice, with its lane open and in sight and the window where the slice can be seen."""
        self._act(lambda place: place.reveal(slice_id))

    @property
    def slice_id(self) -> int | None:
        """The slice under the cursor."""
        return self.place.slice_id if self.place else None

    @property
    def folded(self) -> bool:
        """Whether the cursor's thread has depths that are not shown."""
        place = self.place
        return place is not None and bool(place.rows) and place.group(place.row).folds and place.rows[place.row][0] not in place.opened

    # What keys do

    def move(self, columns: int, rows: int) -> None:
        """Down or up by lanes; right or left to the next slice of the lane, at least a cell away."""
        if rows:
            self._act(lambda place: place.to_row(place.row + rows))
        if columns:
            self._act(lambda place: place.along(columns))

    def page(self, pages: float) -> None:
        self._act(lambda place: place.to_row(place.row + int(pages * max(place.lines - 1, 1))))

    def end(self, direction: int) -> None:
        """To the first or the last lane."""
        self._act(lambda place: place.to_row(len(place.rows) - 1 if direction > 0 else 0))

    def zoom(self, direction: int) -> None:
        """In (1) or out (-1) around the cursor, or everything (0)."""
        self._act(lambda place: place.zoom(direction))

    def pan(self, right: int, down: int = 0) -> None:
        """The window right or left by a quarter; the lanes up or down."""
        self._act(lambda place: place.pan(right, down))

    def fold(self) -> None:
        """Open or close the cursor's thread: its depths below its outermost level."""
        self._act(lambda place: place.fold())

    def same(self, direction: int) -> None:
        """To the next or the previous slice of the same name, on any lane."""
        self._act(lambda place: place.same_name(direction))

    def launch(self) -> None:
        """From a kernel to its launch, and from a launch to what it launched."""
        self._act(lambda place: place.linked())

    def gap(self, direction: int = 1) -> None:
        """To the longest stretch in which a device does nothing, then to the next longest."""
        self._act(lambda place: place.gap(direction))

    def step(self, direction: int) -> None:
        """The window on the next or the previous step."""
        if self.place and self.place.steps:
            self.go_to_step(max(0, min(self.place.step_index() + direction, len(self.place.steps) - 1)))

    def go_to_step(self, index: int) -> None:
        """The window on a step, by its place in the list; the axis counts from its start."""
        if self.place:
            self.zero_ps = self.place.steps[index][0]
            self._drawn = ()
            self._act(lambda place: place.step(index))

    def mark_window(self, side: str) -> None:
        """Begin ("from") or end ("to") a stretch of time at the cursor's cell."""
        if self.place is None:
            return
        window, column = self.place.window, self.place.column
        begin, end = self.marked
        if side == "from":
            begin = window.edge(column)
            end = end if end is not None and end > begin else None
        else:
            end = window.edge(column + 1)
            begin = begin if begin is not None and begin < end else None
        self.marked = begin, end
        if begin is not None and end is not None:
            self.post_message(WindowMarked((begin, end)))
        self.refresh_lines_at(self._axis_line)

    def select(self) -> None:
        """Choose the slice under the cursor."""
        if self.slice_id is not None:
            self.post_message(SliceSelected(self.slice_id))

    def _act(self, change: Callable[[Place], None], slice_before: int | None = None) -> None:
        """Change the place, and draw anew only what that touches."""
        if (place := self.place) is None:
            return
        old_slice = place.slice_id if slice_before is None else slice_before
        old_row, old_column = place.row, place.column
        change(place)
        if place.sight != self._drawn:
            self._draw()
        else:
            self._refresh_cell(old_row, old_column)
            self._refresh_cell(place.row, place.column)
            if place.column != old_column:
                self.refresh_lines_at(self._axis_line)
            self.refresh(Region(0, self._axis_line + 1, self.size.width, self._detail_lines))
        if place.slice_id != old_slice:
            self.post_message(SliceHighlighted(place.slice_id))

    def _refresh_cell(self, row: int, column: int) -> None:
        assert self.place is not None
        y = self._head + row - self.place.top
        if self._head <= y < self._axis_line:
            self.refresh(Region(0, y, self._label_width + 2 + column, 1))

    # Drawing

    def on_resize(self) -> None:
        if self.place:
            self.place.resize(self._cells, self._lane_lines)
            self._draw()

    def on_focus(self) -> None:
        self._act(lambda place: None)

    def on_blur(self) -> None:
        self._act(lambda place: None)

    def render_line(self, y: int) -> Strip:
        if self.place is None or self.size.width < self._label_width + 4:
            return self.blank()
        if y < self._head:
            return self.strip([(self._head_text(y), self.palette.muted if y < self._head - 1 else self.palette.good)])
        if y < self._axis_line:
            return self._lane_line(y - self._head)
        if y == self._axis_line:
            return self._axis()
        below = y - self._axis_line - 1
        if below >= self._detail_lines:
            return self.strip(legend(self._present, self.key, self.palette, self.look)) if self._legend_lines else self.blank()
        lines = self._detail()
        return self.strip([(lines[below], self.palette.muted if below else self.palette.text)]) if below < len(lines) else self.blank()

    @property
    def _head(self) -> int:
        """Lines above the lanes: which window this is, the steps in it, how busy the devices are."""
        return 1 + bool(self.place and self.place.steps) + bool(self.place and self.place.lanes.busy)

    @property
    def _detail_lines(self) -> int:
        return 2 if self.size.height >= 10 else 1

    @property
    def _legend_lines(self) -> int:
        return 1 if self.size.height >= 16 and self._present else 0

    @property
    def _lane_lines(self) -> int:
        return max(self.size.height - self._head - 1 - self._detail_lines - self._legend_lines, 0)

    @property
    def _axis_line(self) -> int:
        return self._head + self._lane_lines

    @property
    def _label_width(self) -> int:
        longest = max((len(group.label) + 2 for group in self.place.lanes.groups), default=0) if self.place else 0
        return max(10, min(longest, self.size.width // 4))

    @property
    def _cells(self) -> int:
        return max(self.size.width - self._label_width - 1, 1)

    def _draw(self) -> None:
        """Build the lanes in sight anew, and everything above and below them."""
        place = self.place
        if place is None or not self.size.width:
            return
        rows = range(place.top, min(place.top + place.lines, len(place.rows)))
        cost = cell_runs.bytes_a_run(self.palette.text, self.app.console.color_system)
        chars, style = lane_cells([place.lane(row) for row in rows], place.lanes, place.window, self.key, self.look, cost)
        for y, row in enumerate(rows):
            if (busy := place.group(row).busy) is not None:
                chars[y], style[y] = busy_cells([busy], place.window, self.look), BUSY
        solid = np.array([SOLID + 2 * code for code in range(256)], np.uint16)
        self._strips = cell_runs.strips(chars, cell_runs.blended(chars, style, solid), self._styles())
        self._chars, self._drawn = chars, place.sight
        self.refresh()

    def _head_text(self, y: int) -> str:
        assert self.place is not None
        place, look = self.place, self.look
        if y == 0:
            last = min(place.top + place.lines, len(place.rows))
            lanes = f"lanes {place.top + 1}-{last} of {len(place.rows)}" if place.rows else "no lanes"
            return " " + shown(window_text(place.window, place.extent, self.zero_ps, place.step_name(), lanes), self.size.width - 1, look)
        if y == 1 and place.steps:
            return f"{padded('  steps', self._label_width, look)} {step_cells(place.steps, place.window, look)}"
        cells = busy_cells(place.lanes.busy, place.window, look)
        return f"{padded('  busy %', self._label_width, look)} {''.join(map(chr, cells.tolist()))}"

    def _lane_line(self, y: int) -> Strip:
        assert self.place is not None
        row = self.place.top + y
        if row >= len(self.place.rows) or y >= len(self._strips):
            return self.blank()
        strip, here = self._strips[y], row == self.place.row
        if here:
            column = self.place.column
            under = chr(self._chars[y, column]) if column < self._chars.shape[1] else " "
            strip = cell_runs.overlaid(strip, column, under, self.palette.cursor if self.has_focus else self.palette.blur)
        return Strip.join([Strip([Segment(self._label(row), self.palette.strong if here else self.palette.muted)]), strip])

    def _label(self, row: int) -> str:
        assert self.place is not None
        at, depth = self.place.rows[row]
        group, mark = self.place.lanes.groups[at], marks(self.look)
        is_open = at in self.place.opened
        below = depth and is_open
        fold = " " if not group.folds or below else mark.open if is_open else mark.closed
        room = self._label_width - 2
        name = group.label.replace(" stream ", " s") if self._streams_are_cut(room) else group.label
        if below:
            return f"{fold} {padded(f'{group.depths[depth]:>{min(depth, 6) + 1}}', room, self.look)} "
        return f"{fold} {name_cell(name, room, self.look)} "  # threads of a pool differ in their ends

    def _streams_are_cut(self, room: int) -> bool:
        """Whether a stream's number would be cut off, so that all streams are named in short."""
        return self.place is not None and any(len(g.label) > room for g in self.place.lanes.groups if g.kind == TrackKind.DEVICE)

    def _axis(self) -> Strip:
        assert self.place is not None
        window = self.place.window
        axis = time_ticks(window.start_ps, window.span_ps, window.cells, self.zero_ps)
        bar = "|" if self.look.ascii else "│"
        line = [" "] * window.cells
        for cell, label in axis.ticks:
            text = bar + label
            if cell + len(text) <= window.cells:
                line[cell : cell + len(text)] = text
        for at, sign in zip(self.marked, "[]", strict=True):
            if at is not None and 0 <= (cell := window.cell(at - (sign == "]"))) < window.cells:
                line[cell] = sign
        base = padded(axis.base[-self._label_width :].rjust(self._label_width), self._label_width, self.look)
        strip = self.strip([(f"{base} {''.join(line)}", self.palette.muted)])
        return cell_runs.overlaid(strip, self._label_width + 1 + self.place.column, marks(self.look).here, self.palette.strong)

    def _detail(self) -> list[str]:
        assert self.place is not None
        place, window, look = self.place, self.place.window, self.look
        begin, end = window.edge(place.column), window.edge(place.column + 1)
        group = place.group(place.row)
        label = shown(group.label, self._label_width, look)
        here = f"{duration_us((end - begin) / 1e6)} at {exact_time(place.cursor_ps - self.zero_ps)}"
        if group.busy is not None:
            share = int(busy_ps(group.busy, np.array([begin, end]))[0]) * 100 / (end - begin)
            return [f" {label}: {pct(share)} of {here}"]
        if place.slice_id is None:
            return [f" {label}: nothing in {here}"]
        hit = place.hit()
        others = hit.pieces - 1 if hit else 0
        return list(slice_lines(place.lanes, place.slice_id, group.label, others, self.zero_ps, self.key, self.size.width, look))

    def _styles(self) -> dict[int, Style]:
        p = self.palette
        styles = {IDLE: p.muted, NEUTRAL: p.text, BUSY: p.good}
        for code in range(NO_CATEGORY):
            colour = self.key.colour(code)
            styles[SOLID + 2 * code] = Style(color=contrast(colour), bgcolor=None if colour == "default" else colour)
            styles[SOLID + 2 * code + 1] = p.text + Style(color=colour)
        return styles
