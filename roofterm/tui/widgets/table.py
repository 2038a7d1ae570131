"""A table over a polars frame and a vector of row numbers: only what is visible is ever formatted, so that a million
rows scroll as a hundred do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.strip import Strip

from roofterm.text.units import UNKNOWN
from roofterm.tui.messages import EdgeReached, RowHighlighted
from roofterm.tui.row_book import MOST_FRAMES
from roofterm.tui.state import Sort
from roofterm.tui.widgets.line_widget import LineWidget, Piece, aligned, name_cell, strip_of
from roofterm.tui.widgets.lines import under
from roofterm.tui.widgets.records import Records
from roofterm.tui.widgets.table_layout import Column, Placed, most_skipped, place

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray


WHEEL_ROWS = 3
"""rows for a notch of the wheel, where the mouse is on"""


class VirtualTable(LineWidget, can_focus=True):
    """Rows of a frame in an order, with a cursor; its first column stays where it is."""

    DEFAULT_CSS = "VirtualTable { height: 1fr; }"

    LONGEST_NAME: ClassVar[int] = 62
    """No name takes more cells: names are shown shortened, in full in the details."""

    def __init__(self, id: str, empty: str = "nothing here", least_name: int = 24, keeps_cursor: bool = True) -> None:
        """`keeps_cursor` shows the cursor's row while another widget has the keys."""
        super().__init__(id=id)
        self.source: pl.DataFrame | Records | None = None
        self.order: NDArray[np.int64] | range | None = None
        self.columns: Sequence[Column] = ()
        self.sort: Sort | None = None
        self.cursor = 0
        self.top = 0
        self.skipped = 0
        self.empty = empty
        self._least_name = least_name
        self._keeps_cursor = keeps_cursor
        self._name_width = 0
        self._longest: OrderedDict[tuple[int, str], tuple[pl.DataFrame | Records, int]] = OrderedDict()
        self._window: tuple[tuple[int, int, int, int], list[tuple[Any, ...]]] | None = None
        self._placed: tuple[tuple[int, int], list[Placed]] | None = None

    # What is shown

    def show(
        self,
        source: pl.DataFrame | Records,
        columns: Sequence[Column],
        order: NDArray[np.int64] | range,
        sort: Sort | None = None,
        cursor: int = 0,
    ) -> None:
        """Show the rows `order` of `source`; `cursor` is a place in that order."""
        if columns is not self.columns and [c.key for c in columns] != [c.key for c in self.columns]:
            self.skipped = 0
        if source is not self.source or not self.columns or columns[0].key != self.columns[0].key:
            self._name_width = min(self._longest_of(source, columns[0].key), self.LONGEST_NAME) + 2 if columns else 0
        self.source, self.columns, self.order, self.sort = source, columns, order, sort
        self._forget()
        self.cursor = max(0, min(cursor, len(order) - 1))
        self._show_cursor()
        self.refresh()
        self._tell()

    @property
    def frame(self) -> pl.DataFrame | None:
        """What is shown, if it is a frame."""
        return None if isinstance(self.source, Records) else self.source

    def rows(self) -> int:
        return 0 if self.order is None else len(self.order)

    def row_id(self) -> int | None:
        """Row of the frame under the cursor."""
        if self.order is None or not 0 <= self.cursor < len(self.order):
            return None
        return int(self.order[self.cursor])

    def row(self) -> dict[str, Any] | None:
        """All values of the row under the cursor."""
        at = self.row_id()
        return None if at is None or self.frame is None else self.frame.row(at, named=True)

    def shown_columns(self) -> list[Column]:
        return [p.column for p in self._layout()]

    # Moving

    def move(self, columns: int, rows: int) -> None:
        if rows:
            if not 0 <= self.cursor + rows < self.rows():
                self.post_message(EdgeReached(self.id or "", 1 if rows > 0 else -1))
            self.go(self.cursor + rows)
        if columns:
            self.scroll_columns(columns)

    def page(self, pages: float) -> None:
        self.go(self.cursor + int(pages * max(self._height() - 1, 1)))

    def end(self, direction: int) -> None:
        self.go(self.rows() - 1 if direction > 0 else 0)

    def go(self, cursor: int) -> None:
        """Put the cursor on a row, counted in the order shown; redraws two lines unless the view has to move."""
        if not self.rows():
            return
        old, self.cursor = self.cursor, max(0, min(cursor, self.rows() - 1))
        if old == self.cursor:
            return
        before = self.top
        self._show_cursor()
        if self.top == before:
            self.refresh_lines_at(self._line_of(old), self._line_of(self.cursor))
        else:
            self.refresh()
        self._tell()

    def scroll_columns(self, by: int) -> None:
        most = most_skipped(self.columns, self._inner_width()) if self.columns else 0
        skipped = max(0, min(self.skipped + by, most))
        if skipped != self.skipped:
            self.skipped = skipped
            self._forget()
            self.refresh()

    def on_click(self, event: Click) -> None:
        if event.y:
            self.go(self._row_at(event.y))

    def on_mouse_scroll_down(self) -> None:
        self.go(self.cursor + WHEEL_ROWS)

    def on_mouse_scroll_up(self) -> None:
        self.go(self.cursor - WHEEL_ROWS)

    # Drawing

    def render_line(self, y: int) -> Strip:
        if self.source is None:
            return self.blank()
        if not self.rows():
            middle = y == min(2, self.size.height - 1)
            return self.strip([("  " + self.empty, self.palette.muted)]) if middle else self.blank()
        if y == 0:
            return self._header_strip()
        row = self.top + y - 1
        if row >= self.rows() or y > self._height():
            return self.blank()
        return self._row_strip(row, self._visible()[row - self.top], y)

    def on_focus(self) -> None:
        self.refresh_lines_at(self._line_of(self.cursor))

    def on_blur(self) -> None:
        self.refresh_lines_at(self._line_of(self.cursor))

    def on_resize(self) -> None:
        self._forget()
        before = self.top
        self._show_cursor()
        if self.top != before:
            self.refresh()  # it was drawn by the size that it had while it was filled

    def _header_strip(self) -> Strip:
        style = self.palette.header
        marked = self.palette.accent + Style(bold=True)
        pieces: list[Piece] = [(" ", style)]
        ascii_only = self.look.ascii
        for at, placed in enumerate(self._layout()):
            column = placed.column
            sorted_here = self.sort is not None and self.sort.column == column.key
            down = self.sort is not None and self.sort.descending
            mark = ("v" if down else "^") if ascii_only else ("▼" if down else "▲")
            if at:
                label = aligned(column.label, placed.width, self.look, right=not column.left)
            else:
                label = aligned(column.label + (mark if sorted_here else ""), placed.width, self.look)
            pieces.append((label, marked if sorted_here else style))
            pieces.append((mark if sorted_here and at and not column.left else " ", marked))
        if self.skipped:
            pieces.append(("<", style))
        return self.strip(pieces, style)

    def _row_strip(self, row: int, values: tuple[Any, ...], y: int) -> Strip:
        here = row == self.cursor and (self.has_focus or self._keeps_cursor)
        base = (self.palette.cursor if self.has_focus else self.palette.blur) if here else self.palette.text
        pieces: list[Piece] = [(">" if here and self.has_focus else " ", base)]
        for at, (placed, value) in enumerate(zip(self._layout(), values, strict=True)):
            column = placed.column
            if column.draw is not None and value is not None:
                drawn = column.draw(value, placed.width, self.palette, self.look)
                pieces += [(part, under(own, base) if here else own) for part, own in drawn]
                pieces.append((" ", base))
                continue
            text = UNKNOWN if value is None else column.show(value)
            plain = base if at or here else self._name_style()
            style = plain if here or column.tint is None else self._tinted(column.tint, value, base)
            cell = aligned(text, placed.width, self.look, right=not column.left) if at else self._name_text(text, placed.width)
            pieces.append((cell, style))
            pieces.append((" ", base))
        body = strip_of(pieces, self.size.width - 1, base, self.look)
        return Strip([*body, Segment(*self._thumb(y))], self.size.width)

    def _name_text(self, text: str, width: int) -> str:
        return name_cell(text, width, self.look)

    def _name_style(self) -> Style:
        return self.palette.text

    def _line_of(self, row: int) -> int:
        """The line, from the top of the table, of a row of the order."""
        return row - self.top + 1

    def _row_at(self, y: int) -> int:
        return self.top + y - 1

    def _tinted(self, tint: str, value: Any, base: Style) -> Style:
        if tint == "category":
            styles: dict[str, Style] = getattr(self.app, "category_styles", {})
            return styles.get(str(value), base)
        if tint == "severity":
            return {"high": self.palette.bad, "medium": self.palette.warn}.get(str(value), base)
        if tint == "rise" and isinstance(value, (int, float)):
            return self.palette.bad if value > 0 else self.palette.good if value < 0 else base
        if tint == "share" and isinstance(value, (int, float)):
            return self.palette.bad if value > 100 else base
        return getattr(self.palette, tint) if isinstance(value, str) and value else base

    def _thumb(self, y: int) -> Piece:
        """The piece of the scroll bar in the last cell of a line."""
        height, rows = self._height(), self.rows()
        if rows <= height:
            return " ", self.palette.text
        size = max(1, height * height // rows)
        start = 0 if rows == height else (height - size) * self.top // (rows - height)
        inside = start <= y - 1 < start + size
        if self.look.ascii:
            return ("#" if inside else "|"), self.palette.rule
        return ("┃" if inside else "│"), (self.palette.muted if inside else self.palette.rule)

    # Bookkeeping

    def _height(self) -> int:
        """Rows that fit below the header."""
        return max(self.size.height - 1, 0)

    def _inner_width(self) -> int:
        return max(self.size.width - 3, 1)

    def _layout(self) -> list[Placed]:
        key = (self._inner_width(), self.skipped)
        if self._placed is None or self._placed[0] != key:
            self._placed = (
                key,
                place(self.columns, *key, name_width=self._name_width, least_name=self._least_name) if self.columns else [],
            )
        return self._placed[1]

    def _visible(self) -> list[tuple[Any, ...]]:
        key = (self.top, self._height(), self._inner_width(), self.skipped)
        if self._window is None or self._window[0] != key:
            assert self.order is not None
            ids = self.order[self.top : self.top + self._height()]
            self._window = (key, self._values(ids, [p.column.key for p in self._layout()]))
        return self._window[1]

    def _values(self, ids: NDArray[np.int64] | range, keys: Sequence[str]) -> list[tuple[Any, ...]]:
        if self.source is None or isinstance(self.source, Records):
            return self.source.values(ids, keys) if self.source else []
        rows = self.source.select(list(dict.fromkeys(keys)))[ids].rows(named=True)
        return [tuple(row[name] for name in keys) for row in rows]

    def _longest_of(self, source: pl.DataFrame | Records, column: str) -> int:
        """Characters of a column's longest text; counted once for each of the sources shown last."""
        key = (id(source), column)  # no other source has it as long as this one is kept
        found = self._longest.pop(key, None) or (source, _longest(source, column))
        self._longest[key] = found
        if len(self._longest) > MOST_FRAMES:
            self._longest.popitem(last=False)
        return found[1]

    def _forget(self) -> None:
        self._window = None
        self._placed = None

    def _show_cursor(self) -> None:
        height = max(self._height(), 1)
        if self.cursor < self.top:
            self.top = self.cursor
        elif self.cursor >= self.top + height:
            self.top = self.cursor - height + 1
        self.top = max(0, min(self.top, self.rows() - height))

    def _tell(self) -> None:
        at = self.row_id()
        if at is not None:
            self.post_message(RowHighlighted(self.id or "", at))


def _longest(source: pl.DataFrame | Records, column: str) -> int:
    """Characters of a column's longest text."""
    if isinstance(source, Records):
        return source.longest(column)
    import polars as pl

    longest = source[column].cast(pl.String).str.len_chars().max()
    return longest if isinstance(longest, int) else 0
