"""Details over the whole screen, for terminals without room beside."""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import ComposeResult

from roofterm.tui.screens.sheet import Sheet
from roofterm.tui.widgets.detail import DetailPanel, Details
from roofterm.tui.widgets.sheet import SheetFooter


class DetailScreen(Sheet[None]):
    def __init__(self, details: Details, keys: Mapping[str, str]) -> None:
        super().__init__(keys)
        self._details = details

    def compose(self) -> ComposeResult:
        yield DetailPanel("details")
        yield SheetFooter(self.footer_keys)

    def on_mount(self) -> None:
        self.mover.show(self._details)
        self.mover.focus()

    @property
    def mover(self) -> DetailPanel:
        return self.query_one(DetailPanel)
