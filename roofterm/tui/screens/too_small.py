"""What stands on a terminal too small for anything else: one line."""

from __future__ import annotations

from textual.strip import Strip

from roofterm.tui.widgets.line_widget import LineWidget

LEAST = (60, 16)
"""columns and rows that every screen needs"""


class TooSmall(LineWidget):
    DEFAULT_CSS = "TooSmall { display: none; height: 1fr; width: 1fr; }"

    def render_line(self, y: int) -> Strip:
        if y:
            return self.blank()
        size = self.app.size
        return self.strip([(f" needs {LEAST[0]}x{LEAST[1]}, has {size.width}x{size.height}; q quits", self.palette.warn)])
