"""A line of cells as characters and escape codes, in as few bytes as they take.

Of ECMA-48 only what every terminal knows is used: SGR, CUP and CHA; EL where nothing paints the background, since not every
terminal erases to a painted one.
"""

from __future__ import annotations

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


class Writer:
    """Writes stretches of lines one after the other; knows where the cursor stands and in what style it writes."""

    def __init__(self) -> None:
        self._written: list[str] = []
        self._style = PLAIN
        self._line = -1
        self._column = -1

    def text(self) -> str:
        """All that was written, with the style put back."""
        return "".join(self._written) + change(self._style, PLAIN)

    def line(self, y: int, old: Sequence[Cell], new: Sequence[Cell]) -> None:
        """Make an old line a new one of as many cells."""
        stretches = differences(old, new)
        end = len(new)
        while end and new[end - 1] == ERASED:
            end -= 1
        behind = [at for start, stop in stretches for at in range(max(start, end), stop)]
        erased = len(behind) >= WORTH_ERASING
        for start, stop in stretches:
            last = min(stop, end) if erased else stop
            if start < last:
                self._stretch(y, start, new[start:last], new)
        if erased:
            self._go(y, behind[0])
            self._paint(PLAIN)
            self._written.append("\x1b[K")

    def _stretch(self, y: int, start: int, cells: Sequence[Cell], line: Sequence[Cell]) -> None:
        between = line[self._column : start] if self._line == y and self._column < start else ()
        if between and len(between) <= len(_to_column(start)) and all(self._writes(cell) for cell in between):
            self._write(between)  # the cells between are no longer than the way past them
        else:
            self._go(y, start)
        self._write(cells)

    def _writes(self, cell: Cell) -> bool:
        """Whether a cell can be written as things stand: one byte, no change of style."""
        text, codes = cell
        return codes is not None and len(text) == 1 and text.isascii() and codes == (blank(self._style) if text == " " else self._style)

    def _go(self, y: int, x: int) -> None:
        if self._line == y:
            self._written.append("" if self._column == x else "\r" if x == 0 else _to_column(x))
        elif y == self._line + 1 and x == 0 and self._line >= 0:
            self._written.append("\r\n")
        else:
            self._written.append(f"\x1b[{y + 1};{x + 1}H")
        self._line, self._column = y, x

    def _paint(self, codes: str) -> None:
        self._written.append(change(self._style, codes))
        self._style = codes

    def _write(self, cells: Sequence[Cell]) -> None:
        for at, (text, codes) in enumerate(cells):
            if codes is None:  # it sets its own style, ends in none, and leaves the cursor anywhere
                if text:
                    self._paint(PLAIN)
                    self._written.append(text)
                continue
            if text == " ":
                if codes != blank(self._style):
                    self._paint(_next_style(cells, at, codes))
            elif text and codes != self._style:
                self._paint(codes)
            self._written.append(text)
        self._column += len(cells)
        if any(codes is None for _, codes in cells):
            self._line = -1


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
