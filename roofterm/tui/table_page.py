"""A screen whose main part is one table: its rows by filter and sort, its cursor, and the details of the row under it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from roofterm.text.units import count
from roofterm.tui.columns import NOUNS, columns_of, counted, row_details
from roofterm.tui.exporting import Export, rows_export
from roofterm.tui.opened import Opened
from roofterm.tui.page import Page
from roofterm.tui.rows import Rows, is_sortable, natural_descending
from roofterm.tui.state import Sort, changed
from roofterm.tui.widgets.detail import Details
from roofterm.tui.widgets.line_widget import LineWidget
from roofterm.tui.widgets.table import VirtualTable
from roofterm.tui.widgets.table_layout import Column

if TYPE_CHECKING:
    import polars as pl

    from roofterm.analysis.study import Study


class TablePage(Page):
    """Its table has the id `SCREEN-table`; `rows` is what it shows, `by` the name of its columns in `columns.TABLES`."""

    HEAD: ClassVar[Mapping[str, Any]] = {}
    """keys of the JSON before the rows, when they are exported"""
    NATURAL: ClassVar[Sort | None] = None
    """the order of the rows as they are asked for"""

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

    def show_rows(self, rows: Rows, sort: Sort | None, place: int | None) -> None:
        """Show rows with the columns that they have something for, the cursor on a place in their order."""
        self.rows = rows
        if not rows.frame.height and not self.explorer.state.filter:
            self.table.empty = f"no {NOUNS[self.by]} in this profile"
        else:
            self.table.empty = f"no {NOUNS[self.by]} pass the filter; {self.all_again}"
        self.table.show(rows.frame, self.columns(rows.frame), rows.order, sort, place or 0)

    def columns(self, frame: pl.DataFrame) -> Sequence[Column]:
        """Those of a frame, in their order."""
        return columns_of(self.by, frame)

    def against(self, by: str, frame: pl.DataFrame, base: Callable[[Study], pl.DataFrame]) -> pl.DataFrame:
        """A table held against the baseline's, which `base` makes, if there is one. For the desk's thread."""
        baseline = self.explorer.baseline
        return frame if baseline is None else baseline.joined(by, frame, base)

    def focus_target(self) -> LineWidget:
        return self.table

    def place(self) -> int:
        return self.table.cursor

    def count_text(self, noun: str | None = None) -> str:
        """How many rows are shown, and of how many."""
        if self.rows is None:
            return ""
        shown, whole = len(self.rows.order), self.rows.frame.height
        noun = noun or NOUNS[self.by]
        return f"{count(shown)} of {counted(whole, noun)}" if shown != whole else counted(whole, noun)

    def cursor_text(self) -> str:
        """The cursor's row of all rows, for the line above the footer."""
        return f"{count(self.table.cursor + 1)}/{count(self.table.rows())}" if self.table.rows() else ""

    def details(self) -> Details | None:
        row = self.table.row()
        return None if row is None else row_details(self.by, row)

    def export(self) -> Export | None:
        return None if self.rows is None else rows_export(NOUNS[self.by], self.rows, self.HEAD)

    def action_details(self) -> None:
        self.explorer.show_details()

    def sortable(self) -> list[str]:
        """Columns shown by which the table can be sorted."""
        frame = self.table.frame
        return [] if frame is None else [c.key for c in self.table.shown_columns() if is_sortable(frame, c.key)]

    def sortable_columns(self) -> set[str]:
        """All by which the table can be sorted, shown or not."""
        frame = self.table.frame
        return set() if frame is None else {name for name in frame.columns if is_sortable(frame, name)}

    def action_sort(self, by: int) -> None:
        """By the next column that is shown, in its natural direction."""
        frame, shown = self.table.frame, self.sortable()
        if frame is None or not shown:
            return
        now = self.table.sort.column if self.table.sort else shown[0]
        column = shown[(shown.index(now) + by) % len(shown)] if now in shown else shown[0]
        self.sort(Sort(column, self.falls(frame, column)))

    def falls(self, frame: pl.DataFrame, column: str) -> bool:
        """Whether a column is wanted largest first."""
        return natural_descending(frame, column)

    def action_reverse(self) -> None:
        sort = self.table.sort or self.NATURAL
        if sort is not None and sort.column in self.sortable_columns():
            self.sort(Sort(sort.column, not sort.descending))

    def sort(self, sort: Sort) -> None:
        """Sort the table shown, and keep it so."""
        state = self.explorer.state
        self.explorer.change(changed(state, sorts={**state.sorts, self.sorted_as: sort}), keep=False)
