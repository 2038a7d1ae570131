"""Inflating a raw deflate stream that may be cut or damaged: everything that inflates is given, to the last byte.

isal does the work (three times the speed of zlib); where it meets damage, zlib goes over the stream again in small
steps, since isal gives nothing of the block in which an error lies.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from enum import Enum
from typing import Any, Protocol

from roofterm_parsers.inputs import READ_BYTES

_igzip: Any
_ERRORS: tuple[type[Exception], ...]
try:
    from isal import igzip_lib as _igzip
    from isal import isal_zlib

    crc32 = isal_zlib.crc32
    _ERRORS = (_igzip.error, EOFError)
except ImportError:  # no wheel for this machine
    crc32 = zlib.crc32
    _igzip, _ERRORS = None, (zlib.error,)

_SALVAGE_BYTES = 4096
_FIRST_BLOCK_BYTES = 4096
_AGAIN_AT_CUT_BYTES = 256 << 20
"""A cut stream up to this long is gone over again for its last bytes; they may close one more event."""


class Readable(Protocol):
    """`read` gives at most `size` bytes, fewer as it likes, and b"" at the end."""

    def read(self, size: int = ..., /) -> bytes: ...


class Layer(Protocol):
    """An unpacker: what it gives is read from it, and it tells how much it took for that."""

    @property
    def taken_bytes(self) -> int: ...

    def read(self, size: int, /) -> bytes: ...


class Pushback:
    """A source of bytes that can be looked into, and that takes back what was read too far."""

    def __init__(self, below: Readable, position: int = 0) -> None:
        self._below = below
        self._back = b""
        self.position = position

    def read(self, size: int = READ_BYTES) -> bytes:
        if self._back:
            data, self._back = self._back[:size], self._back[size:]
        else:
            data = self._below.read(size)
        self.position += len(data)
        return data

    def exactly(self, size: int) -> bytes:
        """`size` bytes, or all that is left."""
        parts: list[bytes] = []
        while size > 0 and (data := self.read(size)):
            parts.append(data)
            size -= len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, or all that is left, without taking them."""
        data = self.exactly(size)
        self.push(data)
        return data

    def push(self, data: bytes) -> None:
        """Give back bytes that were read last."""
        self._back = data + self._back
        self.position -= len(data)

    @property
    def seekable(self) -> bool:
        return bool(getattr(self._below, "seekable", False))

    def seek(self, position: int) -> None:
        seeking: Any = self._below
        seeking.seek(position)
        self._back = b""
        self.position = position


class State(Enum):
    OPEN = "open"
    DONE = "done"
    CUT = "cut"
    CORRUPT = "corrupt"


class Deflate:
    """One raw deflate stream out of `below`; at its end the bytes behind it are pushed back."""

    def __init__(self, below: Pushback) -> None:
        self._below = below
        self._start = below.position
        self._decoder = _decoder()
        self._salvage: Iterator[bytes] | None = None
        self.state = State.OPEN
        self.expanded_bytes = 0
        self.crc = 0

    @property
    def taken_bytes(self) -> int:
        """Bytes of the stream that were read so far."""
        return self._below.position - self._start

    def read(self, size: int) -> bytes:
        """At most `size` bytes; b"" once `state` is no longer OPEN."""
        while self.state is State.OPEN:
            if self._salvage is None:
                data = self._inflate(size)
            else:
                data = next(self._salvage, b"")
                if not data and self.state is State.OPEN:
                    self.state = State.CORRUPT
            if data:
                self.expanded_bytes += len(data)
                self.crc = crc32(data, self.crc)
                return data
        return b""

    def _inflate(self, size: int) -> bytes:
        decoder = self._decoder
        if decoder.eof:
            self._below.push(decoder.unused_data)
            self.state = State.DONE
            return b""
        data = self._below.read(READ_BYTES) if decoder.needs_input else b""
        ended = not data and decoder.needs_input
        if not self._below.seekable:
            # What lies in the block of an error is lost here, since nothing can be read again: begin with small blocks.
            size = min(size, max(_FIRST_BLOCK_BYTES, self.expanded_bytes // 32))
        try:
            out: bytes = decoder.decompress(data, size)
        except _ERRORS:
            if self._below.seekable:
                self._salvage = self._again()
            else:
                self.state = State.CORRUPT
            return b""
        if ended and not out:
            self._at_cut()
        return out

    def _at_cut(self) -> None:
        """The stream ended too early: isal holds back the last symbol or two, which zlib gives."""
        if self._below.seekable and self.expanded_bytes < _AGAIN_AT_CUT_BYTES:
            self._salvage = self._again()
        else:
            self.state = State.CUT

    def _again(self) -> Iterator[bytes]:
        """The stream from its start in small steps: what comes after the bytes already given, up to the damage."""
        self._below.seek(self._start)
        skip = self.expanded_bytes
        decoder = zlib.decompressobj(-zlib.MAX_WBITS)
        while not decoder.eof and (data := self._below.read(_SALVAGE_BYTES)):
            before = decoder.copy()
            damaged = False
            try:
                out = decoder.decompress(data)
            except zlib.error:
                out, damaged = b"".join(_byte_by_byte(before, data)), True
            kept = out[skip:]
            skip = max(skip - len(out), 0)
            if kept:
                yield kept
            if damaged:
                return
        if decoder.eof:
            self._below.push(decoder.unused_data)
            self.state = State.DONE
        else:
            self.state = State.CUT


def _byte_by_byte(decoder: Any, data: bytes) -> Iterator[bytes]:
    for i in range(len(data)):
        try:
            yield decoder.decompress(data[i : i + 1])
        except zlib.error:
            return


def _decoder() -> Any:
    if _igzip is not None:
        return _igzip.IgzipDecompressor(flag=_igzip.DECOMP_DEFLATE)
    return _ZlibDecoder()


class _ZlibDecoder:
    """zlib's decompressor in the manner of isal's."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(-zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return bool(self._decoder.eof)

    @property
    def needs_input(self) -> bool:
        return not self._decoder.eof and not self._decoder.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return bytes(self._decoder.unused_data)

    def decompress(self, data: bytes, size: int) -> bytes:
        return self._decoder.decompress(self._decoder.unconsumed_tail + data, size)
