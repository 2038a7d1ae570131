"""The first and the last line of a screen that lies over another: what it is, and how to leave it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from roofterm.tui.widgets.glyphs import shown
from roofterm.tui.widgets.line_widget import LineWidget, Piece


class SheetTitle(LineWidget):
    DEFAULT_CSS = "SheetTitle { height: 1; }"

    def __init__(self, text: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._text = text
        self._bad = False

    def show(self, text: str, bad: bool = False) -> None:
        """Another text; a bad one says what is wrong."""
        if (text, bad) != (self._text, self._bad):
            self._text, self._bad = text, bad
            self.refresh()

    def render_line(self, y: int) -> Strip:
        style = self.palette.bad if self._bad else self.palette.accent
        return self.strip([(" ", style), (shown(self._text, max(self.size.width - 2, 0), self.look), style)])


class SheetFooter(LineWidget):
    DEFAULT_CSS = "SheetFooter { height: 1; dock: bottom; }"

    def __init__(self, keys: Sequence[tuple[str, str]]) -> None:
        """`keys`: what to press, and what it does."""
        super().__init__()
        self._keys = keys

    def render_line(self, y: int) -> Strip:
        pieces: list[Piece] = [(" ", self.palette.text)]
        for key, does in self._keys:
            pieces += [(key, self.palette.key), (f" {does}  ", self.palette.muted)]
        return self.strip(pieces)
