"""Rows that are alike in several columns of codes, found through one table of all combinations: no sorting, no hashing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

MOST_COMBINATIONS = 1 << 25


class Alike(NamedTuple):
    first: I64
    """of each combination that occurs the first row, ascending"""
    of_row: U32
    """of each row its combination, a place in `first`"""


def alike(*columns: tuple[NDArray[np.integer[Any]], int]) -> Alike | None:
    """Which rows are alike. A column is codes from 0 on and how many there can be; None for more combinations than a table is good for."""
    key: I64 | None = None
    size = 1
    for codes, count in columns:
        if size > 1 and size * count > MOST_COMBINATIONS and key is not None:
            key, size = _dense(key, size)
        size *= max(count, 1)
        if size > MOST_COMBINATIONS:
            return None
        key = codes.astype(np.int64) if key is None else key * count + codes
    if key is None:
        return None
    row = np.full(size, -1, np.int64)
    row[key[::-1]] = np.arange(key.size - 1, -1, -1)  # of several writes to one place the last stays
    first = np.sort(row[row >= 0])
    place = np.zeros(size, np.uint32)
    place[key[first]] = np.arange(first.size, dtype=np.uint32)
    return Alike(first, place[key])


def _dense(key: I64, size: int) -> tuple[I64, int]:
    """Keys renumbered without gaps, and how many there are."""
    met = np.zeros(size, np.bool_)
    met[key] = True
    number = np.cumsum(met) - 1
    return number[key], int(number[-1]) + 1
