"""The keys that matter on the screen shown, from the keymap: as many as fit, the important ones first to stay."""

from __future__ import annotations

from collections.abc import Mapping

from textual.strip import Strip

from roofterm.tui.keymap import for_screen, keys_of, motions
from roofterm.tui.widgets.line_widget import LineWidget, Piece

_MOVES = {"roofline": "point", "timeline": "pan", **dict.fromkeys(("overview", "findings", "ranks", "memory", "compare"), "move")}


class Footer(LineWidget):
    DEFAULT_CSS = "Footer { height: 1; }"

    def __init__(self, keys: Mapping[str, str]) -> None:
        super().__init__(id="footer")
        self._keys = keys
        self._screen = ""

    def show(self, screen: str) -> None:
        if screen != self._screen:
            self._screen = screen
            self.refresh()

    def render_line(self, y: int) -> Strip:
        pieces: list[Piece] = [(" ", self.palette.text)]
        for key, label in footer_entries(self._screen, self._keys, self.size.width - 1):
            pieces += [(key, self.palette.key), (f" {label}  ", self.palette.muted)]
        return self.strip(pieces)


def footer_entries(screen: str, keys: Mapping[str, str], width: int) -> list[tuple[str, str]]:
    """Keys and labels that fit into `width` cells, in the order in which they are shown."""
    if not screen:
        return [("esc", "stops")]
    entries = [(0, 1, _motion_keys(keys), _MOVES.get(screen, "row, column"))]
    for at, action in enumerate(for_screen(screen, keys), start=1):
        if action.short:
            entries.append((at, action.weight, _label(action.id, keys_of(action)[0]), action.short))
    room = width
    kept = []
    for entry in sorted(entries, key=lambda e: (e[1], e[0])):
        need = len(entry[2]) + len(entry[3]) + 3
        if need <= room:
            kept.append(entry)
            room -= need
    return [(key, label) for _, _, key, label in sorted(kept)]


def _motion_keys(keys: Mapping[str, str]) -> str:
    """The first key of each direction, as one word if that is one letter each."""
    first = {a.id: keys_of(a)[0] for a in motions(keys)}
    return ("" if all(len(first[name]) == 1 for name in ("left", "down", "up", "right")) else " ").join(
        first[name] for name in ("left", "down", "up", "right")
    )


def _label(action: str, key: str) -> str:
    return "+ -" if action == "zoom.in" and key == "+" else key
