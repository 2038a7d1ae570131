"""`roofterm roofline PATH...`: the roofline as a table; with --xprof as XProf's own tool gives it."""

from __future__ import annotations

import msgspec

from roofterm.analysis.filters import FilterError, parse
from roofterm.analysis.roofline import level_records
from roofterm.analysis.row_filter import row_predicate
from roofterm.analysis.scope import Scope, ScopeError
from roofterm.analysis.study import Study
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import load, roofs_of, scope_of
from roofterm.cli.output import csv_bytes, width, write
from roofterm.cli.report import explain
from roofterm.cli.tabular import ordered
from roofterm.report.as_json import encode
from roofterm.report.as_markdown import markdown_table
from roofterm.report.columns import ROOFLINE_COLUMNS
from roofterm.report.plain_table import plain_table
from roofterm.results import Coverage, Roof, RooflineRow
from roofterm.text.units import count, pct
from roofterm.tui.frames import roofline_frame

MOST = 1000
"""rows without --top, as XProf has them"""

MOST_TEXT = 20


def run(args: Arguments) -> int:
    study = Study(load(args), roofs_of(args))
    if args.xprof:
        return _xprof(args, study)
    scope = scope_of(args, "steady")
    try:
        roofline = study.roofline(scope, 0)
        rows = _rows(study, scope, args.level)
        rows = _filtered(rows, args.where, args.sort)
        text = study.selection(scope).text
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    top = args.top if args.top is not None else MOST_TEXT if args.format == "text" else MOST
    shown = rows[:top] if top else rows
    _give(args, study, shown, len(rows), roofline.roofs, roofline.coverage, text)
    return DONE


def _rows(study: Study, scope: Scope, level: str) -> list[RooflineRow]:
    roofline = study.roofline(scope, 0)
    if level == "program":
        return [*roofline.program, *roofline.steps]
    if level == "op":
        return roofline.ops
    return level_records(study.profile, study.bounded(scope), study.facts, study.device, level, 0)


def _filtered(rows: list[RooflineRow], where: str, sort: str | None) -> list[RooflineRow]:
    """The rows that the filter lets through, in the order asked for."""
    frame = roofline_frame(rows).with_row_index("row")
    wanted = parse(where)
    if wanted:
        frame = frame.filter(row_predicate(wanted, frame.schema))
    return [rows[row] for row in ordered(frame, sort)["row"]]


def _give(args: Arguments, study: Study, rows: list[RooflineRow], all_rows: int, roofs: list[Roof], coverage: Coverage, scope: str) -> None:
    device = study.device
    if args.format == "json":
        head = {"schema": "roofterm.roofline/1", "device": device.name if device else None, "scope": scope, "coverage": coverage}
        write(args, encode({**head, "roofs": roofs, "rows": [msgspec.to_builtins(row) for row in rows]}))
        return
    frame = roofline_frame(rows)
    if args.format == "csv":
        write(args, csv_bytes(frame))
    elif args.format == "markdown":
        write(args, markdown_table(frame, ROOFLINE_COLUMNS))
    else:
        shares = (f"{pct(coverage.modelled_pct)} of busy time modelled", f"{pct(coverage.bytes_only_pct)} bytes only")
        lines = [f"{scope}: {', '.join(shares)}, {pct(coverage.unknown_pct)} unknown", ""]
        lines += plain_table(frame, ROOFLINE_COLUMNS, width())
        if len(rows) < all_rows:
            lines += ["", f"{count(len(rows))} of {count(all_rows)} rows; --top 0 shows all"]
        write(args, lines)


def _xprof(args: Arguments, study: Study) -> int:
    from roofterm.analysis.xprof.roofline import xprof_roofline

    try:
        table = xprof_roofline(study.profile, args.xprof)
    except ValueError as why:
        raise UsageError(f"--xprof {args.xprof}: {why}") from why
    write(args, encode(table))
    return DONE
