"""Idle time over the whole file, for what happens once and mostly before the steady steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.findings.idle import host_wait_by_cause
from roofterm.analysis.gaps import find_gaps, host_slices, spans
from roofterm.analysis.intervals import NONE, Intervals, covered, without
from roofterm.analysis.scope import Scope

if TYPE_CHECKING:
    from roofterm.analysis.findings.evidence import Evidence


class WholeFile(NamedTuple):
    """Each device from its source's first to its last slice."""

    length_ps: int
    gaps: pl.DataFrame
    """schema `gaps.GAPS`"""
    host_wait: dict[Cause, dict[int, Intervals]]
    """by cause and device, as `Evidence.host_wait`"""


def whole_file(e: Evidence) -> WholeFile:
    rows = spans(e.study, Scope(rank=e.scope.rank))
    gaps = find_gaps(e.study, rows, e.lines)
    length = int((rows["end_ps"] - rows["start_ps"]).sum())
    return WholeFile(length, gaps, host_wait_by_cause(e.study, gaps, e.causes, e.main_threads))


def outside_of_steps(e: Evidence, found: dict[int, Intervals]) -> dict[int, Intervals]:
    """What of each device's intervals lies in no step that findings speak of."""
    if not e.in_steps:
        return found
    return {device: without(intervals, e.covered_spans.get(device, NONE)) for device, intervals in found.items()}


def doing(e: Evidence, gaps: pl.DataFrame, within: dict[int, Intervals]) -> pl.DataFrame:
    """What the host did in the part of gaps that lies within some intervals: name (row of names), idle_ps, times; most first."""
    idle = np.zeros(gaps.height, np.int64)
    device = gaps["device"].to_numpy()
    for number, intervals in within.items():
        mine = np.flatnonzero(device == number)
        idle[mine] = covered(intervals, gaps["start_ps"].to_numpy()[mine], gaps["end_ps"].to_numpy()[mine])
    some = gaps.with_columns(idle_ps=pl.Series(idle)).filter(pl.col("idle_ps") > 0)
    named = some.with_columns(name=e.profile.slices["name"][host_slices(e.study, some)])
    grouped = named.group_by("name").agg(pl.col("idle_ps").sum(), times=pl.len())
    return grouped.sort("idle_ps", "name", descending=[True, False])
