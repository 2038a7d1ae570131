"""The line above the footer: what is filtered, sorted and left out; for a while, what just happened."""

from __future__ import annotations

from typing import Literal

from textual.strip import Strip
from textual.timer import Timer

from roofterm.text.safe import cell_width
from roofterm.tui.widgets.glyphs import shown
from roofterm.tui.widgets.line_widget import LineWidget, Piece

NOTICE_SECONDS = 6.0


class Status(LineWidget):
    """Limits at the left, place at the right; a notice covers the left until the next one, a key, or some seconds."""

    DEFAULT_CSS = "Status { height: 1; }"

    def __init__(self) -> None:
        super().__init__(id="status")
        self.limits = ""
        self.text = ""
        self.place = ""
        self._notice: tuple[str, Literal["info", "bad"]] | None = None
        self._pointer: int | None = None
        self._timer: Timer | None = None

    def show(self, text: str, limits: str, place: str) -> None:
        """`limits` is what is filtered (marked, since figures then speak of a part), `text` the rest, `place` the cursor's."""
        if (text, limits, place) != (self.text, self.limits, self.place):
            before = {0: self.render_line(0)}
            self.text, self.limits, self.place = text, limits, place
            self.refresh_changes(before)

    def notice(self, text: str, kind: Literal["info", "bad"] = "info") -> None:
        self._set_notice(text, kind, None)

    def point_at(self, text: str, column: int) -> None:
        """A fault in the filter line below, with a mark above its place."""
        self._set_notice(text, "bad", column)

    def quiet(self) -> None:
        """Take the notice away."""
        if self._notice is not None:
            self._notice = self._pointer = None
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._notice is not None:
            return self.strip(self._notice_pieces(*self._notice))
        ascii_only = self.look.ascii
        dot = " | " if ascii_only else " · "
        place = shown(self.place, width, self.look)
        room = max(width - cell_width(place) - 3, 0)
        pieces: list[Piece] = [(" ", self.palette.text)]
        limits = shown(self.limits.replace(" · ", dot), room, self.look)
        text = shown(self.text.replace(" · ", dot), max(room - cell_width(limits) - 3, 0), self.look)
        if limits:
            pieces += [(limits, self.palette.warn), (dot if text else "", self.palette.muted)]
        pieces.append((text, self.palette.muted))
        used = sum(cell_width(part) for part, _ in pieces)
        pieces.append((" " * max(width - used - cell_width(place) - 1, 1), self.palette.text))
        pieces.append((place, self.palette.text))
        return self.strip(pieces)

    def _notice_pieces(self, text: str, kind: str) -> list[Piece]:
        style = self.palette.bad if kind == "bad" else self.palette.accent
        mark = "! " if kind == "bad" else ""
        if self._pointer is None:
            return [(" ", style), (mark + shown(text, max(self.size.width - 4, 0), self.look), style)]
        arrow = "v" if self.look.ascii else "▼"
        message = shown(text, max(self.size.width - 4, 0), self.look)
        if self._pointer + len(message) + 3 > self.size.width:
            start = max(self._pointer - len(message) - 1, 0)
            return [
                (" " * start, style),
                (f"{message} {arrow}" if start + len(message) + 1 == self._pointer else f"{arrow} {message}", style),
            ]
        return [(" " * self._pointer, style), (f"{arrow} {message}", style)]

    def _set_notice(self, text: str, kind: Literal["info", "bad"], column: int | None) -> None:
        self._notice, self._pointer = (text, kind), column
        if self._timer is not None:
            self._timer.stop()
        self._timer = None if column is not None else self.set_timer(NOTICE_SECONDS, self.quiet)
        self.refresh()
