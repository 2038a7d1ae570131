"""Frames in the making: slices line by line, and the rows of the side tables beside them.

Lines come in the order of their tracks and each is sorted on its own, so that a slice's id is known as soon as its line
is added and nothing is sorted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.nesting import U16, nest_track
from roofterm_parsers.profile import FRAMES, ROOT, empty
from roofterm_parsers.threads import Later
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
    nested: Callable[[], tuple[U32, U16]]
    """their parents, which are rows of the line, and depths"""


@dataclass(slots=True)
class Gather:
    later: Later
    lines: list[Line] = field(default_factory=list)
    names: dict[tuple[str, str], int] = field(default_factory=dict)
    tables: dict[str, list[tuple[int, dict[str, pl.Series]]]] = field(default_factory=dict)
    """of each side table the parts, with their numbers of rows"""
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
        self.lines.append(Line(base_ps, start_ps, dur_ps, name, kind, at, first, self.later(nest_track, start_ps, dur_ps)))
        self.slices += int(start_ps.size)
        return first, order

    def add_rows(self, table: str, columns: Mapping[str, Column]) -> None:
        """Add rows to a side table; columns that are not given are null. Rows of slices are put in the slices' order."""
        rows = {name: values if isinstance(values, pl.Series) else pl.Series(values) for name, values in columns.items()}
        count = len(next(iter(rows.values())))
        if count == 0:
            return
        ids = rows.get("slice")
        if ids is not None and not ids.is_sorted():
            order = np.argsort(ids.to_numpy(), kind="stable")
            rows = {name: values[order] for name, values in rows.items()}
        self.tables.setdefault(table, []).append((count, rows))

    def table(self, name: str, by: str | None = None, shifted: str | None = None, zero_ps: int = 0) -> pl.DataFrame:
        """A side table of all rows, ordered by a column, in one piece; the times `shifted` count from `zero_ps`. Given but once."""
        parts = self.tables.pop(name, None)
        if not parts:
            return empty(name)
        columns = {}
        for column, dtype in FRAMES[name].items():
            each = [rows.pop(column, None) for _, rows in parts]
            counted = [(count, one) for (count, _), one in zip(parts, each, strict=True)]
            columns[column] = _together(column, dtype, counted, zero_ps if column == shifted else 0)
        frame = pl.DataFrame(columns)
        return frame if by is None or frame[by].is_sorted() else frame.sort(by, maintain_order=True)

    def zero_ps(self) -> int:
        """The earliest time of all lines, ps, in the file's own time; 0 if there is no slice."""
        return min((line.base_ps + int(line.start_ps[0]) for line in self.lines if line.start_ps.size), default=0)

    def slices_frame(self, zero_ps: int) -> pl.DataFrame:
        """The frame `slices`; its times count from `zero_ps`."""
        if self.slices == 0:
            return empty("slices")
        size = self.slices
        start, dur, at = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
        track, name, parent = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.uint32)
        kind, depth = np.empty(size, np.uint8), np.empty(size, np.uint16)
        for number, line in enumerate(self.lines):
            rows = slice(line.first, line.first + line.start_ps.size)
            np.add(line.start_ps, line.base_ps - zero_ps, out=start[rows])
            dur[rows], at[rows], name[rows], kind[rows], track[rows] = line.dur_ps, line.at, line.name, line.kind, number
            above, depth[rows] = line.nested()
            parent[rows] = np.where(above == ROOT, np.uint32(ROOT), above + np.uint32(line.first))
        self.lines.clear()
        return pl.DataFrame(
            {
                "start_ps": start,
                "dur_ps": dur,
                "track": track,
                "name": name,
                "kind": kind,
                "parent": parent,
                "depth": depth,
                "offset": at.view(np.uint64),
            }
        )

    def names_frame(self) -> pl.DataFrame:
        texts, categories = zip(*self.names, strict=True) if self.names else ((), ())
        return pl.DataFrame({"text": pl.Series(texts, dtype=pl.String), "cat": pl.Series(categories, dtype=pl.String)})


def _together(name: str, dtype: pl.DataType | type[pl.DataType], parts: list[tuple[int, pl.Series | None]], zero: int) -> pl.Series:
    """The parts of a column one after the other, in one piece, less `zero`; None stands for so many nulls."""
    typed = [
        pl.Series(name, [None], dtype=dtype).new_from_index(0, count) if values is None else values.cast(dtype) for count, values in parts
    ]
    if pl.Series(name, dtype=dtype).dtype.is_numeric() and not any(values.null_count() for values in typed):
        together = np.concatenate([values.to_numpy() for values in typed])
        if zero:
            together -= zero
        return pl.Series(name, together)
    joined = pl.concat([values.alias(name) for values in typed], rechunk=True)
    return joined - zero if zero else joined


def filled(values: NDArray[Any], missing: int) -> pl.Series:
    """Values as a column that is null where they are `missing`."""
    series = pl.Series(values)
    return series.set(series == missing, None)


def filled_floats(values: NDArray[np.float64]) -> pl.Series:
    """Values as a column that is null where they are NaN."""
    return pl.Series(values).fill_nan(None)
