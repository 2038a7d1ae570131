"""Reading that begins before its command is imported.

A large trace is decoded by worker processes, which need nothing of what a command imports: they come up meanwhile, and
a thread has the trace read while polars and the analysis load. A large XPlane file is decoded by threads, while the analysis loads.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING

from roofterm.cli.arguments import OPEN, Arguments
from roofterm.start_up import import_numpy
from roofterm_parsers.chrome.crew import EXPANDING, LARGE_BYTES, Crew
from roofterm_parsers.errors import Interrupted
from roofterm_parsers.processes import workers_beside

if TYPE_CHECKING:
    from roofterm_parsers.profile import Profile

SWITCH_SECONDS = 0.0005
"""How soon one thread gives way to the other: reading waits for little things at every turn, importing for none."""
LARGE_XPLANE_BYTES = 32 << 20
"""A smaller XPlane file is read in less time than the rest is imported in."""
LITTLE_BYTES = 32 << 20
"""Files that are smaller together, packed ones too, make frames of at most a million rows or so."""
LAST_SECONDS = 0.1
"""How long it is waited for a thread that is to stop: in the midst of a long operation it hears late, and it goes with the process."""
_TURN_SECONDS = 0.05
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_HEAD_BYTES = 4096


class Reading:
    """A profile that a thread reads. Use as a context: at its end reading has ended too, or does soon, and so have its processes."""

    def __init__(self, read: Callable[[Callable[[], bool], Crew | None], Profile], crew: Crew | None) -> None:
        """`read` is called with what tells that it is to stop, and with the processes that decode, if there are any."""
        self.stop = Event()
        self._read = read
        self._crew = crew
        self._found: Profile | BaseException | None = None
        self._thread = Thread(target=self._run, name="reading", daemon=True)
        if crew is not None:
            crew.alone = True  # two threads that both have much to do only take turns, and each turn costs
        self._switched = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        self._thread.start()

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop.set()
        self._end()

    def profile(self) -> Profile:
        """What was read, once it is; raises what reading it has raised, and Interrupted once it is to stop."""
        if self._crew is not None:
            self._crew.alone = False
        while self._thread.is_alive() and not self.stop.is_set():
            self._thread.join(_TURN_SECONDS)
        self._end()
        if self._thread.is_alive():
            raise Interrupted("loading was stopped")
        if isinstance(self._found, BaseException):
            raise self._found
        assert self._found is not None  # one or the other ends the thread
        return self._found

    def _run(self) -> None:
        try:
            self._found = self._read(self.stop.is_set, self._crew)
        except BaseException as error:  # raised where the profile is asked for
            self._found = error

    def _end(self) -> None:
        self._thread.join(LAST_SECONDS)
        if self._crew is not None:
            self._crew.close()
        sys.setswitchinterval(self._switched)


def begin(args: Arguments) -> Reading | None:
    """Begin to read what a command names, if that is one file so large that workers or threads decode it, and it is not kept.

    Raises UsageError for options that loading cannot take.
    """
    if not hasattr(args, "no_cache") or args.command is OPEN:
        return None
    alone = args.paths[0] if len(args.paths) == 1 and os.path.isfile(args.paths[0]) else None
    path = alone if alone is None or args.no_cache or not _is_kept(alone) else None
    crew = _crew_for(path) if path is not None else None
    try:
        import_numpy()
        # Here, and not in the thread, lest two threads import the same at once.
        if crew is not None:
            import roofterm_parsers.chrome.reader
        elif path is not None and _is_large_xplane(path):
            import roofterm_parsers.xplane.reader  # noqa: F401
        else:
            return None
        from roofterm.cli.loading import reading_of

        return Reading(reading_of(args), crew)
    except BaseException:
        if crew is not None:
            crew.close()
        raise


def reads_little(args: Arguments) -> bool:
    """Whether a command reads files, and small ones alone."""
    if not hasattr(args, "no_cache") or args.command is OPEN:
        return False
    try:
        sizes = [os.stat(path) for path in args.paths]
    except (OSError, ValueError):  # what is wrong with them is said by whoever opens them
        return False
    return all(stat.S_ISREG(size.st_mode) for size in sizes) and sum(size.st_size for size in sizes) < LITTLE_BYTES


def _is_large_xplane(path: str) -> bool:
    """Whether it is worth to read an XPlane file beside imports: it is plain, large, and there is a core for each."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size < LARGE_XPLANE_BYTES or not workers_beside():
            return False
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, ValueError):
        return False
    from roofterm_parsers.xplane.space import looks_like_xplane

    return looks_like_xplane(head)


def _crew_for(path: str) -> Crew | None:
    """Workers for a large trace; None for anything else, and where none can be had."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size * EXPANDING < LARGE_BYTES or not (count := workers_beside()):
            return None
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
        packed = head.startswith(_GZIP)
        text = _inflated(head) if packed else head
        if text.removeprefix(_BOM).lstrip()[:1] not in (b"{", b"[") or (not packed and status.st_size < LARGE_BYTES):
            return None
        return Crew(count)
    except (OSError, ValueError):  # what is wrong with the file is said by whoever opens it
        return None


def _inflated(head: bytes) -> bytes:
    import zlib

    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _HEAD_BYTES)
    except zlib.error:
        return b""


def _is_kept(path: str) -> bool:
    """Whether the profile of a file is in the cache."""
    from roofterm_parsers.cache_keys import is_kept, key_of
    from roofterm_parsers.errors import ProfileError
    from roofterm_parsers.listing import list_named

    try:
        listings = list_named(path)
    except ProfileError:
        return False
    key = key_of([file for listing in listings for file in listing.files])
    return key is not None and is_kept(key)
