"""Overview: the first screen. Every line leads to its evidence."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize

from roofterm.analysis.filters import parse
from roofterm.results import Finding, Roofline
from roofterm.text.units import count, duration_us
from roofterm.tui.columns import NOUNS, columns_of
from roofterm.tui.exporting import Export, rows_export
from roofterm.tui.messages import EdgeReached
from roofterm.tui.opened import Opened
from roofterm.tui.overview_lines import WARNINGS, Facts, Writer
from roofterm.tui.page import Page
from roofterm.tui.rows import Rows, table_rows
from roofterm.tui.stacked import stacked_step
from roofterm.tui.state import Selection, Sort, ViewState, changed
from roofterm.tui.widgets.detail import Details, Fact
from roofterm.tui.widgets.line_widget import LineWidget
from roofterm.tui.widgets.lines import Line, LineList, Target
from roofterm.tui.widgets.table import VirtualTable
from roofterm_parsers.profile import Warning

LISTS = ("facts", "step-bars", "top-kernels", "top-categories", "warnings")
"""Parts in which the cursor can be, in the order in which it passes through them."""


class OverviewPage(Page):
    SCREEN = "overview"

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._facts: Facts | None = None
        self._kernels: Rows | None = None
        self._categories: Rows | None = None
        self._part = ""

    def compose(self) -> ComposeResult:
        with Horizontal(id="overview-top"):
            with Vertical(id="facts-panel", classes="framed") as facts:
                facts.border_title = "This profile"
                yield LineList("facts")
            with Vertical(id="steps-panel", classes="framed roomy") as bars:
                bars.border_title = "Steps"
                yield LineList("step-bars")
        with Horizontal(id="overview-rest"):
            with Vertical(classes="framed") as kernels:
                kernels.border_title = f"Top {NOUNS[self.opened.first_table]}"
                yield VirtualTable("top-kernels", "nothing passes the filter", keeps_cursor=False)
            with Vertical(id="categories-panel", classes="framed roomy") as categories:
                categories.border_title = "Categories"
                yield VirtualTable("top-categories", "no device work", least_name=14, keeps_cursor=False)
        yield LineList("warnings")

    def key(self, state: ViewState) -> Hashable:
        return (state.filter, state.step, state.window_ps, state.infeed)

    async def load(self, state: ViewState) -> None:
        desk = self.explorer.app_.desk
        self._kernels, self._categories, self._part = await desk.ask(lambda: self._tables(state))
        self._draw_tables()
        if self._facts is None:
            self._facts = self._known([], None, [])
            self._draw_lines()  # first what is there already, then what takes longer
            findings, roofline, warnings = await desk.ask(self._judged)
            self._facts = self._known(findings, roofline, warnings)
        self._draw_lines()

    def focus_target(self) -> LineWidget:
        focused = self.screen.focused
        mine = focused is not None and focused in self.walk_children()
        return focused if mine and isinstance(focused, LineWidget) else self.query_one("#facts", LineList)

    def status(self) -> tuple[str, str]:
        if self._kernels is None:
            return "reading the figures ...", ""
        by, time = self.opened.first_table, "total" if self.opened.first_table == "kernel" else "self"
        return f"{self._part} · {count(len(self._kernels.order))} {NOUNS[by]} by {time} time", ""

    def selection(self) -> Selection | None:
        focused = self.screen.focused
        if isinstance(focused, VirtualTable) and (row := focused.row()):
            return Selection("category" if focused.id == "top-categories" else self.opened.first_table, str(row["name"]))
        return None

    def export(self) -> Export | None:
        by = self.opened.first_table
        return None if self._kernels is None else rows_export(NOUNS[by], self._kernels, {"schema": "roofterm.ops/1", "by": by})

    def place(self) -> int:
        return self.query_one("#facts", LineList).cursor

    def restyle(self) -> None:
        self._draw_lines()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.height < 16, "-short")
        self.call_after_refresh(self._draw_lines)

    @on(EdgeReached)
    def _pass_on(self, event: EdgeReached) -> None:
        """The cursor goes on in the next part."""
        shown = [part for part in LISTS if self.query_one(f"#{part}").region.area]
        at = shown.index(event.source) + event.by if event.source in shown else -1
        if 0 <= at < len(shown):
            neighbour = self.query_one(f"#{shown[at]}", LineWidget)
            neighbour.focus(scroll_visible=False)
            if isinstance(neighbour, (LineList, VirtualTable)):
                neighbour.end(-event.by)

    def action_open(self) -> None:
        focused = self.screen.focused
        if isinstance(focused, VirtualTable):
            chosen = self.selection()
            if chosen is not None:
                self.explorer.select(chosen)
                self.explorer.change(changed(self.explorer.state, screen="ops", by=chosen.kind))
            return
        line = focused.line() if isinstance(focused, LineList) else None
        if line is None or line.target is None:
            self.explorer.notice("nothing more to open here")
        elif line.target is WARNINGS:
            self.explorer.show_details()
        elif line.target.screen not in self.opened.pages:
            self.explorer.action_screen(line.target.screen)
        else:
            self.explorer.follow(line.target)

    def details(self) -> Details | None:
        """All warnings: the evidence of the lines about health."""
        warnings = self._facts.warnings if self._facts else []
        facts = [Fact(f"{warning.count} x", f"{warning.message} ({warning.code})") for warning in warnings]
        sources = [
            Fact("Files"),
            *(Fact(source.format, f"{source.path}: {count(source.events)} events") for source in self.opened.study.profile.sources),
        ]
        return Details("Health of this profile", [*(facts or [Fact("warnings", "none")]), *sources])

    def _tables(self, state: ViewState) -> tuple[Rows, Rows, str]:
        study, scope, wanted = self.opened.study, self.scope(state, "steady"), parse(state.filter)
        by_time, against = None if study.work.height else Sort("self_us"), self.explorer.baseline
        kernels = table_rows(study, self.opened.first_table, scope, wanted, by_time, self.opened.book, against)
        return kernels, table_rows(study, "category", scope, wanted, None, self.opened.book, against), study.selection(scope).text

    def _judged(self) -> tuple[list[Finding], Roofline, list[Warning]]:
        study = self.opened.study
        return study.findings(), study.roofline(), study.warnings()

    def _known(self, findings: list[Finding], roofline: Roofline | None, warnings: list[Warning]) -> Facts:
        o = self.opened
        known = warnings or o.study.profile.warnings
        coverage = roofline.coverage if roofline else None
        return Facts(
            o.study.profile.sources, known, len(o.study.profile.warnings), o.summary, o.devices, o.steps, o.digest, coverage, findings
        )

    def _draw_tables(self) -> None:
        if self._kernels is not None and self._categories is not None:
            self.query_one("#top-kernels", VirtualTable).show(
                self._kernels.frame, columns_of(self.opened.first_table, self._kernels.frame), self._kernels.order
            )
            self.query_one("#top-categories", VirtualTable).show(
                self._categories.frame, columns_of("category", self._categories.frame), self._categories.order
            )

    def _draw_lines(self) -> None:
        if self._facts is None or not self.is_mounted:
            return
        facts = self.query_one("#facts", LineList)
        against = next(iter(self.explorer.baseline.notes), "") if self.explorer.baseline else ""
        writer = Writer(replace(self._facts, against=against), facts.palette, facts.look, max(facts.size.width - 1, 20))
        lines = [*writer.profile_lines(), *writer.findings()]
        facts.show(lines)
        self.query_one("#overview-top").styles.height = min(len(lines), max(self.size.height - 6, 4)) + (2 if self._is_framed() else 0)
        self.query_one("#warnings", LineList).show([writer.warnings()])
        bars = self.query_one("#step-bars", LineList)
        bars.show(self._step_lines(bars))

    def _is_framed(self) -> bool:
        return self.screen.has_class("-wide")

    def _step_lines(self, bars: LineList) -> list[Line]:
        rows = self.opened.steps
        longest = max((row.dur_us for row in rows), default=0.0)
        several = len({row.rank for row in rows}) > 1
        labels = [(f"rank {row.rank} " if several else "") + row.name.rsplit("#", 1)[-1][:12] for row in rows]
        wide = max(map(len, labels), default=0)
        cells = max(bars.size.width - wide - 16, 8)
        lines = []
        for row, number, label in zip(rows, self.opened.numbers_of_rows, labels, strict=True):
            mark = " " if row.steady else "*"
            pieces = [
                (f" {label:>{wide}}{mark} ", bars.palette.muted),
                *stacked_step(row, cells, longest, bars.palette, bars.look),
                (f" {duration_us(row.dur_us):>9}", bars.palette.text),
            ]
            lines.append(Line(pieces, Target("steps", step=None if number is None else str(number))))
        return lines or [Line([("no steps are marked in this profile", bars.palette.muted)], rests=False)]
