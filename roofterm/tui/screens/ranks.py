"""Ranks: who is late and what it costs, one row a rank, ranks by steps as a strip, and the groups of their collectives."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from textwrap import wrap
from typing import NamedTuple

import numpy as np
import polars as pl
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize

from roofterm.analysis.filters import parse, subset, with_term
from roofterm.analysis.rank_steps import FIGURES
from roofterm.report.rank_notes import rank_notes
from roofterm.report.rank_table import RANKS_HEAD, group_records, rank_table
from roofterm.report.ranks_text import called, verdict
from roofterm.results import RankGroup, RankRow
from roofterm.text.units import count
from roofterm.tui.columns import NOUNS, columns_of, row_details
from roofterm.tui.exporting import Export, rows_export
from roofterm.tui.messages import EdgeReached, RowHighlighted
from roofterm.tui.opened import Opened
from roofterm.tui.rows import Rows, chosen_rows, place_of
from roofterm.tui.state import Selection, Sort, ViewState, changed, rank_of, without_rank
from roofterm.tui.table_page import TablePage
from roofterm.tui.widgets.detail import DetailPanel, Details, Fact
from roofterm.tui.widgets.heat_strip import Heat, HeatStrip
from roofterm.tui.widgets.line_widget import LineWidget
from roofterm.tui.widgets.lines import Line, LineList
from roofterm.tui.widgets.table import VirtualTable

VIEWS = ("ranks", "groups")

ROOMY = 18
"""lines of a page from which on there is room for a second sentence"""

FIELDS = {"rank"}
"""Fields of a filter that speak of ranks; the rest speaks of ops and hides no rank."""

TITLES = {
    "dur_us": "step",
    "compute_us": "compute",
    "exposed_comm_us": "exposed comm",
    "wait_us": "waits for others",
    "kept_waiting_us": "keeps others waiting",
    "idle_us": "idle",
    "host_wait_us": "host wait",
}


class Answer(NamedTuple):
    ranks: list[RankRow]
    steps: pl.DataFrame
    """schema `rank_steps.RANK_STEPS`"""
    rows: Rows
    said: list[str]
    """who is late, and what must be known"""
    groups: pl.DataFrame
    """for the panel below, where there is room for it"""


class RanksPage(TablePage):
    SCREEN = "ranks"
    NATURAL = Sort("rank", False)
    DRAWS_UNSEEN = False

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._answer: Answer | None = None
        self._figure = ""
        self._arrived = False

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical():
                yield LineList("ranks-said")
                with Vertical(id="ranks-panel", classes="framed") as main:
                    main.border_title = "Ranks"
                    yield VirtualTable("ranks-table", f"no rank passes the filter; {self.all_again}", least_name=10)
                with Vertical(id="heat-panel", classes="framed") as heat:
                    heat.border_title = "Ranks by steps"
                    yield HeatStrip("ranks-heat")
                with Vertical(id="groups-panel", classes="framed") as groups:
                    groups.border_title = NOUNS["groups"].capitalize()
                    yield VirtualTable("ranks-groups", "no collective ran in this profile", least_name=16, keeps_cursor=False)
            with Vertical(classes="side") as side:
                side.border_title = "Rank"
                yield DetailPanel("ranks-details", definitions=False)

    def key(self, state: ViewState) -> Hashable:
        by = self._view(state)
        return (by, state.filter, state.sorts.get(by))

    async def load(self, state: ViewState) -> None:
        by = self._view(state)
        sort, before = state.sorts.get(by), self.selection()
        self._answer = await self.explorer.app_.desk.ask(lambda: self._ask(by, state, sort))
        self.by = by
        rows = self._answer.rows
        self.query_one("#ranks-panel").border_title = NOUNS[self.by].capitalize()
        self.show_rows(rows, sort, place_of(rows, "name", before.name if before else None))
        if not self._figure:
            waits = self._answer.steps["kept_waiting_us"]
            self._figure = "kept_waiting_us" if waits.null_count() < waits.len() and (waits.max() or 0) else "dur_us"
        self._draw()

    def settle(self, state: ViewState) -> None:
        if self.rows is None:
            return
        chosen, rank = state.selection, rank_of(state)
        name = f"rank {rank}" if rank is not None else chosen.name if chosen and chosen.kind == "rank" else None
        place = place_of(self.rows, "name", name)
        if place is None:
            place = state.places.get(self.SCREEN)
        if place is None and not self._arrived and self.by == "ranks":
            place = place_of(self.rows, "mark", "late")  # what one comes for is in sight, in the strip too
        self._arrived = True
        if place is not None:
            self.table.go(place)
        if state.step is not None and state.step in (columns := [name.lstrip("#") for name in self.heat.heat.columns]):
            self.heat.go(column=columns.index(state.step))
        self._follow()

    def focus_target(self) -> LineWidget:
        return self.heat if self.heat.has_focus else self.table

    def status(self) -> tuple[str, str]:
        if self._answer is None or self.rows is None:
            return "matching the collectives ...", ""
        text = self.count_text()
        counted = {row.steps for row in self._answer.ranks}
        steps = f"means of {count(max(counted))} steady step{'s' if max(counted) != 1 else ''}" if max(counted, default=0) else "whole file"
        return f"{text} · {steps if self.by == 'ranks' else 'means a step and device'}", self.cursor_text()

    def selection(self) -> Selection | None:
        row = self.table.row()
        return None if row is None else Selection("rank" if self.by == "ranks" else "group", str(row["name"]))

    def details(self) -> Details | None:
        row = self.table.row()
        if row is None or self._answer is None:
            return None
        return row_details(self.by, row, [Fact("Of all ranks"), *(Fact("note", text) for text in self._answer.said)])

    def export(self) -> Export | None:
        """Ranks as `roofterm ranks` gives them."""
        if self._answer is None or self.rows is None or self.by != "ranks":
            return super().export()
        return rows_export("ranks", self.rows._replace(frame=rank_table(self._answer.ranks)), RANKS_HEAD)

    def restyle(self) -> None:
        self._draw()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._draw)  # the first sentence folds by the width

    @property
    def heat(self) -> HeatStrip:
        return self.query_one(HeatStrip)

    @on(RowHighlighted)
    def _moved(self, event: RowHighlighted) -> None:
        if event.source == "ranks-table":
            self._follow()
        elif event.source == "ranks-heat" and self.by == "ranks":
            self.table.go(event.row)

    @on(EdgeReached)
    def _pass_on(self, event: EdgeReached) -> None:
        """Down from the last rank is the strip, up from its first line the table."""
        if event.source == "ranks-table" and event.by > 0 and self.query_one("#heat-panel").display:
            self.heat.focus(scroll_visible=False)
            self.heat.go(row=0)
        elif event.source == "ranks-heat" and event.by < 0:
            self.table.focus(scroll_visible=False)
            self.table.end(1)

    def action_open(self) -> None:
        row = self.table.row()
        if row is None or self.by != "ranks":
            self.explorer.show_details()
            return
        if row["rank"] is None:
            self.explorer.notice("this file does not say which rank it is")
            return
        state, rank = self.explorer.state, str(row["rank"])
        step = self._step_under_cursor() if self.heat.has_focus else None
        if rank_of(state) == row["rank"] and step in (None, state.step):
            self.explorer.change(changed(state, filter=with_term(state.filter, "rank", None), step=None if step else state.step))
            self.explorer.notice("every screen shows all ranks again")
            return
        self.explorer.change(changed(state, filter=with_term(state.filter, "rank", rank), step=step or state.step))
        also = f" and step {step}" if step else ""
        self.explorer.notice(f"every screen now shows rank {rank}{also}; {self.all_again}")

    def action_view(self, by: int) -> None:
        state = self.explorer.state
        view = VIEWS[(VIEWS.index(self._view(state)) + by) % len(VIEWS)]
        self.explorer.change(changed(state, views={**state.views, self.SCREEN: view}))

    def action_heat(self, by: int) -> None:
        """Another figure in the strip, of those that are known."""
        if self._answer is None:
            return
        known = [name for name in FIGURES if self._answer.steps[name].null_count() < self._answer.steps.height]
        if known:
            self._figure = known[(known.index(self._figure) + by) % len(known)] if self._figure in known else known[0]
            self._draw()

    def _view(self, state: ViewState) -> str:
        view = state.views.get(self.SCREEN, VIEWS[0])
        return view if view in VIEWS else VIEWS[0]

    def _ask(self, by: str, state: ViewState, sort: Sort | None) -> Answer:
        study = self.opened.study
        ranks = study.ranks()
        said = list(dict.fromkeys([verdict(ranks), *rank_notes(study, ranks)]))
        if by == "groups":
            frame = self.against(by, groups_frame(study.rank_groups()), lambda base: groups_frame(base.rank_groups()))
            return Answer(ranks, study.rank_steps(), chosen_rows(frame, parse(""), sort), said, frame)
        names = pl.Series("name", [called(row) for row in ranks], dtype=pl.String)
        marks = pl.Series("mark", ["late" if row.late else "" for row in ranks], dtype=pl.String)
        frame = self.against(by, rank_table(ranks).with_columns(names, marks), lambda base: rank_table(base.ranks()))
        asked, _ = subset(parse(without_rank(state.filter)), FIELDS)
        return Answer(ranks, study.rank_steps(), chosen_rows(frame, asked, sort), said, groups_frame(study.rank_groups()))

    def _draw(self) -> None:
        if self._answer is None or not self.is_mounted:
            return
        said = self.query_one("#ranks-said", LineList)
        late = any(row.late for row in self._answer.ranks)
        first = wrap(self._answer.said[0], max(said.size.width - 2, 20))[:2]
        style = said.palette.warn if late else said.palette.good
        lines = [Line([(text, style)], rests=False) for text in first]
        if self.size.height >= ROOMY:
            lines += [Line([(text, said.palette.muted)], rests=False) for text in self._answer.said[1:2]]
        said.show(lines)
        self.heat.show(self._heat())
        groups = self._answer.groups
        self.query_one("#ranks-groups", VirtualTable).show(groups, columns_of("groups", groups), np.arange(groups.height))
        self._fit()

    def _heat(self) -> Heat:
        """The strip's cells, its lines in the order of the table's ranks."""
        assert self._answer is not None
        steps = self._answer.steps
        order = self._answer.rows.order.tolist() if self.by == "ranks" else range(len(self._answer.ranks))
        ranks = [self._answer.ranks[at] for at in order]
        if not steps.height:
            return Heat()
        names = [called(row) for row in ranks]
        numbers = steps["number"].unique().sort()
        whose = pl.when(pl.col("rank").is_not_null()).then(pl.format("rank {}", "rank")).otherwise("host")
        placed = steps.select("number", self._figure, name=whose).join(
            pl.DataFrame({"name": names, "at": range(len(names))}, schema={"name": pl.String, "at": pl.Int64}), on="name", how="inner"
        )
        values = np.full((len(ranks), numbers.len()), np.nan)
        columns = np.searchsorted(numbers.to_numpy(), placed["number"].to_numpy())
        values[placed["at"].to_numpy(), columns] = placed[self._figure].fill_null(np.nan).to_numpy()
        return Heat(TITLES[self._figure], names, [f"#{number}" for number in numbers], values)

    def _fit(self) -> None:
        """The table as high as its rows, the strip below it; where both do not fit they share the room."""
        if self._answer is None:
            return
        framed = 2 if self.screen.has_class("-framed") else 0
        said = self.query_one("#ranks-said", LineList)
        said.styles.height = len(said.lines)
        room = self.size.height - len(said.lines)
        wanted = self.table.rows() + 1 + framed
        strip = self.heat.lines_wanted() + framed if self.heat.heat.rows else 0
        panel = self.query_one("#heat-panel")
        panel.display = bool(strip)
        groups = self._answer.groups.height + 1 + framed
        below = self.query_one("#groups-panel")
        below.display = self.by == "ranks" and wanted + strip + groups <= room and self._answer.groups.height > 0
        least = min(strip, max(room // 2, 4)) + (groups if below.display else 0)
        self.query_one("#ranks-panel").styles.height = max(min(wanted, room - least), 3) if strip or below.display else "1fr"
        panel.styles.height = strip if below.display else "1fr"

    def _follow(self) -> None:
        """The strip's line of the table's rank."""
        if self.by == "ranks":
            self.heat.go(row=self.table.cursor)

    def _step_under_cursor(self) -> str | None:
        columns = self.heat.heat.columns
        return columns[self.heat.column].lstrip("#") if columns else None


def groups_frame(groups: Sequence[RankGroup]) -> pl.DataFrame:
    """One row a group, as `roofterm ranks` prints them."""
    records = [{**record, "name": record["called"]} for record in group_records(list(groups))]
    return pl.DataFrame(records, schema=_GROUPS, strict=False)


_GROUPS = pl.Schema(
    {
        **dict.fromkeys(("name", "role", "members", "seen_of", "uneven"), pl.String()),
        **dict.fromkeys(("calls", "matched_pct", "total_us", "wait_us", "transfer_us", "message_bytes", "bus_bw"), pl.Float64()),
    }
)
