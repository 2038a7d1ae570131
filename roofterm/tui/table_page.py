"""A screen whose main part is one table: its rows by filter and sort, its cursor, and the details of the row under it."""

from __future__ import annotations

from roofterm.text.units import count
from roofterm.tui.columns import row_details
from roofterm.tui.opened import Opened
from roofterm.tui.page import Page
from roofterm.tui.rows import Rows, is_sortable, natural_descending
from roofterm.tui.state import Sort, changed
from roofterm.tui.widgets.detail import Details
from roofterm.tui.widgets.line_widget import LineWidget
from roofterm.tui.widgets.table import VirtualTable


class TablePage(Page):
    """Its table has the id `SCREEN-table`; `rows` is what it shows, `by` the name of its columns in `columns.TABLES`."""

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self.rows: Rows | None = None
        self.by = self.SCREEN

    @property
    def table(self) -> VirtualTable:
        return self.query_one(f"#{self.SCREEN}-table", VirtualTable)

    @property
    def sorted_as(self) -> str:
        """Name under which the state keeps the sort of the table shown."""
        return self.by

    def focus_target(self) -> LineWidget:
        return self.table

    def place(self) -> int:
        return self.table.cursor

    def cursor_text(self) -> str:
        """The cursor's row of all rows, for the line above the footer."""
        return f"{count(self.table.cursor + 1)}/{count(self.table.rows())}" if self.table.rows() else ""

    def details(self) -> Details | None:
        row = self.table.row()
        return None if row is None else row_details(self.by, row)

    def action_details(self) -> None:
        self.explorer.show_details()

    def action_sort(self, by: int) -> None:
        """By the next column that is shown, in its natural direction."""
        frame = self.table.frame
        if frame is None:
            return
        shown = [c.key for c in self.table.shown_columns() if is_sortable(frame, c.key)]
        now = self.table.sort.column if self.table.sort else shown[0]
        column = shown[(shown.index(now) + by) % len(shown)] if now in shown else shown[0]
        self._sort(Sort(column, natural_descending(frame, column)))

    def action_reverse(self) -> None:
        sort = self.table.sort
        if sort is not None:
            self._sort(Sort(sort.column, not sort.descending))

    def _sort(self, sort: Sort) -> None:
        state = self.explorer.state
        self.explorer.change(changed(state, sorts={**state.sorts, self.sorted_as: sort}), keep=False)
