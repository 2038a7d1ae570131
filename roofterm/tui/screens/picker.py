"""One out of a list: typing narrows it, `enter` chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from roofterm.text.safe import cell_width
from roofterm.tui.screens.typing_screen import TypingScreen
from roofterm.tui.widgets.glyphs import shown
from roofterm.tui.widgets.lines import Line, LineList
from roofterm.tui.widgets.sheet import SheetFooter, SheetTitle
from roofterm.tui.widgets.text_line import TextLine

T = TypeVar("T")

MOST_LABEL = 60
"""cells of the labels' column at most"""


@dataclass(frozen=True)
class Choice(Generic[T]):
    """Texts may come from a file: they are made safe where they are shown."""

    label: str
    value: T
    note: str = ""


def narrowed(choices: Sequence[Choice[T]], typed: str) -> list[Choice[T]]:
    """Those that hold all words typed, in the label before those in the note; if there is none, those whose labels hold all letters
    in their order."""
    words = typed.casefold().split()
    found = [one for one in choices if all(word in f"{one.label} {one.note}".casefold() for word in words)]
    in_labels_first = sorted(found, key=lambda one: not all(word in one.label.casefold() for word in words))
    return in_labels_first or [one for one in choices if _holds("".join(words), one.label.casefold())]


def _holds(letters: str, text: str) -> bool:
    rest = iter(text)
    return all(letter in rest for letter in letters)


class Picker(TypingScreen[Choice[T] | None], inherit_bindings=False):
    """Its keys are those of a line that is typed in: none of the keymap's letters work here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", show=False, priority=True),
        Binding("ctrl+c", "app.leave", show=False, priority=True),
        Binding("down,ctrl+n,tab", "move(1)", show=False, priority=True),
        Binding("up,ctrl+p,shift+tab", "move(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
    ]

    def __init__(self, title: str, choices: Sequence[Choice[T]], at: int = 0, more: Sequence[Choice[T]] = ()) -> None:
        """`at`: the one on which the cursor stands at first. `more`: choices that are only found by typing."""
        super().__init__()
        self._title = title
        self._choices = choices
        self._more = more
        self._shown = list(choices)
        self._at = at

    def compose(self) -> ComposeResult:
        yield SheetTitle(self._title)
        yield TextLine(" > ")
        yield LineList("choices", cursor_without_focus=True)
        yield SheetFooter((("type", "narrows"), ("enter", "chooses"), ("esc", "returns")))

    def on_mount(self) -> None:
        self._fill(self._at)
        self.take_keys()

    def on_resize(self) -> None:
        self._fill(self._list.cursor)

    def action_move(self, rows: int) -> None:
        self._list.move(0, rows)

    def action_page(self, pages: int) -> None:
        self._list.page(pages)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        found = narrowed([*self._choices, *self._more], event.value) if event.value.strip() else list(self._choices)
        if found != self._shown:
            self._shown = found
            self._fill(0)

    @on(Input.Submitted)
    def _chosen(self, event: Input.Submitted) -> None:
        event.stop()
        if self._shown:
            self.dismiss(self._shown[self._list.cursor])

    @property
    def _list(self) -> LineList:
        return self.query_one(LineList)

    def _fill(self, cursor: int) -> None:
        shown_list = self._list
        p, look = shown_list.palette, shown_list.look
        room = max(min(MOST_LABEL, self.size.width - 26), 20)
        labels = [shown(choice.label, room, look) for choice in self._shown]
        wide = max((cell_width(label) for label in labels), default=0)
        shown_list.show(
            [
                Line([(label + " " * (wide - cell_width(label) + 2), p.text), (shown(choice.note, 10**4, look), p.muted)])
                for label, choice in zip(labels, self._shown, strict=True)
            ]
            or [Line([("none of them", p.muted)], rests=False)],
            cursor,
        )
