"""`roofterm devices [NAME]`: the hardware table, or what a name resolves to and why."""

from __future__ import annotations

import textwrap

import msgspec

from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.output import width, write
from roofterm.cli.tabular import answer
from roofterm.hardware.describe import Described, describe, devices_frame
from roofterm.report.as_json import encode
from roofterm.report.columns import DEVICE_COLUMNS
from roofterm.text.safe import safe_text
from roofterm.text.units import bytes_text, si


def run(args: Arguments) -> int:
    if not args.paths:
        answer(args, devices_frame(), DEVICE_COLUMNS, {"schema": "roofterm.devices/1"}, most=0)
        return DONE
    found = describe(" ".join(args.paths))
    if args.format == "json":
        write(args, encode({"schema": "roofterm.device/1", **msgspec.to_builtins(found)}))
    elif args.format == "text":
        write(args, _lines(found))
    else:
        raise UsageError("one device is described in text or JSON")
    return DONE


def _lines(found: Described) -> list[str]:
    lines = [safe_text(found.name), f"  model      {found.model or 'unknown: no roof'}", f"  because    {safe_text(found.matched_by)}"]
    if found.near:
        lines.append(f"  near       {', '.join(found.near)}")
    if found.partition is not None:
        lines.append(f"  part       {found.partition}")
    if found.entry is not None:
        entry, label = found.entry, "whole" if found.partition is not None else "size"
        size = bytes_text(entry.memory.bytes if entry.memory else None)
        lines.append(f"  {label:11}{entry.compute_units or '--'} {entry.compute_unit_kind or 'units'}, {size}")
    lines += [f"  peak       {name:14}{si(value, 'FLOP/s'):>16}" for name, value in found.peaks.items()]
    lines += [f"  memory     {name:14}{si(value, 'B/s'):>16}" for name, value in found.bandwidths.items()]
    lines += [f"  link       {name:14}{si(value, 'B/s'):>16}  in one direction" for name, value in found.links.items()]
    for dtype in ("bf16", "fp16", "fp32"):
        if found.ridge.get(dtype, {}).get("hbm"):
            lines.append(f"  ridge      {dtype:14}{found.ridge[dtype]['hbm']:>9.1f} FLOP/byte")
    for label, texts in (
        ("note", found.notes),
        ("source", [f"{group}: {text}" for group, text in found.sources.items()]),
        ("unchecked", [f"{group}: its source was not opened when it was entered" for group in found.unchecked]),
        ("disagrees", found.disagreements),
        ("measured", [f"{key}: {value}" for key, value in found.measured_by_others.items()]),
        ("here", [f"{record.measured_at}, torch {record.torch}" for record in found.measured_here]),
    ):
        for text in texts:
            lines += textwrap.wrap(safe_text(text), width(), initial_indent=f"  {label:11}", subsequent_indent=" " * 13)
    return lines
