"""The parts of the Overview, drawn alike from a profile just analysed and from figures kept of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from roofterm.results import StepRow
from roofterm.text.units import duration_us
from roofterm.tui.columns import NOUNS, counted
from roofterm.tui.overview_lines import Facts, Writer
from roofterm.tui.stacked import stacked_step
from roofterm.tui.widgets.lines import Line, LineList, Target
from roofterm.tui.widgets.records import Records
from roofterm.tui.widgets.table import VirtualTable
from roofterm.tui.widgets.table_layout import Column

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

PARTS = ("facts", "step-bars", "top-kernels", "top-categories", "warnings")
"""those in which the cursor can be, in the order in which it passes through them"""

LOW = 16
"""lines below which the parts have the class `-short`"""


class Tabled(NamedTuple):
    """What a table shows."""

    source: pl.DataFrame | Records
    columns: Sequence[Column]
    order: NDArray[np.int64] | range


def compose_parts(first_table: str) -> ComposeResult:
    with Horizontal(id="overview-top"):
        with Vertical(id="facts-panel", classes="framed") as facts:
            facts.border_title = "This profile"
            yield LineList("facts")
        with Vertical(id="steps-panel", classes="framed roomy") as bars:
            bars.border_title = "Steps"
            yield LineList("step-bars")
    with Horizontal(id="overview-rest"):
        with Vertical(classes="framed") as kernels:
            kernels.border_title = f"Top {NOUNS[first_table]}"
            yield VirtualTable("top-kernels", "nothing passes the filter", keeps_cursor=False)
        with Vertical(id="categories-panel", classes="framed roomy") as categories:
            categories.border_title = "Categories"
            yield VirtualTable("top-categories", "no device work", least_name=14, keeps_cursor=False)
    yield LineList("warnings")


def first_table_text(part: str, by: str, rows: int, nests: bool = False) -> str:
    """What the first table speaks of, for the line above the footer. `nests`: ops of a device lie inside others."""
    return f"{part} · {counted(rows, NOUNS[by])} by {'total' if by == 'kernel' and not nests else 'self'} time"


def draw_tables(root: Widget, kernels: Tabled, categories: Tabled) -> None:
    root.query_one("#top-kernels", VirtualTable).show(*kernels)
    root.query_one("#top-categories", VirtualTable).show(*categories)


def draw_lines(root: Widget, known: Facts, numbers_of_rows: Sequence[int | None]) -> None:
    """Write the lines for the room that the parts have now."""
    facts = root.query_one("#facts", LineList)
    writer = Writer(known, facts.palette, facts.look, max(facts.size.width - 1, 20))
    low = root.size.height < LOW
    lines = writer.lines(low)
    facts.show(lines)
    framed = 2 if root.screen.has_class("-wide") else 0
    root.query_one("#overview-top").styles.height = min(len(lines), max(root.size.height - (5 if low else 6), 4)) + framed
    root.query_one("#warnings", LineList).show([writer.warnings()])
    bars = root.query_one("#step-bars", LineList)
    bars.show(_step_lines(bars, known.steps, numbers_of_rows))


def _step_lines(bars: LineList, rows: Sequence[StepRow], numbers: Sequence[int | None]) -> list[Line]:
    longest = max((row.dur_us for row in rows), default=0.0)
    several = len({row.rank for row in rows}) > 1
    labels = [(f"rank {row.rank} " if several else "") + row.name.rsplit("#", 1)[-1][:12] for row in rows]
    wide = max(map(len, labels), default=0)
    cells = max(bars.size.width - wide - 16, 8)
    lines = []
    for row, number, label in zip(rows, numbers, labels, strict=True):
        mark = " " if row.steady else "*"
        pieces = [
            (f" {label:>{wide}}{mark} ", bars.palette.muted),
            *stacked_step(row, cells, longest, bars.palette, bars.look),
            (f" {duration_us(row.dur_us):>9}", bars.palette.text),
        ]
        lines.append(Line(pieces, Target("steps", step=None if number is None else str(number))))
    return lines or [Line([("no steps are marked in this profile", bars.palette.muted)], rests=False)]
