"""What every screen of the explorer has in common: it shows a state, says what it shows, and moves a cursor."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol, cast

from textual.binding import BindingsMap
from textual.containers import Container
from textual.worker import Worker

from roofterm.analysis.filters import FilterError
from roofterm.analysis.scope import Scope, ScopeError
from roofterm.tui import keymap
from roofterm.tui.state import Selection, ViewState, rank_of
from roofterm.tui.widgets.detail import DetailPanel, Details, MoreDetails
from roofterm.tui.widgets.line_widget import LineWidget

if TYPE_CHECKING:
    from roofterm.tui.explorer import Explorer
    from roofterm.tui.exporting import Export
    from roofterm.tui.opened import Opened


class Moves(Protocol):
    """A widget with a cursor."""

    def move(self, columns: int, rows: int) -> None: ...
    def page(self, pages: float) -> None: ...
    def end(self, direction: int) -> None: ...


class Page(Container):
    """One screen. It asks the desk for what a state needs, and draws it when the answer has come and is still wanted."""

    SCREEN: ClassVar[str]
    DRAWS_UNSEEN: ClassVar[bool] = True
    """whether it can be filled before it has a size"""
    TELLS_BELOW: ClassVar[bool] = False
    """whether details are shown below where there is no room beside"""

    DEFAULT_CSS = "Page { height: 1fr; }"

    def __init__(self, opened: Opened) -> None:
        super().__init__(id=f"page-{self.SCREEN}")
        self.opened = opened
        self._bindings = BindingsMap(keymap.bindings(keymap.page_actions(self.SCREEN, opened.options.keys)))
        self._shown: Hashable = object()  # like no key

    # For a screen to fill in

    def key(self, state: ViewState) -> Hashable:
        """What of a state decides what is drawn: with the same key nothing is asked again."""
        raise NotImplementedError

    async def load(self, state: ViewState) -> None:
        """Ask for what the state needs and draw it."""
        raise NotImplementedError

    def settle(self, state: ViewState) -> None:
        """Put the cursor where the state's selection or place says."""

    def focus_target(self) -> LineWidget:
        """The widget that has the keys."""
        raise NotImplementedError

    def status(self) -> tuple[str, str]:
        """What is shown and what is left out; and the cursor's place."""
        return "", ""

    def selection(self) -> Selection | None:
        """What the cursor stands on."""
        return None

    def details(self) -> Details | None:
        """All about what the cursor stands on."""
        return None

    def more_details(self) -> MoreDetails | None:
        """What is known beyond `details` and takes a while to find; None where nothing is."""
        return None

    def export(self) -> Export | None:
        """What is shown, for a file; None where nothing is."""
        return None

    def place(self) -> int:
        """The cursor, for the history."""
        return 0

    def show_side(self) -> None:
        """Bring the details beside up to date."""
        for panel in self.query(DetailPanel):
            panel.show(self.details())

    def restyle(self) -> None:
        """The theme has changed: what keeps styles must make them anew."""

    # For the explorer

    @property
    def explorer(self) -> Explorer:
        from roofterm.tui.explorer import Explorer

        return cast(Explorer, self.screen if isinstance(self.screen, Explorer) else self.app.screen_stack[0])

    def key_of(self, action: str) -> str:
        """The first key of an action by its id, the user's own if they gave one."""
        return keymap.first_key(action, self.opened.options.keys)

    @property
    def all_again(self) -> str:
        """What takes filter and limits away, in words."""
        return f"{self.key_of('clear')} shows all"

    def show(self, state: ViewState) -> Worker[None] | None:
        """Draw what a state asks for; the worker that is still asking, if there is one."""
        key = (self.key(state), self.explorer.baseline)
        if key == self._shown:
            self._arrive(state)
            return None
        return self.run_worker(partial(self._load, state, key), group=f"load-{self.SCREEN}", exclusive=True, description=self.SCREEN)

    async def _load(self, state: ViewState, key: Hashable) -> None:
        try:
            await self.load(state)
        except (FilterError, ScopeError) as fault:
            self.explorer.notice(str(fault), "bad")
            return
        self._shown = key
        self._arrive(state)

    def _arrive(self, state: ViewState) -> None:
        self.settle(state)
        self.explorer.arrived_with = self.selection()
        self.explorer.tell()

    def scope(self, state: ViewState, default: str) -> Scope:
        """The part of the profile that a state speaks of; without a step of its own, the screen's default."""
        rank = rank_of(state)
        asked = self.opened.options.scope.rank if rank is None else rank
        return Scope(step=state.step or default, window_ps=state.window_ps, rank=asked, infeed=state.infeed)

    # Keys

    def action_move(self, columns: int, rows: int) -> None:
        self._mover().move(columns, rows)
        self.explorer.tell()

    def action_page(self, pages: float) -> None:
        self._mover().page(pages)
        self.explorer.tell()

    def action_end(self, direction: int) -> None:
        self._mover().end(direction)
        self.explorer.tell()

    def action_open(self) -> None:
        self.explorer.show_details()

    def _mover(self) -> Moves:
        focused = self.screen.focused
        return cast(Moves, focused if hasattr(focused, "move") and hasattr(focused, "page") else self.focus_target())
