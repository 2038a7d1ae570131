"""Why rows of a table lie above their roof, as sentences below it."""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from roofterm.analysis.bounds import ABOVE_PCT
from roofterm.analysis.categories.short_names import with_short_names
from roofterm.text.safe import safe_text
from roofterm.text.units import count, pct

_SHOWN = 4
_NAME = 60
_FLAG = re.compile(r"^above-roof: (\d+ of \d+ calls, )?")


def roof_notes(table: pl.DataFrame) -> list[str]:
    """The longest rows above 100 % of the roof, those of one cause in one sentence (frame with flags of a row, most time first)."""
    above = table.filter(pl.col("pct_of_roof") > ABOVE_PCT)
    by_cause: dict[str, list[str]] = {}
    for row in with_short_names(above.head(_SHOWN)).iter_rows(named=True):
        name = safe_text(row.get("short_name") or row["name"], _NAME)
        by_cause.setdefault(_causes(row["flags"]), []).append(f"{name} ({pct(row['pct_of_roof'])})")
    said = [f"above the roof: {', '.join(rows)}: {safe_text(cause)}" for cause, rows in by_cause.items()]
    if above.height > _SHOWN:
        said.append(f"{count(above.height - _SHOWN)} more rows lie above their roof; their flags say why (--format json)")
    return said


def _causes(flags: Iterable[str]) -> str:
    told = [_FLAG.sub("", flag) for flag in flags if _FLAG.match(flag)]
    return "; ".join(told) or "the model of this work is wrong"
