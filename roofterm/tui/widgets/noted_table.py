"""A table that tells more of each row beneath it, as much as there is room for: with all in sight, moving the cursor draws two lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.style import Style
from textual.strip import Strip

from roofterm.text.safe import cell_width
from roofterm.tui.widgets.detail import wrapped
from roofterm.tui.widgets.line_widget import Piece, aligned
from roofterm.tui.widgets.table import VirtualTable

Line = list[Piece]
Notes = Callable[[int, int], Sequence[Line]]
"""What is told of a row of the frame, the most telling first, on lines of so many cells."""
Instead = Callable[[int], Sequence[Line]]

WIDEST = 118
"""cells of a line of notes: longer ones are hard to follow"""
APART = 4
"""lines of a row from which on an empty one parts it from the next"""
BELOW_EMPTY = 4
"""line from which on it is told what there is instead of rows"""


class NotedTable(VirtualTable):
    """Where not every row has room for a line of its notes, it is a table like any other."""

    LONGEST_NAME: ClassVar[int] = 90

    def __init__(self, id: str, notes: Notes, empty: str = "nothing here", instead: Instead = lambda _: ()) -> None:
        """`instead`: what is told below `empty` where there are no rows."""
        super().__init__(id=id, empty=empty)
        self._notes = notes
        self._instead = instead
        self._cards: tuple[tuple[int, int, int], list[list[Line]]] | None = None

    def render_line(self, y: int) -> Strip:
        if self.source is not None and not self.rows() and y >= BELOW_EMPTY:
            instead = self._instead(min(self.size.width - 2, WIDEST))[y - BELOW_EMPTY :]
            return self.strip(instead[0]) if instead else self.blank()
        cards = self._told()
        if y == 0 or not cards:
            return super().render_line(y)
        line = 1
        for row, notes in enumerate(cards):
            if y == line:
                return self._row_strip(row, self._visible()[row], y)
            if y <= line + len(notes):
                return self.strip(notes[y - line - 1])
            line += 1 + len(notes)
        return self.blank()

    def restyle(self) -> None:
        self._cards = None
        super().restyle()

    def _line_of(self, row: int) -> int:
        cards = self._told()
        return 1 + row + sum(map(len, cards[:row])) if cards else super()._line_of(row)

    def _row_at(self, y: int) -> int:
        rows = [row for row in range(len(self._told())) if self._line_of(row) <= y]
        return rows[-1] if rows else super()._row_at(y)

    def _name_text(self, text: str, width: int) -> str:
        """With room beneath, a long name goes on there instead of being cut."""
        return aligned(_first_line(text, width, self), width, self.look) if self._told() else super()._name_text(text, width)

    def _name_style(self) -> Style:
        return self.palette.strong if self._told() else super()._name_style()

    def _forget(self) -> None:
        super()._forget()
        self._cards = None

    def _told(self) -> list[list[Line]]:
        """The notes of every row, cut to what there is room for; none where some row would have none."""
        key = (self.size.width, self._height(), self.rows())
        if self._cards is None or self._cards[0] != key:
            self._cards = (key, fitted(self._all_notes(), self._height(), "~" if self.look.ascii else "…"))
            if self._cards[1]:
                self.top = 0  # all is in sight; a smaller table may have been scrolled
        return self._cards[1]

    def _all_notes(self) -> list[list[Line]]:
        if self.order is None or self.rows() * 2 > self._height():
            return []
        width = min(self.size.width - 2, WIDEST)
        names = self._values(self.order, [self.columns[0].key])
        return [[*self._rest_of(name, width), *self._notes(int(row), width)] for row, (name,) in zip(self.order, names, strict=True)]

    def _rest_of(self, name: str, width: int) -> list[Line]:
        first = _first_line(name, self._layout()[0].width, self)
        rest = " ".join(wrapped(name, 10**6, self.look))[len(first) :]
        return [[(" ", self.palette.strong), (part, self.palette.strong)] for part in wrapped(rest.strip(), width, self.look)]


def fitted(notes: Sequence[Sequence[Line]], lines: int, cut: str) -> list[list[Line]]:
    """Notes of rows that take a line themselves, so that all together fit; `cut` ends what is shortened. Empty: there is no room."""
    most = max((len(one) + 2 for one in notes), default=0)
    while most > 1 and sum(1 + len(_shortened(one, most, cut)) for one in notes) > lines:
        most -= 1
    if most <= 1:
        return []
    given = [_shortened(one, most, cut) for one in notes]
    left = lines - sum(1 + len(one) for one in given)
    for row, one in enumerate(notes):  # the first rows matter most
        more = _shortened(one, most + 1, cut)
        if len(more) - len(given[row]) <= left:
            left -= len(more) - len(given[row])
            given[row] = more
    return given


def _shortened(notes: Sequence[Line], most: int, cut: str) -> list[Line]:
    """Of a row that takes `most` lines at most, itself and an empty one included."""
    room = most - 2 if most >= APART else most - 1
    kept = [list(line) for line in notes[:room]]
    if kept and len(notes) > room and notes[room][0][0].isspace():  # it goes on, and is not another matter
        text, style = kept[-1][-1]
        kept[-1][-1] = (f"{text.rstrip(' .,;:')} {cut}", style)
    return [*kept, []] if most >= APART else kept


def _first_line(name: str, width: int, table: VirtualTable) -> str:
    """As much of a name as goes on one line, whole words if it can be."""
    plain = " ".join(wrapped(name, 10**6, table.look))
    lines = wrapped(plain, width, table.look)
    return lines[0] if lines and cell_width(plain) > width else plain
