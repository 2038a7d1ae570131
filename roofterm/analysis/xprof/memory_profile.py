"""XProf's memory profile of the allocators: peaks, what is held at them, how the use went on (xplane_to_memory_profile.cc)."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any

import polars as pl

from roofterm.analysis.xprof.step_groups import NO_GROUP, groups
from roofterm_parsers.profile import Profile

MOST_SNAPSHOTS = 1000


def xprof_memory_profile(profile: Profile) -> dict[str, dict[str, Any]]:
    """`{allocator or device's number: {summary, timeline, active}}`, in the order of their names.

    summary: `peak_bytes_lifetime` as the allocator counts it, and of the moment of the largest use in the profile `peak_bytes`,
    `reserved_bytes`, `allocated_bytes`, `free_bytes`, `fragmentation`, `time_ps`, and `capacity_bytes`. timeline: snapshots with
    `time_ps`, `reserved_bytes`, `allocated_bytes`, `free_bytes`, `peak_bytes`, `fragmentation`, `activity`, `requested_bytes`,
    `allocation_bytes`, `address`; of more than 1000, the largest of each group of neighbours. active: what is held at the peak,
    most bytes first, alike blocks as one with their `occurrences`: `allocation_bytes`, `requested_bytes`, `framework_op`,
    `region`, `dtype`, `shape`; what was held before the profile began, and the stack, are rows of their own.

    Times count from the zero of each thread's own line, as XProf has them: events of threads whose lines begin apart are not in
    their true order.
    """
    snapshots = _snapshots(profile)
    found = {}
    for (name,), own in snapshots.sort("memory_id", "track", "offset").group_by(["memory_id"], maintain_order=True):
        in_time, summary = own.sort("time_ps", maintain_order=True), _summary(own)
        timeline = _sampled(in_time.to_dicts())
        found[str(name)] = {"summary": summary, "timeline": [_shown(one) for one in timeline], "active": _active(in_time, summary)}
    return found


def _snapshots(profile: Profile) -> pl.DataFrame:
    memory = profile.memory.with_row_index("memory").join(profile.allocations, on="memory")
    return memory.select(
        pl.coalesce("allocator", pl.col("device_id").cast(pl.String), pl.lit("")).alias("memory_id"),
        "track",
        "offset",
        pl.col("line_ps").alias("time_ps"),
        pl.col("reserved_bytes").fill_null(0),
        pl.col("allocated_bytes").fill_null(0),
        pl.col("available_bytes").fill_null(0).alias("free_bytes"),
        pl.col("peak_bytes").fill_null(0),
        pl.col("fragmentation").fill_null(0.0),
        pl.when("freed").then(pl.lit("DEALLOCATION")).otherwise(pl.lit("ALLOCATION")).alias("activity"),
        pl.col("requested_bytes").fill_null(0),
        pl.col("bytes").abs().fill_null(0).alias("allocation_bytes"),
        pl.col("address").fill_null(0),
        (pl.col("reserved_bytes").fill_null(0) + pl.col("allocated_bytes").fill_null(0)).alias("used"),
        "freed",
        pl.col("framework_op", "region", "shape").fill_null(""),
        pl.col("dtype").fill_null("INVALID"),
        _step(profile, memory),
    )


def _step(profile: Profile, memory: pl.DataFrame) -> pl.Series:
    """The step that each event lies in (step_groups.py), or NO_GROUP."""
    group = pl.Series("step", groups(profile))
    slices = profile.slices.select("track", "offset").with_columns(group).unique(["track", "offset"], keep="first")
    return (
        memory.select("track", "offset").join(slices, on=["track", "offset"], how="left", maintain_order="left")["step"].fill_null(NO_GROUP)
    )


def _active(events: pl.DataFrame, summary: dict[str, Any]) -> list[dict[str, Any]]:
    """What an allocator holds at its peak of what it gave within the peak's step. `events` in order of time."""
    # What lies in no step counts for the one after the step before it.
    stated = pl.when(pl.col("step") != NO_GROUP).then("step")
    events = events.with_columns(step=pl.coalesce(stated, stated.forward_fill().fill_null(NO_GROUP) + 1))
    step = events.filter(pl.col("used") == summary["peak_bytes"])["step"][-1]
    held: dict[int, dict[str, Any]] = {}
    unknown = summary["allocated_bytes"]
    for event in events.filter((pl.col("step") == step) & (pl.col("time_ps") <= summary["time_ps"])).iter_rows(named=True):
        if not event["freed"]:
            held[event["address"]] = event
            unknown -= event["allocation_bytes"]
        elif event["address"] in held:
            unknown += event["allocation_bytes"]  # as the free states it: a TPU's states none
            del held[event["address"]]
    blocks = [{name: event[name] for name in _BLOCK} for event in held.values()]
    blocks += [_special(size, *kind) for size, kind in ((unknown, _EARLIER), (summary["reserved_bytes"], _STACK)) if size > 0]
    blocks.sort(key=lambda block: (-block["allocation_bytes"], -block["requested_bytes"], *(block[name] for name in _BLOCK[2:])))
    return [{**dict(zip(_BLOCK, key, strict=True)), "occurrences": len(list(alike))} for key, alike in groupby(blocks, key=_values)]


_BLOCK = ("allocation_bytes", "requested_bytes", "framework_op", "region", "dtype", "shape")
_EARLIER = ("unused preallocated device memory", "persist/dynamic")
_STACK = ("stack", "stack")


def _special(size: int, name: str, region: str) -> dict[str, Any]:
    return dict(zip(_BLOCK, (size, size, name, region, "INVALID", "unknown"), strict=True))


def _values(block: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(block[name] for name in _BLOCK)


def _summary(own: pl.DataFrame) -> dict[str, Any]:
    """Of the events in the order of the file; the last of equal peaks counts."""
    at_peak = own.filter(pl.col("used") == pl.col("used").max()).row(-1, named=True)
    return {
        "peak_bytes_lifetime": own["peak_bytes"][-1],
        "peak_bytes": at_peak["used"],
        "reserved_bytes": at_peak["reserved_bytes"],
        "allocated_bytes": at_peak["allocated_bytes"],
        "free_bytes": at_peak["free_bytes"],
        "fragmentation": at_peak["fragmentation"],
        "time_ps": at_peak["time_ps"],
        "capacity_bytes": at_peak["used"] + at_peak["free_bytes"],
    }


def _sampled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The largest of each box of neighbours: narrow boxes first, then such as hold one more, 1000 in all."""
    if len(rows) <= MOST_SNAPSHOTS:
        return rows
    width = len(rows) // MOST_SNAPSHOTS
    narrow = MOST_SNAPSHOTS * (width + 1) - len(rows)
    bounds = [i * width for i in range(narrow)]
    bounds += [narrow * width + i * (width + 1) for i in range(MOST_SNAPSHOTS - narrow + 1)]
    return [max(rows[start:end], key=lambda row: row["used"]) for start, end in pairwise(bounds)]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    hidden = ("memory_id", "track", "offset", "used", "freed", "step", "framework_op", "region", "dtype", "shape")
    return {name: value for name, value in row.items() if name not in hidden}
