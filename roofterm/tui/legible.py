"""Whether a colour can be read on another: relative luminance and contrast ratio as WCAG 2.2 defines them."""

from __future__ import annotations

from functools import cache

from rich.color import Color

LEAST_RATIO = 3.0
"""For text that is told by its words as well: large text and symbols, in WCAG's terms."""


@cache
def luminance(colour: str) -> float:
    """From 0 for black to 1 for white, of a colour as Rich reads it."""
    channels = [c / 255 for c in Color.parse(colour).get_truecolor()]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(one: str, other: str) -> float:
    """From 1 for two colours of the same lightness to 21 for black and white."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)
