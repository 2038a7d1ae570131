"""A widget that is drawn line by line, in the explorer's styles and in characters that the terminal has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from roofterm.text.safe import cell_width
from roofterm.tui.themes import Palette, palette
from roofterm.tui.widgets.glyphs import Look, shown

Piece = tuple[str, Style]
"""Text that is already safe, and its style."""

_PLAIN = palette("dark")


class LineWidget(Widget):
    """Subclasses give `render_line`. Every segment they draw has a style: without colours Textual fails on one that has none."""

    DEFAULT_CSS = "LineWidget { height: 1fr; }"

    @property
    def palette(self) -> Palette:
        found = getattr(self.app, "palette", None)
        return found if isinstance(found, Palette) else _PLAIN

    @property
    def look(self) -> Look:
        found = getattr(self.app, "look", None)
        return found if isinstance(found, Look) else Look()

    def blank(self) -> Strip:
        return Strip.blank(self.size.width, self.palette.text)

    def strip(self, pieces: Iterable[Piece], fill: Style | None = None) -> Strip:
        """Pieces as a line of exactly the widget's width, the rest filled with blanks."""
        return strip_of(pieces, self.size.width, fill or self.palette.text, self.look)

    def restyle(self) -> None:
        """The theme has changed: draw everything anew, and forget what keeps styles."""
        self.refresh()

    def refresh_lines_at(self, *lines: int) -> None:
        """Draw only these lines anew, counted from the top of the content."""
        self.refresh(*(Region(0, y, self.size.width, 1) for y in lines if 0 <= y < self.size.height))

    def refresh_changes(self, before: Mapping[int, Strip]) -> None:
        """Draw anew the cells of these lines that differ from what they were, and no others."""
        spans = ((y, changed_cells(old, self.render_line(y))) for y, old in before.items())
        regions = [Region(span[0], y, span[1] - span[0], 1) for y, span in spans if span]
        if regions:
            self.refresh(*regions)


def changed_cells(old: Strip, new: Strip) -> tuple[int, int] | None:
    """First and one past the last cell in which two lines differ; None if they are alike."""
    before, after = _cells(old), _cells(new)
    first = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    last = max(len(before), len(after))
    if first == last:
        return None
    if len(before) == len(after):
        while last > first and before[last - 1] == after[last - 1]:
            last -= 1
    return first, last


def _cells(strip: Strip) -> list[tuple[str, Style | None]]:
    return [(char, segment.style) for segment in strip for char in segment.text for _ in range(cell_width(char))]


def strip_of(pieces: Iterable[Piece], width: int, fill: Style, look: Look) -> Strip:
    """Pieces cut or padded to `width` cells; neighbours of one style become one segment, which saves bytes on the line."""
    segments: list[Segment] = []
    used = 0
    for text, style in pieces:
        room = width - used
        if room <= 0:
            break
        part = text if cell_width(text) <= room else shown(text, room, look)
        if not part:
            continue
        used += cell_width(part)
        if segments and segments[-1].style == style:
            segments[-1] = Segment(segments[-1].text + part, style)
        else:
            segments.append(Segment(part, style))
    if used < width:
        segments.append(Segment(" " * (width - used), fill))
    return Strip(segments, width)


def aligned(text: str, width: int, look: Look, right: bool = False) -> str:
    """Text made safe and exactly `width` cells wide."""
    part = shown(text, width, look)
    pad = " " * (width - cell_width(part))
    return pad + part if right else part + pad


def name_cell(text: str, width: int, look: Look) -> str:
    """A name in exactly `width` cells: a generated one that is too long keeps its end, which is what tells such names apart."""
    safe = shown(text, 10**6, look)
    if len(safe) != cell_width(safe) or len(safe) <= width or width < 12 or " " in safe or "<" in safe:
        return aligned(safe, width, look)
    tail = width // 3
    return safe[: width - tail - 1] + ("~" if look.ascii else "…") + safe[-tail:]


def pieces_width(pieces: Sequence[Piece]) -> int:
    return sum(cell_width(text) for text, _ in pieces)
