"""Lines of a timeline as grids of characters and styles: pure, from lanes and a window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roofterm.text.safe import cell_width
from roofterm.tui.widgets import cell_runs
from roofterm.tui.widgets.glyphs import NO_CATEGORY, CategoryKey, Look, marks, shown
from roofterm.tui.widgets.lanes import Lanes
from roofterm.tui.widgets.raster import Lane, Pieces, Window, busy_ps

IDLE, NEUTRAL, BUSY, SOLID = 0, 1, 2, 4
"""Style ids: a category's are SOLID + 2 * code where it fills half of a cell, and one more where it fills less."""

_NAME_CELLS = 5
"""a slice as wide as this shows its name"""
_LONG_BAR = 4
_RUNS_A_LINE = 12

Chars = NDArray[np.uint32]
Styles = NDArray[np.uint16]


def lane_cells(
    rows: Sequence[Lane], lanes: Lanes, window: Window, key: CategoryKey, look: Look, run_bytes: int = 25
) -> tuple[Chars, Styles]:
    """Characters and styles of lanes, each of shape (rows, cells).

    In colour a category is a painted bar with its letter in front, or a letter alone where it fills less than half of most
    cells; without, it is a letter in every cell. Slices of several cells show their name. Where bars change too often for
    the bytes that a line may take, the short ones are letters without colour.
    """
    shape = len(rows), window.cells
    category = np.full(shape, NO_CATEGORY, np.uint8)
    filled = np.zeros(shape, np.float64)
    edges = window.edges()
    names: list[tuple[int, int, int, int, str]] = []
    for y, lane in enumerate(rows):
        cells = lane.cells(edges)
        category[y] = cells.category
        filled[y] = cells.filled_ps / np.diff(edges)
        names += [(y, *name) for name in _names(lane, lanes, window)]
    idle = category == NO_CATEGORY
    letters = np.array([ord(key.letter(code)) for code in range(256)], np.uint32)
    letters[NO_CATEGORY] = ord("." if look.ascii else "·" if not look.colour else marks(look).idle)
    chars = letters[category]
    if not look.colour:
        for y, first, last, code, text in names:
            _write(chars[y], first, last, f"{key.letter(code)} {shown(text, last - first, look)} ", True, look)
        return chars, np.where(idle, IDLE, NEUTRAL).astype(np.uint16)
    style = np.where(idle, IDLE, SOLID + 2 * category.astype(np.uint16) + (filled * 2 < 1)).astype(np.uint16)
    named = np.zeros(shape, np.bool_)
    for y, first, last, _, _ in names:
        named[y, first:last] = True
    style = _thrifty(style, named, run_bytes)
    _shape_bars(chars, style, filled, look)
    for y, first, last, code, text in names:
        solid = np.flatnonzero(style[y, first:last] == SOLID + 2 * code)
        if solid.size:
            first, last = first + int(solid[0]), first + int(solid[-1]) + 1
            joins = first > 0 and style[y, first - 1] == style[y, first]
            _write(chars[y], first, last, shown(text, last - first, look), joins, look)
    return chars, style


def busy_cells(parts: Sequence[Pieces], window: Window, look: Look) -> Chars:
    """How busy each cell is, the mean over devices: blank or dot only if not at all, full only if all of it; shape (cells,)."""
    edges = window.edges()
    levels = np.array([ord(c) for c in marks(look).levels], np.uint32)
    busy = sum((busy_ps(part, edges) for part in parts), np.zeros(window.cells, np.int64))
    whole = np.diff(edges) * max(len(parts), 1)
    level = np.minimum(1 + (busy * ((levels.size - 2) / np.maximum(whole, 1))).astype(np.int64), levels.size - 2)
    level[busy == 0] = 0
    level[(busy >= whole) & (whole > 0)] = levels.size - 1
    found: Chars = levels[level]
    return found


def step_cells(steps: Sequence[tuple[int, int, str]], window: Window, look: Look) -> str:
    """A line with a mark where each step begins, and its name where it fits."""
    line = [" "] * window.cells
    bar = "|" if look.ascii else "│"
    inside = [(start, end, name) for start, end, name in steps if end > window.start_ps and start < window.end_ps]
    for start, end, name in inside:
        first = max(window.cell(start), 0)
        room = min(window.cell(end), window.cells) - first - 1
        if window.cell(start) >= 0:
            line[first] = bar
        else:
            first, room = -1, room + 1
        text = _step_text(shown(name, 256, look), room)
        if cell_width(text) == len(text):
            line[first + 1 : first + 1 + len(text)] = text
    return "".join(line)[: window.cells]


def _step_text(name: str, room: int) -> str:
    """The whole name, else the number at its end, else nothing."""
    number = name[len(name.rstrip("0123456789")) :]
    return next((text for text in (name, number) if len(text) <= room), "")


def _names(lane: Lane, lanes: Lanes, window: Window) -> list[tuple[int, int, int, str]]:
    """(first cell, end, category, name) of the slices that are wide enough to be named."""
    found = []
    for code, start, end, slice_id in lane.wide(window, _NAME_CELLS):
        first, last = max(window.cell(start), 0), min(window.cell(end), window.cells)
        if last - first >= _NAME_CELLS - 1:
            found.append((first, last, code, lanes.text(slice_id)))
    return found


def _write(line: Chars, first: int, last: int, text: str, bar: bool, look: Look) -> None:
    """A name over the cells of its slice, with a bar in front where it would touch its neighbour."""
    text = shown((("|" if look.ascii else "▏") if bar else "") + text, last - first, look)
    if cell_width(text) == len(text):  # a wide character would shift the line
        line[first : first + len(text)] = [ord(c) for c in text]


def _thrifty(style: Styles, named: NDArray[np.bool_], run_bytes: int) -> Styles:
    """Styles in which every line has few enough runs: the shortest bars of a crowded line lose their colour first."""
    budget = max(_RUNS_A_LINE * style.shape[1] // 64, (cell_runs.BYTES_A_SCREEN // 20 - style.shape[1]) // run_bytes)
    lines = [_thrifty_line(line, names, budget) for line, names in zip(style, named, strict=True)]
    return np.array(lines, np.uint16).reshape(style.shape)


def _thrifty_line(line: Styles, named: NDArray[np.bool_], budget: int) -> Styles:
    line = _even(line)
    for shortest in range(2, 8):
        cuts = _cuts(line)
        if cuts.size < budget:
            break
        lengths = np.diff(np.concatenate(([0], cuts, [line.size])))
        line = np.where((np.repeat(lengths, lengths) < shortest) & (line >= SOLID) & ~named, NEUTRAL, line).astype(np.uint16)
        blank = line == IDLE
        # A gap behind a neutral stretch is drawn in its style: it is blank in any.
        line[1:][blank[1:] & (line[:-1] == NEUTRAL)] = NEUTRAL
    return line


def _even(line: Styles) -> Styles:
    """Neighbouring cells of one category all painted, or all letters, as most of them are; a long bar keeps its thin ends."""
    cuts = _cuts(np.where(line >= SOLID, line | 1, 0).astype(np.uint16))
    firsts = np.concatenate(([0], cuts))
    lengths = np.diff(np.concatenate((firsts, [line.size])))
    thin = np.add.reduceat((line & 1).astype(np.int64), firsts) * 2 > lengths
    evened = (line & ~np.uint16(1)) + np.repeat(thin, lengths).astype(np.uint16)
    ends = np.concatenate((firsts, firsts + lengths - 1))[np.concatenate((lengths, lengths)) >= _LONG_BAR]
    evened[ends] |= line[ends] & 1
    return np.where(line >= SOLID, evened, line).astype(np.uint16)


def _cuts(line: Styles) -> NDArray[np.intp]:
    return np.flatnonzero(line[1:] != line[:-1]) + 1


_TAILS = np.array([ord(c) for c in "▏▎▍▌"], np.uint32)
_HEADS = np.array([ord(c) for c in "▕▐"], np.uint32)


def _shape_bars(chars: Chars, style: Styles, filled: NDArray[np.float64], look: Look) -> None:
    """Leave the letter at the front of each painted bar and blanks behind it; its ends are parts of a cell where they fill less."""
    solid = (style >= SOLID) & (style % 2 == 0)
    thin = (style >= SOLID) & (style % 2 == 1)
    goes_on = solid[:, 1:] & (style[:, 1:] == style[:, :-1])
    if not look.ascii:
        tail = thin[:, 1:] & solid[:, :-1] & (style[:, 1:] == style[:, :-1] + 1)
        head = thin[:, :-1] & solid[:, 1:] & (style[:, :-1] == style[:, 1:] + 1)
        chars[:, 1:][tail] = _TAILS[np.clip((filled[:, 1:][tail] * 8).astype(np.int64), 0, 3)]
        chars[:, :-1][head] = _HEADS[(filled[:, :-1][head] >= 0.25).astype(np.int64)]
    chars[:, 1:][goes_on] = ord(" ")
