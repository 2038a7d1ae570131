"""`roofterm roofline PATH...`: the roofline as a plot and a table; with --xprof as XProf's own tool gives it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import polars as pl

from roofterm.analysis.filters import FilterError, parse
from roofterm.analysis.row_filter import row_predicate
from roofterm.analysis.scope import Scope, ScopeError
from roofterm.analysis.scope_use import scope_use
from roofterm.analysis.study import Study
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.output import width, write
from roofterm.cli.report import explain
from roofterm.cli.selecting import scope_of
from roofterm.cli.several import several
from roofterm.cli.tabular import ordered
from roofterm.report.as_json import roofline_json
from roofterm.report.as_markdown import markdown_table
from roofterm.report.columns import MODULE_COLUMNS, PROGRAM_COLUMNS, ROOFLINE_COLUMNS
from roofterm.report.fields import Column
from roofterm.report.files import csv_bytes
from roofterm.report.plain_table import plain_table
from roofterm.report.roofline_head import coverage_lines, roof_lines, use_lines
from roofterm.report.roofline_svg import roofline_svg
from roofterm.report.roofline_table import level_rows, roofline_frame
from roofterm.results import Roof, Roofline, RooflineRow
from roofterm.text.units import count
from roofterm.tui.capabilities import probe

MOST = 1000
"""rows without --top, as XProf has them"""

MOST_TEXT = 20

PLOT_WIDTH, PLOT_HEIGHT = 110, 22


def run(args: Arguments) -> int:
    if args.label:
        return several(args)
    study = study_of(args).roofed
    scope = scope_of(args, "steady")
    try:
        roofline = study.roofline(scope, 0)
        rows = level_rows(study, scope, args.level)
        rows = _filtered(rows, args.where, args.sort)
        text = study.selection(scope).text
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    top = args.top if args.top is not None else MOST_TEXT if args.format == "text" else MOST
    _give(args, study, rows, top or len(rows), roofline, scope, text)
    return DONE


def _filtered(rows: list[RooflineRow], where: str, sort: str | None) -> list[RooflineRow]:
    """The rows that the filter lets through, in the order asked for."""
    frame = roofline_frame(rows).with_row_index("row")
    wanted = parse(where)
    if wanted:
        frame = frame.filter(row_predicate(wanted, frame.schema))
    return [rows[row] for row in ordered(frame, sort)["row"]]


def columns_of(level: str) -> tuple[Column, ...]:
    """Columns of a level's table for people."""
    return {"program": PROGRAM_COLUMNS, "module": MODULE_COLUMNS}.get(level, ROOFLINE_COLUMNS)


def _give(args: Arguments, study: Study, rows: list[RooflineRow], top: int, found: Roofline, scope: Scope, text: str) -> None:
    device = study.device
    if args.format == "json":
        write(args, roofline_json(device, text, found, rows[:top], scope_use(study, scope)))
        return
    if args.format == "svg":
        write(args, picture(rows[:top], found.roofs, f"{_file_names(args)} by {args.level}, {text}"))
        return
    frame, columns = roofline_frame(rows[:top]), columns_of(args.level)
    if args.level == "module":
        frame = frame.with_columns(module_path=pl.Series([row.module_path for row in rows[:top]], dtype=pl.String))
    if args.format == "csv":
        write(args, csv_bytes(frame))
    elif args.format == "markdown":
        write(args, markdown_table(frame, columns))
    else:
        lines = [*coverage_lines(text, found.coverage, width()), *use_lines(scope_use(study, scope), device, width())]
        lines += [*roof_lines(device, found.roofs, width()), "", *plot(args, rows[:MOST], found.roofs), ""]
        lines += plain_table(frame, columns, width())
        if top < len(rows):
            lines += ["", f"{count(top)} of {count(len(rows))} rows; --top 0 shows all"]
        write(args, lines)


def _file_names(args: Arguments) -> str:
    return ", ".join(os.path.basename(path.rstrip("/")) or path for path in args.paths)


def picture(
    rows: Sequence[RooflineRow], roofs: Sequence[Roof], title: str, names: Sequence[str] | None = None, path: bool = False
) -> bytes:
    """The plot as SVG, on white: `names` and `path` as in `plot`."""
    from roofterm.tui.category_colours import category_key
    from roofterm.tui.widgets.plain_plot import lettered

    key = category_key("light") if names is None else lettered(names)

    def colour(category: str | None) -> str:
        found = key.colour(key.code(category))
        return found if found.startswith("#") else "#57606a"

    return roofline_svg(rows, roofs, title, colour, path)


def plot(
    args: Arguments, rows: list[RooflineRow], roofs: Sequence[Roof], names: Sequence[str] | None = None, path: bool = False
) -> list[str]:
    """The rows among their roofs; drawn in ASCII and without colour where the terminal cannot show more.

    `names`: the rows' categories, a letter each in this order, where they are none of the usual; `path` joins the points.
    """
    from roofterm.tui.category_colours import category_key
    from roofterm.tui.widgets.glyphs import Look
    from roofterm.tui.widgets.plain_plot import lettered, plain_plot

    terminal = args.output is None and sys.stdout.isatty()
    can = probe(ascii_only=args.ascii, no_color=args.no_color)
    plain = args.ascii or (args.output is None and can.glyphs == "ascii")
    look = Look("ascii" if plain else "braille", colour=terminal and can.colour != "none")
    key = category_key("dark") if names is None else lettered(names)
    return plain_plot(rows, roofs, key, width=min(width(), PLOT_WIDTH), height=PLOT_HEIGHT, look=look, path=path).splitlines()
