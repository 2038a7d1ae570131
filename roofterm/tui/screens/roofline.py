"""Roofline: the program, its steps or its ops among the roofs, with the table of the same points."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import polars as pl
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from roofterm.analysis.filters import Filter, parse
from roofterm.analysis.scope_use import scope_use
from roofterm.analysis.study import Study
from roofterm.report.as_json import roofline_json
from roofterm.report.roofline_table import roofline_frame
from roofterm.results import Coverage, Roofline, RooflineRow
from roofterm.text.units import count, pct
from roofterm.tui.columns import columns_of, row_details
from roofterm.tui.exporting import Export, TableExport
from roofterm.tui.messages import RowHighlighted
from roofterm.tui.opened import Opened
from roofterm.tui.page import Page
from roofterm.tui.rows import Rows, chosen_rows, place_of
from roofterm.tui.state import Selection, Sort, ViewState, changed, without_rank
from roofterm.tui.widgets.detail import DetailPanel, Details
from roofterm.tui.widgets.glyphs import CategoryKey
from roofterm.tui.widgets.line_widget import LineWidget
from roofterm.tui.widgets.roofline_view import PointHighlighted, PointSelected, RooflineView
from roofterm.tui.widgets.table import VirtualTable


class Answer(NamedTuple):
    roofline: Roofline
    records: list[RooflineRow]
    """row for row with the frame of `rows`"""
    rows: Rows
    part: str
    base: list[RooflineRow] | None
    """the baseline's; None: there is none"""


class RooflinePage(Page):
    SCREEN = "roofline"
    DRAWS_UNSEEN = False

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._answer: Answer | None = None
        self._drawn: Hashable = None
        self._framed: tuple[Roofline, str, pl.DataFrame] | None = None
        """the points asked for last, as a frame"""

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical(id="roofline-main"):
                with Vertical(id="plot-panel", classes="framed"):
                    yield RooflineView(self._key(), id="plot")
                with Vertical(id="points-panel", classes="framed") as points:
                    points.border_title = "Points"
                    yield VirtualTable("points-table", f"no point passes the filter; {self.all_again}")
            with Vertical(classes="side") as side:
                side.border_title = "Point"
                yield DetailPanel("point-details", definitions=False)

    def key(self, state: ViewState) -> Hashable:
        return (state.level, state.filter, state.step, state.window_ps, state.infeed)

    async def load(self, state: ViewState) -> None:
        answer = await self.explorer.app_.desk.ask(lambda: self._ask(state))
        self._answer = answer
        rows = _rows(answer.roofline, state.level)
        drawn = (state.level, self.scope(state, "steady"), self.explorer.baseline)
        if drawn != self._drawn:
            self.plot.show(rows, answer.roofline.roofs, coverage_text(answer.roofline.coverage), keep_window=False)
            self._drawn = drawn
        self.plot.hold_against(answer.base)
        everything = len(answer.rows.order) == answer.rows.frame.height
        self.plot.limit(None if everything else np.isin(np.arange(answer.rows.frame.height), answer.rows.order))
        self.table.show(answer.rows.frame, columns_of("roofline", answer.rows.frame), answer.rows.order, Sort("time_us"))

    def settle(self, state: ViewState) -> None:
        if not self.has_class("-table") and self.plot.cursor is not None:
            self._to_row(self.plot.cursor)  # not every row has a place among the roofs: the plot's cursor may not be on the first
        chosen, here = state.selection, self.selection()
        if self._answer is None or chosen is None or state.level != "op" or (here is not None and here.name in (chosen.name, chosen.op)):
            return
        for column, name in (("name", chosen.name), ("op", chosen.name), ("name", chosen.op)):
            place = place_of(self._answer.rows, column, name)
            if place is not None:
                self.table.go(place)
                self._highlight(int(self._answer.rows.order[place]))
                return

    def focus_target(self) -> LineWidget:
        return self.table if self.has_class("-table") else self.plot

    def status(self) -> tuple[str, str]:
        if self._answer is None:
            return "reading the figures ...", ""
        shown, whole = len(self._answer.rows.order), self._answer.rows.frame.height
        noun = "ops" if self.explorer.state.level == "op" else "rows of the program"
        parts = [f"{count(shown)} of {count(whole)} {noun}" if shown != whole else f"{count(whole)} {noun}", self._answer.part]
        if self._answer.rows.not_asked:
            parts.insert(0, f"not asked here: {self._answer.rows.not_asked}")
        if not self._answer.roofline.roofs:
            parts.append("no roof known: see roofterm measure")
        return " · ".join(parts), f"{count(self.table.cursor + 1)}/{count(shown)}" if shown else ""

    def selection(self) -> Selection | None:
        row = self.table.row()
        return None if row is None else Selection("kernel" if row["level"] == "kernel" else "op", str(row["name"]), op=row["op"])

    def details(self) -> Details | None:
        row = self.table.row()
        return None if row is None else row_details("roofline", row)

    def export(self) -> Export | None:
        answer = self._answer
        if answer is None:
            return None
        shown = [answer.records[row] for row in answer.rows.order]
        study, scope = self.opened.study.roofed, self.scope(self.explorer.state, "steady")

        def document(_: pl.DataFrame) -> list[bytes]:
            return [roofline_json(study.device, answer.part, answer.roofline, shown, scope_use(study, scope))]

        return TableExport("rows of the roofline", lambda: roofline_frame(shown), document)

    def place(self) -> int:
        return self.table.cursor

    def restyle(self) -> None:
        self.plot.key = self._key()
        self._drawn = None
        self._shown = object()
        self.show(self.explorer.state)

    @property
    def plot(self) -> RooflineView:
        return self.query_one("#plot", RooflineView)

    @property
    def table(self) -> VirtualTable:
        return self.query_one("#points-table", VirtualTable)

    @on(PointHighlighted)
    def _point(self, event: PointHighlighted) -> None:
        if not self.has_class("-table"):
            self._to_row(event.row)
        self.explorer.tell()

    @on(PointSelected)
    def _chosen(self) -> None:
        self.explorer.show_details()

    @on(RowHighlighted)
    def _row(self, event: RowHighlighted) -> None:
        if self.table.has_focus:
            self._highlight(event.row)

    def action_next(self, direction: int) -> None:
        self.plot.next(direction)

    def action_zoom(self, direction: int) -> None:
        self.plot.zoom(direction)

    def action_pan(self, right: int, up: int) -> None:
        self.plot.pan(right, up)

    def action_roofs(self) -> None:
        self.plot.toggle_roofs()

    def action_view(self, by: int) -> None:
        others = self.plot.next_memory(by)
        level = self.plot.memory.upper() or "memory"
        self.explorer.notice(f"intensity by the bytes of {level}" if others else f"of no level but {level} are the bytes known")

    def action_table(self) -> None:
        self.toggle_class("-table")
        self.focus_target().focus(scroll_visible=False)

    def action_level(self) -> None:
        state = self.explorer.state
        self.explorer.change(changed(state, level="program" if state.level == "op" else "op"))

    def action_infeed(self) -> None:
        state = self.explorer.state
        self.explorer.change(changed(state, infeed=not state.infeed))
        self.explorer.notice("with infeed and outfeed" if not state.infeed else "without infeed and outfeed")

    def _to_row(self, row: int) -> None:
        """The table's cursor on a row of the frame."""
        if self._answer is not None:
            places = np.flatnonzero(self._answer.rows.order == row)
            if places.size:
                self.table.go(int(places[0]))

    def _highlight(self, row: int) -> None:
        """The plot's cursor on a row, if that has a place among the roofs."""
        if row in self.plot.points.order:
            self.plot.highlight(row)

    def _ask(self, state: ViewState) -> Answer:
        study, scope = self.opened.study, self.scope(state, "steady")
        found = study.roofline(scope, self.opened.options.top)
        rows = _rows(found, state.level)
        if self._framed is None or self._framed[0] is not found or self._framed[1] != state.level:
            self._framed = (found, state.level, roofline_frame(rows))
        frame = self._framed[2]
        # A program's rows have no name to look for, and what is of a rank the scope has chosen.
        wanted = parse(without_rank(state.filter)) if state.level == "op" else Filter()
        against = self.explorer.baseline
        base = None if against is None else self._base_rows(against.study, state.level, wanted)
        if against is not None:
            frame = against.joined("roofline", frame, lambda other: roofline_frame(_rows(other.roofline(), state.level)))
        return Answer(found, rows, chosen_rows(frame, wanted, Sort("time_us")), study.selection(scope).text, base)

    def _base_rows(self, base: Study, level: str, wanted: Filter) -> list[RooflineRow]:
        """The baseline's rows that the filter lets through, of its steady steps."""
        rows = _rows(base.roofline(top=self.opened.options.top), level)
        return [rows[at] for at in chosen_rows(roofline_frame(rows), wanted, None).order.tolist()]

    def _key(self) -> CategoryKey:
        return self.explorer.app_.category_key or CategoryKey((), (), ())


def _rows(roofline: Roofline, level: str) -> list[RooflineRow]:
    return roofline.ops if level == "op" else [*roofline.program, *roofline.steps]


def coverage_text(coverage: Coverage) -> str:
    """How much of the device's busy time the points stand for."""
    if coverage.modelled_pct is None:
        return "no device time to cover"
    known, bytes_only, unknown = (pct(share) for share in (coverage.modelled_pct, coverage.bytes_only_pct, coverage.unknown_pct))
    return f"FLOPs known for {known} of busy time, only bytes {bytes_only}, neither {unknown}"
