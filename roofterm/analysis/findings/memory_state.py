"""The state of a device's memory at its fullest: what was in use, what was reserved, what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from roofterm.analysis.findings.evidence import Evidence


class Peak(NamedTuple):
    """The allocator of one device."""

    used_bytes: int
    """most in use"""
    reserved_bytes: int | None
    """most that a caching allocator held from the driver; None: not recorded"""
    used_then_bytes: int
    """most in use while it held that"""
    capacity_bytes: int | None
    """memory of the device"""
    out_of_memory: int
    """marks of failed allocations"""


def peaks(e: Evidence) -> list[Peak]:
    """One record an allocator of a device's memory that the profile holds events of (`analysis.memory`)."""
    pools, events = e.study.memory
    found = []
    for number, pool in enumerate(pools.iter_rows(named=True)):
        mine = events.filter(pl.col("pool") == number)
        if not pool["on_device"] or mine["used_bytes"].max() is None:
            continue
        most = mine.drop_nulls("reserved_bytes").filter(pl.col("reserved_bytes") == pl.col("reserved_bytes").max())
        found.append(
            Peak(
                used_bytes=_most(mine["used_bytes"]),
                reserved_bytes=_most(most["reserved_bytes"]) or None,
                used_then_bytes=_most(most["used_bytes"]),
                capacity_bytes=pool["capacity_bytes"],
                out_of_memory=int(mine["out_of_memory"].sum()),
            )
        )
    return found


def _most(sizes: pl.Series) -> int:
    found = sizes.max()
    return int(found) if isinstance(found, int) else 0
