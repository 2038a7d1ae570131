"""One input of a profile: where its bytes lie, and how they are read: counted, and interruptible."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable
from typing import IO, Literal

import msgspec

from roofterm_parsers.errors import ProfileError

STDIN = "-"
READ_BYTES = 1 << 18
_POLL_SECONDS = 0.1

Watch = Callable[[int], None]
"""Told after each read how many bytes came (0: still waiting); raises `Interrupted` to stop."""


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """A file, pipe or URL that is to be read."""

    path: str
    """as the user named it, or the named folder joined with the rest: what messages and `Source.path` show"""
    location: str
    """absolute path, URL or "-": what is opened, and what the cache goes by"""
    kind: Literal["file", "pipe", "remote"] = "file"
    bytes: int | None = None
    """on disk; None where nobody tells"""
    mtime_ns: int | None = None
    run: str | None = None
    host: str | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.replace("\\", "/").rstrip("/").rpartition("/")[2] or self.path


class Raw:
    """Bytes as they lie there. `read` gives at most `size` bytes and b"" at the end; every read is told to `watch`."""

    def __init__(self, file: IO[bytes], path: str, watch: Watch, *, poll: bool = False, seekable: bool = True) -> None:
        self._file = file
        self._path = path
        self._watch = watch
        self._poll = poll
        self.seekable = seekable and not poll
        self.position = 0
        self.bytes_read = 0
        """bytes read in a row from the start; what is read twice, or ahead after a `seek`, counts once or not yet"""

    def read(self, size: int = READ_BYTES) -> bytes:
        """The next bytes; raises ProfileError where the system cannot give them."""
        if self._poll:
            while not select.select([self._file], [], [], _POLL_SECONDS)[0]:
                self._watch(0)
        data = guarded_read(self._file, size, self._path)
        fresh = max(self.position + len(data) - self.bytes_read, 0) if self.position <= self.bytes_read else 0
        self.position += len(data)
        self.bytes_read += fresh
        self._watch(fresh)
        return data

    def seek(self, position: int) -> None:
        """Go to a byte; only where `seekable`."""
        try:
            self._file.seek(position)
        except OSError as error:
            raise unreadable(self._path, error) from error
        self.position = position

    def size(self) -> int:
        """Bytes in all; only where `seekable`."""
        try:
            end = self._file.seek(0, os.SEEK_END)
            self._file.seek(self.position)
        except OSError as error:
            raise unreadable(self._path, error) from error
        return end

    def close(self) -> None:
        self._file.close()


def open_raw(source: Input, watch: Watch) -> Raw:
    """Open an input for reading; raises ProfileError with the system's reason."""
    if source.kind == "remote":
        from roofterm_parsers.remote import open_remote

        return Raw(open_remote(source.location, source.path), source.path, watch, seekable=False)
    try:
        if source.location == STDIN:
            return _open_stdin(watch)
        file = open(source.location, "rb", buffering=0)  # noqa: SIM115 (closed by the Raw)
    except OSError as error:
        raise unreadable(source.path, error) from error
    return Raw(file, source.path, watch, poll=source.kind == "pipe" and not _is_regular(file))


def unreadable(path: str, error: OSError) -> ProfileError:
    """The sentence for a file that the system does not give."""
    if isinstance(error, FileNotFoundError):
        return ProfileError(f"{path}: no such file or folder", path)
    return ProfileError(f"{path}: cannot be read: {error.strerror or error}", path)


def guarded_read(file: IO[bytes], size: int, path: str) -> bytes:
    """`file.read`, with the system's errors as ProfileError."""
    try:
        return file.read(size)
    except OSError as error:
        raise unreadable(path, error) from error


def _open_stdin(watch: Watch) -> Raw:
    if sys.stdin is None or sys.stdin.closed:
        raise ProfileError("-: standard input is closed; name a file, or pipe a profile into it", STDIN)
    if sys.stdin.isatty():
        raise ProfileError("-: standard input is a terminal; pipe a profile into it (zcat trace.json.gz | roofterm -)", STDIN)
    file = os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    return Raw(file, STDIN, watch, poll=not _is_regular(file))


def _is_regular(file: IO[bytes]) -> bool:
    return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
