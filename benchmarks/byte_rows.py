"""Protocol-buffer messages written by the hundred thousand: one a row of an array, of which some bytes are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LONGEST_VARINT = 10


@dataclass(frozen=True)
class ByteRows:
    """Byte strings of different lengths, one a row: the bytes of `data` at which `kept` is true, left to right."""

    data: NDArray[np.uint8]
    kept: NDArray[np.bool_]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return self.kept.sum(1, dtype=np.int64)

    def joined(self) -> bytes:
        """All rows, one after the other."""
        return self.data[self.kept].tobytes()

    def take(self, rows: NDArray[np.int64]) -> ByteRows:
        return ByteRows(self.data[rows], self.kept[rows])


def constants(texts: Sequence[bytes]) -> ByteRows:
    """One row for each text."""
    width = max(map(len, texts), default=0)
    data = np.frombuffer(b"".join(text.ljust(width, b"\0") for text in texts), np.uint8).reshape(len(texts), width)
    lengths = np.array([len(text) for text in texts], np.int64)
    return ByteRows(data, np.arange(width) < lengths[:, None])


def varints(values: NDArray[np.int64] | NDArray[np.uint64]) -> ByteRows:
    """One row for each value, 7 bits a byte, the lowest first."""
    unsigned = values.astype(np.uint64)
    shifts = np.arange(LONGEST_VARINT, dtype=np.uint64) * np.uint64(7)
    sevens = (unsigned[:, None] >> shifts).astype(np.uint8) & np.uint8(0x7F)
    rest = np.zeros((len(values), LONGEST_VARINT), bool)
    rest[:, :-1] = (unsigned[:, None] >> shifts[1:]) != 0
    kept = np.ones_like(rest)
    kept[:, 1:] = rest[:, :-1]
    return ByteRows(sevens | (rest.astype(np.uint8) << np.uint8(7)), kept)


def beside(*columns: ByteRows) -> ByteRows:
    """Rows put together left to right."""
    return ByteRows(np.hstack([column.data for column in columns]), np.hstack([column.kept for column in columns]))


def sized(tag: int, rows: ByteRows) -> ByteRows:
    """Rows as length-delimited fields with this tag byte."""
    tags = ByteRows(np.full((len(rows.data), 1), tag, np.uint8), np.ones((len(rows.data), 1), bool))
    return beside(tags, varints(rows.lengths), rows)
