"""The steps of each rank, told apart into those that warm up or compile and those that have settled."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.intervals import covered
from roofterm.analysis.steps import STEADY_FACTOR
from roofterm.results import StepRow
from roofterm_parsers.profile import Kind

if TYPE_CHECKING:
    from roofterm.analysis.findings.evidence import Evidence

COMPILE_SHARE = 0.05
"""A step that spends more of its time on compilation is a compiling one."""


def settled_rows(e: Evidence) -> list[list[StepRow]]:
    """Complete steps of each rank that neither compile nor belong to its warm-up, in order of time."""
    return [rows[warm_up(rows) :] for rows in working_rows(e)]


def working_rows(e: Evidence) -> list[list[StepRow]]:
    """Complete steps of each rank in which next to nothing compiles, in order of time.

    Iterations that no profiler marked may be of different programs: only those that run mostly the same kernels are compared
    with each other.
    """
    by_source: dict[tuple[int, int | None], list[StepRow]] = {}
    windows = e.study.windows
    alike = _steps_alike(e) if e.study.steps_told_by is not None and e.has_work else None
    for window, row, compile_ps in zip(windows.iter_rows(named=True), e.study.steps(), _compile_ps(e), strict=True):
        if alike is not None and window["step"] not in alike:
            continue
        if row.complete and compile_ps <= COMPILE_SHARE * (window["end_ps"] - window["start_ps"]):
            by_source.setdefault((window["source"], window["device"]), []).append(row)
    return [sorted(rows, key=lambda row: row.start_us) for rows in by_source.values()]


def _steps_alike(e: Evidence) -> set[int]:
    """Steps (rows of `steps`) with at least half of the most frequent set of kernels (a first iteration tries others too)."""
    work = e.study.work.drop_nulls("step").filter(pl.col("kind") == int(Kind.KERNEL))
    named = work.select("step", name=e.profile.slices["name"][work["slice"]])
    sets = named.group_by("step").agg(pl.col("name").unique().sort().alias("names"))
    if sets.height == 0:
        return set()
    groups = sets.group_by("names").agg(pl.len(), pl.col("step").min()).sort("len", "step", descending=[True, False])
    usual = set(groups["names"][0].to_list())
    return {step for step, names in sets.iter_rows() if 2 * len(usual.intersection(names)) >= len(usual)}


def _compile_ps(e: Evidence) -> list[int]:
    """Time of each step (row of `windows`) in which the main thread of its source compiled."""
    windows = e.study.windows
    source, start, end = (windows[column].to_numpy() for column in ("source", "start_ps", "end_ps"))
    found = np.zeros(windows.height, np.int64)
    for number, track in e.main_threads.items():
        mine = source == number
        found[mine] = covered(e.causes.on(track, Cause.COMPILE), start[mine], end[mine])
    return found.tolist()


def warm_up(rows: list[StepRow]) -> int:
    """How many of the first steps are warm-up: each longer than 1.5 medians of all that follow it, of which there are two at least."""
    count = 0
    while len(rows) - count > 2 and rows[count].dur_us > STEADY_FACTOR * median(row.dur_us for row in rows[count + 1 :]):
        count += 1
    return count
