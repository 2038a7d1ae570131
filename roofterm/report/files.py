"""Files that answers are written to: whole or not at all, a table in the format that the file's ending tells."""

from __future__ import annotations

import atexit
import csv
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

import polars as pl

from roofterm.report.as_json import encode, rows_of
from roofterm.text.safe import safe_text

T = TypeVar("T")

ROWS_AT_ONCE = 5_000
"""of a table that is written a piece at a time, so that writing can be stopped in between"""

_ROWS = "\N{OBJECT REPLACEMENT CHARACTER}rows"
"""stands for the rows while the object around them is written"""

_unfinished: dict[str, Path] = {}
"""files that are being written, and in whose place: none is left when the program ends meanwhile"""


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
        _unfinished[name] = path
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
            with suppress(FileNotFoundError):
                os.unlink(name)
            raise
        finally:
            _unfinished.pop(name, None)
    except OSError as why:
        raise WriteError(f"cannot write {path}: {why.strerror or why}") from why


@atexit.register
def drop_unfinished(path: Path | None = None) -> None:
    """Delete what is half written of a file, or of any."""
    for name, wanted in tuple(_unfinished.items()):
        if path is None or wanted == path:
            with suppress(OSError):
                os.unlink(name)


def writer_for(path: Path, writers: Mapping[str, T]) -> T:
    """The one that the file's ending tells. Raises WriteError that names the endings."""
    found = next((writer for ending, writer in writers.items() if path.name.lower().endswith(ending)), None)
    if found is None:
        raise WriteError(f"{path}: the ending tells the format; it must be one of {', '.join(writers)}")
    return found


def csv_bytes(table: pl.DataFrame) -> bytes:
    """A table as CSV with a header; lists joined by ';', unknown empty."""
    return b"".join(csv_pieces(table))


def csv_pieces(table: pl.DataFrame) -> Iterator[bytes]:
    """`csv_bytes`, a piece at a time."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    for part in table.iter_slices(ROWS_AT_ONCE):
        for row in part.iter_rows():
            writer.writerow([_field(value) for value in row])
        yield out.getvalue().encode()
        out.seek(0)
        out.truncate()
    yield out.getvalue().encode()


def json_bytes(table: pl.DataFrame, head: Mapping[str, Any]) -> bytes:
    """A table as the object of contract.md: `head`, then its rows."""
    return b"".join(json_pieces(table, head))


def json_pieces(table: pl.DataFrame, head: Mapping[str, Any]) -> Iterator[bytes]:
    """`json_bytes`, a piece at a time."""
    if table.height <= ROWS_AT_ONCE:
        yield encode({**head, "rows": rows_of(table)})
        return
    before, after = encode({**head, "rows": [_ROWS]}).rsplit(encode(_ROWS).strip(), 1)
    opened, closed = encode({"rows": [_ROWS]}).split(encode(_ROWS).strip())
    for number, part in enumerate(table.iter_slices(ROWS_AT_ONCE)):
        rows = encode({"rows": rows_of(part)}).removeprefix(opened).removesuffix(closed)
        yield (before if number == 0 else b"," + opened[opened.rindex(b"[") + 1 :]) + rows
    yield after


TABLE_WRITERS: dict[str, Callable[[pl.DataFrame, Mapping[str, Any], IO[bytes]], object]] = {
    ".csv": lambda table, _head, file: file.writelines(csv_pieces(table)),
    ".json": lambda table, head, file: file.writelines(json_pieces(table, head)),
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
