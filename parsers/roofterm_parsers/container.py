"""Containers, told by content and never by name: gzip, zstd, zip, or none, one in another where it must be.

What comes out is streamed and bounded. A container that is cut or damaged gives what can be had, and a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

import zstandard

from roofterm_parsers.deflate import Deflate, Layer, Pushback, State
from roofterm_parsers.errors import ProfileError, TooLarge
from roofterm_parsers.inputs import Raw
from roofterm_parsers.records import Warning

BOM = b"\xef\xbb\xbf"
EXPANDED_PER_MEMORY = 6
"""Frames take a quarter to a third of the text they come from: six times the memory in text cannot fit."""
BOMB_BYTES = 256 << 20
BOMB_RATIO = 120
"""Real traces shrink 13 to 20 times, repetitive ones 60 times: what gives more than BOMB_BYTES at this rate is no trace."""

_MOST_LAYERS = 4
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_READ_BYTES = 4096
"""A zstd block of 4 bytes may stand for 128 KiB: what is decoded at once stays under 128 MiB."""
_ZSTD_STEP_BYTES = 16
_TRAILING_BYTES = 1 << 20


class Stream:
    """The content of an input, as a file: `read(n)` gives n bytes, fewer only at the end.

    A UTF-8 byte order mark is left out: offsets count from behind it. `warnings` grows while the stream is read.
    """

    def __init__(self, raw: Raw, path: str, max_memory: int) -> None:
        self.path = path
        self.warnings: list[Warning] = []
        self.bytes_expanded = 0
        self.has_mark = False
        self.ended = False
        """True once everything was read"""
        self._raw = raw
        self._most_bytes = max_memory * EXPANDED_PER_MEMORY
        self.max_memory = max_memory
        self._bytes, self.containers = _unpack(raw, self)
        if self._bytes.peek(len(BOM)) == BOM:
            self._bytes.exactly(len(BOM))
            self.has_mark = True

    @property
    def container(self) -> str:
        """gzip, zstd or zip (the outermost), else plain."""
        return self.containers[0] if self.containers else "plain"

    @property
    def bytes_read(self) -> int:
        """Bytes taken from the input, as they lie there."""
        return self._raw.bytes_read

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end; they stay to be read."""
        return self._bytes.peek(size)

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes, fewer only at the end; all that is left if `size` is negative."""
        if size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        data = self._bytes.exactly(size)
        self.ended = self.ended or len(data) < size
        self.bytes_expanded += len(data)
        if self.bytes_expanded > self._most_bytes:
            raise TooLarge(
                f"{self.path}: holds more than {size_text(self._most_bytes)}, too much for {size_text(self.max_memory)} of memory; "
                "raise --max-memory, or record fewer steps",
                self.path,
            )
        return data

    def readinto(self, buffer: memoryview) -> int:
        """Fill `buffer`; gives the number of bytes, fewer than fit only at the end."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def warn(self, code: str, message: str, count: int = 1) -> None:
        """Add a warning; the file is named by the stream."""
        self.warnings.append(Warning(code, f"{self.path}: {message}", count))

    def close(self) -> None:
        self._raw.close()


def open_stream(raw: Raw, path: str, max_memory: int) -> Stream:
    """The content of `raw`, unpacked as it is read. Raises ProfileError for a container that gives nothing at all."""
    return Stream(raw, path, max_memory)


def container_of(head: bytes) -> str | None:
    """gzip, zstd or zip by the first bytes; None for anything else."""
    if len(head) >= 2 and b"\x1f\x8b\x08".startswith(head[:3]):
        return "gzip"
    if head[:4] == _ZSTD_MAGIC or (len(head) >= 4 and head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        return "zstd"
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"):
        return "zip"
    return None


def _unpack(raw: Raw, stream: Stream) -> tuple[Pushback, list[str]]:
    below = Pushback(raw)
    kinds: list[str] = []
    while kind := container_of(below.peek(4)):
        if len(kinds) == _MOST_LAYERS:
            raise ProfileError(f"{stream.path}: is packed more than {_MOST_LAYERS} times over; unpack it first", stream.path)
        kinds.append(kind)
        layer: Layer
        if kind == "gzip":
            layer = _Gzip(below, stream)
        elif kind == "zstd":
            layer = _Zstd(below, stream)
        else:
            from roofterm_parsers.zipped import open_only_entry

            layer = open_only_entry(raw if len(kinds) == 1 else None, below, stream)
        below = Pushback(_Bounded(layer, kind, stream))
    return below, kinds


class _Bounded:
    """Ends a container that gives out of all proportion, and one that gives nothing, with a sentence."""

    def __init__(self, layer: Layer, kind: str, stream: Stream) -> None:
        self._layer = layer
        self._kind = kind
        self._stream = stream
        self._expanded = 0

    def read(self, size: int = 1 << 18) -> bytes:
        data = self._layer.read(size)
        self._expanded += len(data)
        if not self._expanded:
            flaw = (
                self._stream.warnings[-1].message
                if self._stream.warnings
                else f"{self._stream.path}: an empty {self._kind} file: 0 bytes inside"
            )
            raise ProfileError(flaw, self._stream.path)
        if self._expanded > BOMB_BYTES and self._expanded > BOMB_RATIO * self._layer.taken_bytes:
            raise ProfileError(
                f"{self._stream.path}: {size_text(self._layer.taken_bytes)} of {self._kind} expand "
                f"to more than {size_text(self._expanded)}: no trace is like that; refused as a decompression bomb",
                self._stream.path,
            )
        return data


class _Gzip:
    """All members of a gzip file, one after the other."""

    def __init__(self, below: Pushback, stream: Stream) -> None:
        self._below = below
        self._stream = stream
        self._member: Deflate | None = None
        self._ended = not self._next_member()

    @property
    def taken_bytes(self) -> int:
        return self._below.position

    def read(self, size: int) -> bytes:
        while not self._ended and self._member is not None:
            data = self._member.read(size)
            if data:
                return data
            self._ended = not (self._finish(self._member) and self._next_member())
        return b""

    def _next_member(self) -> bool:
        """Go to the next member; False at the end of the file, or where no member follows."""
        first = self._member is None
        while self._below.peek(1) == b"\0":
            zeros = self._below.read()
            self._below.push(zeros.lstrip(b"\0"))
        head = self._below.peek(3)
        if not head:
            return False
        if not b"\x1f\x8b\x08".startswith(head):
            self._warn_of_trailing_bytes()
            return False
        if not self._skip_header():
            self._stream.warn(
                "cut", "the gzip file ends within its header: it is truncated" if first else "the last gzip member is cut in its header"
            )
            return False
        self._member = Deflate(self._below)
        return True

    def _skip_header(self) -> bool:
        """Take a member's header; False if the file ends within it."""
        fixed = self._below.exactly(10)
        if len(fixed) < 10:
            return False
        flags = fixed[3]
        if flags & 4:
            length = self._below.exactly(2)
            if len(self._below.exactly(int.from_bytes(length, "little"))) < int.from_bytes(length, "little"):
                return False
        for flag in (8, 16):  # file name, comment: each ends with a zero byte
            if flags & flag and not self._skip_text():
                return False
        return not flags & 2 or len(self._below.exactly(2)) == 2

    def _skip_text(self) -> bool:
        while data := self._below.read(256):
            _, zero, rest = data.partition(b"\0")
            if zero:
                self._below.push(rest)
                return True
        return False

    def _finish(self, member: Deflate) -> bool:
        """Check a member's end; False if nothing can follow."""
        kept = _kept(member.expanded_bytes)
        if member.state is State.CUT:
            self._stream.warn("cut", f"the gzip file ends too early (truncated){kept}")
            return False
        if member.state is State.CORRUPT:
            self._stream.warn("cut", f"the gzip data are corrupt at byte {self._below.position}{kept}")
            return False
        trailer = self._below.exactly(8)
        if len(trailer) < 8:
            self._stream.warn("cut", "the gzip file ends within its checksum (truncated); all of its content was kept")
            return False
        if int.from_bytes(trailer[:4], "little") != member.crc:
            self._stream.warn("checksum", "the gzip checksum differs from the content: some of its bytes are damaged (corrupt)")
        return True

    def _warn_of_trailing_bytes(self) -> None:
        extra = len(self._below.exactly(_TRAILING_BYTES))
        more = "at least " if extra == _TRAILING_BYTES else ""
        self._stream.warn("trailing", f"{more}{extra} bytes behind the gzip data are no gzip and were left out")


class _Zstd:
    """All frames of a zstd file, one after the other."""

    def __init__(self, below: Pushback, stream: Stream) -> None:
        self._below = below
        self._stream = stream
        self._factory = zstandard.ZstdDecompressor(max_window_size=1 << 31)
        self._back = memoryview(b"")
        self._expanded = 0
        self._pieces = self._frames()

    @property
    def taken_bytes(self) -> int:
        return self._below.position

    def read(self, size: int) -> bytes:
        while not self._back:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._back = memoryview(piece)
            self._expanded += len(piece)
        data, self._back = self._back[:size], self._back[size:]
        return bytes(data)

    def _frames(self) -> Iterator[bytes]:
        while container_of(self._below.peek(4)) == "zstd":
            start, before = self._below.position, self._expanded
            frame = self._factory.decompressobj()
            while not frame.eof:
                at = self._below.position
                data = self._below.read(_ZSTD_READ_BYTES)
                if not data:
                    self._warn(f"ends too early (truncated){_kept(self._expanded)}")
                    return
                try:
                    yield frame.decompress(data)
                except zstandard.ZstdError as error:
                    yield from self._again(start, at, self._expanded - before)
                    self._warn(f"is corrupt, or not to be unpacked here ({error}){_kept(self._expanded)}")
                    return
            self._below.push(frame.unused_data)
        extra = len(self._below.exactly(_TRAILING_BYTES).lstrip(b"\0"))
        if extra:
            self._stream.warn("trailing", f"{extra} bytes behind the zstd data are no zstd and were left out")

    def _again(self, start: int, at: int, given: int) -> Iterator[bytes]:
        """The whole blocks of a damaged frame that stand in the piece read at `at`: the decoder gave none of them."""
        if not self._below.seekable:
            return
        self._below.seek(start)
        frame = self._factory.decompressobj()
        while True:
            before = at - self._below.position
            data = self._below.read(min(before, _ZSTD_READ_BYTES) if before > 0 else _ZSTD_STEP_BYTES)
            try:
                out = frame.decompress(data) if data else b""
            except zstandard.ZstdError:
                return
            yield out[given:]
            given = max(given - len(out), 0)
            if not data:
                return

    def _warn(self, flaw: str) -> None:
        self._stream.warn("cut", f"the zstd file {flaw}")


def _kept(count: int) -> str:
    return f"; kept the first {size_text(count)} of its content" if count else "; nothing of its content can be had"


def size_text(count: int) -> str:
    """A number of bytes for people."""
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError
