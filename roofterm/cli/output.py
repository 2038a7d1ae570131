"""Where a command's answer goes: standard output as the terminal can show it, or a file, whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import polars as pl

from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import UsageError
from roofterm.text.safe import ascii_text, safe_text

PIPE_WIDTH = 120
"""cells of a text table where no terminal sets the width"""

MOST_WIDTH = 200


def width() -> int:
    """Cells of a line of text output: `COLUMNS`, the terminal's width, or 120 in a pipe; at most 200."""
    named = os.environ.get("COLUMNS", "")
    if named.isdigit() and int(named) > 0:
        return min(int(named), MOST_WIDTH)
    if sys.stdout.isatty():
        return min(shutil.get_terminal_size((PIPE_WIDTH, 40)).columns, MOST_WIDTH)
    return PIPE_WIDTH


def write(args: Arguments, content: bytes | list[str]) -> None:
    """Give the answer: bytes as they are, lines of text as this terminal or file can hold them."""
    if isinstance(content, list):
        text = "\n".join(content) + "\n"
        plain = args.ascii or (args.output is None and (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8")
        content = (ascii_text(text) if plain else text).encode()
    if args.output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_file(Path(args.output), content)


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. Raises UsageError where it cannot be written."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that becomes `path` once all is written, or leaves it as it was.

    A device or a pipe (/dev/null, a FIFO) is written to, never replaced by a file. Raises UsageError where it cannot be written.
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
        raise UsageError(f"cannot write {path}: {why.strerror or why}") from why


def csv_bytes(table: pl.DataFrame) -> bytes:
    """A table as CSV with a header; lists joined by ';', unknown empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.iter_rows():
        writer.writerow([_field(value) for value in row])
    return out.getvalue().encode()


def _field(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, list):
        return ";".join(map(str, value))
    return safe_text(value) if isinstance(value, str) else value
