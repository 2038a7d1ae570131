"""Chrome trace JSON to a profile: PyTorch's profiler of all eras and vendors, traces made from XPlanes, any other."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from roofterm_parsers.chrome import header
from roofterm_parsers.chrome.assembling import FileFacts, assemble
from roofterm_parsers.chrome.decoding import Decoder
from roofterm_parsers.chrome.gathering import Dictionaries, Gathered
from roofterm_parsers.chrome.splitting import ByteSource, split
from roofterm_parsers.profile import Profile, Source

__all__ = ["ByteSource", "read"]


def read(
    stream: ByteSource,
    source: Source,
    report: Callable[[int], None],
    *,
    workers: int | None = None,
    max_memory: int | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Profile:
    """The profile of one source, whose uncompressed bytes `stream` gives.

    `report` is told the bytes read so far. `workers`: processes that decode (0: none; None: as many as help). An input that
    is no trace, or has nothing on a time axis, raises ProfileError; `cancelled` returning true raises Interrupted.
    """
    with collector_off():
        parts = split(stream, source.path, report, cancelled)
        top, _ = header.top_level(parts.header, [])
        pieces = iter(parts.blocks)
        gathered = Gathered()
        own = Dictionaries()
        decoder: Decoder | None = None
        xla = header.is_xla(top)
        for piece in pieces:
            if decoder is None:
                xla = xla or _looks_like_xla(piece.text)
                decoder = Decoder(xla=xla)
            gathered.add(decoder.block(piece.text, piece.offset, last=piece.last), own)
        top, damaged = header.top_level(parts.header, gathered.trailers)
        file = FileFacts(top, parts.is_list, parts.left_out, damaged)
        return assemble(gathered, file, source, xla=xla)


def _looks_like_xla(text: bytes) -> bool:
    """Whether the first events name processes as XPlanes are named."""
    return b'"/host:CPU"' in text or b'"/device:' in text


@contextmanager
def collector_off() -> Iterator[None]:
    """Without Python's cyclic collector, which would walk through the events again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
