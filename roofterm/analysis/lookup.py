"""Looking slices up by their ids: an array over all slices instead of a hash join, ten times as fast over millions of rows."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]

ABSENT = -1
"""row of what is not there"""
FEW = 16
"""A search for each wanted id is quicker than an index of all ids if there are so many times fewer of them."""


def codes_by_id(codes: pl.Series, ids: pl.Series, size: int) -> I32:
    """For each id below `size` the code (below 2^31) in the first row of `ids` that holds it, ABSENT for none. None is null."""
    found = np.full(size, ABSENT, np.int32)
    at, values = ids.to_numpy(), codes.to_numpy()
    if at.size and not np.all(at[1:] > at[:-1]):  # of several writes to one place the last stays
        at, values = at[::-1], values[::-1]
    found[at] = values
    return found


def rows_by_id(ids: pl.Series, size: int) -> I64:
    """For each id below `size` the first row of `ids` that holds it, ABSENT for none. `ids` has no nulls."""
    rows = np.full(size, ABSENT, np.int64)
    # Of several writes to one place the last stays.
    rows[ids.to_numpy()[::-1]] = np.arange(ids.len() - 1, -1, -1)
    return rows


def rows_among(ids: pl.Series, wanted: pl.Series, size: int) -> I64:
    """The first row of `ids` that holds each wanted id, all below `size`; ABSENT for none. No nulls.

    Slices of one stretch, as those of a device or a step, are most often a stretch of a side table too.
    """
    at, sought = ids.to_numpy(), wanted.to_numpy()
    if at.size == 0 or sought.size == 0:
        return np.full(sought.size, ABSENT, np.int64)
    if ids.is_sorted():
        first = int(np.searchsorted(at, sought[0]))
        stretch = at[first : first + sought.size]
        if np.array_equal(stretch, sought) and np.all(stretch[1:] > stretch[:-1]):
            return np.arange(first, first + sought.size)
        if sought.size * FEW < at.size:
            rows = np.searchsorted(at, sought)
            return np.where(at[np.minimum(rows, at.size - 1)] == sought, rows, ABSENT)
    return rows_of(rows_by_id(ids, size), wanted)


def rows_of(index: I64, ids: pl.Series) -> I64:
    """The row of each id by an index of `rows_by_id`; ABSENT for null."""
    if ids.null_count() == 0:
        return index[ids.to_numpy()] if index.size else np.full(ids.len(), ABSENT, np.int64)
    rows = index[ids.fill_null(0).to_numpy()] if index.size else np.full(ids.len(), ABSENT, np.int64)
    rows[ids.is_null().to_numpy()] = ABSENT
    return rows


def index_of(rows: I64) -> pl.Series:
    """Rows as `Series.gather` takes them: null for ABSENT."""
    absent = rows < 0
    index = pl.Series(rows.astype(np.uint32))
    return index.set(pl.Series(absent), None) if absent.any() else index


def taken(values: pl.Series, rows: I64 | pl.Series) -> pl.Series:
    """The values of these rows (or of their `index_of`, where many columns are asked for the same); null for ABSENT."""
    index = rows if isinstance(rows, pl.Series) else index_of(rows)
    if values.len() == 0:
        return pl.Series(values.name, [None], dtype=values.dtype).new_from_index(0, index.len())
    return values[index]


def looked_up(values: pl.Series, ids: pl.Series, size: int, wanted: pl.Series) -> pl.Series:
    """For each wanted id, null for null, the value of the first row of `ids` that holds it; null for none."""
    return taken(values, rows_of(rows_by_id(ids, size), wanted))


def joined(frame: pl.DataFrame, ids: pl.Series, other: pl.DataFrame, key: str, size: int) -> pl.DataFrame:
    """A frame with the columns of `other` in the first row whose `key` is the id; `ids`: row for row with the frame, null for null."""
    index = index_of(rows_of(rows_by_id(other[key], size), ids))
    return frame.with_columns(taken(other[column], index) for column in other.columns if column != key)
