"""Chrome trace JSON to a profile: PyTorch's profiler of all eras and vendors, traces made from XPlanes, any other."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from roofterm_parsers.chrome import header
from roofterm_parsers.chrome.assembling import FileFacts, assemble
from roofterm_parsers.chrome.decoding import Decoder
from roofterm_parsers.chrome.gathering import Dictionaries, Gathered
from roofterm_parsers.chrome.memory import give_back
from roofterm_parsers.chrome.pool import Pool
from roofterm_parsers.chrome.splitting import BUFFER_BYTES, ByteSource, Splitter
from roofterm_parsers.errors import Interrupted, TooLarge
from roofterm_parsers.processes import fitting_workers
from roofterm_parsers.profile import Profile, Source

__all__ = ["ByteSource", "read"]

ALONE_BYTES = 24 << 20
"""Text up to this size is decoded in this process: workers take a while to come up."""
LARGE_BYTES = 48 << 20
"""Where a text is expected to be longer than this, workers are started once its first block is known."""
_XLA_PROCESS = re.compile(rb'"name"\s*:\s*"(?:/host:CPU|[^"]{0,200}/device:[A-Za-z_]+:[0-9]+)')
MEMORY_PER_BYTE = 4.0
"""What a profile takes while it is put together, for each byte that was gathered."""


def read(
    stream: ByteSource,
    source: Source,
    report: Callable[[int], None],
    *,
    workers: int | None = None,
    max_memory: int | None = None,
    expected_bytes: int = 0,
    cancelled: Callable[[], bool] = lambda: False,
) -> Profile:
    """The profile of one source, whose uncompressed bytes `stream` gives.

    `report` is told the bytes read so far. `workers`: processes that decode a large text (0: none; None: as many as there
    are cores to use). `expected_bytes`: how long the text will be, as far as one can tell. Raises ProfileError if the text is
    no trace or has nothing on a time axis, TooLarge if it would take
    more than `max_memory` bytes, Interrupted if `cancelled()`.
    """
    with _collector_off():
        splitter = Splitter(stream, source.path, report, cancelled)
        top, _ = header.top_level(splitter.header, [])
        gathering = _Gathering(splitter, source, max_memory, cancelled, xla=header.is_xla(top))
        gathering.alone(ALONE_BYTES if expected_bytes < LARGE_BYTES else 1)
        count = fitting_workers() if workers is None else workers
        if count and not gathering.done:
            gathering.with_workers(count)
        gathering.alone(None)
        gathered = gathering.gathered
        top, damaged = header.top_level(splitter.header, gathered.trailers, cut=gathered.trails_on)
        closed = splitter.is_list or (gathered.ended and splitter.last_byte == b"}")
        file = FileFacts(top, splitter.is_list, closed and not splitter.headless, damaged)
        return assemble(gathered, file, source, xla=gathering.xla, check=gathering.check_and_tidy)


class _Gathering:
    """The blocks of a file on their way into `gathered`."""

    def __init__(self, splitter: Splitter, source: Source, max_memory: int | None, cancelled: Callable[[], bool], *, xla: bool) -> None:
        self.gathered = Gathered()
        self.xla = xla
        self.done = False
        self._splitter = splitter
        self._source = source
        self._max_memory = max_memory
        self._cancelled = cancelled
        self._decoder: Decoder | None = None
        self._own = Dictionaries()
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    def alone(self, most_bytes: int | None) -> None:
        """Decode in this process, up to a number of bytes or to the end."""
        while not self.done and (most_bytes is None or most_bytes > 0):
            size = self._block_here()
            most_bytes = None if most_bytes is None else most_bytes - size

    def with_workers(self, count: int) -> None:
        """Decode in worker processes to the end, in this one until they have come up; does nothing where none can."""
        try:
            started = Pool(count, xla=self.xla, path=self._source.path, cancelled=self._cancelled)
        except OSError:  # no process, no descriptor or no memory is left to us: it goes without
            return
        with started as pool:
            dictionaries = [Dictionaries() for _ in range(count)]
            while not self.done and not pool.is_ready():
                if not pool.may_come_up:
                    return
                self._block_here()
            while not self.done:
                self._take_in(pool, dictionaries, wait=False)
                slot = pool.slot()
                if slot is None:
                    self._take_in(pool, dictionaries, wait=True)
                    continue
                piece = self._splitter.into(slot)
                if piece is None:
                    break
                self.done = piece.last
                if isinstance(piece.text, memoryview) and piece.text.obj is slot.obj:
                    pool.submit(len(piece.text), piece.offset, last=piece.last)
                else:  # an event too long for a slot
                    while self._take_in(pool, dictionaries, wait=True):
                        pass
                    self._add_here(piece.text, piece.offset, last=piece.last)
                slot.release()
            while self._take_in(pool, dictionaries, wait=True):
                pass

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
        """As `check`; and give back what the last step left free."""
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

    def _block_here(self) -> int:
        piece = self._splitter.into(self._buffer)
        if piece is None:
            self.done = True
            return 0
        self.done = piece.last
        return self._add_here(piece.text, piece.offset, last=piece.last)

    def _add_here(self, text: bytes | bytearray | memoryview, offset: int, *, last: bool) -> int:
        if self._decoder is None:
            self.xla = self.xla or _looks_like_xla(bytes(text))
            self._decoder = Decoder(xla=self.xla)
        self.gathered.add(self._decoder.block(text, offset, last=last), self._own)
        self.check()
        return len(text)


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
