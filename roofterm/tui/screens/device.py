"""Device: what it is, how it was recognised, and every roof that figures are held against."""

from __future__ import annotations

from collections.abc import Hashable

import polars as pl
from textual.app import ComposeResult
from textual.containers import Container, Vertical

from roofterm.report.files import json_pieces
from roofterm.results import DeviceInfo
from roofterm.text.units import bytes_text, count
from roofterm.tui.exporting import Export, TableExport
from roofterm.tui.frames import roofs_frame
from roofterm.tui.rows import chosen_rows
from roofterm.tui.state import Selection, Sort, ViewState
from roofterm.tui.table_page import TablePage
from roofterm.tui.widgets.detail import DetailPanel, Details, Fact
from roofterm.tui.widgets.table import VirtualTable


class DevicePage(TablePage):
    SCREEN = "device"
    NATURAL = Sort("value")

    def compose(self) -> ComposeResult:
        with Container(id="device-split"):
            with Vertical(id="device-facts", classes="framed") as facts:
                facts.border_title = "Device"
                yield DetailPanel("device-details", definitions=False)
            with Vertical(classes="framed") as roofs:
                roofs.border_title = "Roofs"
                yield VirtualTable("device-table", "no roof is known for this device: give --device, --peak and --bandwidth", least_name=12)

    def key(self, state: ViewState) -> Hashable:
        return state.sorts.get(self.by)

    async def load(self, state: ViewState) -> None:
        devices = self.opened.devices
        self.query_one("#device-details", DetailPanel).show(device_details(devices))
        if devices:
            from roofterm.analysis.filters import Filter

            sort = state.sorts.get(self.by)
            rows = chosen_rows(
                roofs_frame(devices[0]), Filter(), Sort("rank", sort.descending) if sort and sort.column == "value" else sort
            )
            self.show_rows(rows, sort, self.table.cursor)

    def status(self) -> tuple[str, str]:
        many = len(self.opened.devices)
        return (f"{count(many)} devices of one kind" if many > 1 else "one device" if many else "only the host was recorded"), ""

    def selection(self) -> Selection | None:
        row = self.table.row()
        return None if row is None else Selection("roof", f"{row['name']} {row['value']}")

    def details(self) -> Details | None:
        return device_details(self.opened.devices)

    def export(self) -> Export | None:
        if not self.opened.devices:
            return None
        roofs = roofs_frame(self.opened.devices[0]).rename({"rank": "value_per_s"})
        return TableExport("roofs", lambda: roofs, lambda table: json_pieces(table, {"schema": "roofterm.device-roofs/1"}))

    def show_side(self) -> None:
        """Its facts do not follow the cursor."""

    def falls(self, frame: pl.DataFrame, column: str) -> bool:
        return column == "value" or super().falls(frame, column)  # its texts stand for numbers


def device_details(devices: list[DeviceInfo]) -> Details:
    """Everything said about the devices; those of one model once."""
    if not devices:
        return Details("No device", [Fact("note", "this profile holds no work of an accelerator, so there is no roof to hold it against")])
    first = devices[0]
    facts = [
        Fact("model", first.model or "unknown", "its entry in the table of hardware"),
        Fact("recognised", first.matched_by or "--", "how the profile's device was found in the table"),
        Fact("kind", first.kind),
        Fact("numbered", ", ".join(str(device.id) for device in devices), "the devices' numbers in the file"),
        Fact("units", count(first.units), "SMs, compute units or cores"),
        Fact("memory", bytes_text(first.memory_bytes)),
        Fact("roofs from", first.roofs_from or "--", "measured here, the vendor's figures, the trace, derived, or given by an option"),
        *(Fact("note", note) for note in first.notes),
    ]
    return Details(first.name or first.model or "unknown device", facts)
