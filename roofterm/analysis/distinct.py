"""Rows that are alike in several columns of codes, found through one table of all combinations: no sorting, no hashing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

MOST_COMBINATIONS = 1 << 25
BLOCK_ROWS = 1 << 16


class Alike(NamedTuple):
    first: I64
    """of each combination that occurs the first row, ascending"""
    of_row: U32
    """of each row its combination, a place in `first`"""


def alike(*columns: tuple[NDArray[np.integer[Any]], int]) -> Alike | None:
    """Which rows are alike. A column is codes from 0 on and how many there can be; None for more combinations than a table is good for."""
    key: I32 | None = None
    size = 1
    for codes, count in columns:
        if key is not None and size * count > MOST_COMBINATIONS:
            key, size = _dense(key, size)
        size *= max(count, 1)
        if size > MOST_COMBINATIONS:
            return None
        if key is None:
            key = codes.astype(np.int32)
        else:
            key *= np.int32(count)
            np.add(key, codes, out=key, casting="unsafe")
    if key is None:
        return None
    first = _first_rows(key, size)
    place = np.zeros(size, np.uint32)
    place[key[first]] = np.arange(first.size, dtype=np.uint32)
    return Alike(first, place[key])


def _first_rows(key: I32, size: int) -> I64:
    """The rows in which a key stands first. A block that brings none that is new, as most do, costs but a look."""
    met = np.zeros(size, np.bool_)
    first: list[I64] = []
    for a in range(0, key.size, BLOCK_ROWS):
        rows = np.flatnonzero(~met[key[a : a + BLOCK_ROWS]]) + a
        if rows.size:
            new = np.sort(rows[np.unique(key[rows], return_index=True)[1]])
            met[key[new]] = True
            first.append(new)
    return np.concatenate(first) if first else np.zeros(0, np.int64)


def _dense(key: I32, size: int) -> tuple[I32, int]:
    """Keys renumbered without gaps, and how many there are."""
    met = np.zeros(size, np.bool_)
    met[key] = True
    number = np.cumsum(met, dtype=np.int32) - np.int32(1)
    return number[key], int(number[-1]) + 1
