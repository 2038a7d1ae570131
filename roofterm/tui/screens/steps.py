"""Steps: one row a step with its breakdown; `enter` limits every screen to a step."""

from __future__ import annotations

from collections.abc import Hashable

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from roofterm.analysis.filters import parse, subset
from roofterm.report.step_table import STEPS_HEAD, step_table
from roofterm.text.units import count
from roofterm.tui.columns import TABLES, known_first, row_details
from roofterm.tui.exporting import Export, rows_export
from roofterm.tui.frames import steps_frame
from roofterm.tui.opened import Opened
from roofterm.tui.page import Page
from roofterm.tui.rows import Rows, chosen_rows, is_sortable, natural_descending, place_of
from roofterm.tui.state import Selection, Sort, ViewState, changed
from roofterm.tui.widgets.detail import DetailPanel, Details
from roofterm.tui.widgets.line_widget import LineWidget
from roofterm.tui.widgets.table import VirtualTable

FIELDS = {"step", "rank", "dur", "start", "phase"}
"""Fields of a filter that speak of steps; the rest speaks of ops and hides no step."""


class StepsPage(Page):
    SCREEN = "steps"

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._rows: Rows | None = None

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical(classes="framed") as main:
                main.border_title = "Steps"
                yield VirtualTable("steps-table", "no step passes the filter; esc shows all", least_name=18)
            with Vertical(classes="side") as side:
                side.border_title = "Step"
                yield DetailPanel("steps-details", definitions=False)

    def key(self, state: ViewState) -> Hashable:
        return (state.filter, state.sorts.get(self.SCREEN))

    async def load(self, state: ViewState) -> None:
        sort = state.sorts.get(self.SCREEN)
        self._rows = await self.explorer.app_.desk.ask(lambda: self._ask(state, sort))
        self.table.show(self._rows.frame, known_first(TABLES["step"], self._rows.frame), self._rows.order, sort, self.table.cursor)

    def settle(self, state: ViewState) -> None:
        if self._rows is None:
            return
        place = place_of(self._rows, "step", int(state.step)) if state.step and state.step.isdigit() else None
        self.table.go(state.places.get(self.SCREEN, self.table.cursor) if place is None else place)

    def focus_target(self) -> LineWidget:
        return self.table

    def status(self) -> tuple[str, str]:
        if self._rows is None:
            return "", ""
        whole, digest = self._rows.frame.height, self.opened.digest
        text = f"{count(len(self._rows.order))} of {count(whole)} steps · averages speak of {digest.counted} {digest.counted_as}"
        return text, f"{self.table.cursor + 1}/{len(self._rows.order)}" if len(self._rows.order) else ""

    def selection(self) -> Selection | None:
        row = self.table.row()
        return None if row is None else Selection("step", str(row["name"]))

    def details(self) -> Details | None:
        row = self.table.row()
        return None if row is None else row_details("step", row)

    def export(self) -> Export | None:
        if self._rows is None:
            return None
        steps = step_table(self.opened.steps)
        return rows_export("steps", self._rows._replace(frame=steps), STEPS_HEAD)

    def place(self) -> int:
        return self.table.cursor

    @property
    def table(self) -> VirtualTable:
        return self.query_one("#steps-table", VirtualTable)

    def _ask(self, state: ViewState, sort: Sort | None) -> Rows:
        asked, _ = subset(parse(state.filter), FIELDS)
        return chosen_rows(steps_frame(self.opened.steps, self.opened.digest.slowest), asked, sort)

    def action_open(self) -> None:
        row = self.table.row()
        if row is None or row["step"] is None:
            self.explorer.notice("this step has no number to limit to")
            return
        number = str(row["step"])
        state = self.explorer.state
        self.explorer.change(changed(state, step=None if state.step == number else number))
        self.explorer.notice(
            "every screen shows all steps again" if state.step == number else f"every screen now shows step {number}; esc shows all"
        )

    def action_sort(self, by: int) -> None:
        frame = self.table.frame
        if frame is None:
            return
        shown = [c.key for c in self.table.shown_columns() if is_sortable(frame, c.key)]
        now = self.table.sort.column if self.table.sort else "name"
        column = shown[(shown.index(now) + by) % len(shown)] if now in shown else shown[0]
        self._sort(Sort(column, natural_descending(frame, column)))

    def action_reverse(self) -> None:
        sort = self.table.sort or Sort("start_us", False)
        self._sort(Sort(sort.column, not sort.descending))

    def _sort(self, sort: Sort) -> None:
        state = self.explorer.state
        self.explorer.change(changed(state, sorts={**state.sorts, self.SCREEN: sort}), keep=False)
