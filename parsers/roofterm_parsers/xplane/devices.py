"""Devices out of their planes' stats (names: reference xplane 2.1; units: clock kHz, bandwidths GB/s decimal on TPU, B/s on GPU)."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from roofterm_parsers.xplane.kinds import Device
from roofterm_parsers.xplane.space import Value

_TPU_BANDWIDTHS = {
    "hbm": "peak_hbm_bw_gigabytes_per_second",
    "sram_read": "peak_sram_rd_bw_gigabytes_per_second",
    "sram_write": "peak_sram_wr_bw_gigabytes_per_second",
    "cmem_read": "peak_cmem_rd_bw_gigabytes_per_second",
    "cmem_write": "peak_cmem_wr_bw_gigabytes_per_second",
    "vmem_read": "peak_vmem_rd_bw_gigabytes_per_second",
    "vmem_write": "peak_vmem_wr_bw_gigabytes_per_second",
}
WARP = {"Nvidia": 32, "AMD": 64}


def device_row(source: int, device: Device, stats: dict[str, Value], worked: bool) -> dict[str, Any]:
    """A row of `devices`. A value that the file does not hold, or states as 0, is null."""
    bandwidths = {level: value * 1e9 for level, stat in _TPU_BANDWIDTHS.items() if (value := number(stats.get(stat)))}
    memory_bandwidth = number(stats.get("memory_bandwidth"))
    if memory_bandwidth and "hbm" not in bandwidths:
        bandwidths["hbm"] = memory_bandwidth
    teraflops, clock_khz = number(stats.get("peak_teraflops_per_second")), number(stats.get("clock_rate"))
    major, minor = number(stats.get("compute_cap_major")), number(stats.get("compute_cap_minor"))
    vendor = stats.get("device_vendor")
    return {
        "source": source,
        "id": device.id,
        "name": _name(stats),
        "kind": device.kind,
        "worked": worked,
        "memory_bytes": _whole(stats.get("memory_size")),
        "units": _whole(stats.get("core_count")),
        "capability": None if major is None else f"{int(major)}.{int(minor or 0)}",
        "warp_size": WARP.get(vendor) if isinstance(vendor, str) else None,
        "clock_hz": clock_khz * 1e3 if clock_khz else None,
        "peak_flops": teraflops * 1e12 if teraflops else None,
        "bandwidths": msgspec.json.encode(bandwidths).decode() if bandwidths else None,
        "note": _note(stats),
    }


def _name(stats: dict[str, Value]) -> str | None:
    """The name the file states: of a TPU's type, or of a GPU where a newer profiler wrote it."""
    for stat in ("device_type_string", "gpu_device_name", "device_name"):
        value = stats.get(stat)
        if isinstance(value, str) and value:
            return value
    return None


def _note(stats: dict[str, Value]) -> str | None:
    notes = []
    vendor = stats.get("device_vendor")
    if isinstance(vendor, str) and vendor:
        notes.append(f"vendor {vendor}")
    if stats.get("has_megacore"):
        notes.append("megacore")
    return ", ".join(notes) or None


def number(value: Value | None) -> float | None:
    """A finite number, also where the file states it as text."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int | float) and np.isfinite(value):
        return float(value)
    return None


def _whole(value: Value | None) -> int | None:
    if isinstance(value, int):
        return value if 0 < value < 1 << 63 else None
    found = number(value)
    return int(found) if found and 0 < found < 2.0**63 else None


def plain_stats(stats: dict[str, Value]) -> dict[str, str | int | float]:
    """A plane's stats as JSON can hold them; bytes are left out."""
    return {name: value for name, value in stats.items() if not isinstance(value, bytes) and value == value}  # noqa: PLR0124 (NaN is left out)
