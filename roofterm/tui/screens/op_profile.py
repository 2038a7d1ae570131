"""XProf's op profile as a tree over the screen: programs, categories and ops with their time, use of the hardware and waste."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from textual.app import ComposeResult
from textual.binding import Binding, BindingsMap

from roofterm.analysis.xprof.op_profile import Grouping, xprof_op_profile
from roofterm.analysis.xprof.op_profile_rows import op_profile_rows
from roofterm.analysis.xprof.peaks import VERSIONS
from roofterm.text.units import count
from roofterm.tui import keymap
from roofterm.tui.columns import columns_of
from roofterm.tui.screens.sheet import Sheet
from roofterm.tui.widgets.sheet import SheetFooter, SheetTitle
from roofterm.tui.widgets.table import VirtualTable

if TYPE_CHECKING:
    from roofterm.analysis.study import Study
    from roofterm.tui.desk import Desk

GROUPINGS: tuple[Grouping, ...] = ("category", "program", "provenance")
OPEN_AT_FIRST = 1
"""nodes of less depth are open"""


class OpProfileScreen(Sheet["str | None"]):
    """Gives the instruction on which `enter` was pressed, or None."""

    CLOSES = ("clear", "back", "quit")

    def __init__(self, study: Study, desk: Desk, keys: Mapping[str, str]) -> None:
        super().__init__(keys)
        self._study, self._desk = study, desk
        self._grouping = 0
        self._rows: pl.DataFrame | None = None
        self._opened: set[str] = set()
        own = {"view": "grouping(1)", "view.back": "grouping(-1)", "open": "choose"}
        actions = [action for action in keymap.with_keys(keys) if action.id in own]
        added = [Binding(",".join(map(keymap.long_key, a.keys.split())), own[a.id], show=False) for a in actions]
        self._bindings = BindingsMap.merge([self._bindings, BindingsMap(added)])

    def compose(self) -> ComposeResult:
        yield SheetTitle("", id="profile-title")
        yield VirtualTable("profile-table", "no compiled program ran on a device here", least_name=30)
        right, left, choose, view, back = (keymap.first_key(name, self.keys) for name in ("right", "left", "open", "view", "clear"))
        told = ((f"{right} {left}", "open, close"), (choose, "chooses"), (view, "programs, categories, provenance"), (back, "returns"))
        yield SheetFooter(told)

    def on_mount(self) -> None:
        self.mover.focus()
        self._ask()

    @property
    def mover(self) -> VirtualTable:
        return self.query_one(VirtualTable)

    def action_move(self, columns: int, rows: int) -> None:
        """Sideways a node opens or closes; where it is closed already, to the one around it."""
        row = self.mover.row()
        if rows or row is None:
            self.mover.move(0, rows)
        elif columns > 0 and row["children"] and row["node"] not in self._opened:
            self._set_open(row["node"], True)
        elif columns < 0 and row["node"] in self._opened:
            self._set_open(row["node"], False)
        elif columns < 0 and row["depth"]:
            self._go_to(row["node"].rpartition("\t")[0])

    def action_choose(self) -> None:
        row = self.mover.row()
        if row is None:
            return
        if row["children"]:
            self._set_open(row["node"], row["node"] not in self._opened)
        else:
            self.dismiss(row["instruction"])

    def action_grouping(self, by: int) -> None:
        self._grouping = (self._grouping + by) % len(GROUPINGS)
        self._ask()

    def _ask(self) -> None:
        group = GROUPINGS[self._grouping]
        self.query_one("#profile-title", SheetTitle).show(f"Op profile by {group}: adding up ...")
        _ = self.run_worker(self._load(group), group="load-profile", exclusive=True)

    async def _load(self, group: Grouping) -> None:
        profile = self._study.profile
        self._rows = await self._desk.ask(lambda: op_profile_rows(xprof_op_profile(profile, VERSIONS[-1], group)))
        self._opened = set(self._rows.filter(pl.col("depth") < OPEN_AT_FIRST)["node"])
        told = f"Op profile by {group}, as XProf {VERSIONS[-1]} adds it up: {count(self._rows.height)} nodes"
        self.query_one("#profile-title", SheetTitle).show(told)
        self._show(0)

    def _set_open(self, node: str, is_open: bool) -> None:
        (self._opened.add if is_open else self._opened.discard)(node)
        self._show(self.mover.cursor)

    def _go_to(self, node: str) -> None:
        frame = self.mover.frame
        if frame is not None and (found := (frame["node"] == node).arg_true()).len():
            self.mover.go(int(found[0]))

    def _show(self, cursor: int) -> None:
        """The nodes all of whose ancestors are open, each set in by its depth with the sign of its state."""
        if self._rows is None:
            return
        rows = self._rows if self._rows.height > 1 else self._rows.head(0)
        closed, opened = ("+", "-") if self.mover.look.ascii else ("▸", "▾")
        visible, names = [], []
        for at, row in enumerate(rows.select("node", "depth", "children", "name").iter_rows(named=True)):
            parts = row["node"].split("\t")
            if all("\t".join(parts[:upto]) in self._opened for upto in range(1, len(parts))):
                sign = " " if not row["children"] else opened if row["node"] in self._opened else closed
                visible.append(at)
                names.append(f"{'  ' * row['depth']}{sign} {row['name']}")
        frame = rows[visible].with_columns(pl.Series("name", names), instruction=rows["name"].gather(visible))
        self.mover.show(frame, columns_of("op_profile", frame), np.arange(frame.height), None, cursor)
