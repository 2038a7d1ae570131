"""The characters that plots, lanes and bars are drawn with, in each glyph set, and the key of the categories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from roofterm.text.safe import ascii_text, cell_width, safe_text
from roofterm.tui.capabilities import GlyphSet
from roofterm.tui.legible import luminance

NO_CATEGORY = 255
"""Category code of a cell or a point that has none."""


@dataclass(frozen=True)
class Look:
    """How to draw. Without `colour` every cell says its category by a letter."""

    glyphs: GlyphSet = "braille"
    colour: bool = True

    @property
    def ascii(self) -> bool:
        return self.glyphs == "ascii"


@dataclass(frozen=True)
class CategoryKey:
    """Names, letters and colours (as Rich reads them) of the categories, indexed by their codes."""

    names: tuple[str, ...]
    letters: tuple[str, ...]
    colours: tuple[str, ...]

    def code(self, name: str | None) -> int:
        """The code of a category's name, `NO_CATEGORY` if the key lacks it."""
        return self.names.index(name) if name in self.names else NO_CATEGORY

    def name(self, code: int) -> str:
        return self.names[code] if code < len(self.names) else "other"

    def letter(self, code: int) -> str:
        """One character, unlike those of idle cells; a category whose letter is no letter gets a capital out of its name."""
        return self._distinct[code] if code < len(self._distinct) else "?"

    @cached_property
    def _distinct(self) -> tuple[str, ...]:
        taken = {letter for letter in self.letters if letter.isalpha()}
        found = []
        for name, letter in zip(self.names, self.letters, strict=True):
            if not letter.isalpha():
                letter = next((c for c in name.upper() if c.isalpha() and c not in taken), "?")
                taken.add(letter)
            found.append(letter)
        return tuple(found)

    def colour(self, code: int) -> str:
        return self.colours[code] if code < len(self.colours) else "default"


@dataclass(frozen=True)
class Marks:
    """Single characters with one meaning each."""

    idle: str
    open: str
    closed: str
    rug: str
    dot: str
    here: str
    rule: str
    tick: str
    levels: str
    """emptiest to fullest; the last one is kept for exactly full"""
    spark: str
    ghost: str
    """a point of the baseline"""


_UNICODE = Marks(
    idle=" ", open="▾", closed="▸", rug="▸", dot="·", here="▴", rule="─", tick="┬", levels=" ▁▂▃▄▅▆▇█", spark="▁▂▃▄▅▆▇█", ghost="○"
)
_ASCII = Marks(
    idle=".", open="-", closed="+", rug=">", dot=".", here="^", rule="-", tick="+", levels=".0123456789#", spark="_.-=+*#@", ghost="%"
)


def marks(look: Look) -> Marks:
    """The characters of a look. An idle cell is a blank only where colour tells it from work."""
    return _ASCII if look.ascii else _UNICODE


_FRAME = str.maketrans("│─┤├┬┴└┘┌┐┼", "|-+++++++++")


def ascii_frame(text: str) -> str:
    """Box-drawing characters as ASCII ones."""
    return text.translate(_FRAME)


def shown(text: str, width: int, look: Look) -> str:
    """A name from a file, safe, in at most `width` cells and in characters that the look allows."""
    if not look.ascii:
        return safe_text(text, width)
    plain = ascii_text(safe_text(text))
    return plain if len(plain) <= width else plain[: max(width - 1, 0)] + "~"[: max(width, 0)]


def padded(text: str, width: int, look: Look) -> str:
    """`shown`, filled up with blanks to exactly `width` cells."""
    cut = shown(text, width, look)
    return cut + " " * (width - cell_width(cut))


def level(share: float, steps: int) -> int:
    """Which of `steps` levels shows a share: 0 only for nothing, the last only for all of it."""
    if share <= 0:
        return 0
    if share >= 1:
        return steps - 1
    return min(1 + int(share * (steps - 2)), steps - 2)


def contrast(colour: str) -> str:
    """Black or white, whichever is read better on a colour: by its relative luminance (WCAG 2.2)."""
    if colour == "default":
        return "default"
    return "black" if luminance(colour) > 0.179 else "white"
