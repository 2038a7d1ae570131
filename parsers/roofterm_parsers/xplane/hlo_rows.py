"""The HLO instructions of a profile: `hlo_ops`, `hlo_facts` and `hlo_roles`, one row an instruction, shared by the devices that ran it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from roofterm_parsers.profile import HLO_FACTS, HLO_OPS, HLO_ROLES
from roofterm_parsers.xplane.space import EventMetadata, Plane, Value
from roofterm_parsers.xplane.wire import BYTES, VARINT, Buffer, WireError, fields

OPCODE = re.compile(r"^(?:ROOT )?%?[\w.\-]+ = (?P<shape>\(.*?\)|[^ ]+) (?P<opcode>[a-z][\w\-]*)\(")
"""An instruction's text: `%fusion.1 = bf16[8,128]{1,0} fusion(...)`."""
_NAME = re.compile(r"^%?([\w.\-]+) = ")
_TARGET = re.compile(r'custom_call_target="([^"]*)"')

_SPACES = {1: "hbm", 2: "cmem", 3: "vmem"}
_OPERATIONS = {1: "read", 2: "write"}


@dataclass(slots=True)
class HloRows:
    """Rows so far. Two devices' metadata that say the same are one row."""

    ops: list[dict[str, Any]] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    roles: dict[int, dict[str, float | None]] = field(default_factory=dict)
    """what is known of a row's bytes by role"""
    _known: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def add(self, op: dict[str, Any], facts: dict[str, Any]) -> int:
        """The row of an instruction, made if it is new."""
        key = (*op.items(), *facts.items())
        row = self._known.get(key)
        if row is None:
            row = self._known[key] = len(self.ops)
            self.ops.append(op)
            self.facts.append({"op": row, **facts})
        return row

    def frames(self) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """`hlo_ops`, `hlo_facts` and `hlo_roles`."""
        roles = [{"op": row, **found} for row, found in sorted(self.roles.items()) if found]
        return _frame(self.ops, HLO_OPS), _frame(self.facts, HLO_FACTS), _frame(roles, HLO_ROLES)


def _frame(rows: list[dict[str, Any]], schema: pl.Schema) -> pl.DataFrame:
    return pl.DataFrame({name: pl.Series(name, [row.get(name) for row in rows], dtype=kind) for name, kind in schema.items()})


def short_name(metadata: EventMetadata) -> str:
    """What people call the event: its display name, or the instruction's name out of its text."""
    if metadata.display_name:
        return metadata.display_name
    match = _NAME.match(metadata.name)
    return match.group(1) if match else metadata.name


def metadata_row(data: Buffer, plane: Plane, metadata: EventMetadata, modules: dict[int, str], rows: HloRows) -> int:
    """The row for a TPU op's metadata: costs per occurrence as libtpu's compiler counted them (reference: xplane 3.1)."""
    stats = plane.values(data, metadata.stats)
    program = _integer(stats.get("program_id"))
    flops, model_flops = _number(stats.get("flops")), _number(stats.get("model_flops"))
    breakdown, on_chip = _breakdown(stats.get("memory_access_breakdown"))
    instruction = OPCODE.match(metadata.name)
    target = _TARGET.search(metadata.name)
    op = {
        "program_id": program,
        "program": modules.get(program) if program is not None else None,
        "name": short_name(metadata),
        "category": _text(stats.get("hlo_category")),
        "text": metadata.name or None,
        "framework_op": _text(stats.get("tf_op")) or _text(stats.get("tf_op_name")),
        "source": _text(stats.get("source")),
        "source_stack": _text(stats.get("source_stack")),
        "deduplicated": _text(stats.get("deduplicated_name")),
        "flops": flops,
        "model_flops": model_flops if model_flops else flops,
        "bytes": _number(stats.get("bytes_accessed")),
        **breakdown,
        "flops_from": "none" if flops is None else "trace",
    }
    shape = _text(stats.get("shape_with_layout"))
    facts = {
        "symbol_id": _integer(stats.get("symbol_id")),
        "opcode": instruction["opcode"] if instruction else None,
        "shape": shape or (instruction["shape"] if instruction else None),
        "custom_call": target.group(1) if target else None,
        "xprof_flops": flops,
        "xprof_model_flops": model_flops,
        "xprof_bytes": op["bytes"],
        "xprof_category": op["category"],
        **on_chip,
    }
    return rows.add(op, facts)


def _breakdown(held: Value | None) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Bytes by memory and direction, and those on the chip by direction; null all over where the compiler gives no breakdown."""
    totals: dict[str, float | None] = {f"{space}_{way}_bytes": None for space in _SPACES.values() for way in _OPERATIONS.values()}
    on_chip: dict[str, float | None] = {f"on_chip_{way}_bytes": None for way in _OPERATIONS.values()}
    if not isinstance(held, bytes) or not held:
        return totals, on_chip
    data = memoryview(held)
    try:
        for number, wire, a, b in fields(data, 0, len(data)):
            if number != 1 or wire != BYTES:
                continue
            access = {key: value for key, kind, value, _ in fields(data, a, b) if kind == VARINT}
            totals = {key: value or 0.0 for key, value in totals.items()}
            on_chip = {key: value or 0.0 for key, value in on_chip.items()}
            space, way, size = _SPACES.get(access.get(2, 0)), _OPERATIONS.get(access.get(1, 0)), access.get(3, 0)
            if way is None:
                continue
            if space is not None:
                totals[f"{space}_{way}_bytes"] = (totals[f"{space}_{way}_bytes"] or 0.0) + size
            if space != "hbm":
                on_chip[f"on_chip_{way}_bytes"] = (on_chip[f"on_chip_{way}_bytes"] or 0.0) + size
    except WireError:
        pass
    return totals, on_chip


def _number(value: Value | None) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _integer(value: Value | None) -> int | None:
    """An id, unsigned; some writers give it as text."""
    if isinstance(value, int):
        return value & 0xFFFFFFFFFFFFFFFF
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def _text(value: Value | None) -> str | None:
    return value if isinstance(value, str) and value else None
