"""Tables as plain text: columns that fit, numbers right, names cut last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from roofterm.report.fields import Column, shown
from roofterm.text.safe import cell_width, fit

GAP = "  "
MOST_NAME = 100
"""a name takes no more cells than this"""


def plain_table(rows: pl.DataFrame | Sequence[dict[str, Any]], columns: Sequence[Column], width: int) -> list[str]:
    """Lines of a table at most `width` cells wide, a header first. Columns that say nothing and those that do not fit are left out."""
    records = list(rows.iter_rows(named=True)) if isinstance(rows, pl.DataFrame) else list(rows)
    used = shown(columns, records)
    texts = {c.name: [c.text(r.get(c.name)) for r in records] for c in used}
    widths = {c.name: max([cell_width(c.title), c.least, *map(cell_width, texts[c.name])]) for c in used}
    taken = _fitting(used, widths, width)
    lines = [GAP.join(fit(c.title, widths[c.name], c.right) for c in taken).rstrip()]
    lines += [GAP.join(fit(texts[c.name][row], widths[c.name], c.right) for c in taken).rstrip() for row in range(len(records))]
    return lines


def _fitting(columns: list[Column], widths: dict[str, int], width: int) -> list[Column]:
    """The leading columns that fit; the first column shrinks to its least width before one is left out."""
    first = columns[0]
    name_width = min(widths[first.name], MOST_NAME)
    least = min(name_width, max(first.least, width // 3))
    taken, rest = [first], width - least
    for column in columns[1:]:
        need = min(widths[column.name], 60) + len(GAP)
        if need > rest:
            break
        widths[column.name] = need - len(GAP)
        taken.append(column)
        rest -= need
    widths[first.name] = min(name_width, least + rest)
    return taken
