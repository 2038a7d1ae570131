"""Which columns of a table fit into how many cells: pure arithmetic, apart from drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from roofterm.tui.themes import Palette
from roofterm.tui.widgets.glyphs import Look
from roofterm.tui.widgets.line_widget import Piece

GAP = 1
"""cells between two columns; the header's sort mark stands in it"""


@dataclass(frozen=True)
class Column:
    """How a column of a frame is shown. Several may show the same one."""

    key: str
    label: str
    width: int
    show: Callable[[Any], str]
    """a value as text; null never reaches it"""
    priority: int = 5
    """what stays when room is short: smaller stays longer; 0 always"""
    left: bool = False
    tint: str | None = None
    """category: coloured by the category of that name; share: by how near to the roof"""
    about: str = ""
    """what the figure means, in one line"""
    draw: Callable[[Any, int, Palette, Look], Sequence[Piece]] | None = None
    """a value as pieces that fill so many cells, instead of as text"""
    title: str = ""
    """the label where there is room for it; empty: the same"""


@dataclass(frozen=True)
class Placed:
    column: Column
    x: int
    width: int


def place(columns: Sequence[Column], width: int, skipped: int = 0, name_width: int = 200, least_name: int = 24) -> list[Placed]:
    """The first column, which stays, and of the others as many as fit into `width` cells, in their order.

    With nothing skipped the less important ones give way; with `skipped` columns passed by, the rest follow as they come.
    The first takes what is left, at most `name_width` cells.
    """
    name, others = columns[0], columns[1:]
    least = min(max(least_name, min(width // 3, name_width)), max(width // 2, 1))
    room = width - least
    chosen = _in_order(others[skipped:], room) if skipped else _by_priority(others, room)
    taken = sum(c.width + GAP for c in chosen)
    first = max(min(width - taken, name_width), min(least, width), 1)
    if skipped or len(chosen) < len(others):
        first = max(width - taken, 1)
    placed = [Placed(name, 0, first)]
    x = first
    for column in chosen:
        placed.append(Placed(column, x + GAP, column.width))
        x += column.width + GAP
    return placed


def most_skipped(columns: Sequence[Column], width: int) -> int:
    """How many columns can be passed by until the last one is shown."""
    others = columns[1:]
    room = width - min(24, max(width // 2, 1))
    for skipped in range(len(others)):
        if len(_in_order(others[skipped:], room)) == len(others) - skipped:
            return skipped
    return max(len(others) - 1, 0)


def _in_order(columns: Sequence[Column], room: int) -> list[Column]:
    chosen: list[Column] = []
    for column in columns:
        room -= column.width + GAP
        if room < 0:
            break
        chosen.append(column)
    return chosen


def _by_priority(columns: Sequence[Column], room: int) -> list[Column]:
    kept: set[int] = set()
    for at in sorted(range(len(columns)), key=lambda i: (columns[i].priority, i)):
        need = columns[at].width + GAP
        if need <= room:
            kept.add(at)
            room -= need
        elif columns[at].priority > 0:
            break
    return [columns[i] for i in sorted(kept)]
