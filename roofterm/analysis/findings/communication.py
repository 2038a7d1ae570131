"""What the findings about communication claim: parts of exposed communication that do not overlap each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.intervals import NONE, Intervals, both, union, without

if TYPE_CHECKING:
    from roofterm.analysis.findings.evidence import Evidence

LATE_PCT = 3.0
"""of the spans: waiting for a late rank is claimed from here"""
UNEQUAL_PCT = 2.0
UNEQUAL_FACTOR = 2.0
"""A call that takes this many medians of its like is unequal."""
LEAST_CALLS = 3


class Claims(NamedTuple):
    """Times are totals over all spans."""

    exposed_ps: int
    """exposed communication for which the step waits: what all findings claim together"""
    late_ps: int
    """exposed communication in which a rank waits for the last one to arrive; 0 where not claimed"""
    matched: int
    """collectives that were matched over ranks"""
    unequal_ps: int
    """further exposed communication, beyond the median of the same collective and size in one rank"""
    unequal: pl.DataFrame
    """the collectives that vary: name, calls, median_ps, max_ps, more_ps"""


_NOTHING = pl.DataFrame(schema={"name": pl.UInt32, "calls": pl.UInt32, "median_ps": pl.Float64, "max_ps": pl.Int64, "more_ps": pl.Float64})


def communication_claims(e: Evidence) -> Claims:
    """How exposed communication divides among late-rank, unequal-collectives and exposed-communication.

    A rank that arrives early waits in the collective for the last one (`analysis.matching`).
    """
    calls = _calls(e)
    if calls.height == 0:
        return Claims(0, 0, 0, 0, _NOTHING)
    exposed = {device: _exposed(e, device) for device in e.critical}
    waits, matched = _waits(e)
    late = {device: both(waits.get(device, NONE), free) for device, free in exposed.items()}
    late_ps = sum(intervals.length for intervals in late.values())
    if e.pct(late_ps) < LATE_PCT:
        late, late_ps = dict.fromkeys(exposed, NONE), 0
    longer, table = _longer_than_median(calls)
    unequal_ps = sum(both(longer.get(device, NONE), without(free, late[device])).length for device, free in exposed.items())
    exposed_ps = sum(free.length for free in exposed.values())
    return Claims(exposed_ps, late_ps, matched, unequal_ps if e.pct(unequal_ps) >= UNEQUAL_PCT else 0, table)


def _calls(e: Evidence) -> pl.DataFrame:
    """Collectives within the spans: device, name, start_ps, end_ps, dur_ps, kind, group and message_bytes (`CALLS`)."""
    mine = e.pieces.filter(pl.col("category") == int(Category.COMMUNICATION)).select("slice", "name")
    calls = e.study.collective_calls.join(mine, on="slice", how="inner", maintain_order="left")
    return calls.with_columns(dur_ps=pl.col("end_ps") - pl.col("start_ps"))


def _exposed(e: Evidence, device: int) -> Intervals:
    """Exposed communication of a device within the spans, where the step waits for it."""
    line = e.lines[device]
    return both(without(line.communication, line.compute), e.critical[device])


def _waits(e: Evidence) -> tuple[dict[int, Intervals], int]:
    """When each device waits in its collectives for others that have not arrived, and how many meetings were matched."""
    matched = e.study.matched_calls
    if matched.height == 0:
        return {}, 0
    work = e.study.work.select("slice", "device", "start_ps", "end_ps")
    waits = matched.select("slice", "wait_ps").join(work, on="slice", how="inner")
    found = {}
    for (device,), group in waits.group_by("device"):
        start, end = group["start_ps"].to_numpy(), group["end_ps"].to_numpy()
        found[int(device)] = union(start, np.minimum(end, start + group["wait_ps"].to_numpy()))
    return found, matched["match"].n_unique()


def _longer_than_median(calls: pl.DataFrame) -> tuple[dict[int, Intervals], pl.DataFrame]:
    """The part of each call beyond the median of the same collective and size on its device, where some take twice that."""
    alike = ["device", "kind", "group", "message_bytes"]
    known = calls.drop_nulls("message_bytes").with_columns(
        median_ps=pl.col("dur_ps").median().over(alike), longest=pl.col("dur_ps").max().over(alike), calls=pl.len().over(alike)
    )
    varying = known.filter((pl.col("calls") >= LEAST_CALLS) & (pl.col("longest") >= UNEQUAL_FACTOR * pl.col("median_ps")))
    varying = varying.with_columns(more_ps=(pl.col("dur_ps") - pl.col("median_ps")).clip(lower_bound=0.0))
    found = {}
    for (device,), group in varying.group_by("device"):
        end = group["end_ps"].to_numpy()
        found[int(device)] = union(end - group["more_ps"].to_numpy().astype(np.int64), end)
    table = varying.group_by("name").agg(
        calls=pl.len(), median_ps=pl.col("median_ps").median(), max_ps=pl.col("longest").max(), more_ps=pl.col("more_ps").sum()
    )
    return found, table.sort("more_ps", descending=True) if table.height else _NOTHING
