"""Text out of a file is data: it passes `safe_text` before it reaches a terminal, a table or a log.

No control, escape, bidi or zero-width character survives, and what is left has a width in cells that every terminal
agrees on, so that borders stay straight.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_ZERO_WIDTH = {"Mn", "Me"}
_STAND_IN = "\N{REPLACEMENT CHARACTER}"


@lru_cache(maxsize=65536)
def safe_text(text: str, width: int | None = None) -> str:
    """`text` on one line, without anything that a terminal would obey or disagree about.

    Control, escape and bidi characters become visible escapes (``\\x1b``, ``\\u202e``); blanks of every kind become a
    space; zero-width characters and combining marks that do not compose are left out; what Unicode has not assigned
    becomes a replacement character. With `width`, the text is cut to so many cells and ends in an ellipsis if it was cut.
    """
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_safe_char, unicodedata.normalize("NFC", text)))
    return text if width is None else _cut(text, width)


def cell_width(text: str) -> int:
    """Cells that a safe text takes in a terminal."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


def fit(text: str, width: int, right: bool = False) -> str:
    """`text` made safe, cut or padded to exactly `width` cells; aligned right if asked."""
    shown = safe_text(text, width)
    pad = " " * (width - cell_width(shown))
    return pad + shown if right else shown + pad


def ascii_text(text: str) -> str:
    """A safe text for a terminal without Unicode: what ASCII lacks becomes its nearest likeness, else a question mark."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text.translate(_LIKENESS))
    return "".join(c if c.isascii() else "" if unicodedata.category(c) in _ZERO_WIDTH else "?" for c in plain)


_LIKENESS = str.maketrans({"…": "~", "µ": "u", "·": ".", "×": "x", "–": "-", "—": "-", "≥": ">=", "≤": "<=", "→": "->", "│": "|", "─": "-"})


def _safe_char(char: str) -> str:
    category = unicodedata.category(char)
    if category in ("Cc", "Cf"):
        if char in "\t\n\r":
            return " "
        if category == "Cf" and unicodedata.bidirectional(char) == "BN":
            return ""
        return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"
    if category in _ZERO_WIDTH:
        return ""
    if category[0] == "Z":
        return " "
    if category[0] == "C":
        return _STAND_IN
    return char


def _char_width(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cut(text: str, width: int) -> str:
    if cell_width(text) <= width:
        return text
    if width <= 0:
        return ""
    if text.isascii():
        return text[: width - 1] + "…"
    used = 0
    for at, char in enumerate(text):
        used += _char_width(char)
        if used > width - 1:
            return text[:at] + "…"
    return text
