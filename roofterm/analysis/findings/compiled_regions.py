"""The compiled regions of torch.compile in the scope: where they run on the host and what their upkeep costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.intervals import I64, NONE, Intervals, both, union

if TYPE_CHECKING:
    from roofterm.analysis.findings.evidence import Evidence

REGION = r"^Torch-Compiled Region: (\d+)/(\d+)"
UPKEEP = r"^(TorchDynamo Cache Lookup|AOTDispatcher Runtime Wrapper Prologue|Pregraph bytecode)"


class Regions(NamedTuple):
    """Compiled regions in order of start."""

    slice: I64
    frame: I64
    """number of the compiled frame: the first of "0/1" """
    version: I64
    """which compilation of it: the second"""
    start_ps: I64
    end_ps: I64


def regions(e: Evidence) -> Regions:
    """Compiled regions on the host within the scope."""
    texts = e.profile.names["text"]
    found = texts.str.extract_groups(REGION)
    frame, version = (found.struct.field(str(number)).cast(pl.Int64) for number in (1, 2))
    rows = (
        np.flatnonzero(frame.is_not_null().to_numpy()[e.profile.slices["name"].to_numpy()] & e.host_rows)
        if texts.len()
        else np.zeros(0, np.int64)
    )
    rows = rows[np.argsort(e.study.start_ps[rows], kind="stable")]
    names = e.profile.slices["name"][pl.Series(rows)]
    start = e.study.start_ps[rows]
    return Regions(rows, frame[names].to_numpy(), version[names].to_numpy(), start, start + e.study.dur_ps[rows])


def upkeep(e: Evidence) -> I64:
    """Slices in which guards are checked and wrappers entered."""
    names = e.profile.names["text"].str.contains(UPKEEP).to_numpy()
    rows: I64 = np.flatnonzero(names[e.profile.slices["name"].to_numpy()] & e.host_rows) if names.any() else np.zeros(0, np.int64)
    return rows


def idle_within(e: Evidence, where: Intervals) -> int:
    """Idle time of the devices while the host dispatches or pauses within some intervals of its time, ps."""
    return sum(both(idle, where).length for cause in (Cause.DISPATCH, Cause.PAUSE) for idle in e.host_wait.get(cause, {}).values())


def merged(e: Evidence, rows: I64) -> Intervals:
    """The time of some slices."""
    return union(e.study.start_ps[rows], e.study.start_ps[rows] + e.study.dur_ps[rows]) if rows.size else NONE
