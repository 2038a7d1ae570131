"""How far loading has come, told to whoever waits; and the place where it is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from roofterm_parsers.errors import Interrupted

_SECONDS_BETWEEN = 0.05

Phase = Literal["reading", "linking", "merging", "cache"]


class Progress(msgspec.Struct, frozen=True):
    """A moment of loading."""

    path: str
    """the file at hand, as the user named it"""
    bytes_done: int
    bytes_total: int | None
    """of all files as they lie on disk, packed as they are; None where nobody tells (standard input)"""
    phase: Phase
    files_done: int
    files_total: int


class Tracker:
    """Counts bytes and files, tells them at most twenty times a second, and raises Interrupted once `cancelled` says so."""

    def __init__(
        self,
        tell: Callable[[Progress], None] | None,
        cancelled: Callable[[], bool] | None,
        bytes_total: int | None = None,
        files_total: int = 0,
    ) -> None:
        self._tell = tell
        self._cancelled = cancelled
        self._bytes_total = bytes_total
        self._files_total = files_total
        self._bytes_done = 0
        self._files_done = 0
        self._path = ""
        self._phase: Phase = "reading"
        self._told = 0.0

    def cancelled(self) -> bool:
        """True once loading is to stop."""
        return self._cancelled is not None and self._cancelled()

    def watch(self, count: int) -> None:
        """`count` more bytes were read (0: still waiting for some)."""
        if self.cancelled():
            raise Interrupted("loading was stopped")
        self._bytes_done += count
        if self._tell is not None and time.monotonic() - self._told >= _SECONDS_BETWEEN:
            self._say()

    def phase(self, phase: Phase, path: str | None = None) -> None:
        """Another part of the work begins."""
        if phase == self._phase and path in (None, self._path):
            return
        self._phase = phase
        self._path = self._path if path is None else path
        self.watch(0)
        self._say()

    def file_done(self) -> None:
        """A file is read, or given up."""
        self._files_done += 1
        self._say()

    def _say(self) -> None:
        if self._tell is None:
            return
        self._told = time.monotonic()
        moment = Progress(self._path, self._bytes_done, self._bytes_total, self._phase, self._files_done, self._files_total)
        self._tell(moment)
