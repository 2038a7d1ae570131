"""A colour for each category in each theme: kin categories have kin colours, and letters tell all of them apart."""

from __future__ import annotations

from rich.style import Style

from roofterm.analysis.categories.kinds import TITLES, Category
from roofterm.tui.widgets.glyphs import CategoryKey

_HUES: dict[str, tuple[str, str, str, str]] = {
    # hue: dark, light, contrast, ansi
    "blue": ("#6cb6ff", "#0a58b8", "#56b4e9", "bright_blue"),
    "violet": ("#c4a5ff", "#6f3cc3", "#cc79a7", "magenta"),
    "teal": ("#63d8c2", "#0b7a69", "#009e73", "cyan"),
    "green": ("#57c46d", "#17713a", "#009e73", "green"),
    "lime": ("#a5d65c", "#4d7a0c", "#009e73", "bright_green"),
    "yellow": ("#ecc94b", "#7a6100", "#f0e442", "yellow"),
    "amber": ("#e0943e", "#8f4f00", "#e69f00", "bright_yellow"),
    "red": ("#ff7b72", "#b3261e", "#d55e00", "red"),
    "pink": ("#ff9bce", "#b3307f", "#cc79a7", "bright_magenta"),
    "grey": ("#9aa6b2", "#57606a", "#c8c8c8", "white"),
    "dim": ("#6f7a86", "#848d97", "#9a9a9a", "bright_black"),
}

_HUE_OF: dict[Category, str] = {
    Category.GEMM: "blue",
    Category.CONV: "blue",
    Category.ATTENTION: "violet",
    Category.MOE: "violet",
    Category.NORM: "teal",
    Category.SOFTMAX: "teal",
    Category.ROPE: "teal",
    Category.ELEMENTWISE: "green",
    Category.FUSED_ELEMENTWISE: "green",
    Category.REDUCTION: "lime",
    Category.FUSED_REDUCTION: "lime",
    Category.POOLING: "lime",
    Category.EMBEDDING: "yellow",
    Category.KV_CACHE: "yellow",
    Category.OPTIMIZER: "amber",
    Category.QUANTIZATION: "amber",
    Category.COMMUNICATION: "red",
    Category.SORT: "pink",
    Category.RNG: "pink",
    Category.HOST_IO: "amber",
    Category.LAYOUT: "grey",
    Category.COPY: "grey",
    Category.MEMSET: "grey",
    Category.FILL: "grey",
    Category.OP: "blue",
    Category.ANNOTATION: "violet",
    Category.STEP: "violet",
    Category.RUNTIME: "yellow",
    Category.SYNC: "red",
    Category.PYTHON: "green",
    Category.MODULE: "teal",
}

_COLUMN = {"dark": 0, "light": 1, "contrast": 2, "colorblind": 2, "ansi": 3}


def category_key(theme: str) -> CategoryKey:
    """Names, letters and colours by category code, gaps in the codes included."""
    colours = [_colour("dim", theme)] * len(TITLES)
    letters = ["."] * len(TITLES)
    for category in Category:
        colours[category] = _colour(_HUE_OF.get(category, "dim"), theme)
        letters[category] = category.letter
    return CategoryKey(tuple(TITLES), tuple(letters), tuple(colours))


def category_styles(theme: str) -> dict[str, Style]:
    """Style of a category's name, by that name."""
    return {category.title: Style(color=_colour(_HUE_OF.get(category, "dim"), theme)) for category in Category}


def _colour(hue: str, theme: str) -> str:
    return _HUES[hue][_COLUMN[theme]]
