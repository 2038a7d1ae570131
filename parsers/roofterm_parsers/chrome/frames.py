"""Columns with sentinels to polars columns with nulls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.allocator import give_back
from roofterm_parsers.chrome.events import NULL

LARGE_ROWS = 300_000
"""From so many rows on, what making a table leaves free is given back."""


def nullable(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pl.Series:
    """A column, null where `missing` says; else where an integer is NULL or a float is no finite number."""
    if missing is None:
        missing = ~np.isfinite(values) if values.dtype.kind == "f" else values == NULL
    column = pl.Series(values)
    if not missing.any():
        return column
    return column.to_frame("v").select(pl.when(~pl.lit(pl.Series(missing))).then(pl.col("v"))).to_series()


def bounded(values: NDArray[np.int64], most: int) -> pl.Series:
    """A column of counts, null where one is negative or beyond `most`: no real grid, block or size is."""
    missing = (values < 0) | (values > most)
    return nullable(np.where(missing, 0, values), missing)


def table(schema: pl.Schema, columns: Mapping[str, Any]) -> pl.DataFrame:
    """A frame of the schema out of columns of any integer width; a column that is not given is null."""
    given = {name: value if isinstance(value, pl.Series) else pl.Series(value) for name, value in columns.items()}
    rows = len(next(iter(given.values())))
    series = [
        given[name].alias(name).cast(dtype) if name in given else pl.Series(name, [None], dtype=dtype).new_from_index(0, rows)
        for name, dtype in schema.items()
    ]
    if rows > LARGE_ROWS:
        give_back()
    return pl.DataFrame(series)
