"""What stands above a roofline's plot and table: how much of the time has figures, how busy the devices were, and the roofs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from roofterm.results import Coverage, DeviceInfo, Roof, ScopeUse
from roofterm.text.safe import safe_text
from roofterm.text.units import duration_us, figures, pct, si

LEAST_PCT = 0.05

ORIGINS = {
    "op": "ops that no rule counts",
    "no shapes": "ops without recorded shapes",
    "no op": "launches outside any op",
    "graph": "graph replays",
    "orphan": "kernels without a launch",
}
"""What the unknown hangs on (`analysis.costed.ORIGINS`), in words."""


def coverage_lines(scope: str, coverage: Coverage, width: int) -> list[str]:
    """What part of a profile is shown, and how much of its time has figures."""
    if coverage.modelled_pct is None:
        return textwrap.wrap(f"{scope}: nothing that a roofline speaks of ran in it", width)
    shares = (f"{pct(coverage.modelled_pct)} of busy time modelled", f"{pct(coverage.bytes_only_pct)} bytes only")
    lines = textwrap.wrap(f"{scope}: {', '.join(shares)}, {pct(coverage.unknown_pct)} unknown", width)
    parts = [f"{pct(share)} {ORIGINS.get(origin, origin)}" for origin, share in coverage.unknown_by.items() if share >= LEAST_PCT]
    if parts:
        lines += textwrap.wrap(f"of it unknown: {', '.join(parts)}", width, initial_indent="  ", subsequent_indent="  ")
    return lines + textwrap.wrap(coverage.missing or "", width, initial_indent="  ", subsequent_indent="  ")


def use_lines(use: ScopeUse | None, device: DeviceInfo | None, width: int) -> list[str]:
    """Idle time, MFU, HFU and MBU, for all devices together."""
    if use is None:
        return []
    least = ">= " if use.at_least else ""
    times = f"{duration_us(use.time_us)} of {_what(device)} time: {pct(use.busy_pct)} busy, {duration_us(use.idle_us)} idle"
    shares = [f"{name} {least if value is not None else ''}{pct(value)}" for name, value in (("MFU", use.mfu_pct), ("HFU", use.hfu_pct))]
    return textwrap.wrap(", ".join([times, *shares, f"MBU {pct(use.mbu_pct)}"]), width)


def roof_lines(device: DeviceInfo | None, roofs: Sequence[Roof], width: int) -> list[str]:
    """The roofs that something is held against, each with its source and the ridge point of its type in main memory; where none
    is known, why and what to do."""
    if device is None:
        return []
    if not (device.peaks or device.bandwidths):
        return [line for note in device.notes for line in textwrap.wrap(safe_text(note), width, subsequent_indent="  ")]
    told = []
    for roof in roofs:
        if not roof.drawn and roof.level != "hbm":
            continue
        name = roof.dtype or ("HBM" if roof.level == "hbm" else roof.level) or roof.kind
        ridge = device.ridge.get(roof.dtype or "", {}).get("hbm")
        beside = roof.source if ridge is None else f"{roof.source}, ridge {figures(ridge)} FLOP/byte"
        told.append(f"{si(roof.value, roof.unit)} {name} ({beside})")
    model = safe_text(device.model or device.name or f"the {_what(device)}")
    noisy = [safe_text(note) for note in device.notes if "noisy" in note]
    told_of = [f"roofs of {model}: {', '.join(told)}", *noisy] if told else []
    return [line for text in told_of for line in textwrap.wrap(text, width, subsequent_indent="  ")]


def _what(device: DeviceInfo | None) -> str:
    return "CPU" if device is not None and device.kind == "cpu" else "device"
