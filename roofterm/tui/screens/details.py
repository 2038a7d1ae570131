"""Details over the whole screen, for terminals without room beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from textual.app import ComposeResult
from textual.worker import get_current_worker

from roofterm.tui.screens.sheet import Sheet
from roofterm.tui.widgets.detail import DetailPanel, Details, Fact, MoreDetails
from roofterm.tui.widgets.sheet import SheetFooter
from roofterm_parsers.errors import Interrupted


class DetailScreen(Sheet[None]):
    """Shows what is known at once; what takes a while to find is added when it is there."""

    def __init__(self, details: Details, keys: Mapping[str, str], more: MoreDetails | None = None) -> None:
        super().__init__(keys)
        self._details = details
        self._more = more

    def compose(self) -> ComposeResult:
        yield DetailPanel("details")
        yield SheetFooter(self.footer_keys)

    def on_mount(self) -> None:
        self.mover.show(self._details)
        self.mover.focus()
        if self._more is not None:
            self.run_worker(self._find, thread=True)

    def _find(self) -> None:
        worker = get_current_worker()
        assert self._more is not None  # else nobody asked
        with suppress(Interrupted):
            facts = self._more(lambda: worker.is_cancelled)
            if not worker.is_cancelled:
                self.app.call_from_thread(self._add, facts)

    def _add(self, facts: Sequence[Fact]) -> None:
        if self.is_attached:
            self.mover.add(facts)

    @property
    def mover(self) -> DetailPanel:
        return self.query_one(DetailPanel)
