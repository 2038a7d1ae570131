"""XProf's memory profile of the allocators: peaks and how the use went on (xplane_to_memory_profile.cc)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import polars as pl

from roofterm_parsers.profile import Profile

MOST_SNAPSHOTS = 1000


def xprof_memory_profile(profile: Profile) -> dict[str, dict[str, Any]]:
    """`{allocator or device's number: {summary, timeline}}`, in the order of their names.

    summary: `peak_bytes_lifetime` as the allocator counts it, and of the moment of the largest use in the profile `peak_bytes`,
    `reserved_bytes`, `allocated_bytes`, `free_bytes`, `fragmentation`, `time_ps`, and `capacity_bytes`. timeline: snapshots with
    `time_ps`, `reserved_bytes`, `allocated_bytes`, `free_bytes`, `peak_bytes`, `fragmentation`, `activity`, `requested_bytes`,
    `allocation_bytes`, `address`; of more than 1000, the largest of each group of neighbours.

    Times count from the zero of each thread's own line, as XProf has them: events of threads whose lines begin apart are not in
    their true order.
    """
    snapshots = _snapshots(profile)
    found = {}
    for (name,), own in snapshots.sort("memory_id", "track", "offset").group_by(["memory_id"], maintain_order=True):
        timeline = _sampled(own.sort("time_ps", maintain_order=True).to_dicts())
        found[str(name)] = {"summary": _summary(own), "timeline": [_shown(one) for one in timeline]}
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
    )


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
    return {name: value for name, value in row.items() if name not in ("memory_id", "track", "offset", "used")}
