"""Markdown tables, for an issue or a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from roofterm.report.fields import Column, shown
from roofterm.report.ops_columns import table_columns

if TYPE_CHECKING:
    from roofterm.report.triage import Report


def markdown_table(rows: pl.DataFrame | Sequence[dict[str, Any]], columns: Sequence[Column]) -> list[str]:
    """Lines of a pipe table; columns that say nothing are left out."""
    records = list(rows.iter_rows(named=True)) if isinstance(rows, pl.DataFrame) else list(rows)
    used = shown(columns, records)
    lines = ["| " + " | ".join(c.title for c in used) + " |", "|" + "|".join("---:" if c.right else "---" for c in used) + "|"]
    lines += ["| " + " | ".join(_cell(c.text(r.get(c.name))) for c in used) + " |" for r in records]
    return lines


def report_markdown(report: Report, head: list[str]) -> list[str]:
    """The report: `head` (the text report's own lines before its tables) as a code block, then the tables."""
    lines = ["```", *head, "```"]
    for name, by in (("kernels", "kernel"), ("ops", "op"), ("categories", "category")):
        if report.tables[name].height:
            lines += [
                "",
                f"### {name.capitalize()} ({report.scope})",
                "",
                *markdown_table(report.tables[name], table_columns(by, report.tables[name])),
            ]
    return lines


def _cell(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`").replace("<", "&lt;")
    return escaped.replace("[", "\\[").replace("_", "\\_").replace("*", "\\*")
