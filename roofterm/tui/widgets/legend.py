"""Letters, names and colours of categories in one line."""

from __future__ import annotations

from collections.abc import Iterable

from rich.style import Style

from roofterm.tui.themes import Palette
from roofterm.tui.widgets.glyphs import CategoryKey, Look, shown
from roofterm.tui.widgets.line_widget import Piece


def legend(codes: Iterable[int], key: CategoryKey, palette: Palette, look: Look) -> list[Piece]:
    """A letter and a name for each code, in the given order."""
    pieces: list[Piece] = [(" ", palette.muted)]
    for code in codes:
        pieces += [(key.letter(code), category_style(code, key, palette, look)), (f" {shown(key.name(code), 16, look)}  ", palette.muted)]
    return pieces


def category_style(code: int, key: CategoryKey, palette: Palette, look: Look) -> Style:
    """A category's colour on the screen's own background; bold alone where there are no colours."""
    return palette.text + Style(color=key.colour(code), bold=True) if look.colour else palette.strong
