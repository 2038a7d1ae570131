"""What of a study is kept as its first figures. Neither textual nor a screen is imported: a command keeps them too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import polars as pl

from roofterm.analysis.digest import digest, steps_counted
from roofterm.analysis.filters import Filter
from roofterm.analysis.scope import STEADY, Scope
from roofterm.results import PhaseTime, StepRow, Summary, WarningInfo
from roofterm.tui.frames import step_number
from roofterm.tui.kept_figures import FLAGS, MOST_FINDINGS, MOST_ROWS, KeptFigures, KeptSource, KeptTable
from roofterm.tui.opened import PAGES, absent_screens, first_table_of, header_of
from roofterm.tui.rows import Rows, table_rows
from roofterm.tui.state import Sort
from roofterm.tui.widgets.records import Records

if TYPE_CHECKING:
    from roofterm.analysis.study import Study
    from roofterm.tui.baseline import Baseline
    from roofterm.tui.row_book import RowBook
    from roofterm_parsers.profile import Warning

REMARKS = ("no-device", "hlo-no-rule", "sibling")
"""Codes of warnings that say what a whole file lacks: nothing was mended"""

EVERYTHING = Filter("", ())


def figures_of(study: Study) -> KeptFigures:
    """The figures as the first screen shows them: first rows, first findings, and of the files the flags."""
    kernels, categories = top_rows(study, STEADY)
    return msgspec.structs.replace(
        _outline(study, study.summary(), study.steps(), study.warnings()),
        outline=False,
        coverage=study.roofline().coverage,
        findings=list(study.findings()[:MOST_FINDINGS]),
        balance=study.host_balance(),
        launch_path=study.launch_path(),
        phases=host_phases(study),
        kernels=first_rows(kernels),
        categories=first_rows(categories),
        xla=study.xla_overview(),
    )


def outline_of(study: Study) -> KeptFigures:
    """Of the figures what costs little beside reading the profile."""
    return _outline(study, study.outline(), study.plain_steps(), study.profile.warnings)


def _outline(study: Study, summary: Summary, steps: list[StepRow], warnings: Sequence[Warning]) -> KeptFigures:
    devices = study.devices()
    facts, flags, absent = digest(steps), [name for name, _ in FLAGS], absent_screens(study, steps)
    return KeptFigures(
        header=header_of(devices, facts, summary),
        screens=[name for name in PAGES if name not in absent and name != "compare"],  # that one wants a second profile
        first_table=first_table_of(study),
        part=study.selection(STEADY).text,
        sources=[KeptSource({name: bool(source.metadata.get(name)) for name in flags}, source.format) for source in study.profile.sources],
        warnings=[WarningInfo(warning.code, warning.message, warning.count) for warning in warnings],
        mended=mended(study.profile.warnings),
        summary=summary,
        devices=list(devices),
        steps=steps,
        numbers_of_rows=[step_number(row.name) for row in steps],
        digest=facts,
        nests=study.nests,
        outline=True,
    )


def top_rows(
    study: Study, scope: Scope, wanted: Filter = EVERYTHING, book: RowBook | None = None, against: Baseline | None = None
) -> tuple[Rows, Rows]:
    """The first screen's tables: what most of the time is in, and its categories."""
    by_time = None if study.work.height else Sort("self_us")
    first = table_rows(study, first_table_of(study), scope, wanted, by_time, book, against)
    return first, table_rows(study, "category", scope, wanted, None, book, against)


def host_phases(study: Study) -> list[PhaseTime]:
    """The mean step by phase where the host alone worked; nothing else breaks such a step down."""
    if study.work.height:
        return []
    steps = study.steps()
    counted = {id(row) for row in steps_counted(steps)[0]}
    return study.phase_times([at for at, row in enumerate(steps) if id(row) in counted])


def mended(warnings: Sequence[Warning]) -> int:
    """Kinds of faults that reading had to mend or skip."""
    return sum(warning.code not in REMARKS for warning in warnings)


def first_rows(rows: Rows) -> KeptTable:
    """The first rows in the order shown, with the columns in which anything is known of the whole table."""
    frame = rows.frame
    known = [name for name in frame.columns if frame[name].null_count() < frame.height or not frame.height]
    plain = [name for name in known if not isinstance(frame.schema[name], pl.Struct)]
    first = Records(plain, [list(row) for row in frame.select(plain)[rows.order[:MOST_ROWS]].rows()])
    return KeptTable(first, len(rows.order))
