"""The line in which a filter is typed: it stands where the footer stands, so that nothing else moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Input

from roofterm.analysis.filter_completion import Vocabulary, complete
from roofterm.tui.completing import Completing
from roofterm.tui.messages import FilterAsked, FilterLeft
from roofterm.tui.widgets.line_widget import LineWidget

PROMPT_CELLS = 3
"""cells before the first character of the expression"""


class FilterBar(Horizontal):
    """Prompt and input; tells each change while typing, and the end of it."""

    DEFAULT_CSS = """
    FilterBar { height: 1; display: none; }
    FilterBar.-open { display: block; }
    FilterBar Input { width: 1fr; height: 1; border: none; padding: 0; background: transparent; }
    FilterBar Input:focus { border: none; background: transparent; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "give_up", show=False),
        Binding("up", "recall(-1)", show=False),
        Binding("down", "recall(1)", show=False),
        Binding("tab", "complete(1)", show=False),
        Binding("shift+tab", "complete(-1)", show=False),
    ]

    class Typed(Message):
        """What stands in the line now, and what else `tab` would put in the place of its last condition."""

        def __init__(self, expression: str, offers: Sequence[str] = ()) -> None:
            self.expression = expression
            self.offers = offers
            super().__init__()

    class WordsWanted(Message):
        """`tab` wants to know what the profile holds: to be told by `learn`."""

        def __init__(self, by: int) -> None:
            self.by = by
            super().__init__()

    def __init__(self) -> None:
        super().__init__(id="filter-bar")
        self.known: Vocabulary | None = None
        """what the profile holds; finding it takes a while in a large one, so it is asked for when first needed"""
        self._completing: Completing | None = None
        self._before = ""
        self._earlier: list[str] = []
        self._at = 0

    def compose(self) -> ComposeResult:
        yield Prompt()
        field = Input(id="filter-input", compact=True, select_on_focus=False)
        field.cursor_blink = False
        yield field

    @property
    def input(self) -> Input:
        return self.query_one(Input)

    def open(self, expression: str) -> None:
        self._before = expression
        self._completing = None
        self._at = len(self._earlier)
        self.add_class("-open")
        with self.prevent(Input.Changed):
            self.input.value = expression
        self.input.cursor_position = len(expression)
        self.screen.set_focus(self.input)  # at once: what is typed next may be here already

    def close(self) -> None:
        self.remove_class("-open")

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._completing is not None and event.value != self._completing.text:
            self._completing = None
        if self.has_class("-open"):
            self.post_message(self.Typed(event.value, self._completing.offers if self._completing else ()))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        expression = event.value.strip()
        if expression and expression not in self._earlier[-1:]:
            self._earlier.append(expression)
        self.post_message(FilterAsked(expression))

    def action_give_up(self) -> None:
        self.post_message(FilterLeft())

    def learn(self, known: Vocabulary, by: int) -> None:
        """Told what the profile holds, complete as was asked."""
        self.known = known
        if self.has_class("-open"):
            self.action_complete(by)

    def action_complete(self, by: int) -> None:
        if self.known is None:
            self.post_message(self.WordsWanted(by))
            return
        if self._completing is None:
            found = complete(self.input.value, self.input.cursor_position, self.known)
            if not found.offers:
                return
            self._completing = Completing(self.input.value, self.input.cursor_position, found)
        self._completing.press(by)
        if self.input.value == self._completing.text:
            self.post_message(self.Typed(self.input.value, self._completing.offers))
        self.input.value = self._completing.text
        self.input.cursor_position = self._completing.cursor

    def action_recall(self, by: int) -> None:
        """An earlier filter, as a shell recalls lines."""
        at = max(0, min(self._at + by, len(self._earlier)))
        if at != self._at:
            self._at = at
            self.input.value = self._earlier[at] if at < len(self._earlier) else self._before
            self.input.cursor_position = len(self.input.value)


class Prompt(LineWidget):
    DEFAULT_CSS = f"Prompt {{ width: {PROMPT_CELLS}; height: 1; }}"

    def render_line(self, y: int) -> Strip:
        return self.strip([(" / ", self.palette.key)])
