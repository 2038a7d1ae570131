"""Steps: one row a step with its breakdown; `enter` limits every screen to a step."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import polars as pl
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize

from roofterm.analysis.filters import parse, subset
from roofterm.analysis.slice_table import step_number
from roofterm.report.files import json_pieces
from roofterm.report.step_table import step_table, steps_head
from roofterm.tui.exporting import Export, TableExport
from roofterm.tui.frames import steps_frame
from roofterm.tui.opened import Opened
from roofterm.tui.overview_parts import LOW
from roofterm.tui.rows import Rows, chosen_rows, place_of
from roofterm.tui.state import Selection, Sort, ViewState, changed
from roofterm.tui.table_page import TablePage
from roofterm.tui.widgets.detail import DetailPanel
from roofterm.tui.widgets.step_panel import StepPanel
from roofterm.tui.widgets.table import VirtualTable

FIELDS = {"step", "rank", "dur", "start", "phase"}
"""Fields of a filter that speak of steps; the rest speaks of ops and hides no step."""

BAR = 3
"""lines of a step's bar with its rule and legend"""


class StepsPage(TablePage):
    SCREEN = "steps"
    NATURAL = Sort("start_us", False)
    TELLS_BELOW: ClassVar[bool] = True

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self.by = "step"

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical():
                with Vertical(id="steps-list", classes="framed") as main:
                    main.border_title = "Steps"
                    yield VirtualTable("steps-table", "no step passes the filter", least_name=18)
                with Vertical(classes="framed below") as below:
                    below.border_title = "Where this step goes"
                    yield StepPanel("step-below")
            with Vertical(classes="side") as side:
                side.border_title = "Step"
                yield DetailPanel("steps-details", definitions=False)

    def key(self, state: ViewState) -> Hashable:
        return (state.filter, state.sorts.get(self.SCREEN))

    async def load(self, state: ViewState) -> None:
        sort = state.sorts.get(self.SCREEN)
        rows = await self.explorer.app_.desk.ask(lambda: self._ask(state, sort))
        self.show_rows(rows, sort, self.table.cursor)
        self._fit()

    def settle(self, state: ViewState) -> None:
        if self.rows is None:
            return
        number = int(state.step) if state.step and state.step.isdigit() else self._step_of(state.selection)
        place = None if number is None else place_of(self.rows, "step", number)
        self.table.go(state.places.get(self.SCREEN, self.table.cursor) if place is None else place)

    def _step_of(self, chosen: Selection | None) -> int | None:
        """The step of the slice that was selected elsewhere."""
        return None if chosen is None or chosen.slice is None else step_number(self.opened.study, chosen.slice)

    def status(self) -> tuple[str, str]:
        if self.rows is None:
            return "", ""
        digest = self.opened.digest
        return f"{self.count_text()} · averages speak of {digest.counted} {digest.counted_as}", self.cursor_text()

    def selection(self) -> Selection | None:
        row = self.table.row()
        return None if row is None else Selection("step", str(row["name"]))

    def export(self) -> Export | None:
        if self.rows is None:
            return None
        steps, order, study = step_table(self.opened.steps), self.rows.order, self.opened.study
        return TableExport("steps", lambda: steps[order], lambda table: json_pieces(table, steps_head(study)))

    def _ask(self, state: ViewState, sort: Sort | None) -> Rows:
        asked, _ = subset(parse(state.filter), FIELDS)
        self.opened.study.phase_times([])  # so that the cursor need not wait for the phases
        frame = self.against(self.by, steps_frame(self.opened.steps, self.opened.digest.slowest), lambda _: pl.DataFrame())
        return chosen_rows(frame, asked, sort)

    def show_side(self) -> None:
        super().show_side()
        at = self._place_of_row()
        panel = self.query_one(StepPanel)
        panel.show(None if at is None else self.opened.steps[at], [] if at is None else self.opened.study.phase_times([at]))

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._fit)

    def _place_of_row(self) -> int | None:
        """The place, among the profile's steps, of the row under the cursor."""
        row = self.table.row()
        if row is None:
            return None
        mine = (row["name"], row["rank"], row["start_us"])
        return next((at for at, step in enumerate(self.opened.steps) if (step.name, step.rank, step.start_us) == mine), None)

    def _fit(self) -> None:
        """The table as high as its rows, but no more than half: the rest is the step's, or its bar alone where room is short."""
        framed = 2 if self.screen.has_class("-framed") else 0
        wanted = max(self.table.rows(), 2) + 1 + framed
        most = self.size.height - BAR if self.size.height < LOW else self.size.height // 2
        self.query_one("#steps-list").styles.height = min(wanted, max(most, 4))

    def action_open(self) -> None:
        row = self.table.row()
        if row is None or row["step"] is None:
            self.explorer.notice("this step has no number to limit to")
            return
        number = str(row["step"])
        state = self.explorer.state
        self.explorer.change(changed(state, step=None if state.step == number else number))
        self.explorer.notice(
            "every screen shows all steps again" if state.step == number else f"every screen now shows step {number}; {self.all_again}"
        )

    @property
    def sorted_as(self) -> str:
        return self.SCREEN
