"""A file's text cut into what stands before the events and blocks of whole events, without reading it as JSON.

A block ends at a `}`, `,`, `{` and a key that events have. The guess is checked: the event before the cut must be JSON of
itself and have a phase, else an earlier place is taken, so that a list of objects inside some event's arguments is not cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import msgspec

from roofterm_parsers.chrome.crew import BLOCK_BYTES
from roofterm_parsers.chrome.events import WholeEvent
from roofterm_parsers.errors import Interrupted, ProfileError

LONGEST_HEADER_BYTES = 64 << 20
LONGEST_EVENT_BYTES = 32 << 20
"""Text without the end of an event for longer than this is cut where it is: no event is that long."""
_READ_BYTES = 1 << 20
_WINDOW = 8 << 10
"""Looked through first for the end of an event"""

_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_CUT = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|args|bp|s)")')
_ANY_CUT = re.compile(rb'\}\s*,\s*(?=\{\s*["}])')
_EVENT_WITHIN = re.compile(rb'"ph"\s*:\s*"')
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n\x00"

Bytes = bytes | bytearray | memoryview


class ByteSource(Protocol):
    """The uncompressed bytes of one input; a read of nothing is its end, foreseen or not."""

    def read(self, n: int, /) -> bytes: ...


@dataclass(slots=True)
class Piece:
    """A block of text with whole events, without the comma behind it."""

    text: Bytes
    """in the buffer that was given, or of its own if it did not fit there"""
    offset: int
    last: bool


class Splitter:
    """Cuts the text of one input. `header` and `is_list` are known at once, `last_byte` at the end."""

    def __init__(self, stream: ByteSource, path: str, report: Callable[[int], None], cancelled: Callable[[], bool]) -> None:
        """Reads up to the first event. Raises ProfileError if there is none to come, Interrupted if `cancelled()`."""
        self._stream = stream
        self._report = report
        self._cancelled = cancelled
        self._done = 0
        self._ended = False
        self._exhausted = False
        self.last_byte = b""
        """the last that is no blank, once the end is reached"""
        self.headless = False
        """the text begins in the middle of the events"""
        self.header, self.is_list, self._rest = self._open(path)
        self._offset = self._done - len(self._rest)

    def into(self, buffer: memoryview) -> Piece | None:
        """The next block, in `buffer` (of BUFFER_BYTES) if it fits; None behind the last."""
        if self._exhausted:
            return None
        size = len(self._rest)
        if size > len(buffer):
            return self._long(bytearray(self._rest))
        buffer[:size] = self._rest
        while size < BLOCK_BYTES and (more := self._read(min(_READ_BYTES, len(buffer) - size))):
            buffer[size : size + len(more)] = more
            size += len(more)
        if self._ended:
            return self._last(buffer[:size])
        cut = _cut(buffer[:size])
        if cut is None:
            return self._long(bytearray(buffer[:size]))
        return self._up_to(buffer, size, cut)

    def _long(self, text: bytearray) -> Piece | None:
        """A block in which no event ends for long: read on until one does."""
        while True:
            cut = _cut(text) if len(text) > BLOCK_BYTES else None
            if cut is not None:
                return self._up_to(text, len(text), cut)
            if len(text) > LONGEST_EVENT_BYTES:
                self._rest = b""
                piece = Piece(text, self._offset, False)
                self._offset += len(text)
                return piece
            wanted = len(text) + BLOCK_BYTES
            while len(text) < wanted and (more := self._read(_READ_BYTES)):
                text += more
            if self._ended:
                return self._last(text)

    def _up_to(self, text: Bytes, size: int, cut: tuple[int, int]) -> Piece:
        end, begin = cut
        self._rest = bytes(text[begin:size])
        piece = Piece(memoryview(text)[:end], self._offset, False)
        self._offset += begin
        return piece

    def _last(self, text: Bytes) -> Piece:
        self._exhausted = True
        self.last_byte = bytes(text[-_WINDOW:]).rstrip(_BLANK)[-1:] or self.last_byte
        return Piece(text, self._offset, True)

    def _read(self, size: int) -> bytes:
        """Some bytes; none at the end."""
        if self._cancelled():
            raise Interrupted("loading was stopped")
        data = b"" if self._ended else self._stream.read(size)
        self._ended = not data
        self._done += len(data)
        if data:
            self._report(self._done)
        return data

    def _open(self, path: str) -> tuple[bytes, bool, bytes]:
        """Header, whether the events are the outermost list, and what has been read of them."""
        text = b""
        while not text.removeprefix(_BOM).strip(_BLANK):
            more = self._read(_READ_BYTES)
            if not more:
                raise ProfileError(f"{path} is empty: there is no event in it", path)
            text = more if len(text) > _READ_BYTES else text + more
        text = text.removeprefix(_BOM).lstrip(_BLANK)
        if text[:1] == b"[":
            return b"", True, text[1:]
        if text[:1] != b"{":
            if not _EVENT_WITHIN.search(text):
                raise ProfileError(f"{path} is not a trace: it does not begin as JSON does", path)
            self.headless = True
            return b"", True, text
        while not (found := _EVENTS.search(text)):
            more = self._read(_READ_BYTES) if len(text) < LONGEST_HEADER_BYTES else b""
            if not more:
                raise ProfileError(f"{path} is not a trace: its JSON has no list of traceEvents", path)
            text += more
        return text[: found.end()], False, text[found.end() :]


def _cut(text: Bytes) -> tuple[int, int] | None:
    """Where the last whole event ends and where the next begins."""
    window = _WINDOW
    places: list[tuple[int, int]] = []
    while True:
        start = max(0, len(text) - window)
        for pattern in (_CUT, _ANY_CUT):
            places = [(m.start() + 1, m.end()) for m in pattern.finditer(text, start)]
            for (_, before), (end, begin) in reversed(list(pairwise(places))):
                if _is_event(text[before:end]):
                    return end, begin
        if start == 0:
            return places[-1] if places else None
        window *= 8


def _is_event(text: Bytes) -> bool:
    try:
        return bool(_whole(text).ph)
    except (msgspec.DecodeError, RecursionError):
        return False


_whole = msgspec.json.Decoder(WholeEvent).decode
