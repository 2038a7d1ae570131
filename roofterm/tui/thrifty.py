"""Sends only the cells that are not on the terminal already.

Textual sends whatever was drawn anew, alike or not, and a line always from where its widget begins. Its compositor is no
public part of it, so all that is taken of it is taken here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate
from textual.strip import Strip

from roofterm.text.safe import cell_width

Cell = tuple[str, Style | None]
"""A character and its style; the second cell of a wide character holds an empty text."""

SPARED_CELLS = 24
"""Cells alike between two differences that are worth the bytes of another move and another style."""

_UNKNOWN: Cell = ("\0", None)


class ThriftyCompositor(Compositor):
    """As Textual has it, but what it sends is told from what it has sent."""

    def __init__(self) -> None:
        super().__init__()
        self._sent: dict[int, list[Cell]] = {}
        """the cells of each line as they were sent last"""
        self._sent_at = self.size

    def render_full_update(self, simplify: bool = False) -> LayoutUpdate:
        whole = super().render_full_update(simplify)
        return WholeUpdate([Strip.join(line) for line in whole.strips], whole, self._sent)

    def render_partial_update(self) -> ChopsUpdate | None:
        if self.size != self._sent_at:  # what a terminal cuts off and brings back is its own affair
            self._sent.clear()
            self._sent_at = self.size
        update = super().render_partial_update()
        return None if update is None else PartUpdate(update, self._sent, self.size.width)


class WholeUpdate(LayoutUpdate):
    """Everything: what the terminal shows is not known, or no longer."""

    def __init__(self, lines: list[Strip], whole: LayoutUpdate, sent: dict[int, list[Cell]]) -> None:
        super().__init__([[line] for line in lines], whole.region)
        self._lines = lines
        self._sent = sent

    def render_segments(self, console: Console) -> str:
        self._sent.clear()
        for y, line in enumerate(self._lines):
            cells = cells_of(line)
            self._sent[y] = cells if len(cells) == line.cell_length else []  # else its width only the terminal knows
        return super().render_segments(console)


class PartUpdate(ChopsUpdate):
    """The cells that differ from what was sent last. Told while sending, since Textual throws some updates away."""

    def __init__(self, update: ChopsUpdate, sent: dict[int, list[Cell]], width: int) -> None:
        super().__init__(update.chops, update.spans, update.chop_ends)
        self._sent = sent
        self._width = width

    def render_segments(self, console: Console) -> str:
        return "".join(self._changes(console))

    def _changes(self, console: Console) -> Iterator[str]:
        for y, first, last in self.spans:
            line = self._sent.setdefault(y, [])
            line += [_UNKNOWN] * (self._width - len(line))
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                left, right = max(x, first), min(end, last)
                if strip is None or left >= right:
                    continue
                part = strip if right - left == strip.cell_length else strip.crop(left - x, right - x)
                cells = cells_of(part)
                if len(cells) != right - left:  # text of a kind that only the terminal knows the width of
                    line[left:right] = [_UNKNOWN] * (right - left)
                    yield f"\x1b[{y + 1};{left + 1}H{part.render(console)}"
                    continue
                for start, stop in differences(line[left:right], cells):
                    changed = part if stop - start == part.cell_length else part.crop(start, stop)
                    yield f"\x1b[{y + 1};{left + start + 1}H{changed.render(console)}"
                line[left:right] = cells


def cells_of(strip: Strip) -> list[Cell]:
    """One entry a cell."""
    cells: list[Cell] = []
    for text, style, _ in strip:
        if text.isascii():
            cells += [(char, style) for char in text]
        else:
            for char in text:
                cells.append((char, style))
                if cell_width(char) == 2:
                    cells.append(("", style))
    return cells


def differences(old: list[Cell], new: list[Cell]) -> Iterable[tuple[int, int]]:
    """First and one past the last cell of each stretch to send; no wide character is cut in two."""
    if old == new:
        return []
    stretches: list[tuple[int, int]] = []
    for at, (before, after) in enumerate(zip(old, new, strict=True)):
        if before == after:
            continue
        start = at - 1 if at and not after[0] else at
        stop = at + 2 if new[at + 1 : at + 2] and not new[at + 1][0] else at + 1
        if stretches and start - stretches[-1][1] < SPARED_CELLS:
            stretches[-1] = (stretches[-1][0], max(stretches[-1][1], stop))
        else:
            stretches.append((start, stop))
    return stretches
