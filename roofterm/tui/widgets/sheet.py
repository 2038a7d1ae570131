"""The last line of a screen that lies over another: how to leave it."""

from __future__ import annotations

from textual.strip import Strip

from roofterm.tui.widgets.line_widget import LineWidget


class SheetFooter(LineWidget):
    DEFAULT_CSS = "SheetFooter { height: 1; dock: bottom; }"

    def render_line(self, y: int) -> Strip:
        key, muted = self.palette.key, self.palette.muted
        return self.strip([(" esc", key), (" returns  ", muted), ("j k", key), (" scroll", muted)])
