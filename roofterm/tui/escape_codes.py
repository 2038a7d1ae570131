"""A line of cells as characters and escape codes, in as few bytes as they take.

Of ECMA-48 only what every terminal knows is used: SGR, CUP and CHA; EL where nothing paints the background, since not every
terminal erases to a painted one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.color import ColorSystem
from rich.style import Style
from textual.strip import Strip

Cell = tuple[str, str | None]
"""A character and the codes of its style. The second cell of a wide character holds an empty text. Without codes: text that is
sent as it is, over cells of which only the terminal knows how they look."""

PLAIN = ""
"""codes of text without a style"""
ERASED: Cell = (" ", PLAIN)

WORTH_ERASING = 8
"""blanks at the end of a line that are erased in fewer bytes than they have themselves"""

_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "21": "24", "5": "25", "6": "25", "7": "27", "8": "28", "9": "29", "53": "55"}
"""what ends an attribute; the others are ended by all of them"""
_SEEN_ON_BLANKS = frozenset(("4", "5", "6", "7", "9", "21", "51", "52", "53"))
"""attributes by which a blank looks different"""


class Codes(NamedTuple):
    """A style taken apart."""

    attributes: frozenset[str]
    colour: str
    ground: str


@lru_cache(4096)
def codes_of(style: Style | None, system: ColorSystem) -> tuple[str, str]:
    """Codes of a style for a character, and for a blank: what makes no difference on a blank is left out."""
    codes = Strip.render_ansi(style, system) if style is not None else PLAIN
    return codes, blank(codes)


@lru_cache(4096)
def blank(codes: str) -> str:
    """The codes that tell how a blank looks."""
    attributes, colour, ground = _parsed(codes)
    seen = attributes & _SEEN_ON_BLANKS
    return ";".join([*sorted(seen), *([colour] if seen and colour else []), *([ground] if ground else [])])


@lru_cache(4096)
def change(now: str, wanted: str) -> str:
    """From one style to another, in whatever way is shorter."""
    if now == wanted:
        return ""
    before, after = _parsed(now), _parsed(wanted)
    anew = f"\x1b[0;{wanted}m" if wanted else "\x1b[m"
    ended = {_OFF.get(attribute) for attribute in before.attributes - after.attributes}
    if None in ended:
        return anew
    left = {attribute for attribute in before.attributes if _OFF.get(attribute) not in ended}
    parts = [*sorted(code for code in ended if code), *sorted(after.attributes - left)]
    if before.colour != after.colour:
        parts.append(after.colour or "39")
    if before.ground != after.ground:
        parts.append(after.ground or "49")
    apart = f"\x1b[{';'.join(parts)}m"
    return apart if len(apart) < len(anew) else anew


@lru_cache(4096)
def _parsed(codes: str) -> Codes:
    attributes, colour, ground = set(), "", ""
    parts = codes.split(";") if codes else []
    while parts:
        code = parts.pop(0)
        number = int(code)
        if number in (38, 48):
            taken = 2 if parts[0] == "5" else 4
            code, parts = ";".join([code, *parts[:taken]]), parts[taken:]
        if 30 <= number <= 39 or 90 <= number <= 97:
            colour = code
        elif 40 <= number <= 49 or 100 <= number <= 107:
            ground = code
        else:
            attributes.add(code)
    return Codes(frozenset(attributes), colour, ground)


class Stretch(NamedTuple):
    """Cells to write; none: the line is erased from here on."""

    y: int
    x: int
    cells: Sequence[Cell]

    @property
    def style(self) -> str:
        """In which it begins."""
        if not self.cells:
            return PLAIN
        text, codes = self.cells[0]
        return PLAIN if codes is None else _next_style(self.cells, 0, codes) if text == " " else codes


def written(stretches: Sequence[Stretch]) -> str:
    """All of them; those that begin in the style at hand before the others: the way there is shorter than another style is said."""
    waiting: dict[str, deque[int]] = {}
    for at, stretch in enumerate(stretches):
        waiting.setdefault(stretch.style, deque()).append(at)
    pen = Pen()
    while waiting:
        style = pen.style if pen.style in waiting else min(waiting, key=lambda one: waiting[one][0])
        pen.write(stretches[waiting[style].popleft()])
        if not waiting[style]:
            del waiting[style]
    return pen.text()


class Pen:
    """Writes one stretch after the other; knows where the cursor stands and in what style it writes."""

    def __init__(self) -> None:
        self.style = PLAIN
        self._written: list[str] = []
        self._line = -1
        self._column = -1

    def text(self) -> str:
        """All that was written, with the style put back."""
        return "".join(self._written) + change(self.style, PLAIN)

    def write(self, stretch: Stretch) -> None:
        self._go(stretch.y, stretch.x)
        if not stretch.cells:
            self._paint(PLAIN)
            self._written.append("\x1b[K")
        for at, (text, codes) in enumerate(stretch.cells):
            if codes is not None and self._line < 0:
                self._go(stretch.y, stretch.x + at)
            if codes is None:  # it sets its own style, ends in none, and leaves the cursor anywhere
                if text:
                    self._paint(PLAIN)
                self._line = -1
            elif text == " ":
                if codes != blank(self.style):
                    self._paint(_next_style(stretch.cells, at, codes))
            elif text and codes != self.style:
                self._paint(codes)
            self._written.append(text)
        self._column = stretch.x + len(stretch.cells)

    def _go(self, y: int, x: int) -> None:
        if self._line == y:
            self._written.append("" if self._column == x else "\r" if x == 0 else _to_column(x))
        elif y == self._line + 1 and x == 0 and self._line >= 0:
            self._written.append("\r\n")
        else:
            self._written.append(f"\x1b[{y + 1};{x + 1}H")
        self._line, self._column = y, x

    def _paint(self, codes: str) -> None:
        self._written.append(change(self.style, codes))
        self.style = codes


def line_changes(y: int, old: Sequence[Cell], new: Sequence[Cell]) -> list[Stretch]:
    """What makes an old line a new one of as many cells."""
    spans = _joined(differences(old, new), new)
    end = len(new)
    while end and new[end - 1] == ERASED:
        end -= 1
    behind = [at for start, stop in spans for at in range(max(start, end), stop)]
    if len(behind) < WORTH_ERASING:
        return [Stretch(y, start, new[start:stop]) for start, stop in spans]
    kept = [Stretch(y, start, new[start : min(stop, end)]) for start, stop in spans if start < end]
    return [*kept, Stretch(y, behind[0], ())]


def _joined(spans: Sequence[tuple[int, int]], line: Sequence[Cell]) -> list[tuple[int, int]]:
    """Stretches between which there are no more bytes than in the way past them, and no other style, are one."""
    joined: list[tuple[int, int]] = []
    for start, stop in spans:
        if joined:
            first, last = joined[-1]
            if start - last <= len(_to_column(start)) and all(_writes(line[last - 1], cell) for cell in line[last:start]):
                joined[-1] = (first, stop)
                continue
        joined.append((start, stop))
    return joined


def _writes(before: Cell, cell: Cell) -> bool:
    """Whether a cell is one byte in the style of another one."""
    (_, style), (text, codes) = before, cell
    if style is None or codes is None or len(text) != 1 or not text.isascii():
        return False
    return codes == (blank(style) if text == " " else style)


def _next_style(cells: Sequence[Cell], at: int, codes: str) -> str:
    """The style for a blank: that of the next character, if the blanks before it look alike in it."""
    for text, style in cells[at:]:
        if text != " ":
            return style if style is not None and blank(style) == codes else codes
        if style != codes:
            break
    return codes


def _to_column(x: int) -> str:
    return f"\x1b[{x + 1}G"


def differences(old: Sequence[Cell], new: Sequence[Cell]) -> list[tuple[int, int]]:
    """First and one past the last cell of each stretch that differs; no wide character is cut in two."""
    stretches: list[tuple[int, int]] = []
    if old == new:
        return stretches
    for at, (before, after) in enumerate(zip(old, new, strict=True)):
        if before == after:
            continue
        start = at
        while start and not new[start][0]:
            start -= 1
        stop = at + 1
        while stop < len(new) and not new[stop][0]:
            stop += 1
        if stretches and start <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(stretches[-1][1], stop))
        else:
            stretches.append((start, stop))
    return stretches
