"""A file's text cut into what stands before the events and blocks of whole events, without reading it as JSON.

A block ends at a `}`, `,`, `{` and a key that events have. The guess is checked: the event before the cut must be JSON of
itself and have a phase, else an earlier place is taken, so that a list of objects inside some event's arguments is not cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import msgspec

from roofterm_parsers.chrome.events import WholeEvent
from roofterm_parsers.errors import Interrupted, ProfileError

BLOCK_BYTES = 4 << 20
LONGEST_HEADER_BYTES = 64 << 20
LONGEST_EVENT_BYTES = 32 << 20
"""Text without the end of an event for longer than this is left out, and counted."""
_WINDOW = 64 << 10

_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_CUT = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|args|bp|s)")')
_ANY_CUT = re.compile(rb'\}\s*,\s*(?=\{\s*["}])')
_BOM = b"\xef\xbb\xbf"


class ByteSource(Protocol):
    """The uncompressed bytes of one input; a read of nothing is its end, foreseen or not."""

    def read(self, n: int, /) -> bytes: ...


@dataclass(slots=True)
class Piece:
    """A block of text with whole events, without the comma behind it."""

    text: bytes
    offset: int
    last: bool


@dataclass(slots=True)
class Split:
    """The parts of a file. `blocks` must be used up before `left_out` is known."""

    header: bytes
    """text before the list of events; empty if the file is a list"""
    is_list: bool
    blocks: Iterator[Piece]
    left_out: int = 0
    """pieces of text too long to be an event"""
    size: int = 0


def split(
    stream: ByteSource, path: str, report: Callable[[int], None], cancelled: Callable[[], bool], block_bytes: int = BLOCK_BYTES
) -> Split:
    """Cut the text of `stream`. Raises ProfileError if it is no trace, Interrupted if `cancelled()`."""
    reader = _Reader(stream, report, cancelled)
    text = reader.read(block_bytes)
    text = text.removeprefix(_BOM)
    skipped = reader.done - len(text)
    stripped = text.lstrip(b" \t\r\n\x00")
    while not stripped and text:
        skipped += len(text)
        text = reader.read(block_bytes)
        stripped = text.lstrip(b" \t\r\n\x00")
    if not stripped:
        raise ProfileError(f"{path} is empty: there is no event in it", path)
    start = skipped + len(text) - len(stripped)
    if stripped[:1] == b"[":
        result = Split(b"", True, iter(()))
        result.blocks = _blocks(reader, stripped[1:], start + 1, result, block_bytes)
        return result
    if stripped[:1] != b"{":
        raise ProfileError(f"{path} is not a trace: it does not begin as JSON does", path)
    text = stripped
    while True:
        found = _EVENTS.search(text)
        if found:
            break
        more = reader.read(block_bytes) if len(text) < LONGEST_HEADER_BYTES else b""
        if not more:
            raise ProfileError(f"{path} is not a trace: its JSON has no list of traceEvents", path)
        text += more
    result = Split(text[: found.end()], False, iter(()))
    result.blocks = _blocks(reader, text[found.end() :], start + found.end(), result, block_bytes)
    return result


class _Reader:
    """Reads, counts and reports."""

    def __init__(self, stream: ByteSource, report: Callable[[int], None], cancelled: Callable[[], bool]) -> None:
        self._stream = stream
        self._report = report
        self._cancelled = cancelled
        self.done = 0

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end."""
        parts: list[bytes] = []
        missing = size
        while missing:
            if self._cancelled():
                raise Interrupted("loading was stopped")
            part = self._stream.read(min(missing, 1 << 20))
            if not part:
                break
            parts.append(bytes(part))
            missing -= len(part)
            self.done += len(part)
            self._report(self.done)
        return b"".join(parts)


def _blocks(reader: _Reader, rest: bytes, offset: int, result: Split, block_bytes: int) -> Iterator[Piece]:
    ended = False
    while not ended:
        more = reader.read(block_bytes)
        ended = not more
        text = rest + more if rest else more
        if ended:
            result.size = reader.done
            yield Piece(text, offset, True)
            return
        cut = _cut(text)
        if cut is None:
            if len(text) > LONGEST_EVENT_BYTES:
                result.left_out += 1
                offset += len(text) - _WINDOW
                rest = text[-_WINDOW:]
            else:
                rest = text
            continue
        end, begin = cut
        yield Piece(text[:end], offset, False)
        offset += begin
        rest = text[begin:]


def _cut(text: bytes) -> tuple[int, int] | None:
    """Where the last whole event ends and where the next begins."""
    window = _WINDOW
    while True:
        start = max(0, len(text) - window)
        for pattern in (_CUT, _ANY_CUT):
            places = [(m.start() + 1, m.end()) for m in pattern.finditer(text, start)]
            for (_, before), (end, begin) in zip(places[-2::-1], places[:0:-1], strict=True):
                if _is_event(text[before:end]):
                    return end, begin
        if start == 0:
            return places[-1] if places else None
        window *= 8


def _is_event(text: bytes) -> bool:
    try:
        return bool(_whole(text).ph)
    except (msgspec.DecodeError, RecursionError):
        return False


_whole = msgspec.json.Decoder(WholeEvent).decode
