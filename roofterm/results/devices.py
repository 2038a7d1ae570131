"""Devices and their roofs."""

from __future__ import annotations

import msgspec


class RoofSet(msgspec.Struct):
    """What one source says of a device, before sources are merged."""

    peaks: dict[str, float]
    bandwidths: dict[str, float]
    links: dict[str, float]
    note: str | None = None


class DeviceInfo(msgspec.Struct):
    """A device of the profile with its roofs. `id` is the file's own number."""

    id: int
    name: str | None
    model: str | None
    """id of the hardware table's entry; None: unknown device, no roof"""
    kind: str
    units: int | None
    memory_bytes: int | None
    peaks: dict[str, float]
    """dtype: dense FLOP/s"""
    bandwidths: dict[str, float]
    """level (hbm, l2, l1, vmem, cmem, ...): bytes/s"""
    roofs_from: str | None
    """measured, vendor, trace, derived or option"""
    ridge: dict[str, dict[str, float]]
    notes: list[str]
    links: dict[str, float] = {}
    """link (nvlink, xgmi, pcie): bytes/s in one direction"""
    matched_by: str | None = None
    """why this model: exact name, pattern, units and memory, ..."""
    sources: dict[str, str] = {}
    """dtype, level or link: where its figure comes from (vendor, measured, trace, derived or given)"""
    sets: dict[str, RoofSet] = {}
    """every source's own figures (vendor, measured, trace, given), to be shown side by side"""
    partition: str | None = None
    """the device is a part of its model: "MIG 1g.5gb", "CPX partition", "fewer units"; peaks and bandwidths are scaled"""
    launch_s: float | None = None
    """least time of a launch, as it was measured; None: not measured, or other roofs are in use"""
