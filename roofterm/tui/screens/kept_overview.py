"""The Overview from figures that were kept, while the profile is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Container
from textual.events import Resize

from roofterm.tui.columns import LAST, TABLES
from roofterm.tui.kept_figures import KeptFigures, KeptTable
from roofterm.tui.overview_lines import Facts
from roofterm.tui.overview_parts import LOW, Tabled, compose_parts, draw_lines, draw_tables
from roofterm.tui.widgets.table import VirtualTable
from roofterm.tui.widgets.table_layout import Column


class KeptOverview(Container):
    DEFAULT_CSS = "KeptOverview { height: 1fr; }"

    def __init__(self, kept: KeptFigures) -> None:
        super().__init__()
        self._kept = kept

    def compose(self) -> ComposeResult:
        yield from compose_parts(self._kept.first_table)

    def on_mount(self) -> None:
        kept = self._kept
        if kept.outline:
            for table in self.query(VirtualTable):
                table.empty = "adding up ..."
        draw_tables(self, _tabled(TABLES[kept.first_table], kept.kernels), _tabled(TABLES["category"], kept.categories))

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.height < LOW, "-short")
        self.call_after_refresh(self._draw_lines)

    def _draw_lines(self) -> None:
        k = self._kept
        seen = (k.sources, k.warnings, k.mended, k.summary, k.devices, k.steps, k.digest)
        known = Facts(*seen, k.coverage, k.findings, k.balance, k.launch_path, k.phases, outline=k.outline, xla=k.xla)
        draw_lines(self, known, k.numbers_of_rows)


def _tabled(columns: Sequence[Column], table: KeptTable) -> Tabled:
    """The first rows, as long as the whole table; columns in which nothing is known give way before all others."""
    known = table.first.columns
    shown = [replace(column, priority=LAST) if column.priority and column.key not in known else column for column in columns]
    return Tabled(table.first, shown, range(table.rows))
