"""A line of text asked for: a path with completion, a window of time, a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from roofterm.text.beginning import shared_beginning
from roofterm.tui.screens.typing_screen import TypingScreen
from roofterm.tui.widgets.glyphs import shown
from roofterm.tui.widgets.lines import Line, LineList
from roofterm.tui.widgets.sheet import SheetFooter, SheetTitle
from roofterm.tui.widgets.text_line import TextLine

Complete = Callable[[str], list[str]]
Check = Callable[[str], str | None]


class TextPrompt(TypingScreen[str | None], inherit_bindings=False):
    """`tab` completes, the arrows choose among what is offered, `enter` takes what stands in the line, `esc` nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", show=False, priority=True),
        Binding("ctrl+c", "app.leave", show=False, priority=True),
        Binding("tab", "complete", show=False, priority=True),
        Binding("down,ctrl+n", "move(1)", show=False, priority=True),
        Binding("up,ctrl+p", "move(-1)", show=False, priority=True),
    ]

    def __init__(
        self,
        title: str,
        text: str = "",
        *,
        complete: Complete | None = None,
        offers: Sequence[str] = (),
        refuse: Check | None = None,
        doubt: Check | None = None,
    ) -> None:
        """`offers`: what is listed while nothing is typed. `refuse` says why a text cannot be; `doubt` what a second `enter` allows."""
        super().__init__()
        self._title = title
        self._first = text
        self._complete = complete
        self._offers = list(offers)
        self._refuse = refuse
        self._doubt = doubt
        self._allowed: str | None = None
        """the text whose doubt was shown"""
        self._listed: list[str] = []
        self._moved = False

    def compose(self) -> ComposeResult:
        yield SheetTitle(self._title)
        yield TextLine(" > ", self._first)
        yield SheetTitle("", id="said")
        yield LineList("offers", cursor_without_focus=False)
        keys = [("enter", "takes it"), ("esc", "returns")]
        yield SheetFooter((("tab", "completes"), *keys) if self._complete else keys)

    def on_mount(self) -> None:
        self.line.input.cursor_position = len(self._first)
        self._list_for(self._first)
        self.take_keys()

    def action_complete(self) -> None:
        if self._complete is None:
            return
        line = self.line
        found = self._complete(line.text)
        longest = shared_beginning(found)
        if len(longest) > len(line.text):
            line.put(longest)
        elif not found:
            self._say("nothing begins like this")

    def action_move(self, rows: int) -> None:
        """Through what is listed; the line shows the one under the cursor."""
        if not self._listed:
            return
        offers = self.query_one(LineList)
        at = (offers.cursor + rows) % len(self._listed) if self._moved else 0 if rows > 0 else len(self._listed) - 1
        self._moved = True
        offers.cursor_without_focus = True
        offers.go(at)
        offers.refresh()
        with self.prevent(Input.Changed):
            self.line.put(self._listed[at])

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._say("")
        self._list_for(event.value)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        if not text:
            self._say("nothing is typed; esc returns")
        elif self._refuse is not None and (why := self._refuse(text)):
            self._say(why)
        elif self._doubt is not None and text != self._allowed and (why := self._doubt(text)):
            self._allowed = text
            self._say(why)
        else:
            self.dismiss(text)

    def _list_for(self, text: str) -> None:
        self._moved = False
        self._listed = (self._complete(text) if self._complete and text else None) or ([] if text else self._offers)
        offers = self.query_one(LineList)
        offers.cursor_without_focus = False
        offers.show([Line([(shown(path, 10**4, offers.look), offers.palette.muted)]) for path in self._listed], 0)

    def _say(self, text: str) -> None:
        self.query_one("#said", SheetTitle).show(text, bad=True)
