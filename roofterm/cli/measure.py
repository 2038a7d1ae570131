"""`roofterm measure [--python PATH]`: this machine's roofs, measured with torch and kept for later rooflines."""

from __future__ import annotations

import sys

import msgspec

from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.output import write
from roofterm.hardware.runner import Progress, keep, measure
from roofterm.hardware.store import MeasuredRoofs
from roofterm.report.as_json import encode
from roofterm.text.safe import safe_text
from roofterm.text.units import duration_us, si


def run(args: Arguments) -> int:
    if args.format not in ("text", "json"):
        raise UsageError("measured roofs are given in text or JSON")
    show = sys.stderr.isatty() and not args.quiet
    roofs = measure(args.python, args.budget, _draw if show else lambda _: None, args.device)
    if show:
        sys.stderr.write("\r\x1b[K")
    write(args, encode({"schema": "roofterm.measured/1", **msgspec.to_builtins(roofs)}) if args.format == "json" else _lines(roofs))
    path = keep(roofs, args.force)
    if not args.quiet:
        print(f"kept in {safe_text(str(path))}", file=sys.stderr)
    return DONE


def _draw(progress: Progress) -> None:
    figure = f"  {si(progress.figure, progress.unit or '')}" if progress.figure is not None else ""
    sys.stderr.write(f"\r\x1b[K{progress.share * 100:3.0f}%  {safe_text(progress.stage)}{figure}")
    sys.stderr.flush()


def _lines(roofs: MeasuredRoofs) -> list[str]:
    threads = f", {roofs.threads} threads" if roofs.threads else ""
    lines = [
        f"{safe_text(roofs.device.name)} on {safe_text(roofs.node)}, torch {safe_text(roofs.torch)}{threads}, in {roofs.seconds:.0f} s"
    ]
    lines += [f"  peak       {name:20}{si(value, 'FLOP/s'):>16}" for name, value in roofs.peaks.items()]
    lines += [f"  memory     {name:20}{si(value, 'B/s'):>16}" for name, value in roofs.bandwidths.items()]
    lines += [f"  link       {name:20}{si(value, 'B/s'):>16}" for name, value in roofs.links.items()]
    lines += [f"  launch     {name:20}{duration_us(value * 1e6):>16}" for name, value in roofs.launch_s.items()]
    lines += [f"  noisy      {safe_text(text)}" for text in roofs.noisy]
    return [*lines, *(f"  note       {safe_text(text)}" for text in roofs.notes)]
