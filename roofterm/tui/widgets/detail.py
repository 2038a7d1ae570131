"""Everything known about one thing: its full name, and each figure with what it means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import wrap

from textual.strip import Strip

from roofterm.text.safe import cell_width, safe_text
from roofterm.tui.themes import Palette
from roofterm.tui.widgets.glyphs import Look, shown
from roofterm.tui.widgets.line_widget import LineWidget, Piece

LABEL = 12
"""cells of the labels' column at least; for long labels it grows to two fifths of the width"""


@dataclass(frozen=True)
class Fact:
    """A figure. Without a value it is a heading; `about` says what it means."""

    label: str
    value: str = ""
    about: str = ""


@dataclass(frozen=True)
class Details:
    """`title` is text from the file, not yet safe."""

    title: str
    facts: Sequence[Fact] = ()


MoreDetails = Callable[[Callable[[], bool]], Sequence[Fact]]
"""What finds further facts, in a thread; it is given what tells that nobody waits for them any more, and may raise Interrupted."""


class DetailPanel(LineWidget, can_focus=True):
    """Details, scrolled with the keys that move elsewhere."""

    DEFAULT_CSS = "DetailPanel { height: 1fr; }"

    def __init__(self, id: str, definitions: bool = True) -> None:
        super().__init__(id=id)
        self.details: Details | None = None
        self.top = 0
        self._definitions = definitions
        self._lines: list[list[Piece]] | None = None

    def show(self, details: Details | None) -> None:
        if details != self.details:
            before = {y: self.render_line(y) for y in range(self.size.height)}
            self.details, self.top, self._lines = details, 0, None
            self.refresh_changes(before)

    def add(self, facts: Sequence[Fact]) -> None:
        """Further facts below, without moving what is read."""
        if self.details is not None:
            self.details, self._lines = Details(self.details.title, [*self.details.facts, *facts]), None
            self.refresh()

    def restyle(self) -> None:
        self._lines = None
        self.refresh()

    def move(self, columns: int, rows: int) -> None:
        self._scroll_by(rows)

    def page(self, pages: float) -> None:
        self._scroll_by(int(pages * max(self.size.height - 1, 1)))

    def end(self, direction: int) -> None:
        self._scroll_by(direction * 10**6)

    def on_resize(self) -> None:
        self._lines = None
        self._scroll_by(0)

    def render_line(self, y: int) -> Strip:
        lines = self._all_lines()
        at = self.top + y
        return self.strip(lines[at]) if at < len(lines) else self.blank()

    def _scroll_by(self, rows: int) -> None:
        top = max(0, min(self.top + rows, len(self._all_lines()) - self.size.height))
        if top != self.top:
            self.top = top
            self.refresh()

    def _all_lines(self) -> list[list[Piece]]:
        if self._lines is None:
            width = max(self.size.width - 2, 10)
            self._lines = detail_lines(self.details, width, self.palette, self.look, self._definitions) if self.details else []
        return self._lines


def detail_lines(details: Details, width: int, palette: Palette, look: Look, definitions: bool = True) -> list[list[Piece]]:
    """Lines of pieces, each at most `width` cells and one more of margin."""
    lines: list[list[Piece]] = [[(" " + part, palette.strong)] for part in wrapped(details.title, width, look)]
    lines.append([])
    longest = max((cell_width(safe_text(fact.label)) for fact in details.facts if fact.value), default=0)
    column = max(LABEL, min(longest + 2, 2 * width // 5))
    for fact in details.facts:
        if not fact.value:
            if lines[-1]:
                lines.append([])
            lines.append([(" " + shown(fact.label, width, look), palette.accent)])
            continue
        label = shown(fact.label, column - 1, look)
        values = wrapped(fact.value, max(width - column, 8), look) or [""]
        lines.append([(" " + label + " " * (column - cell_width(label)), palette.muted), (values[0], palette.text)])
        lines += [[(" " * (column + 1), palette.text), (value, palette.text)] for value in values[1:]]
    return [*lines, *_definition_lines(details, width, column, palette, look)] if definitions else lines


def _definition_lines(details: Details, width: int, column: int, palette: Palette, look: Look) -> list[list[Piece]]:
    """What the figures mean, below all of them: so that these are seen at one glance."""
    lines: list[list[Piece]] = []
    for fact in details.facts:
        if fact.about:
            first, *others = wrapped(fact.about, max(width - column, 8), look) or [""]
            label = shown(fact.label, column - 1, look)
            lines.append([(" " + label + " " * (column - cell_width(label)), palette.muted), (first, palette.muted)])
            lines += [[(" " * (column + 1), palette.muted), (part, palette.muted)] for part in others]
    return [[], [(" " + shown("What they mean", width, look), palette.accent)], *lines] if lines else []


def wrapped(text: str, width: int, look: Look) -> list[str]:
    """A text made safe, on lines of at most `width` cells; long names break where they must."""
    plain = safe_text(text)
    if look.ascii:
        plain = shown(plain, 10**6, look)
    if cell_width(plain) == len(plain):
        return wrap(plain, width, break_on_hyphens=False)
    lines, line, used = [], "", 0
    for char in plain:  # wide characters: break by cells
        cells = cell_width(char)
        if used + cells > width:
            lines.append(line)
            line, used = "", 0
        line, used = line + char, used + cells
    return [*lines, line] if line else lines
