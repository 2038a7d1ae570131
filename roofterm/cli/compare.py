"""`roofterm compare BASE NEW`: what changed; with `--fail-on` it ends with 3 where a limit is passed."""

from __future__ import annotations

import copy
import sys
from typing import TYPE_CHECKING, Any

import polars as pl

from roofterm.analysis.compare import Comparison, compare, unit_of
from roofterm.analysis.compare_notes import notes
from roofterm.analysis.conditions import Condition, ConditionError, fires, parse_condition
from roofterm.analysis.filters import FilterError
from roofterm.analysis.scope import ScopeError
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, FAILED_ON, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.output import width, write
from roofterm.cli.report import explain
from roofterm.cli.selecting import scope_of
from roofterm.cli.tabular import folded, ordered
from roofterm.report.as_json import encode, rows_of
from roofterm.report.as_markdown import markdown_table
from roofterm.report.changes import LEVEL_TITLES, change_texts
from roofterm.report.columns import CHANGE_COLUMNS
from roofterm.report.files import csv_bytes
from roofterm.report.plain_table import plain_table
from roofterm.text.safe import ascii_text, safe_text
from roofterm.text.units import count

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

TOP = 10
"""rows of each level in text and Markdown"""


def run(args: Arguments) -> int:
    base, new = (_study(args, path) for path in args.paths)
    try:
        found = compare(base, new, scope_of(args, "steady"))
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    failed = _failed(args.fail_on, found)
    write(args, _shown(args, found, failed))
    for condition in failed:
        print(f"roofterm: {_sentence(condition, found)}", file=sys.stderr)
    return FAILED_ON if failed else DONE


def _study(args: Arguments, path: str) -> Study:
    one = copy.copy(args)
    one.paths = [path]
    return study_of(one)


def _failed(texts: list[str], found: Comparison) -> list[Condition]:
    units = {name: unit_of(name) for name in found.facts}
    try:
        conditions = [parse_condition(text, units) for text in texts]
        return [condition for condition in conditions if fires(condition, *found.facts[condition.figure])]
    except ConditionError as why:
        raise UsageError(str(why)) from why


def _sentence(condition: Condition, found: Comparison) -> str:
    base, new = ("unknown" if value is None else f"{value:.10g}" for value in found.facts[condition.figure])
    return ascii_text(f"--fail-on {safe_text(condition.text)}: {condition.figure} was {base}, is {new}")


def _shown(args: Arguments, found: Comparison, failed: list[Condition]) -> bytes | list[str]:
    changes = ordered(found.changes, args.sort)
    if args.format in ("json", "csv"):
        top = args.top if args.top is not None else 100
        changes = _top_of_levels(changes, top) if top else changes
        if args.format == "csv":
            return csv_bytes(changes)
        head: dict[str, Any] = {
            "schema": "roofterm.compare/1",
            "base": {"path": args.paths[0], "scope": found.base_text, "device": found.base_device},
            "new": {"path": args.paths[1], "scope": found.new_text, "device": found.new_device},
            "per_step": found.per_step,
            "notes": notes(found),
            "failed": [condition.text for condition in failed],
        }
        return encode({**head, "rows": rows_of(changes)})
    top = args.top if args.top is not None else TOP
    lines = _head(args, found)
    for level, title in LEVEL_TITLES.items():
        lines += _section(args, changes.filter(pl.col("level") == level), level, title, top)
    return lines


def _head(args: Arguments, found: Comparison) -> list[str]:
    """What is compared, and what it comes to."""
    sides = [
        f"{side:<5}{safe_text(path)} ({', '.join(part for part in (device, text) if part)})"
        for side, path, device, text in zip(
            ("base", "new"), args.paths, (found.base_device, found.new_device), (found.base_text, found.new_text), strict=True
        )
    ]
    whose = "times of rows are those of one step" if found.per_step else "times are those of the whole files"
    told = [safe_text(note) for note in notes(found)]
    if args.format == "markdown":
        return [*(f"- {line}" for line in (*sides, *told)), "", f"Of tables: {whose}."]
    return [*sides, "", *folded(told), "", whose]


def _section(args: Arguments, rows: pl.DataFrame, level: str, title: str, top: int) -> list[str]:
    told = rows.filter(pl.col("status") != "unknown")
    anything = (pl.col("base") != 0) | (pl.col("new") != 0) if level == "step" else pl.col("status") != "same"
    told = told.filter(anything)
    if told.height == 0:
        return [] if rows.height == 0 else ["", f"{title}: no change"]
    if level != "step" and (told["status"] == "within spread").all():
        return ["", f"{title}: no change beyond the steps' spread"]
    taken = told if level == "step" or not top else told.head(top)
    records = [change_texts(row) for row in taken.iter_rows(named=True)]
    table = markdown_table(records, CHANGE_COLUMNS) if args.format == "markdown" else plain_table(records, CHANGE_COLUMNS, width())
    more = [f"{count(taken.height)} of {count(told.height)}; --top 0 shows all"] if taken.height < told.height else []
    return ["", f"**{title}**" if args.format == "markdown" else title, *([""] if args.format == "markdown" else []), *table, *more]


def _top_of_levels(changes: pl.DataFrame, top: int) -> pl.DataFrame:
    """The first rows of each level, all of the step's figures."""
    return changes.filter((pl.col("level") == "step") | (pl.int_range(pl.len()).over("level") < top))
