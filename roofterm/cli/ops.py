"""`roofterm ops PATH... --by kernel|op|category`: one table."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.filters import FilterError
from roofterm.analysis.scope import ScopeError
from roofterm.analysis.study import Study
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import load, roofs_of, scope_of
from roofterm.cli.output import csv_bytes, width, write
from roofterm.cli.report import explain
from roofterm.report.as_json import table_json
from roofterm.report.as_markdown import markdown_table
from roofterm.report.columns import TABLE_COLUMNS
from roofterm.report.plain_table import plain_table
from roofterm.text.units import count


def run(args: Arguments) -> int:
    if args.group and args.by != "op":
        raise UsageError("--group splits the rows of --by op")
    study = Study(load(args), roofs_of(args))
    try:
        table = study.table(args.by, scope_of(args, "all"), args.group)
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    table = ordered(table, args.sort)
    top = args.top if args.top is not None else 20 if args.format == "text" else 100
    shown = table.head(top) if top else table
    write(args, _shown(args, shown, table.height))
    return DONE


def ordered(table: pl.DataFrame, sort: str | None) -> pl.DataFrame:
    """The table sorted by "COLUMN", "COLUMN:asc" or "COLUMN:desc" (numbers fall, text rises by default); unknown values last."""
    if sort is None:
        return table
    name, _, way = sort.partition(":")
    if name not in table.columns or way not in ("", "asc", "desc"):
        raise UsageError(f"--sort {sort}: the columns are {', '.join(table.columns)}, each with :asc or :desc")
    falls = way == "desc" if way else table.schema[name].is_numeric()
    return table.sort(name, descending=falls, nulls_last=True, maintain_order=True)


def _shown(args: Arguments, table: pl.DataFrame, rows: int) -> bytes | list[str]:
    columns = TABLE_COLUMNS[args.by]
    if args.format == "json":
        return table_json(table, args.by)
    if args.format == "csv":
        return csv_bytes(table)
    if args.format == "markdown":
        return markdown_table(table, columns)
    lines = plain_table(table, columns, width())
    if table.height < rows:
        lines += ["", f"{count(table.height)} of {count(rows)} rows; --top 0 shows all"]
    return lines
