"""Which entry of the hardware table a device is, and why: by name first, by units, memory and capability second.

The rules are those of `devices.json` (`matching`). No device is ever taken for another because its name contains the
other's ("L4" in "L40S"), and an unknown device stays unknown: a wrong roof is worse than none.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from roofterm.hardware.partition import WHOLE, Scale, mig_of, scale_of
from roofterm.hardware.table import Device, Memory, Table, capability_of, load_table, vendor_bandwidths

SAME = 0.01
"""Peaks that differ by less are the same (181 and 181.05 TFLOP/s are one rounding apart)."""

MEMORY_LOW, MEMORY_HIGH = 0.88, 1.04
"""Total memory as drivers report it, over the table's: ECC of GDDR parts and reserved memory take up to 10 %."""

SAME_CLOCK = 0.015
"""Only tells parts of one die apart (V100 SXM2 from PCIe, MI355X from MI350X)."""

GENERIC = re.compile(r"(nvidia |amd )?(radeon )?(graphics|graphics device|gpu|device|instinct)?|(amd|nvidia) gpu\b.*|gfx\w+", re.IGNORECASE)
"""Names that say nothing of the product."""

WHAT_TO_DO = (
    "name one with --device, give --peak DTYPE=TFLOPS and --bandwidth LEVEL=GBPS, write it into config.toml, "
    "or run `roofterm measure` on it"
)


class Facts(msgspec.Struct, frozen=True):
    """What a profile says of a device; None where it says nothing."""

    name: str | None = None
    units: int | None = None
    memory_bytes: int | None = None
    capability: str | None = None
    warp_size: int | None = None
    kind: str | None = None
    """gpu, tpu, ..."""
    clock_hz: float | None = None
    """highest clock the driver reports (XLA writes it)"""


class Match(msgspec.Struct, frozen=True):
    """An entry with the reasons for it; `entry` None: unknown device."""

    entry: Device | None
    how: str
    scale: Scale = WHOLE
    derived: bool = False
    """figures are scaled or inferred, not the vendor's for a device of this name"""
    notes: list[str] = []
    candidates: list[str] = []
    """ids of all entries that fit, when the name does not tell; `entry` then holds the figures in which they agree"""

    @property
    def model(self) -> str | None:
        if self.entry is None:
            return None
        return " or ".join(self.candidates) if len(self.candidates) > 1 else self.entry.id


def resolve(facts: Facts, table: Table | None = None) -> Match:
    """The table's entry for a device, its scale (MIG slice, partition, core of a chip) and the reasons."""
    table = table or load_table()
    name = facts.name or ""
    base, mig = mig_of(name)
    found = _by_name(base, table)
    notes: list[str] = []
    if found is not None:
        entry, how = found
        if _capability_differs(entry, facts):
            notes.append(
                f"the name says {entry.id} (capability {capability_of(entry)}), the profile says capability {facts.capability}: "
                "the name is not trusted"
            )
        else:
            return _checked(entry, how, facts, mig)
    inferred = _by_properties(base, facts, table)
    if inferred is not None and (inferred.entry is not None or not _by_alias(base, table)):
        return msgspec.structs.replace(inferred, notes=notes + inferred.notes)
    called = _by_alias(base, table)
    if called is not None and not _capability_differs(called, facts):
        return _checked(called, "short name", facts, mig)
    return Match(None, "no entry of the hardware table fits", notes=[*notes, _unknown_note(facts)])


def find(name: str, table: Table | None = None) -> Device | list[str]:
    """The entry that a person means by an id, name or unmistakable part of an id; else the ids that come near (maybe none)."""
    table = table or load_table()
    entry = table.by_id(name)
    if entry is not None:
        return entry
    base = mig_of(name)[0]
    found = _by_name(base, table)
    called = found[0] if found else _by_alias(base, table)
    if called is not None:
        return called
    wanted = re.sub(r"[^a-z0-9]", "", name.casefold())
    starts = [device for device in table.devices if wanted and _plain(device.id).startswith(wanted)]
    inside = [device for device in table.devices if len(wanted) > 1 and wanted in _plain(device.id)]
    near = starts or inside
    return near[0] if len(near) == 1 else [device.id for device in near]


def _by_name(name: str, table: Table) -> tuple[Device, str] | None:
    wanted = _bare(name)
    if not wanted:
        return None
    for device in table.devices:
        if wanted in {_bare(known) for known in device.names}:
            return device, "exact name"
    hits = [(device, hit) for device in table.devices if device.name_regex and (hit := _compiled(device.name_regex).search(name))]
    if not hits:
        return None
    longest = max(len(hit.group()) for _, hit in hits)
    best = [(device, hit) for device, hit in hits if len(hit.group()) == longest]
    if len(best) > 1:
        return None
    device, hit = best[0]
    return device, f"name pattern: {hit.group()!r}"


def _by_alias(name: str, table: Table) -> Device | None:
    """By a short name that people use ("h100"); in a profile only after units and memory could not tell."""
    wanted = _bare(name)
    return next((device for device in table.devices if wanted and wanted in {_bare(known) for known in device.aliases}), None)


def _checked(entry: Device, how: str, facts: Facts, mig: tuple[int, float] | None) -> Match:
    scale = scale_of(entry, units=facts.units, memory_bytes=facts.memory_bytes, kind=facts.kind, mig=mig)
    notes = list(scale.notes)
    derived = scale.partition is not None or entry.confidence != "vendor"
    if entry.confidence != "vendor":
        notes.append(f"figures of {entry.id} are {entry.confidence}, not from a vendor's sheet")
    if scale.partition is None and facts.memory_bytes and not _memory_fits(entry, facts.memory_bytes, scale.memory):
        notes.append(
            f"memory is {facts.memory_bytes / 1e9:.1f} GB where {entry.id} has {entry.memory.bytes * scale.memory / 1e9:.1f}: another "
            "variant, so its memory bandwidth is not known (give --bandwidth hbm=GBPS or run `roofterm measure`)"
        )
        entry = msgspec.structs.replace(entry, memory=_without_bandwidth(entry.memory))
        derived = True
    return Match(entry, how, scale, derived, notes, [entry.id])


def _by_properties(name: str, facts: Facts, table: Table) -> Match | None:
    """The entries with these units, this memory and this capability: used where they agree (rule 5 of `matching`)."""
    gfx = re.search(r"gfx[0-9a-f]{3,4}", name.casefold())
    if not facts.units or not facts.memory_bytes or not (facts.capability or gfx):
        return None
    generic = GENERIC.fullmatch(name.strip()) is not None
    fits = [
        device
        for device in table.devices
        if device.compute_units == facts.units
        and _memory_fits(device, facts.memory_bytes)
        and (device.arch == gfx.group() if gfx else capability_of(device) == facts.capability)
        and (facts.warp_size != 64 or device.vendor == "amd")
        and (generic or _is_of_family(name, device))
    ]
    fits = [device for device in fits if _clock_fits(device, facts.clock_hz)] or fits
    board = [device for device in fits if _bare(name) in {_bare(known) for known in device.board_names}]
    fits = board or fits
    if not fits:
        return None
    entry = _agreed(fits)
    what = f"{facts.units} units, {facts.memory_bytes / 1e9:.1f} GB, {gfx.group() if gfx else 'capability ' + str(facts.capability)}"
    ids = [device.id for device in fits]
    called = f"the table does not have the name {name.strip()!r}" if name.strip() else "the profile does not name the device"
    if entry is None:
        note = f"{called}, and {what} fit several devices with different peaks ({', '.join(ids)}): no roof; {WHAT_TO_DO}"
        return Match(None, "several entries fit", notes=[note], candidates=ids)
    same = f" ({' or '.join(ids)}: same peaks)" if len(ids) > 1 else f" ({ids[0]})"
    note = f"{called}: taken by {what}{same}"
    return Match(entry, f"units, memory and capability: {what}", WHOLE, True, [note], ids)


def _agreed(fits: list[Device]) -> Device | None:
    """The first entry with only those figures that all share; None if they differ in the peak that matters most."""
    first = fits[0]
    if len(fits) == 1:
        return first
    peaks = {
        dtype: min(device.peak_flops_dense[dtype] for device in fits)
        for dtype in first.peak_flops_dense
        if _same([device.peak_flops_dense.get(dtype) for device in fits])
    }
    main = next((dtype for dtype in ("bf16", "fp16", "fp32") if any(dtype in device.peak_flops_dense for device in fits)), "fp32")
    if main not in peaks:
        return None
    levels = [vendor_bandwidths(device) for device in fits]
    agree = {level for level in levels[0] if _same([each.get(level) for each in levels])}
    return msgspec.structs.replace(
        first,
        peak_flops_dense=peaks,
        memory=first.memory if "hbm" in agree else _without_bandwidth(first.memory),
        l2=first.l2 if "l2" in agree else None,
        llc=first.llc if "llc" in agree else None,
        l1_smem=first.l1_smem if "l1" in agree else None,
        interconnect={},
        notes=[],
    )


def _same(values: list[float | None]) -> bool:
    known = [value for value in values if value]
    return len(known) == len(values) and max(known) <= min(known) * (1 + SAME)


def _memory_fits(device: Device, memory_bytes: int, scale: float = 1.0) -> bool:
    sizes = (device.memory.bytes, *device.memory.other_bytes)
    return any(MEMORY_LOW <= memory_bytes / (size * scale) <= MEMORY_HIGH for size in sizes)


def _clock_fits(device: Device, clock_hz: float | None) -> bool:
    known = device.clock_max_reported_hz or device.clock_boost_hz
    return not clock_hz or known is None or abs(clock_hz / known - 1) <= SAME_CLOCK


def _without_bandwidth(memory: Memory) -> Memory:
    return msgspec.structs.replace(memory, bandwidth_Bps=0.0)


def _capability_differs(entry: Device, facts: Facts) -> bool:
    known = capability_of(entry)
    return known is not None and facts.capability is not None and known != facts.capability


def _is_of_family(name: str, device: Device) -> bool:
    """A custom name ("NVIDIA A100-PG509-200") must say the family itself, as a word: A100, MI300X."""
    family = re.split(r"-", device.id)[0]
    return re.search(rf"(?<![a-z0-9]){re.escape(family)}(?![a-z0-9])", name.casefold()) is not None


def _bare(name: str) -> str:
    """A name without what drivers add or leave out: the vendor's prefix, the suffix of a virtual function, double blanks."""
    text = " ".join(name.casefold().split())
    return text.removeprefix("nvidia ").removesuffix(" vf")


def _plain(identifier: str) -> str:
    return re.sub(r"[^a-z0-9]", "", identifier)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _unknown_note(facts: Facts) -> str:
    known = [
        f"{facts.units} units" if facts.units else "",
        f"{facts.memory_bytes / 1e9:.1f} GB" if facts.memory_bytes else "",
        f"capability {facts.capability}" if facts.capability else "",
    ]
    facts_text = ", ".join(part for part in known if part)
    called = f"unknown device {facts.name!r}" if facts.name else "the profile does not name its device"
    return f"{called}{f' ({facts_text})' if facts_text else ''}: no peak is known, so no roof is drawn; {WHAT_TO_DO}"
