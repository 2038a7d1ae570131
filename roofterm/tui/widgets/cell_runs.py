"""Grids of cells as Textual strips in as few style changes as the eye allows: each one costs some 25 bytes on the line."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

Chars = NDArray[np.uint32]
Styles = NDArray[np.uint16]

BYTES_A_SCREEN = 4800
"""Of the 6 KB that a key may send at 80 by 24, what a grid of cells may take; larger ones in proportion."""

_SYSTEMS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT, "truecolor": ColorSystem.TRUECOLOR}


def bytes_a_run(style: Style, colours: str | None) -> int:
    """Bytes around a run of one style, by Rich's name of the terminal's colours."""
    return len(style.render(" ", color_system=_SYSTEMS.get(colours or "", ColorSystem.EIGHT_BIT))) - 1


def affordable(chars: Chars, style: Styles, run_bytes: int) -> bool:
    """Whether a grid stays within its bytes."""
    text = int((1 + (chars > 0x7F) + (chars > 0x7FF)).sum())
    cells = max(chars.size, 80 * 20)
    return text + runs(style) * run_bytes <= BYTES_A_SCREEN * cells // (80 * 20)


def blended(chars: Chars, style: Styles, solid: Styles | None = None) -> Styles:
    """Styles in which blanks take their left neighbour's style, where it cannot be seen; `solid` styles paint blanks too."""
    unseen = chars == ord(" ")
    if solid is not None:
        unseen &= ~np.isin(style, solid)
    keep = np.where(unseen, 0, np.arange(style.shape[1]))
    keep[unseen] = -1
    source = np.maximum.accumulate(keep, axis=1)
    filled = np.take_along_axis(style, np.maximum(source, 0), axis=1)
    if solid is not None and solid.size:
        # A blank next to a painted run must not be painted: it falls back to its own style.
        painted = unseen & np.isin(filled, solid)
        filled[painted] = style[painted]
    leading = source < 0
    filled[leading] = style[leading]
    return filled


def runs(style: Styles) -> int:
    """Number of runs of one style, line by line."""
    return int(style.shape[0] + (style[:, 1:] != style[:, :-1]).sum())


def strips(chars: Chars, style: Styles, styles: Mapping[int, Style]) -> list[Strip]:
    """One strip a line; every segment has a style."""
    width = chars.shape[1]
    found = []
    for line, codes in zip(chars.astype("<u4"), style, strict=True):
        text = line.tobytes().decode("utf-32-le")
        cuts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), width]
        segments = [Segment(text[a:b], styles[int(codes[a])]) for a, b in pairwise(cuts) if b > a]
        found.append(Strip(segments, width))
    return found


def overlaid(strip: Strip, column: int, text: str, style: Style) -> Strip:
    """A strip with a text of single-width characters laid over it from a column on."""
    width = strip.cell_length
    end = min(column + len(text), width)
    return Strip.join([strip.crop(0, column), Strip([Segment(text[: end - column], style)]), strip.crop(end, width)])
