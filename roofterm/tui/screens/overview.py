"""Overview: the first screen. Every line leads to its evidence."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.events import Resize

from roofterm.analysis.filters import parse
from roofterm.glossary import glossary
from roofterm.results import Finding, HostBalance, LaunchPath, PhaseTime, Roofline, XlaOverview
from roofterm.text.units import count
from roofterm.tui.columns import NOUNS, columns_of
from roofterm.tui.exporting import Export, rows_export
from roofterm.tui.keeping import figures_of, host_phases, mended, top_rows
from roofterm.tui.kept_figures import keep_figures
from roofterm.tui.messages import EdgeReached
from roofterm.tui.opened import Opened
from roofterm.tui.overview_lines import WARNINGS, XPROF, Facts
from roofterm.tui.overview_parts import LOW, PARTS, Tabled, compose_parts, draw_lines, draw_tables, first_table_text
from roofterm.tui.page import Page
from roofterm.tui.row_book import LARGE_ROWS
from roofterm.tui.rows import Rows
from roofterm.tui.state import Selection, ViewState, changed
from roofterm.tui.widgets.detail import Details, Fact
from roofterm.tui.widgets.line_widget import LineWidget
from roofterm.tui.widgets.lines import LineList
from roofterm.tui.widgets.table import VirtualTable
from roofterm.tui.xla_details import xla_details
from roofterm_parsers.profile import Warning


class Judged(NamedTuple):
    """What takes longer to find out than the first figures."""

    findings: list[Finding]
    roofline: Roofline
    warnings: list[Warning]
    balance: HostBalance | None
    launch_path: LaunchPath | None
    phases: list[PhaseTime]
    xla: XlaOverview | None


class OverviewPage(Page):
    SCREEN = "overview"

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._facts: Facts | None = None
        self._kernels: Rows | None = None
        self._categories: Rows | None = None
        self._part = ""

    def compose(self) -> ComposeResult:
        yield from compose_parts(self.opened.first_table)

    def key(self, state: ViewState) -> Hashable:
        return (state.filter, state.step, state.window_ps, state.infeed)

    async def load(self, state: ViewState) -> None:
        desk = self.explorer.app_.desk
        self._kernels, self._categories, self._part = await desk.ask(lambda: self._tables(state))
        self._draw_tables()
        if self._facts is None:
            self._facts = self._known(None)
            self._draw_lines()  # first what is there already, then what takes longer
            self._facts = self._known(await desk.ask(self._judged))
            whole = self.key(state) == self.key(ViewState()) and self.explorer.baseline is None
            if whole and self.opened.figures_key is not None:
                await desk.ask(self._keep)
            self.run_worker(self._look_ahead(), group="ahead")
        self._draw_lines()

    def focus_target(self) -> LineWidget:
        focused = self.screen.focused
        mine = focused is not None and focused in self.walk_children()
        return focused if mine and isinstance(focused, LineWidget) else self.query_one("#facts", LineList)

    def status(self) -> tuple[str, str]:
        if self._kernels is None:
            return "reading the figures ...", ""
        nests = self.opened.study.nests
        return first_table_text(self._part, self.opened.first_table, len(self._kernels.order), nests), ""

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
        self.set_class(event.size.height < LOW, "-short")
        self.call_after_refresh(self._draw_lines)

    @on(EdgeReached)
    def _pass_on(self, event: EdgeReached) -> None:
        """The cursor goes on in the next part."""
        shown = [part for part in PARTS if self.query_one(f"#{part}").region.area]
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
        elif line.target in (WARNINGS, XPROF):
            self.explorer.show_details()
        elif line.target.screen not in self.opened.pages:
            self.explorer.action_screen(line.target.screen)
        else:
            self.explorer.follow(line.target)

    def details(self) -> Details | None:
        """All warnings, the evidence of the lines about health; or all that XProf says, where the cursor is on a line of that."""
        focused = self.screen.focused
        line = focused.line() if isinstance(focused, LineList) else None
        if line is not None and line.target is XPROF and self._facts is not None and self._facts.xla is not None:
            return xla_details(self._facts.xla)
        warnings = self._facts.warnings if self._facts else []
        facts = [Fact(f"{warning.count} x", f"{warning.message} ({warning.code})") for warning in warnings]
        sources = [
            Fact("Files"),
            *(Fact(source.format, f"{source.path}: {count(source.events)} events") for source in self.opened.study.profile.sources),
        ]
        return Details("Health of this profile", [*(facts or [Fact("warnings", "none")]), *sources])

    def _tables(self, state: ViewState) -> tuple[Rows, Rows, str]:
        study, scope = self.opened.study, self.scope(state, "steady")
        return *top_rows(study, scope, parse(state.filter), self.opened.book, self.explorer.baseline), study.selection(scope).text

    def _judged(self) -> Judged:
        study = self.opened.study
        return Judged(
            study.findings(),
            study.roofline(),
            study.warnings(),
            study.host_balance(),
            study.launch_path(),
            host_phases(study),
            study.xla_overview(),
        )

    def _keep(self) -> None:
        """Keep what is shown for the next time that this profile is opened."""
        keep_figures(self.opened.figures_key, figures_of(self.opened.study))

    async def _look_ahead(self) -> None:
        """Work out what is looked at next, one thing after the other, unless it would keep the next question waiting."""
        study, by, desk = self.opened.study, self.opened.first_table, self.explorer.app_.desk
        await desk.ask(glossary)
        if self._kernels is not None and self._kernels.frame.height < LARGE_ROWS:
            await desk.ask(lambda: study.table(by, self.scope(ViewState(), "all")))
            if self.opened.steps:
                await desk.ask(lambda: study.phase_times([]))

    def _known(self, judged: Judged | None) -> Facts:
        """What is there already, and with it what is judged."""
        o = self.opened
        known = judged.warnings if judged and judged.warnings else o.study.profile.warnings
        facts = Facts(o.study.profile.sources, known, mended(o.study.profile.warnings), o.summary, o.devices, o.steps, o.digest, None, [])
        if judged is None:
            return facts
        return replace(
            facts,
            coverage=judged.roofline.coverage,
            findings=judged.findings,
            balance=judged.balance,
            launch_path=judged.launch_path,
            phases=judged.phases,
            xla=judged.xla,
        )

    def _draw_tables(self) -> None:
        if self._kernels is not None and self._categories is not None:
            draw_tables(self, _tabled(self.opened.first_table, self._kernels), _tabled("category", self._categories))

    def _draw_lines(self) -> None:
        if self._facts is not None and self.is_mounted:
            against = next(iter(self.explorer.baseline.notes), "") if self.explorer.baseline else ""
            draw_lines(self, replace(self._facts, against=against), self.opened.numbers_of_rows)


def _tabled(by: str, rows: Rows) -> Tabled:
    return Tabled(rows.frame, columns_of(by, rows.frame), rows.order)
