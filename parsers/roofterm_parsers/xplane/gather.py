"""Frames in the making: slices line by line, and the rows of the side tables beside them.

Lines come in the order of their tracks and each is sorted on its own, so that a slice's id is known as soon as its line
is added and nothing is sorted twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.nesting import nest
from roofterm_parsers.profile import FRAMES, empty
from roofterm_parsers.xplane.wire import I64, U32

Column = NDArray[Any] | pl.Series


@dataclass(slots=True)
class Line:
    """A line's events as slices, sorted; times relative to the line's own zero until the profile's zero is known."""

    base_ps: int
    """the line's zero, ps, in the file's own time"""
    start_ps: I64
    dur_ps: I64
    name: U32
    kind: NDArray[np.uint8]
    at: I64
    first: int
    """id of its first slice"""


@dataclass(slots=True)
class Gather:
    lines: list[Line] = field(default_factory=list)
    names: dict[tuple[str, str], int] = field(default_factory=dict)
    tables: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    slices: int = 0

    def name(self, text: str, category: str) -> int:
        return self.names.setdefault((text, category), len(self.names))

    def add_line(self, base_ps: int, start_ps: I64, dur_ps: I64, name: U32, kind: NDArray[np.uint8], at: I64) -> tuple[int, I64 | None]:
        """Add a track's slices; returns the id of the first, and the order they were put in (None: as given)."""
        later, longer = start_ps[1:] < start_ps[:-1], (start_ps[1:] == start_ps[:-1]) & (dur_ps[1:] > dur_ps[:-1])
        order: I64 | None = None
        if np.any(later | longer):
            order = np.lexsort((-dur_ps, start_ps))
            start_ps, dur_ps, name, kind, at = start_ps[order], dur_ps[order], name[order], kind[order], at[order]
        first = self.slices
        self.lines.append(Line(base_ps, start_ps, dur_ps, name, kind, at, first))
        self.slices += int(start_ps.size)
        return first, order

    def add_rows(self, table: str, columns: Mapping[str, Column]) -> None:
        """Add rows to a side table; columns that are not given are null."""
        schema = FRAMES[table]
        rows = len(next(iter(columns.values())))
        if rows == 0:
            return
        series = []
        for column, dtype in schema.items():
            values = columns.get(column)
            if values is None:
                series.append(pl.Series(column, [None], dtype=dtype).extend_constant(None, rows - 1))
            elif isinstance(values, pl.Series):
                series.append(values.alias(column).cast(dtype))
            else:
                series.append(pl.Series(column, values).cast(dtype))
        self.tables.setdefault(table, []).append(pl.DataFrame(series))

    def table(self, name: str, by: str | None = None) -> pl.DataFrame:
        """A side table of all rows, ordered by a column."""
        parts = self.tables.get(name)
        if not parts:
            return empty(name)
        frame = pl.concat(parts)
        if by is None or frame[by].is_sorted():
            return frame
        return frame.sort(by, maintain_order=True)

    def zero_ps(self) -> int:
        """The earliest time of all lines, ps, in the file's own time; 0 if there is no slice."""
        return min((line.base_ps + int(line.start_ps[0]) for line in self.lines if line.start_ps.size), default=0)

    def slices_frame(self, zero_ps: int) -> pl.DataFrame:
        """The frame `slices`; its times count from `zero_ps`."""
        if self.slices == 0:
            return empty("slices")
        start = np.empty(self.slices, np.int64)
        for line in self.lines:
            np.add(line.start_ps, line.base_ps - zero_ps, out=start[line.first : line.first + line.start_ps.size])
        dur = np.concatenate([line.dur_ps for line in self.lines])
        track = np.repeat(np.arange(len(self.lines), dtype=np.uint32), [line.start_ps.size for line in self.lines])
        parent, depth = nest(track, start, dur)
        return pl.DataFrame(
            {
                "start_ps": start,
                "dur_ps": dur,
                "track": track,
                "name": np.concatenate([line.name for line in self.lines]),
                "kind": np.concatenate([line.kind for line in self.lines]),
                "parent": parent,
                "depth": depth,
                "offset": np.concatenate([line.at for line in self.lines]).view(np.uint64),
            }
        )

    def names_frame(self) -> pl.DataFrame:
        texts, categories = zip(*self.names, strict=True) if self.names else ((), ())
        return pl.DataFrame({"text": pl.Series(texts, dtype=pl.String), "cat": pl.Series(categories, dtype=pl.String)})


def filled(values: NDArray[Any], missing: int) -> pl.Series:
    """Values as a column that is null where they are `missing`."""
    series = pl.Series(values)
    return series.set(series == missing, None)


def filled_floats(values: NDArray[np.float64]) -> pl.Series:
    """Values as a column that is null where they are NaN."""
    return pl.Series(values).fill_nan(None)
