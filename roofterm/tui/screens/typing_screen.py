"""A screen over the explorer in which a line is typed: nothing typed is lost, be it ever so early."""

from __future__ import annotations

from textual.events import Key
from textual.screen import ModalScreen, ScreenResultType

from roofterm.tui.widgets.text_line import TextLine


class TypingScreen(ModalScreen[ScreenResultType], inherit_bindings=False):
    """Holds one `TextLine`, to which all letters go."""

    AUTO_FOCUS = "Input"

    def __init__(self) -> None:
        super().__init__(classes="sheet")
        self._keys_ahead: list[Key] = []

    @property
    def line(self) -> TextLine:
        return self.query_one(TextLine)

    def keeps(self, event: Key) -> bool:
        """Whether the line does not have the keys yet: what is typed waits for it."""
        waits = self.focused is None
        if waits:
            self._keys_ahead.append(event)
        return waits

    def take_keys(self) -> None:
        """Give the line the keys, and what was typed before it had them."""
        self.set_focus(self.line.input)
        ahead, self._keys_ahead = self._keys_ahead, []
        for event in ahead:
            self.app.post_message(Key(event.key, event.character))
