"""Arrows between events: XLA numbers what an event starts elsewhere (`_pt`, `_p`) and what started an event (`_ct`, `_c`)."""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm_parsers.xplane.columns import LineStats
from roofterm_parsers.xplane.lines import Line
from roofterm_parsers.xplane.making import Making

START, END = 0, 2
_ENDS = ((START, "_pt", "_p"), (END, "_ct", "_c"))


def add_flows(making: Making, line: Line, stats: LineStats) -> None:
    """Rows of `flows` for the track that was added last; an arrow's id is its kind of context and its number there."""
    for phase, kind, number in _ENDS:
        rows = stats.rows(number)
        if rows.size == 0 or not stats.has(kind):
            continue
        kinds = pl.Series(stats.integers(kind, 0)[rows]).cast(pl.String)
        numbers = pl.Series(stats.integers(number, 0)[rows].view(np.uint64)).cast(pl.String)
        making.gather.add_rows(
            "flows",
            {
                "id": kinds + ":" + numbers,
                "cat": pl.Series(["context"]).new_from_index(0, rows.size),
                "phase": np.full(rows.size, phase, np.uint8),
                "time_ps": line.events.offset_ps[rows] + making.base_ps(line),
                "track": np.full(rows.size, len(making.tracks) - 1, np.uint32),
            },
        )
