"""The two lines at the top: what is open, and the screens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.events import Click
from textual.strip import Strip

from roofterm.text.safe import cell_width
from roofterm.tui.widgets.glyphs import shown
from roofterm.tui.widgets.line_widget import LineWidget, Piece, pieces_width

SHORT = {"timeline": "Time", "findings": "Find"}
"""Titles by screen where the whole ones leave no room for all tabs."""

SHORTER = {**SHORT, "memory": "Mem", "device": "Dev"}
"""And where these leave none either."""

TIGHT = 3
"""letters of the other titles from which on every cell counts"""


class Header(LineWidget):
    """Program and file at the left, facts of the profile at the right: the file gives way first, then facts from the end."""

    DEFAULT_CSS = "Header { height: 1; }"

    def __init__(self, title: str) -> None:
        super().__init__(id="header")
        self.title = title
        self.facts: Sequence[str] = ()

    def show(self, title: str, facts: Sequence[str]) -> None:
        if (title, list(facts)) != (self.title, list(self.facts)):
            self.title, self.facts = title, list(facts)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        brand: list[Piece] = [(" roofterm ", self.palette.tab_on), (" ", self.palette.text)]
        facts = list(self.facts)
        while facts and pieces_width(brand) + min(cell_width(self.title), 32) + sum(cell_width(f) + 3 for f in facts) > width:
            facts.pop()
        right = (" | " if self.look.ascii else " · ").join(shown(f, width, self.look) for f in facts)
        room = width - pieces_width(brand) - cell_width(right) - 3
        title = shown(self.title, max(room, 8), self.look)
        gap = max(width - pieces_width(brand) - cell_width(title) - cell_width(right) - 1, 1)
        return self.strip([*brand, (title, self.palette.strong), (" " * gap, self.palette.text), (right, self.palette.muted)])


class Tabs(LineWidget):
    """The screens with their keys, the one shown marked by brackets as well as by colour."""

    DEFAULT_CSS = "Tabs { height: 1; }"

    def __init__(self) -> None:
        super().__init__(id="tabs")
        self.tabs: Sequence[tuple[str, str, str]] = ()
        self.shown = ""

    def show(self, tabs: Sequence[tuple[str, str, str]], shown: str) -> None:
        if (list(tabs), shown) != (list(self.tabs), self.shown):
            self.tabs, self.shown = list(tabs), shown
            self.refresh()

    def render_line(self, y: int) -> Strip:
        pieces: list[Piece] = []
        for titles, letters, margin in (({}, 99, 1), ({}, 99, 0), (SHORT, 99, 0), (SHORTER, 99, 0), (SHORTER, 3, 0), (SHORTER, 0, 0)):
            pieces = self._pieces(titles, letters, " " * margin)
            if pieces_width(pieces) <= self.size.width:
                break
        return self.strip(pieces)

    async def on_click(self, event: Click) -> None:
        """To the screen whose tab was clicked, where the mouse is on."""
        for name, start, end in self._places():
            if start <= event.x < end:
                await self.run_action(f"screen.screen('{name}')")

    def _places(self) -> list[tuple[str, int, int]]:
        """First and one past the last cell of each tab."""
        line = self.render_line(0).text
        starts = [line.find(f"{key} {title[:1]}") for _, key, title in self.tabs]
        return [(name, start, end) for (name, _, _), start, end in zip(self.tabs, starts, [*starts[1:], len(line)], strict=True)]

    def _pieces(self, titles: Mapping[str, str], letters: int, margin: str) -> list[Piece]:
        """All tabs with so many letters of these or their own titles, and so much room around each."""
        tight = letters <= TIGHT
        pieces: list[Piece] = [] if tight else [(" ", self.palette.text)]
        for name, key, title in self.tabs:
            if name == self.shown:
                pieces.append((f"[{key} {title}]", self.palette.key))
            else:
                pieces.append((f"{margin}{key} {titles.get(name, title)[:letters]}".rstrip() + margin, self.palette.tab))
            pieces.append((" ", self.palette.text))
        return pieces[:-1]
