"""Ops: kernels and their launches, host and framework ops, categories, modules, HLO, collectives, gaps, iterations as tables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from roofterm.analysis.filters import parse
from roofterm.analysis.modules import PREFIX as MODULE_PREFIX
from roofterm.report.columns import NESTING
from roofterm.tui.columns import NOUNS, TABLES
from roofterm.tui.exporting import Export, rows_export
from roofterm.tui.opened import Opened
from roofterm.tui.rows import Rows, is_sortable, place_of, table_rows
from roofterm.tui.state import Selection, Sort, ViewState, changed
from roofterm.tui.table_page import TablePage
from roofterm.tui.widgets.detail import DetailPanel
from roofterm.tui.widgets.table import VirtualTable
from roofterm_parsers.profile import Profile

ORDER = ("kernel", "launch", "op", "framework", "category", "module", "hlo", "collective", "gap", "iteration", "counter")
BY_SELF = ("op", "framework")
ALWAYS_SHOWN = 2
"""priority of the columns that hardly ever give way"""
SCOPED = r"/[^/()]+/"
"""of a framework op's path a part that names a scope of the model: no transformation, and not the op itself"""
NAMELESS = ("gap", "launch", "framework", "counter")
"""tables whose rows share names, so that a name selects none of them"""


class OpsPage(TablePage):
    SCREEN = "ops"

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self.by = opened.first_table
        self._part = ""
        self._views: list[str] = []

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical(id="ops-panel", classes="framed"):
                yield VirtualTable("ops-table", "nothing here passes the filter; esc shows all, v shows another table")
            with Vertical(classes="side") as side:
                side.border_title = "Details"
                yield DetailPanel("ops-details", definitions=False)

    def key(self, state: ViewState) -> Hashable:
        return (state.by, state.filter, state.step, state.window_ps, state.infeed, state.sorts.get(state.by))

    async def load(self, state: ViewState) -> None:
        sort = state.sorts.get(state.by, self._first_sort(state.by))
        likely = self.sortable() if state.by == self.by else []
        rows, self._part = await self.explorer.app_.desk.ask(lambda: self._ask(state, sort, likely))
        self.by = state.by
        panel, title = self.query_one("#ops-panel"), NOUNS[state.by].capitalize()
        if panel.border_title != title:
            panel.border_title = title
        self.show_rows(rows, sort, place_of(rows, "name", state.selection.name if state.selection else None))

    def settle(self, state: ViewState) -> None:
        if self.rows is None:
            return
        chosen = state.selection if state.selection and state.selection.kind == self.by else None
        if chosen and chosen == self.selection():
            return  # where `load` has just put the cursor
        place = place_of(self.rows, "name", chosen.name) if chosen else None
        self.table.go(state.places.get(self.SCREEN, self.table.cursor) if place is None else place)

    def status(self) -> tuple[str, str]:
        if self.rows is None:
            return "", ""
        sort = self.table.sort
        label = next((c.label for c in self.table.columns if sort and c.key == sort.column), "")
        parts = [self.count_text(), self._part]
        if sort:
            parts.append(f"by {label} {'down' if sort.descending else 'up'}")
        if self.rows.not_asked:
            parts.insert(0, f"not asked here: {self.rows.not_asked}")
        return " · ".join(parts), self.cursor_text()

    def selection(self) -> Selection | None:
        row = self.table.row()
        return None if row is None or self.by in NAMELESS else Selection(self.by, str(row["name"]), op=row.get("launched_by"))

    def export(self) -> Export | None:
        return None if self.rows is None else rows_export(NOUNS[self.by], self.rows, {"schema": "roofterm.ops/1", "by": self.by})

    def _first_sort(self, by: str) -> Sort | None:
        if by == "counter":
            return None  # as they come: by what they are counted for
        own = by in BY_SELF or (by in NESTING and self.opened.study.nests)
        return Sort("self_us" if own else "total_us")

    def _ask(self, state: ViewState, sort: Sort | None, likely: Sequence[str]) -> tuple[Rows, str]:
        """The rows and what part of the profile they speak of; `likely` are columns by which they may be sorted next."""
        study = self.opened.study
        self._views = self._views or views_of(study.profile)
        scope = self.scope(state, "all")
        rows = table_rows(study, state.by, scope, parse(state.filter), sort, self.opened.book, self.explorer.baseline)
        always = [c.key for c in TABLES[state.by] if c.priority <= ALWAYS_SHOWN and is_sortable(rows.frame, c.key)]
        self.opened.book.prepare(rows.frame, [*always, *likely])
        return rows, study.selection(scope).text

    def action_view(self, by: int) -> None:
        known = self._views or list(ORDER)
        at = (known.index(self.by) + by) % len(known) if self.by in known else 0
        self.explorer.change(changed(self.explorer.state, by=known[at]))

    def action_tree(self) -> None:
        if not self.opened.study.profile.hlo_ops.height:
            self.explorer.notice("no compiled program (XLA) in this profile")
            return
        from roofterm.tui.screens.op_profile import OpProfileScreen

        self.app.push_screen(OpProfileScreen(self.opened.study, self.explorer.app_.desk, self.opened.options.keys), self._chosen)

    def _chosen(self, instruction: str | None) -> None:
        """Back from the tree, on the instruction that was chosen there."""
        if instruction is not None:
            self.explorer.change(changed(self.explorer.state, by="hlo", selection=Selection("hlo", instruction)))

    def sort(self, sort: Sort) -> None:
        self.explorer.select(self.selection())  # the cursor stays on its row
        super().sort(sort)


def views_of(profile: Profile) -> list[str]:
    """The tables that a profile can have rows for: modules only if something names them, HLO only of compiled programs, ..."""
    absent = set() if profile.hlo_ops.height else {"hlo", "framework"}
    if profile.kernels["grid_x"].null_count() == profile.kernels.height:
        absent.add("launch")
    if not profile.counters.height:
        absent.add("counter")
    named = profile.names["text"].str.starts_with(MODULE_PREFIX).any()
    if not named and not profile.hlo_ops["framework_op"].str.contains(SCOPED).any():
        absent.add("module")
    return [view for view in ORDER if view not in absent]
