"""The programs whose HLO lies in the file, and the rows of hlo_ops for the instructions that ran on GPU or host."""

from __future__ import annotations

from typing import Any

import polars as pl

from roofterm_parsers.profile import Warning
from roofterm_parsers.xplane.hlo_rows import HloRows
from roofterm_parsers.xplane.space import Space
from roofterm_parsers.xplane.wire import Buffer


class Programs:
    def __init__(self, data: Buffer, space: Space, rows: HloRows) -> None:
        self._rows = rows

    def row(self, program: int | None, module: str, hlo_op: str, framework_op: str) -> int:
        """The row of hlo_ops for an event that states these; a program id that is no id is null."""
        name = hlo_op.rsplit("::", 1)[-1] or None
        op: dict[str, Any] = {
            "program_id": None if program is None else program & 0xFFFFFFFFFFFFFFFF,
            "program": module or None,
            "name": name,
            "framework_op": framework_op or None,
            "flops_from": "none",
        }
        return self._rows.add(op, {})

    def cost(self, events: pl.DataFrame, hlo: pl.DataFrame) -> None:
        """Fill in what the instructions cost."""

    def warnings(self) -> list[Warning]:
        return []
