"""`roofterm compare BASE NEW`: what changed; with `--fail-on` it ends with 3 where a limit is passed."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import polars as pl

from roofterm.analysis.compare import Comparison, compare, unit_of
from roofterm.analysis.conditions import Condition, ConditionError, fires, parse_condition
from roofterm.analysis.filters import FilterError
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, FAILED_ON, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.output import width, write
from roofterm.cli.report import explain
from roofterm.cli.tabular import ordered
from roofterm.report.as_json import encode, rows_of
from roofterm.report.as_markdown import markdown_table
from roofterm.report.columns import CHANGE_COLUMNS
from roofterm.report.files import csv_bytes
from roofterm.report.plain_table import plain_table
from roofterm.text.safe import ascii_text, safe_text
from roofterm.text.units import UNKNOWN, bytes_text, count, duration_us, pct, si

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

TITLES = {
    "step": "figures",
    "category": "categories, device time",
    "kernel": "kernels, device time",
    "op": "ops, own device time",
    "host op": "ops, own host time",
}
TOP = 10
"""rows of each level in text and Markdown"""


def run(args: Arguments) -> int:
    base, new = (_study(args, path) for path in args.paths)
    try:
        found = compare(base, new, args.where)
    except FilterError as why:
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
            "base": {"path": args.paths[0], "scope": found.base_text},
            "new": {"path": args.paths[1], "scope": found.new_text},
            "per_step": found.per_step,
            "failed": [condition.text for condition in failed],
        }
        return encode({**head, "rows": rows_of(changes)})
    top = args.top if args.top is not None else TOP
    lines = [
        f"base  {safe_text(args.paths[0])} ({found.base_text})",
        f"new   {safe_text(args.paths[1])} ({found.new_text})",
        "times are those of one step" if found.per_step else "times are those of the whole files: one of them has no steps",
    ]
    for level, title in TITLES.items():
        lines += _section(args, changes.filter(pl.col("level") == level), level, title, top)
    return lines


def _section(args: Arguments, rows: pl.DataFrame, level: str, title: str, top: int) -> list[str]:
    told = rows.filter(pl.col("status") != "unknown")
    if level != "step":
        told = told.filter(pl.col("status") != "same")
    if told.height == 0:
        return [] if rows.height == 0 else ["", f"{title}: no change"]
    taken = told if level == "step" or not top else told.head(top)
    records = [_texts(row) for row in taken.iter_rows(named=True)]
    table = markdown_table(records, CHANGE_COLUMNS) if args.format == "markdown" else plain_table(records, CHANGE_COLUMNS, width())
    more = [f"{count(taken.height)} of {count(told.height)}; --top 0 shows all"] if taken.height < told.height else []
    return ["", f"**{title}**" if args.format == "markdown" else title, *([""] if args.format == "markdown" else []), *table, *more]


def _texts(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its values as text, each in its own unit."""
    text = _TEXTS[row["unit"]]
    change = row["change"]
    sign = "+" if change is not None and change > 0 else ""
    return row | {
        "base": text(row["base"]),
        "new": text(row["new"]),
        "change": UNKNOWN if change is None else sign + text(change),
        "status": "" if row["status"] == "changed" else row["status"],
    }


_TEXTS: dict[str, Callable[[float | None], str]] = {"us": duration_us, "pct": pct, "bytes": bytes_text, "count": si}


def _top_of_levels(changes: pl.DataFrame, top: int) -> pl.DataFrame:
    """The first rows of each level, all of the step's figures."""
    return changes.filter((pl.col("level") == "step") | (pl.int_range(pl.len()).over("level") < top))
