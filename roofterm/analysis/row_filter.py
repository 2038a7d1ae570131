"""Filters over result tables: a filter as a polars predicate over the columns of `results.TABLES` and of roofline rows."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import reduce
from operator import and_, or_

import polars as pl

from roofterm.analysis.filters import NUMBER_FIELDS, TEXT_FIELDS, Atom, Filter, FilterError, subset

_COLUMNS: dict[str, tuple[str, ...]] = {
    "name": ("name",),
    "op": ("op", "launched_by"),
    "module": ("module",),
    "hlo": ("hlo_category", "program"),
    "coll": ("collective",),
    "cat": ("category",),
    "phase": ("phase",),
    "bound": ("limiter", "bound_by"),
    "dtype": ("dtype",),
    "level": ("level",),
    "stream": ("stream", "stream_ids"),
    "device": ("device",),
    "rank": ("rank",),
    "step": ("step",),
    "time": ("total_us", "time_us", "dur_us", "step_us"),
    "dur": ("dur_us",),
    "self": ("self_us",),
    "calls": ("calls",),
    "flops": ("flops",),
    "bytes": ("bytes", "hbm_bytes"),
    "intensity": ("intensity", "hbm_intensity"),
    "pct": ("pct",),
    "roof": ("pct_of_roof",),
    "headroom": ("headroom_us",),
    "start": ("start_us",),
}
"""Columns that answer a field, the first one present."""

MEMORY_LEVELS = ("hbm", "l2", "l1", "shared", "vmem", "cmem", "smem", "host", "memory")
NETWORK_LINKS = ("nvlink", "xgmi", "ici", "pcie", "link")
"""What `bound:memory` and `bound:network` stand for."""


def answered_fields(columns: Collection[str]) -> set[str]:
    """Filter fields that a frame with these columns answers by itself."""
    return {field for field, names in _COLUMNS.items() if any(name in columns for name in names)}


def split_by_columns(whole: Filter, columns: Collection[str]) -> tuple[Filter, Filter]:
    """The terms that a frame with these columns answers, and those that must be asked of the slices."""
    return subset(whole, answered_fields(columns))


def row_predicate(whole: Filter, schema: pl.Schema) -> pl.Expr:
    """Boolean expression over a frame of this schema; never null. Raises FilterError for a field it does not hold."""
    terms = [_term(term.atoms, term.negated, schema) for term in whole.terms]
    return reduce(and_, terms) if terms else pl.lit(True)


def atom_predicate(atom: Atom, schema: pl.Schema) -> pl.Expr:
    """Boolean expression of one condition; never null. Raises FilterError for a field that the frame does not hold."""
    column = column_of(atom, schema)
    if atom.percent:
        column = "self_pct" if atom.field == "self" and "self_pct" in schema else "pct"
        if column not in schema or (atom.field == "self" and column == "pct"):
            raise FilterError(f"this table has no share of {atom.field}", atom.at)
    if atom.field in NUMBER_FIELDS:
        return _number(atom, column, schema).fill_null(False)
    if atom.field in TEXT_FIELDS or atom.regex:
        return _text(atom, column).fill_null(False)
    if atom.text:
        return _word(atom, column)
    return _compare(atom, pl.col(column)).fill_null(False)


def column_of(atom: Atom, schema: pl.Schema) -> str:
    """The column that answers a condition. Raises FilterError if there is none."""
    column = next((name for name in _COLUMNS[atom.field] if name in schema), None)
    if column is None:
        raise FilterError(f"this table has no {atom.field}", atom.at)
    return column


def _term(atoms: tuple[Atom, ...], negated: bool, schema: pl.Schema) -> pl.Expr:
    holds = reduce(or_, (atom_predicate(atom, schema) for atom in atoms))
    return ~holds if negated else holds


def _text(atom: Atom, column: str) -> pl.Expr:
    text = pl.col(column).cast(pl.String)
    if atom.operator == "=":
        return text == atom.text
    return text.str.contains(f"(?i){_rust_regex(atom) if atom.regex else re.escape(atom.text)}")


def _word(atom: Atom, column: str) -> pl.Expr:
    text = pl.col(column).cast(pl.String)
    pattern = f"(?i)^{re.escape(atom.text)}" + ("$" if atom.operator == "=" else "")
    holds = text.str.contains(pattern)
    if atom.field == "bound":
        asked = atom.text.lower().rstrip("?")
        holds = text.str.contains(f"(?i)^{re.escape(asked)}")
        if "memory".startswith(asked):
            holds = holds | text.str.strip_chars_end("?").is_in(list(MEMORY_LEVELS))
        if "network".startswith(asked):
            holds = holds | text.str.strip_chars_end("?").is_in(list(NETWORK_LINKS))
        if "unknown".startswith(asked):
            return holds.fill_null(True)
    return holds.fill_null(False)


def _number(atom: Atom, column: str, schema: pl.Schema) -> pl.Expr:
    kind = schema[column]
    value = pl.col(column)
    if isinstance(kind, pl.List):
        return value.list.eval(pl.element().is_between(atom.low, atom.high)).list.any()
    if kind == pl.String:
        numbers = value.str.extract_all(r"\d+").list.eval(pl.element().cast(pl.Int64, strict=False))
        return numbers.list.eval(pl.element().is_between(atom.low, atom.high)).list.any()
    return value.is_between(atom.low, atom.high)


def _compare(atom: Atom, value: pl.Expr) -> pl.Expr:
    match atom.operator:
        case ">":
            return value > atom.number
        case "<":
            return value < atom.number
        case ">=":
            return value >= atom.number
        case "<=":
            return value <= atom.number
        case _:
            return value == atom.number


def _rust_regex(atom: Atom) -> str:
    """The pattern for polars' engine, which knows neither look-around nor back references."""
    if re.search(r"\(\?[=!<]|\\[1-9]", atom.text):
        raise FilterError("look-around and back references are not supported", atom.at)
    return atom.text
