"""Ops: kernels, host ops, categories, collectives, gaps and iterations as tables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import polars as pl
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from roofterm.analysis.filters import parse
from roofterm.text.units import count
from roofterm.tui.columns import NOUNS, TABLES, known_first, row_details
from roofterm.tui.exporting import Export, rows_export
from roofterm.tui.opened import Opened
from roofterm.tui.page import Page
from roofterm.tui.rows import Rows, is_sortable, natural_descending, place_of, table_rows
from roofterm.tui.state import Selection, Sort, ViewState, changed
from roofterm.tui.widgets.detail import DetailPanel, Details
from roofterm.tui.widgets.line_widget import LineWidget
from roofterm.tui.widgets.table import VirtualTable

ORDER = ("kernel", "op", "category", "collective", "gap", "iteration")
FIRST_SORT = {by: Sort("self_us" if by == "op" else "total_us") for by in ORDER}
ALWAYS_SHOWN = 2
"""priority of the columns that hardly ever give way"""
NAMELESS = ("gap",)
"""tables whose rows share names, so that a name selects none of them"""


class OpsPage(Page):
    SCREEN = "ops"

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._by = opened.first_table
        self._rows: Rows | None = None
        self._part = ""

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical(id="ops-panel", classes="framed"):
                yield VirtualTable("ops-table", "nothing here passes the filter; esc shows all, v shows another table")
            with Vertical(classes="side") as side:
                side.border_title = "Details"
                yield DetailPanel("ops-details", definitions=False)

    def key(self, state: ViewState) -> Hashable:
        return (state.by, state.filter, state.step, state.window_ps, state.infeed, state.sorts.get(state.by))

    async def load(self, state: ViewState) -> None:
        sort = state.sorts.get(state.by, FIRST_SORT[state.by])
        likely = self._sortable() if state.by == self._by else []
        rows, self._part = await self.explorer.app_.desk.ask(lambda: self._ask(state, sort, likely))
        self._rows, self._by = rows, state.by
        panel, title = self.query_one("#ops-panel"), NOUNS[state.by].capitalize()
        if panel.border_title != title:
            panel.border_title = title
        keep = place_of(rows, "name", state.selection.name if state.selection else None)
        self.table.show(rows.frame, known_first(TABLES[state.by], rows.frame), rows.order, sort, keep or 0)

    def settle(self, state: ViewState) -> None:
        if self._rows is None:
            return
        chosen = state.selection if state.selection and state.selection.kind == self._by else None
        if chosen and chosen == self.selection():
            return  # where `load` has just put the cursor
        place = place_of(self._rows, "name", chosen.name) if chosen else None
        self.table.go(state.places.get(self.SCREEN, self.table.cursor) if place is None else place)

    def focus_target(self) -> LineWidget:
        return self.table

    def status(self) -> tuple[str, str]:
        if self._rows is None:
            return "", ""
        shown, whole = len(self._rows.order), self._rows.frame.height
        sort = self.table.sort
        label = next((c.label for c in self.table.columns if sort and c.key == sort.column), "")
        parts = [
            f"{count(shown)} of {count(whole)} {NOUNS[self._by]}" if shown != whole else f"{count(whole)} {NOUNS[self._by]}",
            self._part,
        ]
        if sort:
            parts.append(f"by {label} {'down' if sort.descending else 'up'}")
        if self._rows.not_asked:
            parts.insert(0, f"not asked here: {self._rows.not_asked}")
        return " · ".join(parts), f"{count(self.table.cursor + 1)}/{count(shown)}" if shown else ""

    def selection(self) -> Selection | None:
        row = self.table.row()
        return None if row is None or self._by in NAMELESS else Selection(self._by, str(row["name"]), op=row.get("launched_by"))

    def details(self) -> Details | None:
        row = self.table.row()
        return None if row is None else row_details(self._by, row)

    def export(self) -> Export | None:
        return None if self._rows is None else rows_export(NOUNS[self._by], self._rows, {"schema": "roofterm.ops/1", "by": self._by})

    def place(self) -> int:
        return self.table.cursor

    @property
    def table(self) -> VirtualTable:
        return self.query_one("#ops-table", VirtualTable)

    def _ask(self, state: ViewState, sort: Sort, likely: Sequence[str]) -> tuple[Rows, str]:
        """The rows and what part of the profile they speak of; `likely` are columns by which they may be sorted next."""
        study = self.opened.study
        scope = self.scope(state, "all")
        rows = table_rows(study, state.by, scope, parse(state.filter), sort, self.opened.book)
        always = [c.key for c in TABLES[state.by] if c.priority <= ALWAYS_SHOWN and is_sortable(rows.frame, c.key)]
        self.opened.book.prepare(rows.frame, [*always, *likely])
        return rows, study.selection(scope).text

    def _sortable(self) -> list[str]:
        """Columns shown by which the table can be sorted."""
        frame = self.table.frame
        return [] if frame is None else [c.key for c in self.table.shown_columns() if is_sortable(frame, c.key)]

    def action_view(self, by: int) -> None:
        at = (ORDER.index(self._by) + by) % len(ORDER)
        self.explorer.change(changed(self.explorer.state, by=ORDER[at]))

    def action_sort(self, by: int) -> None:
        """By the next column that is shown, in its natural direction."""
        frame: pl.DataFrame | None = self.table.frame
        if frame is None or self.table.sort is None:
            return
        shown = self._sortable()
        now = self.table.sort.column
        column = shown[(shown.index(now) + by) % len(shown)] if now in shown else shown[0]
        self._sort(Sort(column, natural_descending(frame, column)))

    def action_reverse(self) -> None:
        if self.table.sort is not None:
            self._sort(Sort(self.table.sort.column, not self.table.sort.descending))

    def _sort(self, sort: Sort) -> None:
        state = self.explorer.state
        self.explorer.select(self.selection())
        self.explorer.change(changed(self.explorer.state, sorts={**state.sorts, self._by: sort}), keep=False)
