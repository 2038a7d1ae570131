"""Small files that the explorer keeps between runs, under XDG_STATE_HOME/roofterm: written whole or not at all, never missed.

Whatever is wrong with them (a read-only home, a full disk, another program's file, damage), the explorer works as if there
were none.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")

MOST_BYTES = 256 << 10
"""of one file: a larger one is neither written nor read"""


def folder_in(variable: str, *otherwise: str) -> Path | None:
    """`roofterm` in the folder that a variable of the XDG specification names, else there in the home; None where no home is known."""
    named = os.environ.get(variable, "")
    if not os.path.isabs(named):  # a relative path is to be ignored
        named = os.path.join(os.path.expanduser("~"), *otherwise)
    return Path(named) / "roofterm" if os.path.isabs(named) else None


def state_home() -> Path | None:
    """`roofterm` in XDG_STATE_HOME, by default `~/.local/state`; None where no home is known."""
    return folder_in("XDG_STATE_HOME", ".local", "state")


def read_state(name: str, kind: type[T]) -> T | None:
    """The record of a file; None if there is none that can be understood."""
    home = state_home()
    if home is None:
        return None
    try:
        with (home / name).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        return msgspec.json.decode(data, type=kind) if len(data) <= MOST_BYTES else None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def write_state(name: str, record: object) -> None:
    """Put a record in a file's place, if that can be done."""
    try:
        write_text(name, msgspec.json.encode(record))
    except (OSError, TypeError, UnicodeEncodeError):
        return


def write_text(name: str, data: bytes) -> Path | None:
    """Put data in a file's place; its path, or None for too much data or no home. Raises OSError."""
    home = state_home()
    if home is None or len(data) > MOST_BYTES:
        return None
    path = home / name
    write_whole(path, data)
    return path


def write_whole(path: Path, data: bytes) -> None:
    """Put data in a file's place, whole or not at all; its folder is made. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(partial)
        raise


def keep_newest(folder: str, most: int) -> None:
    """Remove the files of a folder that were written longest ago, beyond `most`."""
    home = state_home()
    if home is None:
        return
    with suppress(OSError):
        files = [entry for entry in os.scandir(home / folder) if entry.is_file(follow_symlinks=False)]
        if len(files) > most:
            for entry in sorted(files, key=lambda file: file.stat().st_mtime)[: len(files) - most]:
                os.unlink(entry.path)
