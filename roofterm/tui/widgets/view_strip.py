"""One line that names the tables of a screen, the one shown marked: what the key for the next table will show is in sight."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from roofterm.tui.themes import Palette
from roofterm.tui.widgets.line_widget import LineWidget, Piece, pieces_width


class ViewStrip(LineWidget):
    DEFAULT_CSS = "ViewStrip { height: 1; }"

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._names: Sequence[str] = ()
        self._at = 0
        self._note = ""

    def show(self, names: Sequence[str], at: int, note: str = "") -> None:
        """The tables' names and the place of the one shown; `note` stands at the right, where there is room for it."""
        if (list(names), at, note) != (list(self._names), self._at, self._note):
            before = {0: self.render_line(0)}
            self._names, self._at, self._note = list(names), at, note
            self.refresh_changes(before)

    def render_line(self, y: int) -> Strip:
        pieces = strip_pieces(self._names, self._at, self.size.width, self.palette)
        gap = self.size.width - pieces_width(pieces) - len(self._note) - 1
        if self._note and gap >= 1:
            pieces += [(" " * gap, self.palette.text), (self._note, self.palette.muted)]
        return self.strip(pieces)


def strip_pieces(names: Sequence[str], at: int, width: int, palette: Palette) -> list[Piece]:
    """The names in `width` cells, the one shown in brackets; where they do not fit, the first ones give way."""
    first = 0
    while True:
        pieces: list[Piece] = [("<" if first else " ", palette.muted)]
        for place in range(first, len(names)):
            pieces.append((f"[{names[place]}]", palette.key) if place == at else (f" {names[place]} ", palette.tab))
        shown = pieces[: at - first + 2]
        if pieces_width(pieces) <= width or first >= at or pieces_width(shown) < width // 2:
            return pieces
        first += 1
