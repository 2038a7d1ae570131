"""JSON of contract.md: strict, unknown is null, and no number is infinite or undefined."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

if TYPE_CHECKING:
    from roofterm.report.triage import Report
    from roofterm.results import DeviceInfo, Roofline, RooflineRow, ScopeUse

_UNSAFE = re.compile("[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
"""What JSON may hold as it is but a terminal must not get: all of it can only stand inside a string."""

_RAW = ("shapes",)
"""Columns that hold JSON already."""


def report_json(report: Report) -> bytes:
    body = {
        "schema": "roofterm.report/1",
        "source": report.source,
        "summary": report.summary,
        "warnings": report.warnings,
        "devices": report.devices,
        "recorded": report.recorded,
        "scope": report.scope,
        "steps": report.steps,
        "steps_told_by": report.steps_told_by,
        "launch_path": report.launch_path,
        "graphs": report.graphs,
        "host_balance": report.host_balance,
        "memory": report.memory,
        "ranks": report.ranks,
        "xla": report.xla,
        "tables": {name: rows_of(table) for name, table in report.tables.items()},
        "roofline": report.roofline,
        "findings": report.findings,
    }
    return encode(body)


def roofline_json(
    device: DeviceInfo | None, scope: str, found: Roofline, rows: Sequence[RooflineRow], use: ScopeUse | None = None
) -> bytes:
    """Rows of a roofline with the roofs that they are held against; `scope` says in words what they speak of, `use` how busy it was."""
    head = {
        "schema": "roofterm.roofline/1",
        "device": device.name if device is not None else None,
        "scope": scope,
        "coverage": found.coverage,
        "use": use,
        "roofs": found.roofs,
        "ridge": device.ridge if device is not None else {},
    }
    return encode({**head, "rows": [msgspec.to_builtins(row) for row in rows]})


def rows_of(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows as records; what is no number is null."""
    return [{name: _value(name, value) for name, value in row.items()} for row in table.iter_rows(named=True)]


def encode(body: object) -> bytes:
    text = msgspec.json.format(msgspec.json.encode(body), indent=1)  # what is infinite or no number is written as null
    return _UNSAFE.sub(_escaped, text.decode()).encode() + b"\n"


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _value(name: str, value: Any) -> Any:
    if name in _RAW and isinstance(value, str):
        return msgspec.json.decode(value)
    return value
