"""Details over the whole screen, for terminals without room beside."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from roofterm.tui.widgets.detail import DetailPanel, Details
from roofterm.tui.widgets.sheet import SheetFooter

SCROLLING: list[BindingType] = [
    Binding("j,down", "scroll_by(1)", show=False),
    Binding("k,up", "scroll_by(-1)", show=False),
    Binding("pagedown,ctrl+f,space,ctrl+d", "page(1)", show=False),
    Binding("pageup,ctrl+b,ctrl+u", "page(-1)", show=False),
    Binding("g,home", "to_end(-1)", show=False),
    Binding("G,end", "to_end(1)", show=False),
]


class DetailScreen(ModalScreen[None], inherit_bindings=False):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,backspace,q", "dismiss", show=False),
        Binding("ctrl+c", "app.exit", show=False, priority=True),
        *SCROLLING,
    ]

    def __init__(self, details: Details) -> None:
        super().__init__(classes="sheet")
        self._details = details

    def compose(self) -> ComposeResult:
        yield DetailPanel("details")
        yield SheetFooter()

    def on_mount(self) -> None:
        self._panel.show(self._details)
        self._panel.focus()

    @property
    def _panel(self) -> DetailPanel:
        return self.query_one(DetailPanel)

    def action_scroll_by(self, rows: int) -> None:
        self._panel.move(0, rows)

    def action_page(self, pages: int) -> None:
        self._panel.page(pages)

    def action_to_end(self, direction: int) -> None:
        self._panel.end(direction)
