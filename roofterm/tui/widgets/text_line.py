"""A line in which text is typed, after a prompt."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.strip import Strip
from textual.widgets import Input

from roofterm.tui.widgets.line_widget import LineWidget


class TextLine(Horizontal):
    """Prompt and input; `Input.Changed` and `Input.Submitted` tell of them."""

    DEFAULT_CSS = """
    TextLine { height: 1; }
    TextLine Input { width: 1fr; height: 1; border: none; padding: 0; background: transparent; }
    TextLine Input:focus { border: none; background: transparent; }
    """

    def __init__(self, prompt: str, text: str = "") -> None:
        super().__init__()
        self._prompt = prompt
        self._text = text

    def compose(self) -> ComposeResult:
        yield Prompt(self._prompt)
        field = Input(self._text, compact=True, select_on_focus=False)
        field.cursor_blink = False
        yield field

    @property
    def input(self) -> Input:
        return self.query_one(Input)

    @property
    def text(self) -> str:
        return self.input.value

    def put(self, text: str) -> None:
        """Take this text in place of the one typed, with the cursor at its end."""
        self.input.value = text
        self.input.cursor_position = len(text)


class Prompt(LineWidget):
    DEFAULT_CSS = "Prompt { height: 1; }"

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self.styles.width = len(text)

    def render_line(self, y: int) -> Strip:
        return self.strip([(self._text, self.palette.key)])
