"""One bar of several parts, each with its own colour and its own character, so that colour is never the only carrier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.style import Style

from roofterm.report.breakdown import PARTS, cell_shares, part_of
from roofterm.results import StepRow
from roofterm.text.course import ASCII_LEVELS, LEVELS, course
from roofterm.text.units import pct
from roofterm.tui.themes import Palette
from roofterm.tui.widgets.glyphs import Look
from roofterm.tui.widgets.line_widget import Piece, pieces_width

_UNICODE = {"compute": "█", "exposed_comm": "▓", "exposed_copy": "▒", "host_wait": "░", "kernel_gap": "·", "idle_other": " "}
_TITLES = {
    "compute": ("compute", "compute"),
    "exposed_comm": ("exposed communication", "comm"),
    "exposed_copy": ("exposed copies", "copy"),
    "host_wait": ("idle: host wait", "host wait"),
    "kernel_gap": ("idle: kernel gaps", "gaps"),
    "idle_other": ("other idle time", "idle"),
}
"""Names of the parts where there is room, and where there is little."""


def part_glyph(key: str, look: Look) -> str:
    return next(glyph for name, _, glyph in PARTS if name == key) if look.ascii else _UNICODE[key]


def part_style(key: str, palette: Palette) -> Style:
    roles = {
        "compute": palette.accent,
        "exposed_comm": palette.bad,
        "exposed_copy": palette.good,
        "host_wait": palette.warn,
        "kernel_gap": palette.warn,
        "idle_other": palette.muted,
    }
    return roles[key]


def stacked(shares: dict[str, float], cells: int, palette: Palette, look: Look) -> list[Piece]:
    """A step's breakdown (us by part) as one bar of exactly `cells` cells."""
    widths = cell_shares([shares[key] for key, _, _ in PARTS], cells)
    pieces = [(part_glyph(key, look) * width, part_style(key, palette)) for (key, _, _), width in zip(PARTS, widths, strict=True) if width]
    used = sum(widths)
    return [*pieces, (" " * (cells - used), palette.text)] if used < cells else pieces


def stacked_step(row: StepRow, cells: int, longest_us: float, palette: Palette, look: Look) -> list[Piece]:
    """A step's bar, as long as the step is against the longest one; a plain bar where no device worked."""
    mine = max(round(cells * row.dur_us / longest_us), 1) if longest_us > 0 else 0
    if row.compute_us is None:
        return [(("#" if look.ascii else "█") * mine, palette.muted), (" " * (cells - mine), palette.text)]
    shares = {key: part_of(row, key) for key, _, _ in PARTS}
    return [*stacked(shares, mine, palette, look), (" " * (cells - mine), palette.text)]


def step_bar(values: Sequence[float], cells: int, palette: Palette, look: Look) -> list[Piece]:
    """The bar of a row of `frames.steps_frame`: its column `parts`."""
    shares = dict(zip((key for key, _, _ in PARTS), values, strict=False))
    length, longest = sum(shares.values()), values[-1]
    mine = max(min(round(cells * length / longest), cells), 1) if longest > 0 else 0
    return [*stacked(shares, mine, palette, look), (" " * (cells - mine), palette.text)]


def phase_bar(times: Mapping[str, float], cells: int, palette: Palette, look: Look) -> list[Piece]:
    """Times by name as one bar of exactly `cells` cells."""
    widths = cell_shares(list(times.values()), cells)
    pieces = [(glyph * width, style) for (glyph, style), width in zip(_phase_looks(palette, look), widths, strict=False) if width]
    return [*pieces, (" " * (cells - sum(widths)), palette.text)]


def phase_legend(times: Mapping[str, float], cells: int, palette: Palette, look: Look) -> list[Piece]:
    """Each name with its character and share; where `cells` are too few, the smallest are left out."""
    total = sum(times.values()) or 1.0
    looks = dict(zip(times, _phase_looks(palette, look), strict=False))
    entries: list[tuple[float, list[Piece]]] = [
        (time, [(f"{looks[name][0]} ", looks[name][1]), (name, palette.muted), (f" {pct(100 * time / total)}", palette.text)])
        for name, time in times.items()
        if name in looks
    ]
    return _joined(_fitting(entries, 2, cells), 2, palette)


def _phase_looks(palette: Palette, look: Look) -> list[tuple[str, Style]]:
    """Character and style of one phase after the other."""
    styles = (palette.accent, palette.good, palette.warn, palette.bad, palette.muted)
    return [(glyph, styles[at % len(styles)]) for at, glyph in enumerate("#=+-.:*%@&" if look.ascii else "█▓▒░·▚▞▘▝▖")]


def share_bar(share: float, cells: int, palette: Palette, look: Look) -> list[Piece]:
    """A share in percent as a bar: `cells` cells are the whole."""
    eighths = round(min(max(share, 0.0), 100.0) / 100 * cells * 8)
    full, rest = divmod(eighths, 8)
    cell, ends = ("#", " ---====") if look.ascii else ("█", " ▏▎▍▌▋▊▉")
    bar = cell * full + (ends[rest] if rest else "")
    return [(bar, palette.accent), (" " * (cells - len(bar)), palette.text)]


def legend(shares: dict[str, float], cells: int, palette: Palette, look: Look) -> list[Piece]:
    """Every part that is not nothing, with its character, name and share; where `cells` are too few, with short names, then the
    largest parts alone."""
    for gap, short in ((3, 0), (2, 1), (1, 1)):
        entries = _entries(shares, palette, look, short)
        pieces = _joined([entry for _, entry in entries], gap, palette)
        if pieces_width(pieces) <= cells:
            return pieces
    return _joined(_fitting(entries, gap, cells), gap, palette)


def _entries(shares: dict[str, float], palette: Palette, look: Look, short: int) -> list[tuple[float, list[Piece]]]:
    """Each part's time, and what is said of it."""
    total = sum(shares.values()) or 1.0
    entries: list[tuple[float, list[Piece]]] = []
    for key, _, _ in PARTS:
        if shares[key] <= 0:
            continue
        glyph = part_glyph(key, look).replace(" ", "_" if look.ascii else "␣")
        title = _TITLES[key][short]
        said = [(glyph + " ", part_style(key, palette)), (title, palette.muted), (f" {pct(100 * shares[key] / total)}", palette.text)]
        entries.append((shares[key], said))
    return entries


def _fitting(entries: Sequence[tuple[float, list[Piece]]], gap: int, cells: int) -> list[list[Piece]]:
    """In their order, as many of the largest as fit."""
    kept = list(entries)
    while len(kept) > 1 and sum(pieces_width(entry) + gap for _, entry in kept) - gap > cells:
        kept.remove(min(kept, key=lambda entry: entry[0]))
    return [entry for _, entry in kept]


def _joined(entries: Sequence[list[Piece]], gap: int, palette: Palette) -> list[Piece]:
    return [piece for at, entry in enumerate(entries) for piece in ([(" " * gap, palette.text), *entry] if at else entry)]


_LEAST_OF_COURSE = 6


def sparkline(values: Sequence[float], cells: int, look: Look) -> str:
    """The last `cells` values from 0 to their largest as one character each; nothing where too few fit to show a course."""
    if cells < min(len(values), _LEAST_OF_COURSE):
        return ""
    taken = list(values)[-cells:] if cells > 0 else []
    return course(taken, ASCII_LEVELS if look.ascii else LEVELS)
