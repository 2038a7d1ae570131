"""How much of the table's part a device is: a MIG slice, a partition of an MI300, one core of a TPU chip, a cut-down part."""

from __future__ import annotations

import re

import msgspec

from roofterm.hardware.table import Device

MIG = re.compile(r"^(?P<base>.*?)\s+MIG\s+(?P<slices>\d+)g\.(?P<gb>\d+(\.\d+)?)gb\S*$", re.IGNORECASE)
"""As CUDA names a slice: "NVIDIA A100-SXM4-40GB MIG 1g.5gb"."""

MEMORY_SLICES = 8
"""A GPU in MIG mode has eight memory slices, each with its share of L2 and bandwidth (NVIDIA MIG User Guide)."""

COMPUTE_SLICES = 7
"""The guide gives a profile's share of the SMs in sevenths: of those that MIG mode uses, 98 of 108 on an A100."""

PARTITION_MODES = {2: "DPX", 3: "TPX", 4: "QPX", 6: "CPX", 8: "CPX"}
"""Modes of AMD's multi-die parts by the number of partitions (6 is CPX on the six-die MI300A)."""

EU_PER_XE_CORE = 8


class Scale(msgspec.Struct, frozen=True):
    """Shares of the table's figures that this device has. `links` 0: it cannot reach other devices but over PCIe."""

    compute: float = 1.0
    memory: float = 1.0
    links: float = 1.0
    partition: str | None = None
    """why it is less than the part: "MIG 1g.5gb", "CPX", "fewer units"; None: it is the part, or a core of a chip"""
    notes: list[str] = []


WHOLE = Scale()


def mig_of(name: str) -> tuple[str, tuple[int, float] | None]:
    """A device's name without its MIG suffix, and the slice: compute slices and GB."""
    found = MIG.match(name.strip())
    if found is None:
        return name, None
    return found["base"], (int(found["slices"]), float(found["gb"]))


def scale_of(
    entry: Device,
    units: int | None = None,
    memory_bytes: int | None = None,
    kind: str | None = None,
    mig: tuple[int, float] | None = None,
) -> Scale:
    """The share of `entry` that a device with these units and this memory is (`matching` rules 2 and 3)."""
    if mig is not None:
        return _mig(entry, units, mig)
    if kind == "tpu" and (entry.tensor_cores_per_chip or 1) > 1:
        return _core(entry)
    if entry.id == "intel-max-1550":
        return _stack(entry, units)
    whole = entry.compute_units
    if not units or not whole or units == whole:
        return WHOLE
    kind_of_unit = f"{entry.compute_unit_kind or 'unit'}s"
    if units > whole:
        return Scale(notes=[f"{units} {kind_of_unit} where {entry.id} has {whole}: peaks are those of {entry.id}"])
    if entry.vendor == "amd" and whole % units == 0 and whole // units in PARTITION_MODES:
        return _amd_partition(entry, units, whole, memory_bytes)
    share = units / whole
    memory = _memory_share(entry, memory_bytes)
    note = (
        f"{units} of {whole} {kind_of_unit}: a slice, an export variant or a custom part; compute peaks are scaled by units, "
        f"memory bandwidth by memory ({memory:.0%}); measure it (`roofterm measure`)"
    )
    return Scale(share, memory, partition="fewer units", notes=[note])


def _mig(entry: Device, units: int | None, mig: tuple[int, float]) -> Scale:
    slices, gb = mig
    memory_slices = min(MEMORY_SLICES, max(1, round(gb * 2**30 / entry.memory.bytes * MEMORY_SLICES)))
    label = f"{slices}g.{gb:g}gb"
    by_profile = entry.mig_units.get(label) or entry.mig_units.get(f"{slices}g")
    known = units or by_profile
    if known and entry.compute_units:
        share = known / entry.compute_units
        counted = f"{known} of {entry.compute_units} SMs{'' if units else ' (by its profile)'}"
    else:
        share = slices / COMPUTE_SLICES
        counted = f"{slices} of {COMPUTE_SLICES} slices (its SMs are not known, and a GPU in MIG mode leaves some idle: an upper bound)"
    note = (
        f"MIG {label}: a slice of {entry.id} with {counted} and {memory_slices} of {MEMORY_SLICES} memory slices; peaks and bandwidths are "
        "scaled to it"
    )
    return Scale(min(1.0, share), memory_slices / MEMORY_SLICES, 0.0, f"MIG {label}", [note])


def _amd_partition(entry: Device, units: int, whole: int, memory_bytes: int | None) -> Scale:
    parts = whole // units
    memory = _memory_share(entry, memory_bytes)
    label = f"{PARTITION_MODES[parts]} partition"
    shared = (
        "memory bandwidth is the whole package's, shared by its partitions: an upper bound"
        if memory == 1.0
        else f"memory bandwidth is scaled by memory ({memory:.0%})"
    )
    note = f"{label}: {units} of {whole} CUs of {entry.id}; compute peaks are scaled by CUs, {shared}"
    return Scale(units / whole, memory, partition=label, notes=[note])


def _core(entry: Device) -> Scale:
    cores = entry.tensor_cores_per_chip or 1
    bf16 = entry.peak_flops_dense.get("bf16", 0.0)
    note = (
        f"figures are for one TensorCore; the chip has {cores} of them: {bf16 / 1e12:g} TFLOP/s bf16, "
        f"{entry.memory.bandwidth_Bps / 1e12:g} TB/s"
    )
    return Scale(1 / cores, 1 / cores, 1 / cores, notes=[note])


def _stack(entry: Device, units: int | None) -> Scale:
    """Torch counts execution units, eight to a Xe core; with ZE_FLAT_DEVICE_HIERARCHY=FLAT a device is one of two stacks."""
    whole = entry.compute_units or 1
    if not units:
        return WHOLE
    cores = units / EU_PER_XE_CORE if units > whole else units
    if cores > whole / 2:
        return WHOLE if cores == whole else Scale(compute=cores / whole, notes=[f"{cores:g} of {whole} Xe cores"])
    return Scale(cores / whole, 0.5, notes=["one of two stacks: half the package's memory bandwidth"])


def _memory_share(entry: Device, memory_bytes: int | None) -> float:
    """Share of the memory, in eighths: what a partition does not see it cannot read from."""
    if not memory_bytes:
        return 1.0
    share = memory_bytes / entry.memory.bytes
    return min(1.0, max(1, round(share * MEMORY_SLICES)) / MEMORY_SLICES)
