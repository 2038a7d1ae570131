"""Chrome trace JSON to a profile: PyTorch's profiler of all eras and vendors, traces made from XPlanes, any other.

What needs polars is imported when the events are read: a trace is begun while the program still loads it.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from roofterm_parsers.allocator import give_back, keep_freed
from roofterm_parsers.chrome import header
from roofterm_parsers.chrome.codes import Block
from roofterm_parsers.chrome.crew import BUFFER_BYTES, LARGE_BYTES, Crew
from roofterm_parsers.chrome.decoding import Decoder
from roofterm_parsers.chrome.gathering import Dictionaries, Gathered
from roofterm_parsers.chrome.pool import Pool
from roofterm_parsers.chrome.splitting import ByteSource, Piece, Splitter
from roofterm_parsers.errors import Interrupted, TooLarge
from roofterm_parsers.processes import workers_beside
from roofterm_parsers.records import Source

if TYPE_CHECKING:
    from roofterm_parsers.profile import Profile

__all__ = ["ByteSource", "read"]

ALONE_BYTES = 24 << 20
"""Text up to this size is decoded in this process: workers take a while to come up."""
LONG_BYTES = 64 << 20
"""A text that is expected to be longer than this is worth learning the forms of its events from the first on."""
TIDIED_BYTES = 64 << 20
"""Of less, nothing is given back while a profile is put together: the next step would take it from the system again."""
MOST_WAITING = 8
"""Blocks that were decoded here and wait for one of a worker: then this process waits too."""
_XLA_PROCESS = re.compile(rb'"name"\s*:\s*"(?:/host:CPU|[^"]{0,200}/device:[A-Za-z_]+:[0-9]+)')
MEMORY_PER_BYTE = 4.0
"""What a profile takes while it is put together, for each byte that was gathered."""


def read(
    stream: ByteSource,
    source: Source,
    report: Callable[[int], None],
    *,
    workers: int | Crew | None = None,
    max_memory: int | None = None,
    expected_bytes: int = 0,
    cancelled: Callable[[], bool] = lambda: False,
) -> Profile:
    """The profile of one source, whose uncompressed bytes `stream` gives.

    `report` is told the bytes read so far. `workers`: how many processes decode a large text beside this one (0: none; None: one
    for each other core), or a crew of them, which is closed at the end. `expected_bytes`: how long the text will be, as far as one
    can tell. Raises ProfileError if the text is no trace or has nothing on a time axis, TooLarge if it would take more than
    `max_memory` bytes, Interrupted if `cancelled()`.
    """
    with _collector_off(), ExitStack() as at_end:
        splitter = Splitter(stream, source.path, report, cancelled)
        top, _ = header.top_level(splitter.header, [])
        gathering = _Gathering(splitter, source, max_memory, cancelled, xla=header.is_xla(top), long=expected_bytes > LONG_BYTES)
        if not isinstance(workers, Crew) and expected_bytes < LARGE_BYTES:
            gathering.alone(ALONE_BYTES)
        if not gathering.done:
            keep_freed()
            gathering.with_workers(workers, at_end)
        gathering.alone(None)
        gathering.forget_how()
        gathered = gathering.gathered
        top, damaged = header.top_level(splitter.header, gathered.trailers, cut=gathered.trails_on)
        closed = splitter.is_list or (gathered.ended and splitter.last_byte == b"}")
        from roofterm_parsers.chrome.assembling import FileFacts, assemble

        file = FileFacts(top, splitter.is_list, closed and not splitter.headless, damaged)
        return assemble(gathered, file, source, xla=gathering.xla, check=gathering.check_and_tidy)


class _Gathering:
    """The blocks of a file on their way into `gathered`."""

    def __init__(
        self, splitter: Splitter, source: Source, max_memory: int | None, cancelled: Callable[[], bool], *, xla: bool, long: bool
    ) -> None:
        self.gathered = Gathered()
        self.xla = xla
        self._long = long
        self.done = False
        self._splitter = splitter
        self._source = source
        self._max_memory = max_memory
        self._cancelled = cancelled
        self._decoder: Decoder | None = None
        self._begun = False
        self._is_much = False
        self._own = Dictionaries()
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    def alone(self, most_bytes: int | None) -> None:
        """Decode in this process, up to a number of bytes or to the end."""
        while not self.done and (most_bytes is None or most_bytes > 0):
            size = self._block_here()
            most_bytes = None if most_bytes is None else most_bytes - size

    def with_workers(self, workers: int | Crew | None, at_end: ExitStack) -> None:
        """Decode in worker processes and in this one to the end; does nothing where there are none. `at_end` waits for their ends."""
        crew = workers if isinstance(workers, Crew) else _started(workers_beside() if workers is None else workers)
        if crew is None:
            return
        at_end.callback(crew.close)
        with Pool(crew, path=self._source.path, cancelled=self._cancelled) as pool:
            dictionaries = [*(Dictionaries() for _ in crew.processes), self._own]
            while not self.done and not pool.is_ready():
                if not pool.may_come_up:
                    return
                self._block_here()
            while not self.done:
                while self._take_in(pool, dictionaries, wait=False):
                    pass
                slot = pool.slot()
                if slot is not None:
                    self._hand_over(pool, slot, dictionaries)
                    slot.release()
                elif pool.waiting_here < MOST_WAITING and not pool.does_all:
                    self._beside(pool)
                else:
                    self._take_in(pool, dictionaries, wait=True)
            import_module("roofterm_parsers.chrome.assembling")  # while the workers are at the last blocks
            self._take_in_all(pool, dictionaries)

    def _hand_over(self, pool: Pool, slot: memoryview, dictionaries: list[Dictionaries]) -> None:
        """Have the next block decoded by a worker."""
        piece = self._next(slot)
        if piece is None:
            return
        if isinstance(piece.text, memoryview) and piece.text.obj is slot.obj:
            pool.submit(len(piece.text), piece.offset, last=piece.last, xla=self.xla, long=self._long)
        else:  # an event too long for a slot
            self._take_in_all(pool, dictionaries)
            self._add_here(piece)

    def _beside(self, pool: Pool) -> None:
        """Decode the next block here, while the workers have enough to do."""
        piece = self._next(self._buffer)
        if piece is not None:
            pool.put(self._decoded(piece))

    def forget_how(self) -> None:
        """Give up what only decoding needs: what follows needs the memory."""
        self._decoder = None
        self._buffer = memoryview(b"")
        self._is_much = self.gathered.bytes > TIDIED_BYTES

    def check(self) -> None:
        """Raise if loading is stopped, or takes too much memory."""
        if self._cancelled():
            raise Interrupted("loading was stopped")
        needed = self.gathered.bytes * MEMORY_PER_BYTE
        if self._max_memory is not None and needed > self._max_memory:
            raise TooLarge(
                f"{self._source.path}: its events take more than the {self._max_memory / 1e9:.1f} GB of memory that are allowed; "
                "raise --max-memory, or record fewer steps",
                self._source.path,
            )

    def check_and_tidy(self) -> None:
        """As `check`; and give back what the last step left free, if that is much."""
        if self._is_much:
            give_back()
        self.check()

    def _take_in(self, pool: Pool, dictionaries: list[Dictionaries], *, wait: bool) -> bool:
        block = pool.finished(wait=wait)
        if block is None:
            return False
        self.gathered.add(block, dictionaries[pool.worker])
        pool.release()
        self.check()
        return True

    def _take_in_all(self, pool: Pool, dictionaries: list[Dictionaries]) -> None:
        while self._take_in(pool, dictionaries, wait=True):
            pass

    def _block_here(self) -> int:
        piece = self._next(self._buffer)
        if piece is None:
            return 0
        self._add_here(piece)
        return len(piece.text)

    def _next(self, buffer: memoryview) -> Piece | None:
        """The next block; the first one tells what kind of trace it is. None, and `done`, behind the last."""
        piece = self._splitter.into(buffer)
        self.done = piece is None or piece.last
        if piece is not None and not self._begun:
            self._begun = True
            self.xla = self.xla or _looks_like_xla(bytes(piece.text))
        return piece

    def _add_here(self, piece: Piece) -> None:
        self.gathered.add(self._decoded(piece), self._own)
        self.check()

    def _decoded(self, piece: Piece) -> Block:
        if self._decoder is None:
            self._decoder = Decoder(xla=self.xla, long=self._long)
        return self._decoder.block(piece.text, piece.offset, last=piece.last)


def _started(count: int) -> Crew | None:
    """So many workers; None where none are wanted, or no process, no descriptor or no memory is left to us: it goes without."""
    try:
        return Crew(count) if count else None
    except OSError:
        return None


def _looks_like_xla(text: bytes) -> bool:
    """Whether the first events name processes as XPlanes are named."""
    return (b"/host:CPU" in text or b"/device:" in text) and _XLA_PROCESS.search(text) is not None


@contextmanager
def _collector_off() -> Iterator[None]:
    """Without Python's cyclic collector, which would walk through the events again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
