"""Sends only the cells that are not on the terminal already.

Textual sends whatever was drawn anew, alike or not, a line always from where its widget begins, and a screen that opens over
another one whole. Its updates are no public part of it, so all that is taken of them is taken here.
"""

from __future__ import annotations

from rich.color import ColorSystem
from rich.console import Console
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

from roofterm.text.safe import cell_width
from roofterm.tui.escape_codes import PLAIN, Cell, Stretch, blank, codes_of, line_changes, written

_UNKNOWN: Cell = ("\0", "")
"""Unlike any that is drawn."""


class TerminalCells:
    """What is drawn, by all screens together, and what of it the terminal shows."""

    def __init__(self) -> None:
        self.width = 0
        """cells of a line; a line that is drawn only in part is filled up to it"""
        self._drawn: dict[int, list[Cell]] = {}
        self._sent: dict[int, list[Cell]] = {}
        self._touched: set[int] = set()
        """lines that were drawn on since they were sent"""
        self._held = 0

    def forget(self) -> None:
        """What the terminal shows is not known any more: all is sent when it is drawn the next time."""
        self._drawn.clear()
        self._sent.clear()
        self._touched.clear()

    def hold(self) -> None:
        """Send nothing before `release`: what is drawn until then is sent at once."""
        self._held += 1

    def release(self) -> None:
        self._held -= 1

    def draw(self, x: int, y: int, strip: Strip, console: Console) -> None:
        """Put a strip in its place."""
        cells = cells_of(strip, console)
        line = self._drawn.setdefault(y, [])
        line += [_UNKNOWN] * (max(self.width, x + len(cells)) - len(line))
        line[x : x + len(cells)] = cells
        _mend(line, x)
        _mend(line, x + len(cells))
        self._touched.add(y)

    def changes(self) -> str:
        """What brings the terminal up to date."""
        if self._held:
            return ""
        stretches: list[Stretch] = []
        for y in sorted(self._touched):
            new = self._drawn[y]
            old = self._sent.setdefault(y, [])
            old += [_UNKNOWN] * (len(new) - len(old))
            stretches += line_changes(y, old, new)
            self._sent[y] = [cell if cell[1] is not None else _UNKNOWN for cell in new]
        self._touched.clear()
        return written(stretches)


class DrawnBefore(CompositorUpdate):
    """An update without anything new: what was held back is sent."""


class Changes(CompositorUpdate):
    """An update of Textual's without what the terminal shows already. Told while sending, since Textual throws some updates away."""

    def __init__(self, update: CompositorUpdate, cells: TerminalCells, width: int) -> None:
        """`width` of the screen."""
        self._update = update
        self._cells = cells
        self._width = width

    def render_segments(self, console: Console) -> str:
        self._cells.width = self._width
        if isinstance(self._update, LayoutUpdate):
            x, y, width, _ = self._update.region
            for at, line in enumerate(self._update.strips, y):
                self._cells.draw(x, at, Strip.join(line).crop(0, width), console)
        elif isinstance(self._update, ChopsUpdate):
            self._draw_chops(self._update, console)
        elif not isinstance(self._update, DrawnBefore):
            self._cells.forget()
            return self._update.render_segments(console)
        return self._cells.changes()

    def _draw_chops(self, update: ChopsUpdate, console: Console) -> None:
        for y, first, last in update.spans:
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                left, right = max(x, first), min(end, last)
                if strip is not None and left < right:
                    part = strip if right - left == strip.cell_length else strip.crop(left - x, right - x)
                    self._cells.draw(left, y, part, console)


def _mend(line: list[Cell], at: int) -> None:
    """Of a wide character that was cut in two before a cell, a blank is left, as on a terminal."""
    before = line[at - 1] if at else _UNKNOWN
    cut = at < len(line) and line[at][1] is not None and not line[at][0]
    if cut and cell_width(before[0]) != 2:
        line[at] = (" ", blank(line[at][1] or PLAIN))
    elif not cut and before[1] is not None and cell_width(before[0]) == 2:
        line[at - 1] = (" ", blank(before[1]))


def cells_of(strip: Strip, console: Console) -> list[Cell]:
    """One entry a cell. Text of a kind that only the terminal knows the width of is one entry, and the rest are empty."""
    system = console._color_system or ColorSystem.TRUECOLOR
    cells: list[Cell] = []
    for text, style, _ in strip:
        codes, on_blanks = codes_of(style, system)
        if text.isascii():
            cells += [(char, on_blanks if char == " " else codes) for char in text]
            continue
        for char in text:
            cells.append((char, on_blanks if char == " " else codes))
            if cell_width(char) == 2:
                cells.append(("", codes))
    if len(cells) == strip.cell_length:
        return cells
    return [(strip.render(console), None), *[("", None)] * (strip.cell_length - 1)]
