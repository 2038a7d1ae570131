"""Ops: kernels and their launches, host and framework ops, categories, modules, HLO, collectives, gaps, iterations as tables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from roofterm.analysis.filters import parse
from roofterm.analysis.modules import PREFIX as MODULE_PREFIX
from roofterm.analysis.op_groups import COLUMNS, untold
from roofterm.report.ops_columns import NESTING
from roofterm.tui.columns import NOUNS, TABLES, row_details
from roofterm.tui.exporting import Export, rows_export
from roofterm.tui.kernel_origins import compiled_from
from roofterm.tui.opened import Opened
from roofterm.tui.rows import Rows, is_sortable, place_of, table_rows
from roofterm.tui.state import Selection, Sort, ViewState, changed
from roofterm.tui.table_page import TablePage
from roofterm.tui.widgets.detail import DetailPanel, Details, Fact, MoreDetails
from roofterm.tui.widgets.table import VirtualTable
from roofterm.tui.widgets.view_strip import ViewStrip
from roofterm_parsers.profile import Profile

ORDER = ("kernel", "launch", "op", "framework", "category", "module", "hlo", "collective", "gap", "iteration", "counter")
BY_SELF = ("op", "framework")
ALWAYS_SHOWN = 2
"""priority of the columns that hardly ever give way"""
SCOPED = r"/[^/()]+/"
"""of a framework op's path a part that names a scope of the model: no transformation, and not the op itself"""
NAMELESS = ("gap", "launch", "framework", "counter")
"""tables whose rows share names, so that a name selects none of them"""

GROUPS = {"shape": "input shapes", "stack": "Python stack", "module": "module"}
"""What host ops can be split by, and its name."""
_SHORT = {"launch": "launches", "framework": "framework", "hlo": "HLO"}
"""Names of tables that are shorter than what their rows are called."""


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
                yield ViewStrip("ops-views")
                yield VirtualTable("ops-table", f"nothing here passes the filter; {self.all_again}")
            with Vertical(classes="side") as side:
                side.border_title = "Details"
                yield DetailPanel("ops-details", definitions=False)

    def key(self, state: ViewState) -> Hashable:
        return (state.by, self._group(state), state.filter, state.step, state.window_ps, state.infeed, state.sorts.get(state.by))

    async def load(self, state: ViewState) -> None:
        sort = state.sorts.get(state.by, self._first_sort(state.by))
        likely = self.sortable() if state.by == self.by else []
        group = self._group(state)
        rows, self._part = await self.explorer.app_.desk.ask(lambda: self._ask(state, sort, likely, group))
        self.by = state.by
        if group and (why := untold(rows.frame, group, self.opened.study.is_torch)):
            self.explorer.notice(why)
        panel, title = self.query_one("#ops-panel"), NOUNS[state.by].capitalize()
        if panel.border_title != title:
            panel.border_title = title
        at = self._views.index(self.by) if self.by in self._views else 0
        views = [_SHORT.get(view, NOUNS[view]) for view in self._views]
        self.query_one(ViewStrip).show(views, at, f"by {GROUPS[group]}" if group else "")
        named = state.selection.name if state.selection and self.by not in NAMELESS else None
        self.show_rows(rows, sort, place_of(rows, "name", named))
        if group:
            kept = [replace(c, priority=0) if c.key == COLUMNS[group] else c for c in self.table.columns]
            self.table.show(rows.frame, kept, rows.order, sort, self.table.cursor)

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
        if row is not None and self.by == "launch":
            return Selection("kernel", str(row["name"]))  # of which it is one way of launching
        return None if row is None or self.by in NAMELESS else Selection(self.by, str(row["name"]), op=row.get("launched_by"))

    def details(self) -> Details | None:
        row = self.table.row()
        if row is None:
            return None
        grouped = self._group(self.explorer.state) is not None
        called = Fact("called from", f"{self.key_of('group')} splits host ops by Python stack, module or shapes")
        return row_details(self.by, row, [called] if self.by == "op" and self.opened.study.is_torch and not grouped else [])

    def more_details(self) -> MoreDetails | None:
        row, study = self.table.row(), self.opened.study
        if row is None or self.by != "kernel" or not study.profile.hlo.height:
            return None
        return lambda _: compiled_from(study, str(row["name"]))

    def export(self) -> Export | None:
        return None if self.rows is None else rows_export(NOUNS[self.by], self.rows, {"schema": "roofterm.ops/1", "by": self.by})

    def _first_sort(self, by: str) -> Sort | None:
        if by == "counter":
            return None  # as they come: by what they are counted for
        own = by in BY_SELF or (by in NESTING and self.opened.study.nests)
        return Sort("self_us" if own else "total_us")

    def _group(self, state: ViewState) -> str | None:
        """What host ops are split by; only PyTorch's profiler tells enough of them."""
        group = state.views.get(self.SCREEN)
        return group if state.by == "op" and group in GROUPS and self.opened.study.is_torch else None

    def _ask(self, state: ViewState, sort: Sort | None, likely: Sequence[str], group: str | None) -> tuple[Rows, str]:
        """The rows and what part of the profile they speak of; `likely` are columns by which they may be sorted next."""
        study = self.opened.study
        self._views = self._views or views_of(study.profile, bool(study.work.height), bool(self.opened.summary.comm_us))
        scope = self.scope(state, "all")
        rows = table_rows(study, state.by, scope, parse(state.filter), sort, self.opened.book, self.explorer.baseline, group)
        always = [c.key for c in TABLES[state.by] if c.priority <= ALWAYS_SHOWN and is_sortable(rows.frame, c.key)]
        self.opened.book.prepare(rows.frame, [*always, *likely])
        return rows, study.selection(scope).text

    def action_view(self, by: int) -> None:
        known = self._views or list(ORDER)
        at = (known.index(self.by) + by) % len(known) if self.by in known else 0
        self.explorer.change(changed(self.explorer.state, by=known[at]))

    def action_group(self, by: int) -> None:
        state = self.explorer.state
        if state.by != "op" or not self.opened.study.is_torch:
            told = "of PyTorch's profiler" if state.by == "op" else f"({self.key_of('view')})"
            self.explorer.notice(f"only host ops {told} can be split by shapes, stack or module")
            return
        ring: list[str] = ["", *GROUPS]
        now = self._group(state) or ""
        group = ring[(ring.index(now) + by) % len(ring)]
        self.explorer.change(changed(state, views={**state.views, self.SCREEN: group}))

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


def views_of(profile: Profile, works: bool = True, communicates: bool = True) -> list[str]:
    """The tables that a profile can have rows for: modules only if something names them, HLO only of compiled programs, ..."""
    absent = set() if profile.hlo_ops.height else {"hlo", "framework"}
    if not works:
        absent |= {"kernel", "category", "gap", "hlo", "framework"}
    if not works or not communicates:
        absent.add("collective")
    if profile.kernels["grid_x"].null_count() == profile.kernels.height:
        absent.add("launch")
    if not profile.counters.height:
        absent.add("counter")
    named = profile.names["text"].str.starts_with(MODULE_PREFIX).any()
    if not named and not profile.hlo_ops["framework_op"].str.contains(SCOPED).any():
        absent.add("module")
    return [view for view in ORDER if view not in absent]
