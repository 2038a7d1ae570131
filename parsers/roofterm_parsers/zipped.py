"""A zip with one trace in it: the trace, streamed."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

from roofterm_parsers.deflate import Deflate, Layer, Pushback, State, crc32
from roofterm_parsers.errors import ProfileError, TooLarge
from roofterm_parsers.inputs import Raw

if TYPE_CHECKING:
    from roofterm_parsers.container import Stream

_LOCAL_HEADER_BYTES = 30
_ENCRYPTED = 1
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_HINTS = (".json", ".json.gz", ".pb", ".gz", ".zst", ".json.zst", ".pb.gz", ".tmp")
_LISTED = 4


def open_only_entry(raw: Raw | None, below: Pushback, stream: Stream) -> Layer:
    """The one trace of a zip, whose bytes are `raw` or, where that cannot be gone through at will, all of `below`.

    Raises ProfileError if there is none, if there are several, or if it is packed in a way unknown here.
    """
    path = stream.path
    if raw is None or not raw.seekable:
        raw = _in_memory(below, stream)
    try:
        with zipfile.ZipFile(_File(raw)) as archive:
            entry = _choose(archive.infolist(), path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError):
        return _first_entry(raw, stream)
    if entry.header_offset < 0:  # the front of the file is lost
        return _first_entry(raw, stream)
    raw.seek(entry.header_offset)
    header = Pushback(raw).exactly(_LOCAL_HEADER_BYTES)
    raw.seek(entry.header_offset + _LOCAL_HEADER_BYTES + _skipped(header))
    return _unpacked(raw, stream, entry.compress_type, entry.flag_bits, entry.compress_size, entry.CRC)


def _in_memory(below: Pushback, stream: Stream) -> Raw:
    most = stream.max_memory // 3
    data = below.exactly(most + 1)
    if len(data) > most:
        raise TooLarge(
            f"{stream.path}: a zip that cannot be read from its end is held in memory, and this one is too big; unpack it", stream.path
        )
    return Raw(io.BytesIO(data), stream.path, lambda _: None)


def _choose(entries: list[zipfile.ZipInfo], path: str) -> zipfile.ZipInfo:
    files = [entry for entry in entries if not entry.filename.endswith("/") and not _is_clutter(entry.filename)]
    if any(entry.filename.endswith("/data.pkl") for entry in files):
        raise ProfileError(f"{path}: is a PyTorch checkpoint (torch.save), not a profile", path)
    likely = [entry for entry in files if entry.filename.lower().endswith(_HINTS)]
    chosen = likely or files
    if not chosen:
        raise ProfileError(f"{path}: the zip is empty: no trace inside", path)
    if len(chosen) > 1:
        names = ", ".join(entry.filename for entry in chosen[:_LISTED]) + (", ..." if len(chosen) > _LISTED else "")
        raise ProfileError(f"{path}: the zip holds {len(chosen)} files ({names}); unpack it and open the folder", path)
    return chosen[0]


def _is_clutter(name: str) -> bool:
    last = name.rpartition("/")[2]
    return name.startswith("__MACOSX/") or last.startswith("._") or last in (".DS_Store", "Thumbs.db", "desktop.ini")


def _first_entry(raw: Raw, stream: Stream) -> Layer:
    """The entry at the start of a zip whose directory, at its end, is missing."""
    raw.seek(0)
    header = Pushback(raw).exactly(_LOCAL_HEADER_BYTES)
    if header[:4] != b"PK\x03\x04" or len(header) < _LOCAL_HEADER_BYTES:
        raise ProfileError(f"{stream.path}: a damaged or empty zip: nothing in it can be read", stream.path)
    stream.warn("cut", "the zip's directory is missing or damaged (truncated?); took its first file")
    number = int.from_bytes
    flags, method, size = number(header[6:8], "little"), number(header[8:10], "little"), number(header[18:22], "little")
    raw.seek(_LOCAL_HEADER_BYTES + _skipped(header))
    return _unpacked(raw, stream, method, flags, size, number(header[14:18], "little") or None)


def _skipped(header: bytes) -> int:
    """Bytes of name and extra fields behind a local header."""
    return int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")


def _unpacked(raw: Raw, stream: Stream, method: int, flags: int, size: int, crc: int | None) -> Layer:
    if flags & _ENCRYPTED:
        raise ProfileError(f"{stream.path}: the zip is encrypted; unpack it first", stream.path)
    below = Pushback(raw, raw.position)
    if method == _DEFLATED:
        return _Deflated(below, stream, crc)
    if method in (_STORED, _ZSTD):  # a zstd entry is found as such by the next look at the content
        return _Stored(below, stream, size, crc if method == _STORED else None)
    raise ProfileError(f"{stream.path}: the zip is packed by method {method}, which is unknown here; unpack it first", stream.path)


class _Deflated:
    def __init__(self, below: Pushback, stream: Stream, crc: int | None) -> None:
        self._entry = Deflate(below)
        self._stream = stream
        self._crc = crc
        self._told = False

    @property
    def taken_bytes(self) -> int:
        return self._entry.taken_bytes

    def read(self, size: int) -> bytes:
        data = self._entry.read(size)
        if not data and not self._told:
            self._told = True
            if self._entry.state is not State.DONE:
                flaw = "ends too early (truncated)" if self._entry.state is State.CUT else "is corrupt"
                self._stream.warn("cut", f"the file in the zip {flaw}; kept the first {self._entry.expanded_bytes} bytes")
            elif self._crc is not None and self._entry.crc != self._crc:
                self._stream.warn("checksum", "the zip's checksum differs from the content: some of its bytes are damaged (corrupt)")
        return data


class _Stored:
    def __init__(self, below: Pushback, stream: Stream, size: int, crc: int | None) -> None:
        self._below = below
        self._stream = stream
        self._left = size
        self._crc = crc
        self._crc_seen = 0
        self.taken_bytes = 0

    def read(self, size: int) -> bytes:
        data = self._below.read(min(size, self._left))
        self._left -= len(data)
        self.taken_bytes += len(data)
        self._crc_seen = crc32(data, self._crc_seen)
        if not data and self._left:
            self._stream.warn("cut", f"the file in the zip ends {self._left} bytes too early (truncated)")
            self._left = 0
        elif data and not self._left and self._crc not in (None, self._crc_seen):
            self._stream.warn("checksum", "the zip's checksum differs from the content: some of its bytes are damaged (corrupt)")
        return data


class _File(io.RawIOBase):
    """A Raw in the manner that zipfile wants."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self._size = raw.size()
        self._position = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError("before the start")
        self._position = start + offset
        self._raw.seek(self._position)
        return self._position

    def readinto(self, buffer: Any) -> int:
        data = self._raw.read(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
