"""The smallest Textual program: what any Textual program costs before it shows its first words.

python empty_app.py
"""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Static


class EmptyApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("painted")


if __name__ == "__main__":
    EmptyApp().run()
