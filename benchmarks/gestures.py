"""What is pressed in the explorer, and what is promised of the answer."""

from __future__ import annotations

from dataclasses import dataclass

PAGE_BYTES, LINE_BYTES = 6_000, 600
"""promised at 80x24 of a key, and of one that moves a row or the plot's cursor"""

PAGE_DOWN = "\x1b[6~"
RIGHT = "\x1b[C"
ESCAPE = "\x1b"
ENTER = "\r"
PALETTE = "\x10"


@dataclass(frozen=True)
class Gesture:
    """A key on a screen, pressed again and again; `before` brings the screen to where it makes sense."""

    name: str
    keys: tuple[str, ...]
    """pressed in turn"""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    most_ms: tuple[int, int] | None = (50, 100)
    """promised at 80x24 and at 200x60; None: nothing is promised of the time"""
    most_bytes: int = PAGE_BYTES
    once: bool = False
    """only the first press counts, which finds nothing worked out"""


PLOT_MS = (100, 150)


def _first_visit(name: str, key: str) -> Gesture:
    return Gesture(f"first visit: {name}", (key,), most_ms=None, once=True)


def _row(name: str, *before: str) -> Gesture:
    return Gesture(f"{name}: one row down", ("k", "j"), before=before, most_bytes=LINE_BYTES)


FIRST_VISITS = (
    ("ops", "3"),
    ("roofline", "2"),
    ("timeline", "4"),
    ("steps", "5"),
    ("findings", "6"),
    ("memory", "8"),
    ("device", "9"),
)

OF_ONE_PROFILE = (
    *(_first_visit(*screen) for screen in FIRST_VISITS),
    Gesture("table: page down", (PAGE_DOWN,), before=("3",)),
    _row("table"),
    Gesture("table: reverse", ("r",)),
    Gesture("table: next sort column", ("s",) * 5 + ("S",) * 5),
    Gesture("table: filter by category", ("c",), after=(ESCAPE,)),
    Gesture("table: a letter of a filter", tuple("elementwise"), before=("/",), after=(ESCAPE,)),
    Gesture("table: another table and back", ("V", "v")),
    Gesture("table: details and away", (ESCAPE, ENTER), after=(ESCAPE,)),
    Gesture("timeline: zoom in", ("+",), before=("4",)),
    Gesture("timeline: pan, zoomed in", ("h",)),
    Gesture("timeline: next slice", (RIGHT,)),
    Gesture("timeline: zoom out", ("-",)),
    Gesture("timeline: pan, whole profile half shown", ("l", "h"), before=("0", "+")),
    _row("timeline", "0"),
    Gesture("plot: zoom", ("+", "+", "+", "-", "-", "-"), before=("2",), most_ms=PLOT_MS),
    Gesture("plot: cursor to next point", ("n",), before=("0",), most_ms=PLOT_MS, most_bytes=LINE_BYTES),
    Gesture("plot: pan", ("L", "H"), before=("+", "+"), most_ms=PLOT_MS),
    Gesture("plot: filter by category", ("c",), before=("0",), after=(ESCAPE,), most_ms=PLOT_MS),
    Gesture("plot: other roofs", ("x",), most_ms=PLOT_MS),
    Gesture("plot: program or ops", ("p",), most_ms=PLOT_MS),
    _row("overview", "1"),
    _row("steps", "5"),
    Gesture("steps: next sort column", ("s",)),
    _row("findings, with the evidence", "6"),
    _row("memory", "8"),
    Gesture("memory: another table and back", ("V", "v")),
    Gesture("memory: curve, zoom", ("+", "-"), before=("g", "k")),
    Gesture("memory: curve, cursor", ("h", "l"), most_bytes=LINE_BYTES, after=("j",)),
    _row("device", "9"),
    Gesture("screens: overview and ops in turn", ("3", "1"), before=("1", "3", "1")),
    Gesture("screens: tables and timeline in turn", tuple("3456891"), before=tuple("3456891")),
    Gesture("screens: roofline and ops in turn", ("2", "3"), before=("2", "3"), most_ms=PLOT_MS),
    Gesture("help and away", (ESCAPE, "?"), after=(ESCAPE,)),
    Gesture("limit from a list and away", (ESCAPE, "F"), after=(ESCAPE,)),
    Gesture("palette and away", (ESCAPE, PALETTE), after=(ESCAPE,)),
)
"""Over a profile of millions of slices."""


def of_a_job(baseline: str) -> tuple[Gesture, ...]:
    """Over a job of several ranks; the path of a profile to hold it against."""
    return (
        _first_visit("ranks", "7"),
        _row("ranks"),
        Gesture("ranks: next sort column", ("s",) * 5 + ("S",) * 5),
        Gesture("ranks: groups and ranks in turn", ("v",)),
        Gesture("ranks: strip, cursor", ("h", "l"), before=("G", "j"), most_bytes=LINE_BYTES),
        Gesture("ranks: strip, another figure", ("x",)),
        _row("compare", "B", baseline, ENTER),
        Gesture("compare: next level", ("v",)),
        Gesture("compare: last and first row", ("g", "G")),
        Gesture("table with a baseline: last and first row", ("g", "G"), before=("3",)),
        _row("table with a baseline"),
        Gesture("screens: ranks, compare and ops in turn", ("7", "\t", "\t", "\t", "3"), before=("7", "\t", "\t", "\t", "3")),
    )
