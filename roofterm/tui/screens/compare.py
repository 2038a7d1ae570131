"""Compare: what changed from a baseline to the profile shown, as `roofterm compare` tells it, level by level."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import polars as pl
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize

from roofterm.analysis.filters import Filter, parse
from roofterm.report.changes import LEVEL_TITLES, STATUS, change_texts, limiter_text
from roofterm.text.safe import safe_text
from roofterm.text.units import count
from roofterm.tui.columns import row_details
from roofterm.tui.opened import Opened
from roofterm.tui.rows import Rows, chosen_rows, place_of
from roofterm.tui.state import Selection, Sort, ViewState, changed
from roofterm.tui.table_page import TablePage
from roofterm.tui.widgets.detail import DetailPanel, Details, Fact
from roofterm.tui.widgets.lines import Line, LineList
from roofterm.tui.widgets.table import VirtualTable

MOST_NOTES = 4
ROOMY = 26
"""lines of a page from which on more than the first note is shown"""

SELECTED_AS = {"kernel": "kernel", "op": "op", "host op": "op", "category": "category"}


class Answer(NamedTuple):
    rows: Rows
    levels: list[str]
    same: int
    """rows of the level that did not change, which are not shown"""


class ComparePage(TablePage):
    SCREEN = "compare"
    DRAWS_UNSEEN = False

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._answer: Answer | None = None
        self._level = "step"

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical():
                yield LineList("compare-said")
                with Vertical(id="compare-panel", classes="framed"):
                    yield VirtualTable("compare-table", "nothing changed here; v shows the next level", least_name=18)
            with Vertical(classes="side") as side:
                side.border_title = "Change"
                yield DetailPanel("compare-details", definitions=False)

    @property
    def sorted_as(self) -> str:
        return f"compare {self._level}"

    def key(self, state: ViewState) -> Hashable:
        level = state.views.get(self.SCREEN, "step")
        return (level, state.filter, state.sorts.get(f"compare {level}"))

    async def load(self, state: ViewState) -> None:
        baseline = self.explorer.baseline
        if baseline is None:
            return
        level, before = state.views.get(self.SCREEN, "step"), self.selection()
        sort = state.sorts.get(f"compare {level}")
        changes = baseline.comparison.changes
        self._answer = await self.explorer.app_.desk.ask(lambda: asked(changes, level, parse(state.filter), sort))
        self._level, self.by = level, "figures" if level == "step" else "changes"
        self.query_one("#compare-panel").border_title = LEVEL_TITLES.get(self._level, self._level).capitalize()
        rows = self._answer.rows
        self.show_rows(rows, sort, place_of(rows, "name", before.name if before else None))
        self._say()

    def settle(self, state: ViewState) -> None:
        chosen = state.selection
        name = chosen.name if chosen and SELECTED_AS.get(self._level) == chosen.kind else None
        place = place_of(self.rows, "name", name) if self.rows else None
        self.table.go(state.places.get(self.SCREEN, self.table.cursor) if place is None else place)

    def status(self) -> tuple[str, str]:
        if self._answer is None or self.rows is None:
            return "comparing ...", ""
        parts = [self.count_text()]
        if self._answer.same:
            parts.append(f"{count(self._answer.same)} unchanged left out")
        if self.rows.not_asked:
            parts.insert(0, f"not asked here: {self.rows.not_asked}")
        return " · ".join(parts), self.cursor_text()

    def selection(self) -> Selection | None:
        row = self.table.row()
        kind = SELECTED_AS.get(self._level, "figure")
        return None if row is None else Selection(kind, str(row["name"]))

    def details(self) -> Details | None:
        row = self.table.row()
        baseline = self.explorer.baseline
        if row is None or baseline is None:
            return None
        from roofterm.tui.columns import definition

        meaning = definition(str(row["name"])) if self._level == "step" else ""
        return row_details(self.by, row, [*([Fact("means", meaning)] if meaning else []), Fact("baseline", baseline.title)])

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._say)

    def restyle(self) -> None:
        self._say()

    def action_view(self, by: int) -> None:
        if self._answer is None:
            return
        levels, state = self._answer.levels, self.explorer.state
        at = (levels.index(self._level) + by) % len(levels) if self._level in levels else 0
        self.explorer.change(changed(state, views={**state.views, self.SCREEN: levels[at]}))

    def action_close_baseline(self) -> None:
        self.explorer.set_baseline(None)

    def _say(self) -> None:
        """What is held against what, and of what the times are."""
        baseline = self.explorer.baseline
        if baseline is None or not self.is_mounted:
            return
        said = self.query_one("#compare-said", LineList)
        p, found = said.palette, baseline.comparison
        whose = "times of one step" if found.per_step else "times of the whole files"
        lines = [Line([("against ", p.muted), (safe_text(baseline.title, 60), p.strong), (f"  {whose}", p.muted)], rests=False)]
        told = baseline.notes[: MOST_NOTES if self.size.height >= ROOMY else 1]
        lines += [Line([(safe_text(note), p.text if at == 0 else p.muted)], rests=False) for at, note in enumerate(told)]
        said.show(lines)
        said.styles.height = len(lines)


def asked(changes: pl.DataFrame, level: str, wanted: Filter, sort: Sort | None) -> Answer:
    """The rows of a level that changed, by filter and sort; the figures of the step all, but for the unknown."""
    mine = changes.filter(pl.col("level") == level)
    told = mine.filter(pl.col("status") != "unknown")
    if level == "step":
        told = told.filter((pl.col("base") != 0) | (pl.col("new") != 0))
        records = [change_texts(row) for row in told.iter_rows(named=True)]
        texts = dict.fromkeys(("base", "new", "change", "spread", "limiter", "level", "unit", "status"), pl.String)
        frame = pl.DataFrame(records, schema={**told.schema, **texts})
        return Answer(chosen_rows(frame, Filter(), sort)._replace(not_asked=wanted.text), _levels(changes), 0)
    shown = told.filter(pl.col("status") != "same").with_columns(pl.col("level", "unit", "status").cast(pl.String))
    limits = [limiter_text(*pair) or None for pair in zip(shown["base_bound_by"], shown["new_bound_by"], strict=True)]
    shown = shown.with_columns(pl.col("status").replace(STATUS), limiter=pl.Series(limits, dtype=pl.String))
    return Answer(chosen_rows(shown, wanted, sort), _levels(changes), told.height - shown.height)


def _levels(changes: pl.DataFrame) -> list[str]:
    """Levels that there are rows of, in the order in which they are told."""
    known = set(changes["level"].cast(pl.String).unique().to_list())
    return [level for level in LEVEL_TITLES if level in known]
