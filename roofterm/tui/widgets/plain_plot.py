"""The roofline plot as text, for a pipe, a report or a command's output: no cursor, no Textual."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from rich.color import ColorSystem
from rich.style import Style

from roofterm.results import Roof
from roofterm.tui.widgets.glyphs import CategoryKey, Look, marks, shown
from roofterm.tui.widgets.plot_adapter import POINT, TRIFLE, PlotSpec, draw, fit
from roofterm.tui.widgets.plot_points import TOP, Rows, memory_levels, points_of
from roofterm.tui.widgets.plot_roofs import RoofChoice, launch_text, roof_lines, sources

_PLAIN = Look("ascii", colour=False)


def plain_plot(
    rows: Rows,
    roofs: Sequence[Roof],
    key: CategoryKey,
    *,
    width: int = 78,
    height: int = 20,
    look: Look = _PLAIN,
    choice: RoofChoice = "bound",
    memory: str | None = None,
    path: bool = False,
) -> str:
    """Rows among their roofs in `height` lines, and two lines of legend. With `look.colour` it holds ANSI colours (256).

    Intensities are those against `memory`, by default the device's main memory. `path` joins the points in the order of the
    rows, and lists them in that order. Never raises on rows without points.
    """
    level = memory or next(iter(memory_levels(rows)), "hbm")
    points = points_of(rows, key, level)
    lines = tuple(roof_lines(roofs, choice, _values(rows, "bound_by"), _values(rows, "dtype")))
    grid = draw(PlotSpec(width, height, fit(points, lines, trifle=0.0 if path else TRIFLE), points, key, lines, look, path=path))
    styles = _styles(key) if look.colour else {}
    text = [_line("".join(map(chr, chars)), codes.tolist(), styles) for chars, codes in zip(grid.chars.tolist(), grid.style, strict=True)]
    time = np.bincount(points.category[points.order], points.time_us[points.order], minlength=256)
    codes = sorted(set(points.category[points.order].tolist()), key=lambda code: code if path else -time[code])
    legend = "  ".join(f"{key.letter(code)} {key.name(code)}" for code in codes)
    parts = [f"{points.plotted} points"]
    parts += [f"{points.bytes_only} {marks(look).rug} with bytes only"] if points.bytes_only else []
    parts += [f"{points.time_only} with time only"] if points.time_only else []
    parts += [f"roofs: {sources(roofs)}"] if lines else ["no roofs"]
    parts += [launch_text(roofs)] if launch_text(roofs) else []
    return "\n".join([*text, shown(legend, width, look), shown(", ".join(parts), width, look)]) + "\n"


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_COLOURS = ("#6cb6ff", "#ff7b72", "#57c46d", "#ecc94b", "#c4a5ff", "#63d8c2", "#ff9bce", "#e0943e")


def lettered(names: Sequence[str]) -> CategoryKey:
    """A key for rows whose categories are these names, a letter each in their order: profiles on one plot, values of a sweep."""
    taken = list(dict.fromkeys(names))
    letters = tuple(_LETTERS[at % len(_LETTERS)] for at in range(len(taken)))
    return CategoryKey(tuple(taken), letters, tuple(_COLOURS[at % len(_COLOURS)] for at in range(len(taken))))


def _values(rows: Rows, column: str) -> frozenset[str]:
    values = [getattr(row, column) for row in rows] if isinstance(rows, Sequence) else rows[column].to_list()
    return frozenset(value for value in values if value)


def _line(text: str, codes: list[int], styles: dict[int, Style]) -> str:
    if not styles:
        return text.rstrip()
    cuts = [0, *(at for at in range(1, len(codes)) if codes[at] != codes[at - 1]), len(codes)]
    parts = [(text[a:b], styles.get(codes[a])) for a, b in pairwise(cuts)]
    return "".join(
        style.render(part, color_system=ColorSystem.EIGHT_BIT) if style and part.strip() else part for part, style in parts
    ).rstrip()


def _styles(key: CategoryKey) -> dict[int, Style]:
    styles = {}
    for code in range(len(key.names)):
        for tier in range(3):
            styles[POINT + 4 * code + tier] = Style(color=key.colour(code), bold=tier == TOP or None)
    return styles
