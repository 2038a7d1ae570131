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
    waits_ps: dict[int, int]
    """by row of sources: time in collectives beyond the shortest of the matched calls, exposed or not"""
    matched: int
    """collectives that were found on all ranks"""
    unequal_ps: int
    """further exposed communication, beyond the median of the same collective and size in one rank"""
    unequal: pl.DataFrame
    """the collectives that vary: name, calls, median_ps, max_ps, more_ps"""


_NOTHING = pl.DataFrame(schema={"name": pl.UInt32, "calls": pl.UInt32, "median_ps": pl.Float64, "max_ps": pl.Int64, "more_ps": pl.Float64})


def communication_claims(e: Evidence) -> Claims:
    """How exposed communication divides among late-rank, unequal-collectives and exposed-communication.

    A rank that arrives early waits in the collective for the last one, so the shortest of the matched calls is the
    transfer and what a call takes beyond it is waiting (reference definition of wait; no clocks are compared).
    """
    calls = _calls(e)
    if calls.height == 0:
        return Claims(0, 0, {}, 0, 0, _NOTHING)
    exposed = {device: _exposed(e, device) for device in e.critical}
    waits, by_source, matched = _waits(calls)
    late = {device: both(waits.get(device, NONE), free) for device, free in exposed.items()}
    late_ps = sum(intervals.length for intervals in late.values())
    if e.pct(late_ps) < LATE_PCT:
        late, late_ps = dict.fromkeys(exposed, NONE), 0
    longer, table = _longer_than_median(calls)
    unequal_ps = sum(both(longer.get(device, NONE), without(free, late[device])).length for device, free in exposed.items())
    exposed_ps = sum(free.length for free in exposed.values())
    return Claims(exposed_ps, late_ps, by_source, matched, unequal_ps if e.pct(unequal_ps) >= UNEQUAL_PCT else 0, table)


def _calls(e: Evidence) -> pl.DataFrame:
    """Collectives within the spans: device, source, name, start_ps, end_ps, dur_ps, key (same name, group and kind), size."""
    pieces = e.pieces.filter(pl.col("category") == int(Category.COMMUNICATION))
    facts = e.profile.collectives.unique("slice", keep="first")
    columns = ["collective", "group", "in_elements", "out_elements"]
    own = facts.select("slice", *columns)
    behind = facts.select(pl.col("slice").alias("op"), *(pl.col(name).alias(f"op_{name}") for name in columns))
    pieces = pieces.join(own, on="slice", how="left", maintain_order="left").join(behind, on="op", how="left", maintain_order="left")
    return pieces.select(
        "device",
        "name",
        "start_ps",
        "end_ps",
        "dur_ps",
        source=e.profile.devices["source"].gather(pieces["device"]),
        key=pl.struct("name", pl.coalesce("collective", "op_collective"), pl.coalesce("group", "op_group")),
        size=pl.coalesce("in_elements", "op_in_elements"),
    ).sort("device", "start_ps", maintain_order=True)


def _exposed(e: Evidence, device: int) -> Intervals:
    """Exposed communication of a device within the spans, where the step waits for it."""
    line = e.lines[device]
    return both(without(line.communication, line.compute), e.critical[device])


def _waits(calls: pl.DataFrame) -> tuple[dict[int, Intervals], dict[int, int], int]:
    """When each device waits in collectives for others, how long each source does, and how many collectives were matched."""
    sources = calls["source"].n_unique()
    if sources < 2:
        return {}, {}, 0
    numbered = calls.with_columns(order=pl.int_range(pl.len()).over("device", "key"))
    alike = numbered.group_by("key").agg(
        counts=pl.len(), sources=pl.col("source").n_unique(), most=(pl.col("order").max() + 1), devices=pl.col("device").n_unique()
    )
    same = alike.filter((pl.col("sources") == sources) & (pl.col("counts") == pl.col("most") * pl.col("devices")))
    matched = numbered.join(same.select("key", "most"), on="key", how="inner")
    if matched.height == 0:
        return {}, {}, 0
    matched = matched.with_columns(wait_ps=pl.col("dur_ps") - pl.col("dur_ps").min().over("key", "order"))
    found = {}
    for (device,), group in matched.group_by("device"):
        start = group["start_ps"].to_numpy()
        found[int(device)] = union(start, start + group["wait_ps"].to_numpy())
    by_source = dict(matched.group_by("source").agg(pl.col("wait_ps").sum()).sort("source").iter_rows())
    return found, by_source, int(same["most"].sum())


def _longer_than_median(calls: pl.DataFrame) -> tuple[dict[int, Intervals], pl.DataFrame]:
    """The part of each call beyond the median of the same collective and size on its device, where some take twice that."""
    known = calls.drop_nulls("size").with_columns(
        median_ps=pl.col("dur_ps").median().over("device", "key", "size"),
        longest=pl.col("dur_ps").max().over("device", "key", "size"),
        calls=pl.len().over("device", "key", "size"),
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
