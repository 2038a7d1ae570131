"""The programs whose HLO lies in the file, and the rows of hlo_ops for the instructions that ran on GPU or host."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import polars as pl

from roofterm_parsers.profile import Warning
from roofterm_parsers.xplane.hlo_costs import CostAnalysis
from roofterm_parsers.xplane.hlo_proto import Instruction, Module, read_module
from roofterm_parsers.xplane.hlo_roles import Roles
from roofterm_parsers.xplane.hlo_rows import HloRows
from roofterm_parsers.xplane.hlo_rules import OURS, XPROF
from roofterm_parsers.xplane.hlo_text import category, instruction_text
from roofterm_parsers.xplane.kinds import HLO_PLANE
from roofterm_parsers.xplane.space import Space
from roofterm_parsers.xplane.wire import Buffer, WireError

HLO_STAT = "Hlo Proto"
MOST_NAMED = 8
MOST_NESTED = 8
"""Fusions inside fusions that are followed."""
_PROGRAM = re.compile(r"\((\d+)\)$")
_WIDTHS_HALVED = {8: 2.0, 4: 4.0}
"""XProf divides the FLOPs of 8 and 4 bit inputs by these, to hold them against the 16 bit peak."""


class Programs:
    """Finds an event's instruction. A module is read when the first of its events is met."""

    def __init__(self, data: Buffer, space: Space, rows: HloRows) -> None:
        self._data, self._rows = data, rows
        self._spans = _hlo_spans(data, space)
        self._programs: dict[int, Program | None] = {}
        self._unfound: Counter[str] = Counter()
        self._uncosted: Counter[str] = Counter()
        self._made: dict[tuple[int | None, str, str, str, bool, str], int] = {}
        self._unread = 0

    def row(self, program: int | None, module: str, hlo_op: str, framework_op: str, stated: bool = False, shapes: str = "") -> int:
        """The row of hlo_ops for events that state these.

        `stated`: the framework's op under the name that XProf knows; `shapes`: of an op that no HLO is known of, its inputs.
        """
        shapes = "" if hlo_op else shapes
        key = (program, module, hlo_op, framework_op, stated, shapes)
        row = self._made.get(key)
        if row is None:
            row = self._made[key] = self._row(
                None if program is None else program & 0xFFFFFFFFFFFFFFFF, module, hlo_op, framework_op, stated, shapes
            )
        return row

    def _row(self, program: int | None, module: str, hlo_op: str, framework_op: str, stated: bool, shapes: str) -> int:
        name = hlo_op.rsplit("::", 1)[-1]
        found = self._program(program)
        one = found.module.by_name.get(name) if found is not None else None
        if found is not None and one is not None:
            op, facts = found.rows(one)
            if op["flops"] is None:
                self._uncosted[f"custom-call {one.target}" if one.opcode == "custom-call" else found.blame(one)] += 1
        else:
            if name:
                self._unfound[name] += 1
            op = {"program": module or None, "name": name or None, "framework_op": framework_op or None, "flops_from": "none"}
            facts = {"xprof_category": ""} if stated and not name else {}
            if shapes and not name:
                facts["shape"] = shapes
        row = self._rows.add({"program_id": program, **op}, facts)
        if found is not None and one is not None:
            self._rows.roles[row] = found.roles.of(one)
        return row

    def _program(self, program: int | None) -> Program | None:
        if program is None or program not in self._spans:
            return None
        if program not in self._programs:
            try:
                self._programs[program] = Program(read_module(self._data, *self._spans[program]))
            except WireError:
                self._programs[program] = None
                self._unread += 1
        return self._programs[program]

    def add_surroundings(self) -> None:
        """Give instructions whose metadata stands with their events (TPU) their operands, users, parts and roles out of the HLO."""
        for row, (op, facts) in enumerate(zip(self._rows.ops, self._rows.facts, strict=True)):
            if "operands" in facts or not op.get("name"):
                continue
            program = self._program(op.get("program_id"))
            one = program.module.by_name.get(op["name"]) if program is not None else None
            if program is not None and one is not None:
                facts |= program.surroundings(one)
                self._rows.roles[row] = program.roles.of(one)

    def warnings(self) -> list[Warning]:
        found = []
        if self._uncosted:
            count = self._uncosted.total()
            found.append(Warning("hlo-no-rule", f"{count:,} HLO instructions have no known cost: {_named(self._uncosted)}.", count))
        if self._unfound:
            count = self._unfound.total()
            found.append(
                Warning(
                    "hlo-missing",
                    f"{count:,} HLO instructions are not in the file's HLO, so their cost is unknown: {_named(self._unfound)}.",
                    count,
                )
            )
        if self._unread:
            found.append(Warning("hlo-damaged", f"the HLO of {self._unread:,} programs is damaged.", self._unread))
        return found


@dataclass
class Program:
    module: Module

    @cached_property
    def ours(self) -> CostAnalysis:
        return CostAnalysis(self.module, OURS)

    @cached_property
    def xprof(self) -> CostAnalysis:
        return CostAnalysis(self.module, XPROF)

    @cached_property
    def roles(self) -> Roles:
        return Roles(self.module, self.ours)

    def rows(self, one: Instruction) -> tuple[dict[str, Any], dict[str, Any]]:
        """What hlo_ops and hlo_facts say of an instruction."""
        module = self.module
        cost, theirs = self.ours.of(one), self.xprof.of(one)
        flops = cost.flops if cost is not None else None
        size = cost.bytes if cost is not None else None
        op = {
            "program": module.name,
            "name": one.name,
            "category": category(one),
            "text": instruction_text(module, one),
            "framework_op": one.op_name or None,
            "source": f"{one.source_file}:{one.source_line}" if one.source_file else self._source(one),
            "source_stack": module.stack(one) or None,
            "deduplicated": one.deduplicated or None,
            "flops": flops,
            "model_flops": flops,
            "bytes": size,
            "hbm_read_bytes": sum(cost.read.values()) if cost is not None and size is not None else None,
            "hbm_write_bytes": sum(cost.written.values()) if cost is not None and size is not None else None,
            "flops_from": "none" if flops is None else "hlo",
        }
        facts: dict[str, Any] = {
            "opcode": one.opcode,
            "shape": str(one.shape),
            "dtype": self._dtype(one),
            "custom_call": one.target or None,
            "xprof_category": category(one),
            **self.surroundings(one),
        }
        if theirs is not None:
            model = max(theirs.flops or 0.0, 0.0)
            accessed = max(theirs.bytes or 0.0, 0.0)
            facts |= {
                "xprof_flops": float(int(model / self._width(one))),
                "xprof_model_flops": float(int(model)),
                "xprof_bytes": float(int(accessed)),
                "xprof_hbm_bytes": self.xprof.device_bytes(one) if accessed > 0 else None,
            }
        return op, facts

    def surroundings(self, one: Instruction) -> dict[str, str | None]:
        """Names of an instruction's operands, of those that use it and of those inside it, as JSON."""
        users = [user.name for user in self.module.users.get(one.id, [])]
        inside = self._inside(one) if one.opcode == "fusion" else []
        return {
            "operands": msgspec.json.encode([operand.name for operand in self.module.operands(one)]).decode(),
            "users": msgspec.json.encode(users).decode(),
            "inside": msgspec.json.encode(inside).decode() if inside else None,
        }

    def _inside(self, fusion: Instruction, depth: int = 0) -> list[Any]:
        function = self.module.computation.get(fusion.called[0]) if fusion.called else None
        if function is None or depth > MOST_NESTED:
            return []
        return [
            [one.name, self._inside(one, depth + 1)] if one.opcode == "fusion" else one.name
            for one in function.instructions
            if one.opcode not in ("parameter", "tuple")
        ]

    def blame(self, one: Instruction) -> str:
        """The opcode inside that has no rule."""
        for number in one.called:
            computation = self.module.computation.get(number)
            for inner in computation.instructions if computation is not None else ():
                cost = self.ours.of(inner)
                if cost is not None and cost.flops is None:
                    return f"custom-call {inner.target}" if inner.opcode == "custom-call" else self.blame(inner)
        return one.opcode

    def _source(self, one: Instruction) -> str | None:
        """The innermost frame of the call stack, without its column."""
        stack = self.module.stack(one)
        return stack.split("\n", 1)[0].rsplit(":", 1)[0] if stack else None

    def _width(self, one: Instruction) -> float:
        arrays = [operand.shape for operand in self.module.operands(one) if operand.shape.is_array]
        widths = [1 if shape.dtype == "pred" else shape.bits for shape in arrays]
        if one.opcode == "custom-call":
            return _WIDTHS_HALVED.get(widths[0], 1.0) if widths and one.target.startswith("__cublas$lt$") else 1.0
        return _WIDTHS_HALVED.get(max(widths), 1.0) if widths else 1.0

    def _dtype(self, one: Instruction) -> str | None:
        """The type that the work is done in: of the products' operands if there are any, else the widest input's."""
        inner = [one]
        if one.opcode in ("fusion", "call", "async-start"):
            inner = [
                part for number in one.called if number in self.module.computation for part in self.module.computation[number].instructions
            ]
        products = [part for part in inner if part.opcode in ("dot", "convolution", "custom-call")]
        chosen = max(products, key=lambda part: part.shape.elements) if products else one
        shapes = [operand.shape for operand in self.module.operands(chosen) if operand.shape.is_array and operand.shape.elements]
        if not shapes:
            shapes = [leaf for _, leaf in one.shape.leaves() if leaf.is_array]
        if not shapes:
            return None
        return shapes[0].dtype if products else max(shapes, key=lambda shape: shape.elements).dtype


def _hlo_spans(data: Buffer, space: Space) -> dict[int, tuple[int, int]]:
    """Program id to data[a:b] of its HloProto."""
    spans: dict[int, tuple[int, int]] = {}
    for plane in space.planes:
        if plane.name != HLO_PLANE:
            continue
        for number, metadata in plane.event_metadata.items():
            for stat in metadata.stats:
                if stat.wire == 6 and plane.stat_names.get(stat.stat) == HLO_STAT:
                    named = _PROGRAM.search(metadata.name)
                    spans[int(named.group(1)) if named else number] = (stat.a, stat.b)
    return spans


def _named(counts: Counter[str]) -> str:
    names = [f"{name} ({count:,})" if count > 1 else name for name, count in counts.most_common(MOST_NAMED)]
    rest = len(counts) - len(names)
    return ", ".join(names) + (f" and {rest:,} more" if rest > 0 else "")


def mean_event_costs(rows: HloRows, hlo: pl.DataFrame, events: pl.DataFrame) -> None:
    """Give instructions that state no cost of their own (Pallas kernels) the mean of what their events state."""
    stated = events["flops"].is_not_null().arg_true().to_numpy()
    if stated.size == 0 or hlo.is_empty():
        return
    slices, ops = hlo["slice"].to_numpy(), hlo["op"].to_numpy()
    place = np.full(int(max(slices[-1], events["slice"][-1])) + 1, -1, np.int32)
    place[events["slice"].to_numpy()[stated]] = stated
    silent = np.array([row.get("flops") is None for row in rows.ops], bool)
    mine = np.flatnonzero(silent[ops] & (place[slices] >= 0))
    costs = events.select("flops", "model_flops", "bytes")[place[slices[mine]]].with_columns(op=pl.Series(ops[mine]))
    for op, flops, model_flops, size in costs.group_by("op").agg(pl.all().mean()).iter_rows():
        rows.ops[op] |= {"flops": flops, "model_flops": model_flops or flops, "bytes": size or None, "flops_from": "trace"}
