"""The steps of each rank, told apart into those that warm up or compile and those that have settled."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.intervals import clip
from roofterm.analysis.steps import STEADY_FACTOR, US
from roofterm.results import StepRow

if TYPE_CHECKING:
    from roofterm.analysis.findings.evidence import Evidence

COMPILE_SHARE = 0.05
"""A step that spends more of its time on compilation is a compiling one."""


def settled_rows(e: Evidence) -> list[list[StepRow]]:
    """Complete steps of each rank that neither compile nor belong to its warm-up, in order of time."""
    return [rows[warm_up(rows) :] for rows in working_rows(e)]


def working_rows(e: Evidence) -> list[list[StepRow]]:
    """Complete steps of each rank in which next to nothing compiles, in order of time."""
    by_source: dict[tuple[int, int | None], list[StepRow]] = {}
    windows = e.study.windows
    for window, row in zip(windows.iter_rows(named=True), e.study.steps(), strict=True):
        if row.complete and compiling_us(e, window["source"], row) <= COMPILE_SHARE * row.dur_us:
            by_source.setdefault((window["source"], window["device"]), []).append(row)
    return [sorted(rows, key=lambda row: row.start_us) for rows in by_source.values()]


def compiling_us(e: Evidence, source: int, row: StepRow) -> float:
    """Time of a step in which the main thread of its source compiled."""
    track = e.main_threads.get(source)
    if track is None:
        return 0.0
    start = round(row.start_us * US)
    return clip(e.causes.on(track, Cause.COMPILE), start, start + round(row.dur_us * US)).length / US


def warm_up(rows: list[StepRow]) -> int:
    """How many of the first steps are warm-up: each longer than 1.5 medians of all that follow it, of which there are two at least."""
    count = 0
    while len(rows) - count > 2 and rows[count].dur_us > STEADY_FACTOR * median(row.dur_us for row in rows[count + 1 :]):
        count += 1
    return count
