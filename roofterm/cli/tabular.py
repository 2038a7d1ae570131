"""How every command that answers with one table sorts it, cuts it and gives it in the format asked for."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import polars as pl

from roofterm.analysis.categories.short_names import with_short_names
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import UsageError
from roofterm.cli.output import width, write
from roofterm.report.as_markdown import markdown_table
from roofterm.report.fields import Column
from roofterm.report.files import csv_bytes, json_bytes
from roofterm.report.plain_table import plain_table
from roofterm.text.units import count


def answer(
    args: Arguments,
    table: pl.DataFrame,
    columns: Sequence[Column],
    head: dict[str, Any],
    most: int | None = None,
    notes: Sequence[str] = (),
    beside: Sequence[str] = (),
) -> None:
    """Write `table` in `args.format`: `head` are the keys of the JSON before `rows`, `notes` sentences below the table for people.

    `beside`: lines of another table, between the two.

    Without `--top`, `most` rows, else 20 in text and Markdown, 100 in JSON and CSV. Raises UsageError for `--sort`.
    """
    table = ordered(table, args.sort)
    top = args.top if args.top is not None else most if most is not None else 20 if args.format in ("text", "markdown") else 100
    shown = with_short_names(table.head(top) if top else table)
    content = _shown(args, shown, columns, head, table.height)
    if isinstance(content, list):
        content = [*content, *beside, *(["", *folded(notes)] if notes else [])]
    write(args, content)


def folded(notes: Sequence[str]) -> list[str]:
    """Sentences as lines of text that fit."""
    return [line for note in notes for line in wrap(note, width())]


def ordered(table: pl.DataFrame, sort: str | None) -> pl.DataFrame:
    """The table sorted by "COLUMN", "COLUMN:asc" or "COLUMN:desc" (numbers fall, text rises by default); unknown values last."""
    if sort is None:
        return table
    name, _, way = sort.partition(":")
    if name not in table.columns or way not in ("", "asc", "desc"):
        raise UsageError(f"--sort {sort}: the columns are {', '.join(table.columns)}, each with :asc or :desc")
    falls = way == "desc" if way else table.schema[name].is_numeric()
    if name == "short_name":
        table = with_short_names(table)
    return table.sort(name, descending=falls, nulls_last=True, maintain_order=True)


def _shown(args: Arguments, table: pl.DataFrame, columns: Sequence[Column], head: dict[str, Any], rows: int) -> bytes | list[str]:
    if args.format == "json":
        return json_bytes(table, head)
    if args.format == "csv":
        return csv_bytes(table)
    if args.format == "markdown":
        return markdown_table(table, columns)
    lines = plain_table(table, columns, width())
    if table.height < rows:
        lines += ["", f"{count(table.height)} of {count(rows)} rows; --top 0 shows all"]
    return lines
