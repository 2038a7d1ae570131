"""A row of values as one character each: its course in little room."""

from __future__ import annotations

from collections.abc import Sequence

ASCII_LEVELS = "_.-=+*#"
LEVELS = "▁▂▃▄▅▆▇█"


def course(values: Sequence[float], levels: str = ASCII_LEVELS) -> str:
    """Each value from 0 to the largest as one of `levels`; nothing where none is above 0."""
    top = max(values, default=0)
    if top <= 0:
        return ""
    return "".join(levels[min(int(value / top * len(levels)), len(levels) - 1)] for value in values)
