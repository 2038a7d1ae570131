"""Memory: what each allocator holds over time, its peak, who held it, by op and by step, and calls for memory to the driver."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import polars as pl
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize

from roofterm.analysis.filters import parse, subset
from roofterm.analysis.memory_course import Course, memory_course
from roofterm.analysis.study import Study
from roofterm.report.memory_table import OUTSIDE, block_frame, op_frame, pool_frame, pressure_frame, step_frame
from roofterm.results import MemoryPool, MemoryReport
from roofterm.text.units import bytes_text, count, pct
from roofterm.tui.columns import NOUNS, row_details
from roofterm.tui.frames import step_number
from roofterm.tui.messages import EdgeReached
from roofterm.tui.opened import Opened
from roofterm.tui.rows import Rows, chosen_rows, place_of
from roofterm.tui.state import Selection, Sort, ViewState, changed, rank_of, without_rank
from roofterm.tui.table_page import TablePage
from roofterm.tui.widgets.detail import DetailPanel, Details, Fact
from roofterm.tui.widgets.line_widget import LineWidget
from roofterm.tui.widgets.memory_curve import Curve, CurveMoved, MemoryCurve
from roofterm.tui.widgets.table import VirtualTable

VIEWS = ("memory_op", "memory_pool", "memory_step", "memory_pressure", "memory_block")

FIRST_SORT = {"memory_op": Sort("peak_bytes"), "memory_block": Sort("held_bytes"), "memory_pressure": Sort("total_us")}

FIELDS = {"memory_op": {"name", "op"}, "memory_block": {"name", "op", "dtype"}, "memory_pool": {"rank"}}
"""Fields of a filter that a view answers: steps and allocators are not hidden by what speaks of ops."""

PS_PER_US = 1_000_000


class Answer(NamedTuple):
    report: MemoryReport
    pool: int
    """the allocator shown: row of the report's pools"""
    course: Course
    window_ps: tuple[int, int]
    """start and end of what is shown"""
    rows: Rows
    not_asked: str


class MemoryPage(TablePage):
    SCREEN = "memory"
    DRAWS_UNSEEN = False

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._answer: Answer | None = None
        self._pool = 0
        self._shown_part: Hashable = None

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical():
                with Vertical(id="curve-panel", classes="framed") as above:
                    above.border_title = "In use"
                    yield MemoryCurve("memory-curve")
                with Vertical(id="memory-panel", classes="framed") as main:
                    main.border_title = "Ops"
                    yield VirtualTable("memory-table", f"nothing here passes the filter; {self.all_again}", least_name=18)
            with Vertical(classes="side") as side:
                side.border_title = "Details"
                yield DetailPanel("memory-details", definitions=False)

    def key(self, state: ViewState) -> Hashable:
        by = self._view(state)
        return (by, self._pool, state.filter, state.step, state.window_ps, state.sorts.get(by))

    async def load(self, state: ViewState) -> None:
        by = self._view(state)
        sort = state.sorts.get(by, FIRST_SORT.get(by))
        before = self.selection()
        answer = await self.explorer.app_.desk.ask(lambda: self._ask(state, sort))
        if answer is None:
            return
        self._answer, self._pool, self.by = answer, answer.pool, by
        self.query_one("#memory-panel").border_title = NOUNS[self.by].capitalize()
        self.show_rows(answer.rows, sort, place_of(answer.rows, "name", before.name if before else None))
        part = (self._pool, answer.window_ps)
        if part != self._shown_part:
            self._shown_part = part
            self._draw()

    def settle(self, state: ViewState) -> None:
        chosen = state.selection
        name = chosen.name if chosen and self.by == "memory_op" and chosen.kind in ("op", "kernel") else None
        place = place_of(self.rows, "name", name) if self.rows else None
        self.table.go(state.places.get(self.SCREEN, self.table.cursor) if place is None else place)

    def focus_target(self) -> LineWidget:
        return self.curve if self.curve.has_focus else self.table

    def status(self) -> tuple[str, str]:
        if self._answer is None or self.rows is None:
            return "reading the allocations ...", ""
        parts = [self.count_text()]
        pools = self._answer.report.pools
        if len(pools) > 1 and self.by in ("memory_op", "memory_block", "memory_step"):
            parts.append(f"allocator {self._pool + 1} of {count(len(pools))}")
        if self._answer.not_asked:
            parts.insert(0, f"not asked here: {self._answer.not_asked}")
        return " · ".join(parts), self.cursor_text()

    def selection(self) -> Selection | None:
        row = self.table.row()
        kinds = {"memory_op": "op", "memory_block": "op", "memory_pressure": "op", "memory_step": "step"}
        return None if row is None else Selection(kinds.get(self.by, "allocator"), str(row["name"]))

    def details(self) -> Details | None:
        row = self.table.row()
        if row is None or self._answer is None:
            return None
        if self.curve.has_focus:
            return self._moment()
        return row_details(self.by, _told(row), [] if self.by == "memory_pool" else self._pool_facts())

    def restyle(self) -> None:
        self.curve.restyle()

    def on_resize(self, event: Resize) -> None:
        self.query_one("#curve-panel").styles.height = max(event.size.height * 9 // 20, 6)

    @property
    def curve(self) -> MemoryCurve:
        return self.query_one(MemoryCurve)

    @on(CurveMoved)
    def _moved(self) -> None:
        self.explorer.tell()

    @on(EdgeReached)
    def _pass_on(self, event: EdgeReached) -> None:
        """Up from the first row is the curve, down from the curve the table."""
        if event.source == "memory-table" and event.by < 0:
            self.curve.focus(scroll_visible=False)
        elif event.source == "memory-curve" and event.by > 0:
            self.table.focus(scroll_visible=False)
            self.table.end(-1)
        self.explorer.tell()

    # Keys

    def action_open(self) -> None:
        row = self.table.row()
        if self.curve.has_focus:
            self._open_moment()
        elif row is None:
            self.explorer.notice("nothing is selected here")
        elif self.by == "memory_pool":
            self._choose(int(row["pool"]), to_peak=True)
        elif self.by == "memory_step":
            self._limit_to(step_number(str(row["name"])))
        elif row["name"] == OUTSIDE or (self.by == "memory_block" and row["allocated_us"] is None):
            self.explorer.notice("no op was running around these allocations")
        else:
            self._go_to_op(str(row["name"]), self.explorer.state.step)

    def action_view(self, by: int) -> None:
        state = self.explorer.state
        known = self._views()
        now = self._view(state)
        view = known[(known.index(now) + by) % len(known)] if now in known else known[0]
        self.explorer.change(changed(state, views={**state.views, self.SCREEN: view}))

    def action_pool(self, by: int) -> None:
        if self._answer is not None and (pools := len(self._answer.report.pools)):
            self._choose((self._pool + by) % pools)

    def action_peak(self) -> None:
        if not self.curve.to_peak():
            self.explorer.notice(f"the peak is not in the part shown; {self.all_again}")

    def action_zoom(self, direction: int) -> None:
        if self._answer is not None:
            start, end = self._answer.window_ps
            self.curve.zoom(direction, (start, end - start))

    # What is asked

    def _views(self) -> list[str]:
        """The views that have a row."""
        report = self._answer.report if self._answer else None
        empty = (
            set()
            if report is None
            else {name for name, rows in (("memory_step", report.steps), ("memory_pressure", report.pressure)) if not rows}
        )
        return [view for view in VIEWS if view not in empty]

    def _view(self, state: ViewState) -> str:
        view = state.views.get(self.SCREEN, VIEWS[0])
        return view if view in VIEWS else VIEWS[0]

    def _ask(self, state: ViewState, sort: Sort | None) -> Answer | None:
        study = self.opened.study
        report = study.memory_report()
        if report is None or not report.pools:
            return None
        pool = _pool_of(report, self._pool, rank_of(state))
        window = self._window(state, pool)
        whole = _span(study.memory.events)
        by = self._view(state)
        frame = self.against(
            by, _frame(by, study, report, study.memory_ops(window), pool), lambda base: _base_frame(by, base, report.pools[pool].name)
        )
        asked, rest = subset(parse(state.filter if by == "memory_pool" else without_rank(state.filter)), FIELDS.get(by, set()))
        return Answer(report, pool, memory_course(study.memory, pool), window or whole, chosen_rows(frame, asked, sort), rest.text)

    def _window(self, state: ViewState, pool: int) -> tuple[int, int] | None:
        """The window asked for, else that of the step on the pool's own host."""
        if state.window_ps is not None or state.step is None or not state.step.isdigit():
            return state.window_ps
        study = self.opened.study
        windows = study.windows.with_columns(number=study.profile.steps["number"].gather(study.windows["step"]))
        mine = windows.filter((pl.col("number") == int(state.step)) & (pl.col("source") == study.memory.pools["source"][pool]))
        return (int(mine["host_start_ps"][0]), int(mine["host_end_ps"][0])) if mine.height else None

    def _choose(self, pool: int, to_peak: bool = False) -> None:
        self._pool = pool
        if to_peak:
            self.curve.focus(scroll_visible=False)
        self.explorer.change(self.explorer.state)

    def _draw(self) -> None:
        if self._answer is None:
            return
        course, (start, end) = self._answer.course, self._answer.window_ps
        pool = self._answer.report.pools[self._answer.pool]
        failed = [round(at * PS_PER_US) for at in pool.out_of_memory_us]
        self.curve.show(
            Curve(pool_title(pool), course.time_ps, course.held_bytes, course.peak, failed, note=pool_note(pool, course)),
            start,
            end - start,
        )

    # Jumps

    def _open_moment(self) -> None:
        held = self.curve.reading()
        if self._answer is None or held.event is None:
            self.explorer.notice("nothing was allocated before")
            return
        op, step = self._answer.course.op[held.event], self._step_at(held.time_ps)
        if op is None and step is None:
            self.explorer.notice("no op and no step around this moment")
        elif op is None:
            self._limit_to(step)
        else:
            self._go_to_op(op, None if step is None else str(step))

    def _step_at(self, time_ps: int) -> int | None:
        windows = self.opened.study.windows
        inside = windows.filter((pl.col("host_start_ps") <= time_ps) & (pl.col("host_end_ps") > time_ps))
        return int(self.opened.study.profile.steps["number"][inside["step"][0]]) if inside.height else None

    def _go_to_op(self, name: str, step: str | None) -> None:
        state = changed(self.explorer.state, screen="ops", by="op", step=step, selection=Selection("op", name))
        self.explorer.change(state)

    def _limit_to(self, step: int | None) -> None:
        if step is None:
            self.explorer.notice("this step has no number to limit to")
        else:
            self.explorer.change(changed(self.explorer.state, step=str(step)))
            self.explorer.notice(f"every screen now shows step {step}; {self.all_again}")

    # Details

    def _pool_facts(self) -> list[Fact]:
        assert self._answer is not None
        report, pool = self._answer.report, self._answer.pool
        row = pool_frame(report).row(pool, named=True)
        return [Fact(pool_title(report.pools[pool])), *row_details("memory_pool", _told(row)).facts]

    def _moment(self) -> Details:
        assert self._answer is not None
        held = self.curve.reading()
        step = self._step_at(held.time_ps)
        op = self._answer.course.op[held.event] if held.event is not None else None
        facts = [
            Fact("in use", bytes_text(held.bytes), "the most within the cell under the cursor"),
            Fact("op", op or OUTSIDE, "innermost op around the allocation"),
            Fact("step", "none" if step is None else f"#{step}"),
        ]
        return Details("A moment of the curve", [*facts, *self._pool_facts()])


OF_XLA = ("stack_bytes", "free_at_peak_bytes", "fragmentation_pct", "lifetime_peak_bytes", "requested_bytes", "region", "dtype", "shape")
"""What XLA's allocators alone say: where it is not told it is not missed"""


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None or name not in OF_XLA}


def _pool_of(report: MemoryReport, chosen: int, rank: int | None) -> int:
    """The allocator that was chosen; where only one rank is asked for, and it is of another, the first of that rank."""
    chosen = min(chosen, len(report.pools) - 1)
    if rank is None or report.pools[chosen].rank == rank:
        return chosen
    return next((at for at, pool in enumerate(report.pools) if pool.rank == rank), chosen)


def pool_title(pool: MemoryPool) -> str:
    """Allocator, and whose where there are several ranks."""
    return f"rank {pool.rank} {pool.name}" if pool.rank is not None else pool.name


def pool_note(pool: MemoryPool, course: Course) -> str:
    """Peak, and how much of the device that is."""
    if not course.known_from_zero:
        return "change since the recording began: the file states no totals"
    share = f", {pct(pool.peak_pct)} of {bytes_text(pool.capacity_bytes)}" if pool.peak_pct is not None else ""
    failed = f", {len(pool.out_of_memory_us)} failed" if pool.out_of_memory_us else ""
    return f"peak {bytes_text(pool.peak_bytes)}{share}{failed}"


def _span(events: pl.DataFrame) -> tuple[int, int]:
    """From the first event of any allocator to just after the last."""
    return (int(events["time_ps"][0]), int(events["time_ps"][-1]) + 1) if events.height else (0, 1)


def _base_frame(by: str, base: Study, pool: str) -> pl.DataFrame:
    """A view of the baseline, of its allocator of the same name; without rows where it has none."""
    report = base.memory_report() or MemoryReport([], [], [], [])
    at = next((at for at, one in enumerate(report.pools) if one.name == pool), len(report.pools))
    return _frame(by, base, report, base.memory_ops(), at)


def _frame(by: str, study: Study, report: MemoryReport, ops: pl.DataFrame, pool: int) -> pl.DataFrame:
    """The rows of a view: of one pool, of all allocators, or of the calls to the driver."""
    if by == "memory_op":
        return op_frame(ops.filter(pl.col("pool") == pool))
    if by == "memory_block":
        return block_frame(study, pool)
    if by == "memory_pool":
        return pool_frame(report)
    return step_frame(report).filter(pl.col("pool") == pool) if by == "memory_step" else pressure_frame(report)
