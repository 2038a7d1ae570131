"""What of an open profile is kept as its first figures."""

from __future__ import annotations

import polars as pl

from roofterm.results import WarningInfo
from roofterm.tui.kept_figures import MOST_FINDINGS, MOST_ROWS, KeptFigures, KeptSource, KeptTable
from roofterm.tui.opened import Opened
from roofterm.tui.overview_lines import FLAGS, Facts
from roofterm.tui.rows import Rows
from roofterm.tui.widgets.records import Records


def figures_of(opened: Opened, facts: Facts, status: str, kernels: Rows, categories: Rows) -> KeptFigures:
    """The figures as the first screen shows them: first rows, first findings, and of the files the flags."""
    flags = [name for name, _ in FLAGS]
    return KeptFigures(
        header=opened.header,
        screens=[name for name in opened.pages if name != "compare"],  # that one wants a second profile
        first_table=opened.first_table,
        status=status,
        sources=[KeptSource({name: bool(source.metadata.get(name)) for name in flags}) for source in facts.sources],
        warnings=[WarningInfo(warning.code, warning.message, warning.count) for warning in facts.warnings],
        mended=facts.mended,
        summary=facts.summary,
        devices=list(facts.devices),
        steps=list(facts.steps),
        numbers_of_rows=opened.numbers_of_rows,
        digest=facts.digest,
        coverage=facts.coverage,
        findings=list(facts.findings[:MOST_FINDINGS]),
        kernels=first_rows(kernels),
        categories=first_rows(categories),
        xla=facts.xla,
    )


def first_rows(rows: Rows) -> KeptTable:
    """The first rows in the order shown, with the columns in which anything is known of the whole table."""
    frame = rows.frame
    known = [name for name in frame.columns if frame[name].null_count() < frame.height or not frame.height]
    plain = [name for name in known if not isinstance(frame.schema[name], pl.Struct)]
    first = Records(plain, [list(row) for row in frame.select(plain)[rows.order[:MOST_ROWS]].rows()])
    return KeptTable(first, len(rows.order))
