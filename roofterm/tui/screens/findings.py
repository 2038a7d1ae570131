"""Findings: what to fix first, by the time at stake; `enter` opens the view and filter that show the evidence."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import polars as pl
from textual.app import ComposeResult
from textual.containers import Vertical

from roofterm.analysis.filters import Filter, parse
from roofterm.analysis.findings import rules
from roofterm.analysis.scope import Scope
from roofterm.analysis.study import Study
from roofterm.report.evidence import evidence_of
from roofterm.results import Finding
from roofterm.text.units import count, duration_us, pct
from roofterm.tui.columns import definition
from roofterm.tui.finding_notes import finding_notes, questions, seen_in
from roofterm.tui.finding_target import target_of
from roofterm.tui.frames import findings_frame
from roofterm.tui.opened import Opened
from roofterm.tui.rows import chosen_rows, place_of
from roofterm.tui.state import Selection, Sort, ViewState, without_rank
from roofterm.tui.table_page import TablePage
from roofterm.tui.widgets.detail import Details, Fact
from roofterm.tui.widgets.line_widget import Piece
from roofterm.tui.widgets.noted_table import NotedTable
from roofterm.tui.widgets.table_layout import Column

NOTHING_FOUND = "nothing found that would be worth the time: see the roofline for what is left"


class FindingsPage(TablePage):
    SCREEN = "findings"
    NATURAL = Sort("time_at_stake_us")

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._findings: list[Finding] = []
        self._part = ""
        self._not_asked = ""

    def compose(self) -> ComposeResult:
        with Vertical(id="findings-panel", classes="framed") as main:
            main.border_title = "What to fix first"
            yield NotedTable("findings-table", self._notes, NOTHING_FOUND, self._asked_in_vain)

    def key(self, state: ViewState) -> Hashable:
        return (self.scope(state, "steady"), without_rank(state.filter), state.sorts.get(self.by))

    async def load(self, state: ViewState) -> None:
        scope, sort = self.scope(state, "steady"), state.sorts.get(self.by)
        study = self.opened.study
        self._findings, frame, self._part = await self.explorer.app_.desk.ask(lambda: self._ask(study, scope))
        self._not_asked = parse(without_rank(state.filter)).text
        before = self.selection()
        rows = chosen_rows(frame, Filter(), sort)
        self.show_rows(rows, sort, place_of(rows, "id", before.name if before else None))

    def settle(self, state: ViewState) -> None:
        chosen = state.selection
        place = place_of(self.rows, "id", chosen.name) if self.rows and chosen and chosen.kind == "finding" else None
        self.table.go(state.places.get(self.SCREEN, self.table.cursor) if place is None else place)

    def columns(self, frame: pl.DataFrame) -> Sequence[Column]:
        """A share is not always one of a step: start-up costs are held against the profile, and some profiles mark no steps."""
        of_steps = all(finding.evidence.get("per", "step") == "step" for finding in self._findings)
        known = super().columns(frame)
        return known if of_steps else [replace(one, label="share") if one.key == "share_of_step_pct" else one for one in known]

    def status(self) -> tuple[str, str]:
        if self.rows is None:
            return "judging ...", ""
        found = len(self._findings)
        said = f"{count(found)} finding{'s' if found != 1 else ''}" if found else "no finding"
        parts = [f"{said} from {len(rules())} questions", self._part]
        if self._not_asked:
            parts.insert(0, f"not asked here: {self._not_asked}")
        return " · ".join(parts), self.cursor_text()

    def selection(self) -> Selection | None:
        finding = self._finding()
        return None if finding is None else Selection("finding", finding.id)

    def details(self) -> Details | None:
        finding = self._finding()
        asked = unanswered(self._findings)
        if finding is None:
            return Details("Nothing found that would be worth the time", asked) if self.rows is not None else None
        details = finding_details(finding)
        return Details(details.title, [*details.facts, *asked])

    def action_open(self) -> None:
        finding = self._finding()
        if finding is None:
            self.explorer.notice("nothing is found here")
        elif (target := target_of(finding, self.opened.first_table)).screen == "overview":
            self.explorer.show_details()  # it speaks of the whole file: no other screen shows more of it
        elif target.screen not in self.opened.pages:
            self.explorer.action_screen(target.screen)
        else:
            self.explorer.follow(target)

    def sort(self, sort: Sort) -> None:
        self.explorer.select(self.selection())
        super().sort(sort)

    def _ask(self, study: Study, scope: Scope) -> tuple[list[Finding], pl.DataFrame, str]:
        found = study.findings(scope)
        frame = self.against(self.by, findings_frame(found), lambda base: findings_frame(base.findings()))
        return found, frame, study.selection(scope).text

    def _notes(self, row: int, width: int) -> list[list[Piece]]:
        return finding_notes(self._findings[row], width, self.table.palette, self.table.look) if row < len(self._findings) else []

    def _asked_in_vain(self, width: int) -> list[list[Piece]]:
        return questions([rule.question for rule in rules().values()], width, self.table.palette, self.table.look)

    def _finding(self) -> Finding | None:
        at = self.table.row_id()
        return self._findings[at] if at is not None and at < len(self._findings) else None


def unanswered(findings: Sequence[Finding]) -> list[Fact]:
    """The rules that were asked and found nothing, by id: that a thing is no matter is an answer too."""
    found = {finding.id for finding in findings}
    return [Fact("Asked too, and nothing found"), *(Fact(rule.id, rule.question) for rule in rules().values() if rule.id not in found)]


def finding_details(finding: Finding) -> Details:
    """What to do, then the evidence by its names, then the rule: what it asks and how it judges."""
    stake = duration_us(finding.time_at_stake_us)
    if finding.share_of_step_pct is not None:
        stake += f", {pct(finding.share_of_step_pct)} of the {finding.evidence.get('per', 'step')}"
    facts = [
        Fact("severity", finding.severity),
        Fact("at stake", stake, definition("time_at_stake_us")),
        Fact("to do", finding.advice),
        Fact("Evidence"),
        *(Fact(one.label, one.text, definition(one.name)) for one in evidence_of(finding.evidence)),
    ]
    where = seen_in(finding)
    if where:
        facts.append(Fact("seen in", where))
    rule = rules().get(finding.id)
    if rule is not None:
        facts += [Fact("Rule"), Fact("asks", rule.question), Fact("judges", f"{rule.definition} [{rule.source}]"), Fact("id", finding.id)]
    return Details(finding.title, facts)
