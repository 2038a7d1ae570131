"""The hardware table: what the vendors (or others, by name) say of each accelerator.

`devices.json` beside this module holds the facts, with the source of each group of figures and every disagreement that
was found between sources. It is read once, when first asked for. Peaks are dense, 2 FLOP per multiply-add; bandwidths
are decimal bytes/s; links are one direction unless the key says otherwise.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

DTYPES = (
    "fp64", "fp64_tensor", "fp32", "fp32_matrix", "tf32", "fp16", "fp16_acc16", "fp16_vector", "bf16", "bf16_vector",
    "fp8", "fp8_acc16", "fp6", "fp4", "mxfp8", "mxfp4", "int8", "int4",
)  # fmt: skip
"""Keys of peaks: `fp16`, `bf16`, `fp8`, `int8` are the tensor (matrix) rate with 32-bit accumulation, `fp32` the vector rate."""

LEVELS = ("hbm", "llc", "l2", "l1", "vmem_read", "vmem_write", "cmem_read", "cmem_write", "sram_read", "sram_write")
"""Keys of bandwidths. `l1` is L1 and shared memory (LDS on AMD), `llc` the cache beyond L2 (Infinity Cache)."""

LINKS = ("nvlink", "xgmi", "pcie", "ici", "roce", "neuronlink", "network")
"""Keys of links, bytes/s in one direction of one device."""


class Memory(msgspec.Struct, frozen=True):
    type: str
    bytes: int
    bandwidth_Bps: float
    bus_bits: int | None = None
    other_bytes: list[int] = []
    """sizes that the same part is also sold with, at the same bandwidth"""


class Cache(msgspec.Struct, frozen=True):
    """An L2, or a cache beyond it (`llc`)."""

    bytes: int | None = None
    bandwidth_Bps: float | None = None
    bandwidth_kind: str | None = None
    kind: str | None = None
    source: str | None = None


class UnitMemory(msgspec.Struct, frozen=True):
    """L1 and shared memory (LDS): `bandwidth_Bps` is of all units together."""

    bytes_per_unit: int | None = None
    bytes_per_clk_per_unit: float | None = None
    lds_bytes_per_clk_per_unit: float | None = None
    bandwidth_Bps: float | None = None
    formula: str | None = None
    confidence: str | None = None


class Device(msgspec.Struct, frozen=True):
    """One entry of the table. `names` are the strings that profiles carry."""

    id: str
    vendor: str
    arch: str
    names: list[str]
    peak_flops_dense: dict[str, float]
    memory: Memory
    source: dict[str, str]
    confidence: str
    """vendor, community or derived"""
    reported_unit: str
    name_regex: str | None = None
    board_names: list[str] = []
    """board names seen in profiles; taken as this part only if units, memory and capability agree"""
    aliases: list[str] = []
    compute_capability: str | None = None
    compute_units: int | None = None
    compute_unit_kind: str | None = None
    mig_units: dict[str, int] = {}
    """units of a MIG slice by its profile: "1g", or "1g.20gb" where its memory makes a difference"""
    clock_boost_hz: float | None = None
    clock_max_reported_hz: float | None = None
    clock_tensor_spec_hz: float | None = None
    l2: Cache | None = None
    llc: Cache | None = None
    l1_smem: UnitMemory | None = None
    register_file_bytes_per_unit: int | None = None
    cache: dict[str, float] = {}
    vmem: dict[str, float] = {}
    cmem: dict[str, float] = {}
    interconnect: dict[str, Any] = {}
    scope: str | None = None
    """chip: the figures are of a chip that profiles show as `tensor_cores_per_chip` devices"""
    tensor_cores_per_chip: int | None = None
    xplane_peak_teraflops_per_core: float | None = None
    tdp_w: float | None = None
    measured: dict[str, Any] = {}
    """figures that others measured, with their source"""
    notes: list[str] = []
    disagreements: list[str] = []
    unchecked_groups: list[str] = []


class SourceText(msgspec.Struct, frozen=True):
    text: str
    checked: bool
    """the source was opened when its figures were entered"""


class HostProcessor(msgspec.Struct, frozen=True):
    """How to reckon a CPU's peak; no model is listed, since a virtual machine hides model and clock."""

    id: str
    vendor: str
    arch: str
    names: list[str]
    peak_formula: str
    flop_per_clk_per_core: dict[str, dict[str, float]]
    memory_formula: str
    per_core_memory_cap: str
    notes: list[str]
    source: dict[str, str]
    confidence: str


class Table(msgspec.Struct, frozen=True):
    devices: list[Device]
    sources: dict[str, SourceText]
    cpu: HostProcessor
    matching: list[str] = []
    flop_per_clk_per_unit: dict[str, dict[str, Any]] = {}
    dtype_keys: dict[str, str] = {}

    def by_id(self, identifier: str) -> Device | None:
        """The entry of that id, in any letter case."""
        wanted = identifier.casefold()
        return next((device for device in self.devices if device.id.casefold() == wanted), None)


@lru_cache(maxsize=1)
def load_table() -> Table:
    """The table that comes with the package (about 1 ms, once)."""
    data = resources.files("roofterm.hardware").joinpath("devices.json").read_bytes()
    return msgspec.json.decode(data, type=Table)


def capability_of(device: Device) -> str | None:
    """Compute capability as drivers report it: "9.0" for sm_90, and for AMD the gfx version's two first parts, "9.4" for gfx942."""
    if device.compute_capability:
        return device.compute_capability
    if device.arch.startswith("gfx"):
        digits = device.arch[3:]
        return f"{int(digits[:-2])}.{int(digits[-2], 16)}"
    return None


def vendor_bandwidths(device: Device) -> dict[str, float]:
    """Level: bytes/s of the whole part; a level without a figure is absent, never taken from another."""
    levels = {
        "hbm": device.memory.bandwidth_Bps,
        "llc": device.llc.bandwidth_Bps if device.llc else None,
        "l2": device.l2.bandwidth_Bps if device.l2 else device.cache.get("l2_Bps"),
        "l1": device.l1_smem.bandwidth_Bps if device.l1_smem else device.cache.get("l1_Bps"),
        "sram_read": device.cache.get("sram_Bps"),
        "sram_write": device.cache.get("sram_Bps"),
    }
    return {level: value for level, value in levels.items() if value}


def vendor_links(device: Device) -> dict[str, float]:
    """Link: bytes/s in one direction, all links of its kind of one device together."""
    wires = device.interconnect
    links = {
        "nvlink": wires.get("nvlink_Bps_per_direction"),
        "xgmi": wires.get("xgmi_Bps_per_direction"),
        "pcie": wires.get("pcie_Bps_per_direction"),
        "roce": wires.get("roce_Bps_per_direction"),
        "neuronlink": wires.get("neuronlink_Bps_per_direction") or _half(wires.get("neuronlink_Bps_bidirectional")),
        "ici": _ici(wires),
    }
    return {link: value for link, value in links.items() if value}


def _ici(wires: dict[str, Any]) -> float | None:
    one_way, links = wires.get("ici_Bps_per_link_one_way"), wires.get("links")
    if one_way:
        return float(one_way) * (links or 1)
    return _half(wires.get("ici_Bps_chip_bidirectional"))


def _half(value: float | None) -> float | None:
    return value / 2 if value else None
