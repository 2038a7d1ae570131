"""Arrow IPC files mapped into memory: numbers are used where they lie, none is copied.

polars reads such a file by copying it (0.4 ms a MB). Here the places of the columns are taken from the file's own
description (format: arrow.apache.org/docs/format/Columnar.html, "IPC File Format"; its tables are FlatBuffers), and numpy
looks at the mapped bytes. Only columns with nulls are copied, and frames with text are read by polars.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_MAGIC = b"ARROW1"
_BLOCK_BYTES = 24
_PAIR_BYTES = 16
_RECORD_BATCH = 3  # of the union MessageHeader
_NUMPY: dict[pl.DataType, np.dtype[np.generic]] = {
    pl.UInt8(): np.dtype(np.uint8),
    pl.UInt16(): np.dtype(np.uint16),
    pl.UInt32(): np.dtype(np.uint32),
    pl.UInt64(): np.dtype(np.uint64),
    pl.Int32(): np.dtype(np.int32),
    pl.Int64(): np.dtype(np.int64),
    pl.Float32(): np.dtype(np.float32),
    pl.Float64(): np.dtype(np.float64),
}


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame as an uncompressed Arrow IPC file of one batch."""
    with path.open("wb") as file:
        frame.rechunk().write_ipc(file, compression="uncompressed", record_batch_size=max(frame.height, 1))


def map_frame(path: Path, schema: pl.Schema, *, copied: bool = False) -> pl.DataFrame:
    """The frame, of one row at least, in a file that `write_frame` wrote; the file must stay as it is while the frame is used,
    unless it is `copied`.

    Raises ValueError, OSError or a PolarsError for a file that is damaged, or holds something else.
    """
    with path.open("rb") as file:
        return map_file(file, schema, copied=copied)


def map_file(file: BinaryIO, schema: pl.Schema, *, copied: bool = False) -> pl.DataFrame:
    """As `map_frame`, of an open file, which may have been deleted since."""
    if not copied and all(kind in _NUMPY for kind in schema.values()):
        frame = _mapped(np.memmap(file, dtype=np.uint8, mode="r"), schema)
    else:
        file.seek(0)
        frame = pl.read_ipc(file)
    if frame.schema != schema:
        raise ValueError(f"{Path(file.name).name} has other columns: {frame.schema}")
    return frame


def _mapped(file: Bytes, schema: pl.Schema) -> pl.DataFrame:
    height, body, nulls, buffers = _record_batch(file)
    if len(buffers) != 2 * len(schema) or len(nulls) != len(schema):
        raise ValueError("another number of columns")
    columns: dict[str, pl.Series] = {}
    for i, (name, kind) in enumerate(schema.items()):
        (bits_at, bits_size), (at, size) = buffers[2 * i], buffers[2 * i + 1]
        dtype = _NUMPY[kind]
        if size < height * dtype.itemsize:
            raise ValueError("a column is cut")
        values = pl.Series(name, _part(file, body + at, height * dtype.itemsize).view(dtype))
        if nulls[i]:
            bits = _part(file, body + bits_at, min(bits_size, (height + 7) // 8))
            known = np.unpackbits(bits, count=height, bitorder="little").view(np.bool_)
            values = pl.select(pl.when(pl.Series(known)).then(values).alias(name)).to_series()
        columns[name] = values
    return pl.DataFrame(columns)


def _record_batch(file: Bytes) -> tuple[int, int, list[int], list[tuple[int, int]]]:
    """Rows, start of the body, null count of each column, and (offset, size) in the body of each buffer, of the only batch."""
    footer_size = int.from_bytes(_part(file, file.size - 10, 4).tobytes(), "little")
    if _part(file, 0, 6).tobytes() != _MAGIC or _part(file, file.size - 6, 6).tobytes() != _MAGIC:
        raise ValueError("no Arrow file")
    footer = _Table.root(_part(file, file.size - 10 - footer_size, footer_size).tobytes())
    blocks = footer.structs(3, _BLOCK_BYTES)
    if len(blocks) != 1:
        raise ValueError(f"{len(blocks)} batches")
    at, metadata_size, _, _ = struct.unpack("<qiiq", blocks[0])
    message = _Table.root(_part(file, at + 8, metadata_size - 8).tobytes())
    if message.number(1, "B") != _RECORD_BATCH:
        raise ValueError("no record batch")
    batch = message.table(2)
    pairs = [struct.unpack("<qq", pair) for pair in batch.structs(2, _PAIR_BYTES)]
    nulls = [struct.unpack("<qq", node)[1] for node in batch.structs(1, _PAIR_BYTES)]
    if batch.has(3):
        raise ValueError("compressed")
    return batch.number(0, "q"), at + metadata_size, nulls, [(offset, size) for offset, size in pairs]


def _part(file: Bytes, at: int, size: int) -> Bytes:
    if at < 0 or size < 0 or at + size > file.size:
        raise ValueError("a place beyond the file's end")
    return file[at : at + size]


class _Table:
    """A FlatBuffers table: a look at its fields by their number."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        self._fields = at - self._unpack("i", at)

    @classmethod
    def root(cls, data: bytes) -> _Table:
        if len(data) < 4:
            raise ValueError("no table")
        return cls(data, int.from_bytes(data[:4], "little"))

    def has(self, field: int) -> bool:
        return self._place(field) is not None

    def number(self, field: int, kind: str) -> int:
        place = self._place(field)
        return 0 if place is None else self._unpack(kind, place)

    def table(self, field: int) -> _Table:
        place = self._place(field)
        if place is None:
            raise ValueError("a table is missing")
        return _Table(self._data, place + self._unpack("I", place))

    def structs(self, field: int, size: int) -> list[bytes]:
        place = self._place(field)
        if place is None:
            return []
        start = place + self._unpack("I", place)
        count = self._unpack("I", start)
        if start + 4 + count * size > len(self._data):
            raise ValueError("a list beyond the end")
        return [self._data[start + 4 + i * size : start + 4 + (i + 1) * size] for i in range(count)]

    def _place(self, field: int) -> int | None:
        entry = 4 + 2 * field
        offset = self._unpack("H", self._fields + entry) if entry < self._unpack("H", self._fields) else 0
        return self._at + offset if offset else None

    def _unpack(self, kind: str, at: int) -> int:
        size = struct.calcsize("<" + kind)
        if at < 0 or at + size > len(self._data):
            raise ValueError("a field beyond the end")
        value: int = struct.unpack_from("<" + kind, self._data, at)[0]
        return value
