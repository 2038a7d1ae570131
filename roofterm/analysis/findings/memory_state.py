"""The state of a device's memory over a profile: what was allocated, what was reserved, what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from roofterm.analysis.findings.evidence import Evidence


class Peak(NamedTuple):
    """The memory of one device at its fullest."""

    source: int
    device_id: int
    allocated_bytes: int
    reserved_bytes: int | None
    allocated_when_most_reserved_bytes: int
    capacity_bytes: int | None
    out_of_memory: int


def peaks(e: Evidence) -> list[Peak]:
    """One record a device whose allocations the profile holds."""
    memory = e.profile.memory.filter((pl.col("device_type") != 0).fill_null(False))
    if memory.height == 0:
        return []
    memory = memory.with_columns(source=e.profile.tracks["source"].gather(memory["track"]))
    found = []
    for (source, device), group in memory.group_by("source", "device_id", maintain_order=True):
        kept = group.filter(~pl.col("out_of_memory").fill_null(False))
        allocated = kept["allocated_bytes"].max()
        if allocated is None:
            continue
        most = kept.filter(pl.col("reserved_bytes") == pl.col("reserved_bytes").max())
        reserved = most["reserved_bytes"][0] if most.height else None
        held = most["allocated_bytes"].max() if most.height else None
        found.append(
            Peak(
                int(source),
                int(device) if device is not None else 0,
                int(allocated),  # type: ignore[arg-type]
                int(reserved) if reserved else None,
                int(held) if held is not None else 0,  # type: ignore[arg-type]
                _capacity(e, int(source), device),
                int(group["out_of_memory"].fill_null(False).sum()),
            )
        )
    return found


def _capacity(e: Evidence, source: int, device: object) -> int | None:
    """Memory of a device by its number in the file; ROCm numbers differ, so any of the source's will do if all are alike."""
    mine = e.profile.devices.filter((pl.col("source") == source) & pl.col("memory_bytes").is_not_null())
    named = mine.filter(pl.col("id") == device)["memory_bytes"] if device is not None else mine["memory_bytes"]
    sizes = named if named.len() else mine["memory_bytes"].unique()
    return int(sizes[0]) if sizes.len() == 1 or named.len() else None
