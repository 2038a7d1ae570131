"""Screens over the explorer: they scroll with the keys that move everywhere, and close with those that go back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.binding import Binding, BindingsMap, BindingType
from textual.screen import ModalScreen, ScreenResultType

from roofterm.tui import keymap
from roofterm.tui.page import Moves


class Sheet(ModalScreen[ScreenResultType], inherit_bindings=False):
    """Subclasses give `mover`, the widget that scrolls."""

    CLOSES: ClassVar[tuple[str, ...]] = ("clear", "back", "quit", "open")
    """ids of the actions whose keys close it"""

    def __init__(self, keys: Mapping[str, str], *, classes: str = "sheet") -> None:
        super().__init__(classes=classes)
        self.keys = keys
        """the user's own, by action id"""
        moves = keymap.motions(keys)
        taken = {key for action in moves for key in action.keys.split()}
        closing = [key for a in keymap.with_keys(keys) if a.id in self.CLOSES for key in a.keys.split() if key not in taken]
        stops: list[BindingType] = [
            Binding(",".join(map(keymap.long_key, dict.fromkeys(closing))), "dismiss", show=False),
            *(
                Binding(",".join(map(keymap.long_key, a.keys.split())), "app.leave", show=False)
                for a in keymap.with_keys(keys)
                if a.id == "stop"
            ),
        ]
        self._bindings = BindingsMap([*keymap.bindings(moves), *stops])

    @property
    def footer_keys(self) -> list[tuple[str, str]]:
        """For the last line, as they are bound now."""
        down, up = (keymap.first_key(action, self.keys) for action in ("down", "up"))
        return [(keymap.first_key("clear", self.keys), "returns"), (f"{down} {up}", "scroll")]

    @property
    def mover(self) -> Moves:
        raise NotImplementedError

    def action_move(self, columns: int, rows: int) -> None:
        self.mover.move(columns, rows)

    def action_page(self, pages: float) -> None:
        self.mover.page(pages)

    def action_end(self, direction: int) -> None:
        self.mover.end(direction)
