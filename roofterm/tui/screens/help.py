"""What every key does on the screen it was asked from, and what a filter can say. Text comes from the keymap."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap

from textual.app import ComposeResult

from roofterm.tui import keymap
from roofterm.tui.screens.sheet import Sheet
from roofterm.tui.widgets.line_widget import Piece
from roofterm.tui.widgets.lines import Line, LineList
from roofterm.tui.widgets.sheet import SheetFooter

KEYS_CELLS = 19

FILTERS = (
    ("nccl gemm", "both words in the name, any letter case"),
    ("nccl|gemm", "one or the other"),
    ("!memcpy", "without"),
    ("/^aten::.*mm/", "regular expression"),
    ("cat:gemm bound:mem", "category, limit; also op module stream device rank step dtype"),
    ("time>1% dur>10us", "share or length; also self calls flops bytes intensity roof"),
)


class HelpScreen(Sheet[None]):
    CLOSES = (*Sheet.CLOSES, "help")

    def __init__(self, screen: str, keys: Mapping[str, str]) -> None:
        super().__init__(keys)
        self._screen = screen
        self._keys = keys

    def compose(self) -> ComposeResult:
        yield LineList("help")
        yield SheetFooter(self.footer_keys)

    def on_mount(self) -> None:
        self._fill()
        self.mover.focus()

    def on_resize(self) -> None:
        self._fill()

    def _fill(self) -> None:
        own, everywhere = help_entries(self._screen, self._keys)
        title = next(title for name, _, title in keymap.SCREENS if name == self._screen)
        self.mover.show([*self._section(title, own), *self._section("Everywhere", everywhere), *self._section("Filter", FILTERS)])

    def _section(self, title: str, entries: tuple[tuple[str, str], ...]) -> list[Line]:
        p = self.mover.palette
        lines = [Line([(title, p.accent)], rests=False)]
        columns = 2 if self.app.size.width >= 160 else 1
        room = (self.app.size.width - 2) // columns - KEYS_CELLS - 3
        half = -(-len(entries) // columns)
        for at in range(half):
            texts = [wrap(text, room) or [""] for _, text in entries[at::half]]
            for part in range(max(map(len, texts))):
                pieces: list[Piece] = []
                for (keys, _), parts in zip(entries[at::half], texts, strict=True):
                    left = f" {keys if part == 0 else '':<{KEYS_CELLS}} "
                    pieces += [(left, p.key), ((parts[part] if part < len(parts) else "").ljust(room + 1), p.text)]
                lines.append(Line(pieces, rests=part == 0))
        return [*lines, Line(rests=False)]

    @property
    def mover(self) -> LineList:
        return self.query_one(LineList)


def help_entries(screen: str, keys: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Keys and what they do: of this screen, and everywhere."""
    actions = keymap.for_screen(screen, keys)
    own = tuple((" ".join(keymap.keys_of(a)), a.text) for a in actions if a.screens)
    tabs = {f"screen.{name}" for name, _, _ in keymap.SCREENS}
    screens = " ".join(key for a in actions if a.id in tabs for key in keymap.keys_of(a))
    others = [(" ".join(keymap.keys_of(a)), a.text) for a in actions if not a.screens and a.id not in tabs]
    return own, ((screens, "go to a screen"), *others)
