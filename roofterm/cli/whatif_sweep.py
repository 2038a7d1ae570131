"""What `roofterm whatif --sweep` gives: a plot whose points are joined, a table, and where memory and time between tokens end."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from roofterm.analysis.bounds import LAUNCH_S, roofs_of
from roofterm.analysis.sweep import Sweep, points, value_text
from roofterm.analysis.whatif_state import Base
from roofterm.analysis.workload import Machine
from roofterm.cli.arguments import Arguments
from roofterm.cli.output import width, write
from roofterm.cli.roofline import picture, plot
from roofterm.cli.tabular import folded, ordered
from roofterm.report.as_json import encode
from roofterm.report.as_markdown import markdown_table
from roofterm.report.columns import SWEEP_COLUMNS
from roofterm.report.files import csv_bytes
from roofterm.report.plain_table import plain_table
from roofterm.results import Roof, SweepRow
from roofterm.text.safe import safe_text
from roofterm.text.units import bytes_text


def give_sweep(args: Arguments, bases: Sequence[Base], sweeps: list[Sweep], machine: Machine, itl_us: float | None) -> None:
    if args.format == "json":
        head = {"schema": "roofterm.whatif-sweep/1", "device": machine.device.name or machine.name, "roofs": machine_roofs(machine)}
        states = [{"name": row.name, "value": row.value, **msgspec.to_builtins(row.state)} for one in sweeps for row in one.rows]
        write(args, encode({**head, "held": sweeps[0].held, "rows": states}))
        return
    if args.format == "svg":
        rows = [row for one in sweeps for row in one.rows]
        title = f"{args.sweep} on {machine.name}: each step at its bound"
        write(args, picture(points(rows), _of_types(machine, rows), title, [value_text(row.value) for row in rows], path=True))
        return
    frame = ordered(pl.DataFrame([_flat(row) for one in sweeps for row in one.rows], schema=_SWEEP), args.sort)
    if args.format == "csv":
        write(args, csv_bytes(frame))
    elif args.format == "markdown":
        write(args, markdown_table(frame, SWEEP_COLUMNS))
    else:
        lines: list[str] = []
        for base, one in zip(bases, sweeps, strict=True):
            mine = frame.filter(pl.col("phase").eq_missing(base.phase))
            lines += [
                *plot(args, points(one.rows), machine_roofs(machine), [value_text(row.value) for row in one.rows], path=True),
                "",
                *plain_table(mine, SWEEP_COLUMNS, width()),
                *_marks(one, machine, itl_us),
                "",
            ]
        write(args, [*lines, *folded([safe_text(f"held: {'; '.join(sweeps[0].held)}")])])


def machine_roofs(machine: Machine) -> list[Roof]:
    """The roofs of a machine; a launch of a collective takes what --latency says."""
    found = [roof for roof in roofs_of(machine.device) if roof.kind != "launch"]
    return [*found, Roof("launch", None, None, machine.collective_s, "s", "given" if machine.collective_s != LAUNCH_S else "derived")]


def _of_types(machine: Machine, rows: Sequence[SweepRow]) -> list[Roof]:
    """The device's roofs, of which the types that the steps run in are drawn."""
    types = {row.state.dtype for row in rows}
    return [msgspec.structs.replace(roof, drawn=roof.dtype in types or roof.level == "hbm") for roof in machine_roofs(machine)]


def _marks(found: Sweep, machine: Machine, itl_us: float | None) -> list[str]:
    """Where a sweep leaves the memory, and the time between tokens that is allowed."""
    said = []
    too_large = [value_text(row.value) for row in found.rows if row.state.fits is False]
    if too_large:
        said.append(f"more than the {bytes_text(machine.device.memory_bytes)} of the device's memory: {', '.join(too_large)}")
    if itl_us is not None:
        kept = [value_text(row.value) for row in found.rows if row.state.itl_us is not None and row.state.itl_us <= itl_us]
        said.append(f"{itl_us / 1e3:g} ms between tokens kept, at the bound: {', '.join(kept) or 'by none'}")
    return folded([safe_text(one) for one in said])


def _flat(row: SweepRow) -> dict[str, object]:
    state = row.state
    moved = {role: sum(ways.values()) for role, ways in state.bytes_by_role.items()}
    shown = {name: getattr(state, name) for name in _SWEEP if hasattr(state, name)}
    return {**shown, "value": value_text(row.value), **{f"{role}_bytes": moved.get(role) for role in ("weight", "kv", "activation")}}


_SWEEP = {
    name: pl.String if name in ("value", "phase", "bound_by") else pl.Int64 if name == "tp" else pl.Float64
    for name in (
        "value", "phase", "sequences", "tokens", "context", "tp", "bound_us", "bound_by", "intensity", "flops", "bytes",
        "weight_bytes", "kv_bytes", "activation_bytes", "held_bytes", "arithmetic_us", "memory_us", "link_us", "tokens_per_s", "itl_us",
        "ttft_us", "estimate_us",
    )
}  # fmt: skip
