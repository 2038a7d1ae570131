"""JSON of contract.md: strict, unknown is null, and no number is infinite or undefined."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from roofterm.results import Roofline

if TYPE_CHECKING:
    from roofterm.report.triage import Report

_RAW = ("shapes",)
"""Columns that hold JSON already."""


def report_json(report: Report) -> bytes:
    body = {
        "schema": "roofterm.report/1",
        "source": report.source,
        "summary": report.summary,
        "warnings": report.warnings,
        "devices": report.devices,
        "scope": report.scope,
        "steps": report.steps,
        "tables": {name: rows_of(table) for name, table in report.tables.items()},
        "roofline": report.roofline,
        "findings": report.findings,
    }
    return encode(body)


def roofline_json(roofline: Roofline, device: str | None) -> bytes:
    rows = [*roofline.program, *roofline.steps, *roofline.ops]
    return encode({"schema": "roofterm.roofline/1", "device": device, "coverage": roofline.coverage, "roofs": roofline.roofs, "rows": rows})


def rows_of(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows as records; what is no number is null."""
    return [{name: _value(name, value) for name, value in row.items()} for row in table.iter_rows(named=True)]


def encode(body: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(_finite(msgspec.to_builtins(body))), indent=1) + b"\n"


def _value(name: str, value: Any) -> Any:
    if name in _RAW and isinstance(value, str):
        return msgspec.json.decode(value)
    return value


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_finite(item) for item in value]
    return value
