"""`roofterm roofline A B --label a --label b`: several profiles on one roof, one table with a column for the profile."""

from __future__ import annotations

import copy
from typing import NamedTuple

import msgspec
import polars as pl

from roofterm.analysis.filters import FilterError, parse
from roofterm.analysis.row_filter import row_predicate
from roofterm.analysis.scope import ScopeError
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.output import width, write
from roofterm.cli.report import explain
from roofterm.cli.selecting import scope_of
from roofterm.cli.tabular import ordered
from roofterm.report.as_json import encode
from roofterm.report.as_markdown import markdown_table
from roofterm.report.columns import PROFILE
from roofterm.report.files import csv_bytes
from roofterm.report.plain_table import plain_table
from roofterm.report.roofline_head import coverage_lines, roof_lines
from roofterm.report.roofline_table import level_rows, roofline_frame
from roofterm.results import Coverage, DeviceInfo, Roof, RooflineRow
from roofterm.text.safe import safe_text
from roofterm.text.units import count

MOST, MOST_TEXT = 1000, 20


class Labelled(NamedTuple):
    """One profile of several."""

    label: str
    path: str
    device: DeviceInfo | None
    scope: str
    coverage: Coverage
    roofs: list[Roof]
    rows: list[RooflineRow]


def several(args: Arguments) -> int:
    """Each PATH a profile of its own under its label; all held against their own devices, drawn under the first one's roofs."""
    if len(args.label) != len(args.paths):
        raise UsageError(f"--label: give one for each profile; there are {len(args.paths)} profiles and {len(args.label)} labels")
    if len(set(args.label)) != len(args.label):
        raise UsageError("--label: two profiles have the same label")
    if args.xprof:
        raise UsageError("--xprof speaks of one profile: leave out --label")
    try:
        profiles = [_labelled(args, path, label) for path, label in zip(args.paths, args.label, strict=True)]
        frame = _frame(args, profiles)
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    top = args.top if args.top is not None else MOST_TEXT if args.format == "text" else MOST
    _give(args, profiles, frame, top or frame.height)
    return DONE


def _labelled(args: Arguments, path: str, label: str) -> Labelled:
    alone = copy.copy(args)
    alone.paths = [path]
    study, scope = study_of(alone).roofed, scope_of(args, "steady")
    found = study.roofline(scope, 0)
    rows = level_rows(study, scope, args.level)
    return Labelled(label, path, study.device, study.selection(scope).text, found.coverage, found.roofs, rows)


def _frame(args: Arguments, profiles: list[Labelled]) -> pl.DataFrame:
    """Rows of all profiles that the filter lets through: most time first, or in the order asked for."""
    parts = []
    for number, one in enumerate(profiles):
        frame = roofline_frame(one.rows).with_row_index("row").with_columns(profile=pl.lit(one.label), number=pl.lit(number))
        parts.append(frame.with_columns(module_path=pl.Series([row.module_path for row in one.rows], dtype=pl.String)))
    frame = pl.concat(parts)
    wanted = parse(args.where)
    if wanted:
        frame = frame.filter(row_predicate(wanted, frame.schema))
    return ordered(frame, args.sort or ("number:asc" if args.level == "program" else "time_us:desc"))


def _give(args: Arguments, profiles: list[Labelled], frame: pl.DataFrame, top: int) -> None:
    from roofterm.cli.roofline import columns_of, picture, plot

    shown = frame.head(top)
    chosen = [(profiles[number], profiles[number].rows[row]) for number, row in shown.select("number", "row").iter_rows()]
    if args.format == "json":
        first = profiles[0]
        told = [
            {"label": one.label, "path": one.path, "device": one.device.name if one.device else None, "scope": one.scope,
             "coverage": one.coverage, "roofs": one.roofs}
            for one in profiles
        ]  # fmt: skip
        head = {
            "schema": "roofterm.roofline/1",
            "device": first.device.name if first.device else None,
            "roofs": first.roofs,
            "profiles": told,
        }
        write(args, encode({**head, "rows": [{"profile": one.label, **msgspec.to_builtins(row)} for one, row in chosen]}))
        return
    table, columns = shown.drop("row", "number"), (PROFILE, *columns_of(args.level))
    drawn, path = _drawn(args, profiles, frame)
    labels = [one.label for one in profiles]
    if args.format == "csv":
        write(args, csv_bytes(table.select("profile", pl.exclude("profile"))))
    elif args.format == "markdown":
        write(args, markdown_table(table, columns))
    elif args.format == "svg":
        write(args, picture(drawn, profiles[0].roofs, f"{', '.join(labels)}: roofs of {_device(profiles[0])}", labels, path))
    else:
        lines = []
        for one in profiles:
            lines += coverage_lines(f"{safe_text(one.label)}: {_device(one)}, {one.scope}", one.coverage, width())
        lines += [*roof_lines(profiles[0].device, profiles[0].roofs, width()), *_of_other_devices(profiles)]
        lines += ["", *plot(args, drawn, profiles[0].roofs, labels, path), ""]
        lines += plain_table(table, (columns[1], columns[0], *columns[2:]), width())
        if top < frame.height:
            lines += ["", f"{count(top)} of {count(frame.height)} rows; --top 0 shows all"]
        write(args, lines)


def _drawn(args: Arguments, profiles: list[Labelled], frame: pl.DataFrame) -> tuple[list[RooflineRow], bool]:
    """The points, each in its profile's colour. Of programs only the whole of each, joined in the order of the profiles: a sweep."""
    every = [(profiles[number], profiles[number].rows[row]) for number, row in frame.select("number", "row").head(MOST).iter_rows()]
    if args.level == "program":
        totals = {one.label: row for one, row in reversed(every) if row.step == "Total"}
        every = [(one, totals[one.label]) for one in profiles if one.label in totals]
    return [msgspec.structs.replace(row, category=one.label) for one, row in every], args.level == "program"


def _device(one: Labelled) -> str:
    return "no device" if one.device is None else one.device.model or safe_text(one.device.name or "unknown device")


def _of_other_devices(profiles: list[Labelled]) -> list[str]:
    first = _device(profiles[0])
    others = [safe_text(one.label) for one in profiles if _device(one) != first]
    if not others:
        return []
    return [f"drawn are the roofs of {first}; shares of the roof are those of each profile's own device ({', '.join(others)}: another one)"]
