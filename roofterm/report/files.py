"""Files that answers are written to: whole or not at all, a table in the format that the file's ending tells."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import polars as pl

from roofterm.report.as_json import encode, rows_of
from roofterm.text.safe import safe_text

T = TypeVar("T")


class WriteError(ValueError):
    """A file that cannot be written, in a sentence."""


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that becomes `path` once all is written, or leaves it as it was.

    A device or a pipe (/dev/null, a FIFO) is written to, never replaced by a file. Raises WriteError where it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(name, 0o666 & ~umask)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as why:
        raise WriteError(f"cannot write {path}: {why.strerror or why}") from why


def writer_for(path: Path, writers: Mapping[str, T]) -> T:
    """The one that the file's ending tells. Raises WriteError that names the endings."""
    found = next((writer for ending, writer in writers.items() if path.name.lower().endswith(ending)), None)
    if found is None:
        raise WriteError(f"{path}: the ending tells the format; it must be one of {', '.join(writers)}")
    return found


def csv_bytes(table: pl.DataFrame) -> bytes:
    """A table as CSV with a header; lists joined by ';', unknown empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.iter_rows():
        writer.writerow([_field(value) for value in row])
    return out.getvalue().encode()


def json_bytes(table: pl.DataFrame, head: Mapping[str, Any]) -> bytes:
    """A table as the object of contract.md: `head`, then its rows."""
    return encode({**head, "rows": rows_of(table)})


TABLE_WRITERS: dict[str, Callable[[pl.DataFrame, Mapping[str, Any], IO[bytes]], object]] = {
    ".csv": lambda table, _head, file: file.write(csv_bytes(table)),
    ".json": lambda table, head, file: file.write(json_bytes(table, head)),
    ".parquet": lambda table, _head, file: table.write_parquet(file, compression="zstd"),
    ".arrow": lambda table, _head, file: table.write_ipc(file, compression="zstd"),
}
"""Of a result's table, by the file's ending; they are given the keys of the JSON before `rows`."""


def _field(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, list):
        return ";".join(map(str, value))
    return safe_text(value) if isinstance(value, str) else value
