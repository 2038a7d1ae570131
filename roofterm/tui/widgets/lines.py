"""A list of lines with a cursor: each line is ready-made pieces, and may lead somewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from rich.style import Style
from textual.events import Click
from textual.strip import Strip

from roofterm.tui.legible import LEAST_RATIO, ratio
from roofterm.tui.messages import EdgeReached, RowHighlighted
from roofterm.tui.widgets.line_widget import LineWidget, Piece


@dataclass(frozen=True)
class Target:
    """Where `enter` on a line leads: a screen, and what is set there."""

    screen: str
    filter: str | None = None
    by: str | None = None
    level: str | None = None
    step: str | None = None


@dataclass(frozen=True)
class Line:
    pieces: Sequence[Piece] = field(default_factory=tuple)
    target: Target | None = None
    rests: bool = True
    """whether the cursor rests on it"""


class LineList(LineWidget, can_focus=True):
    """Lines from top to bottom; the cursor passes by those on which it does not rest."""

    DEFAULT_CSS = "LineList { height: 1fr; }"

    def __init__(self, id: str, cursor_without_focus: bool = False) -> None:
        super().__init__(id=id)
        self.cursor_without_focus = cursor_without_focus
        """whether its cursor is seen while the keys go elsewhere"""
        self.lines: Sequence[Line] = ()
        self.cursor = 0
        self.top = 0

    def show(self, lines: Sequence[Line], cursor: int | None = None) -> None:
        self.lines = lines
        self.cursor = self._resting(self.cursor if cursor is None else cursor, 1)
        self._show_cursor()
        self.refresh()

    def line(self) -> Line | None:
        return self.lines[self.cursor] if 0 <= self.cursor < len(self.lines) else None

    def move(self, columns: int, rows: int) -> None:
        if not rows:
            return
        direction = 1 if rows > 0 else -1
        at = self.cursor + rows
        while 0 <= at < len(self.lines) and not self.lines[at].rests:
            at += direction
        if 0 <= at < len(self.lines):
            self.go(at)
        else:
            self.post_message(EdgeReached(self.id or "", direction))

    def page(self, pages: float) -> None:
        self.go(self._resting(self.cursor + int(pages * max(self.size.height - 1, 1)), -1 if pages > 0 else 1))

    def end(self, direction: int) -> None:
        self.go(self._resting(len(self.lines) - 1 if direction > 0 else 0, -direction))

    def go(self, at: int) -> None:
        at = max(0, min(at, len(self.lines) - 1))
        old, self.cursor = self.cursor, at
        if at == old:
            return
        before = self.top
        self._show_cursor()
        if before == self.top:
            self.refresh_lines_at(old - self.top, at - self.top)
        else:
            self.refresh()
        self.post_message(RowHighlighted(self.id or "", at))

    def on_click(self, event: Click) -> None:
        at = self.top + event.y
        if at < len(self.lines) and self.lines[at].rests:
            self.go(at)

    def render_line(self, y: int) -> Strip:
        at = self.top + y
        if at >= len(self.lines):
            return self.blank()
        line = self.lines[at]
        if at != self.cursor or not (self.has_focus or self.cursor_without_focus) or not line.rests:
            return self.strip([(" ", self.palette.text), *line.pieces])
        cursor = self.palette.cursor
        return self.strip([(">", cursor), *((text, under(style, cursor)) for text, style in line.pieces)], cursor)

    def on_focus(self) -> None:
        self.refresh_lines_at(self.cursor - self.top)

    def on_blur(self) -> None:
        self.refresh_lines_at(self.cursor - self.top)

    def on_resize(self) -> None:
        self._show_cursor()

    def _resting(self, at: int, direction: int) -> int:
        at = max(0, min(at, len(self.lines) - 1))
        for candidates in (range(at, len(self.lines) if direction > 0 else -1, direction), range(len(self.lines))):
            for place in candidates:
                if self.lines[place].rests:
                    return place
        return 0

    def _show_cursor(self) -> None:
        height = self.size.height
        if not height:  # not laid out yet
            return
        if self.cursor < self.top:
            self.top = self.cursor
        elif self.cursor >= self.top + height:
            self.top = self.cursor - height + 1
        self.top = max(0, min(self.top, len(self.lines) - height))
        if self.cursor < height and not any(line.rests for line in self.lines[: self.top]):
            self.top = 0  # a heading above the first line is in sight with it


@cache
def under(style: Style, cursor: Style) -> Style:
    """A piece's own style where the cursor stands on it, in the cursor's colour if its own could not be read there."""
    if cursor.reverse:
        return style + Style(reverse=True)
    back = cursor.bgcolor
    own = style.color is None or back is None or ratio(style.color.name, back.name) >= LEAST_RATIO
    return style + Style(color=None if own else cursor.color, bgcolor=back)
