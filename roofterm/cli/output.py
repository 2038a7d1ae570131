"""Where a command's answer goes: standard output as the terminal can show it, or a file, whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import UsageError
from roofterm.report import files
from roofterm.text.safe import ascii_text

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
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as why:
            raise UsageError(f"cannot write to standard output: {why.strerror or why}") from why
    else:
        write_file(Path(args.output), content)


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. Raises UsageError where it cannot be written."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """As `report.files.replacing`, with a UsageError where the file cannot be written."""
    try:
        with files.replacing(path) as file:
            yield file
    except files.WriteError as why:
        raise UsageError(str(why)) from why
