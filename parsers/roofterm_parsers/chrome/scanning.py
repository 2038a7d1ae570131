"""Finding, in a regular text of events, where each of them lies and which digits differ from event to event.

A writer separates its events always in the same way. Where a text does so, its events are found by that separator, and
the digits of plain numbers behind a key are overwritten by a byte that no text holds. What is left of an event is its
form: events that differ only in numbers have the same. Nothing is concluded here about what the text means, and nothing
is taken on trust: whoever uses the forms has to see that each of them is an event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.chrome.digits import MOST_DIGITS, PADDING, WORD_BYTES, follow_runs, overwrite, places_of, run_lengths, words
from roofterm_parsers.chrome.form_columns import MOST_DECIMALS
from roofterm_parsers.chrome.salvage import KEYS

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]

FILL, SEPARATOR = 1, 2
"""Stand for a digit, and between forms: control characters, which no JSON may hold as they are."""

_FIRST_KEY = re.compile(rb"\s*(\{)\s*(" + KEYS + rb")\s*:")
_LONGEST_SEPARATOR = PADDING
_MOST_BLANKS = 1 << 12
_CHUNK_BYTES = 512 << 10
"""Looked through at once, so that it stays in the processor's cache."""
_QUOTE, _COLON, _COMMA, _BRACE, _BLANK, _MINUS, _DOT, _ZERO, _BACKSLASH = (np.uint8(ord(char)) for char in '":,{ -.0\\')
_MINUS_LESS_ZERO = np.uint8(ord("-") - ord("0") & 0xFF)
_LOWEST_BYTE = np.uint64(0xFF)
_EXPONENT = np.isin(np.arange(256), list(b"eE."))
"""what makes a number of the digits before it more than an integer"""
_PROCESS_KEYS = tuple(np.uint32(int.from_bytes(key, "little")) for key in (b'pid"', b'tid"'))
"""ends of keys whose few numbers tell threads apart, and so belong to the form"""
_TIME_KEYS = tuple(np.uint32(int.from_bytes(key, "little")) for key in (b'"ts"', b'dur"'))
"""ends of keys whose numbers may have decimals"""


@dataclass(slots=True)
class Scanned:
    """A text and the forms of its events."""

    word_at: U64
    """the text as it was, as words"""
    filled: bytes
    starts: I64
    ends: I64
    """places of each event's first byte, and behind its last"""

    def form(self, row: int) -> bytes:
        """The form of an event."""
        return self.filled[self.starts[row] : self.ends[row]]


def scan(text: bytes | bytearray | memoryview) -> Scanned | None:
    """Events of a text that begins with one and ends with one; None if it is not as regular as that."""
    size = len(text)
    separator = _separator(text)
    if separator is None:
        return None
    original = np.zeros(size + -size % WORD_BYTES + PADDING, np.uint8)
    original[:size] = np.frombuffer(text, np.uint8)
    if bool(((original[:size] - np.uint8(FILL)) <= SEPARATOR - FILL).any()):
        return None
    span = original.size - PADDING
    filled = original.copy()
    found = [_separators(original, slice(at, min(at + _CHUNK_BYTES, span)), separator) for at in range(0, span, _CHUNK_BYTES)]
    for at in range(0, span, _CHUNK_BYTES):
        _fill(original, filled, slice(at, min(at + _CHUNK_BYTES, span)), spaced=separator.spaced)
    places = np.concatenate(found)
    places = places[places + len(separator.text) <= size]
    starts = np.concatenate(([separator.first], places + separator.brace))
    ends = np.concatenate((places + 1, [size - _blanks_at_end(text)]))
    if ends[-1] <= starts[-1]:
        return None
    return Scanned(words(original), filled.tobytes(), starts, ends)


@dataclass(slots=True)
class _Separator:
    text: bytes
    """from the end of an event to the first colon of the next"""
    comma: int
    brace: int
    """places in it of the comma between the two, and of the brace that opens the second"""
    first: int
    """place of the brace that opens the first event"""
    spaced: bool
    """a blank stands between colon and value"""


def _separator(text: bytes | bytearray | memoryview) -> _Separator | None:
    """What stands between the first two events."""
    first = _FIRST_KEY.match(text)
    if first is None:
        return None
    found = re.compile(rb"\}\s*,\s*\{\s*" + first[2] + rb":").search(text, first.end())
    if found is None or found.end() - found.start() > _LONGEST_SEPARATOR:
        return None
    between = found[0]
    spaced = bytes(text[first.end() : first.end() + 1]) == b" "
    return _Separator(between, between.index(b","), between.index(b"{"), first.start(1), spaced)


def _separators(original: U8, chunk: slice, separator: _Separator) -> I64:
    """Where the separator stands; it may reach beyond the chunk."""
    text = separator.text
    places: I64
    apart = separator.brace - separator.comma
    differs = original[chunk] ^ _COMMA
    differs |= original[chunk.start + apart : chunk.stop + apart] ^ _BRACE
    places = places_of((differs == 0).view(np.uint8)) + (chunk.start - separator.comma)
    word_at = words(original)
    places = places[places > separator.first]
    for at in (*range(0, len(text) - WORD_BYTES, WORD_BYTES), len(text) - WORD_BYTES):
        places = places[word_at[places + at] == np.uint64(int.from_bytes(text[at : at + WORD_BYTES], "little"))]
    return places


def _blanks_at_end(text: bytes | bytearray | memoryview) -> int:
    tail = bytes(text[-_MOST_BLANKS:])
    return len(tail) - len(tail.rstrip())


def _fill(original: U8, filled: U8, chunk: slice, *, spaced: bool) -> None:
    """Overwrite in `filled` the digits of plain numbers that are the values of keys which end in the chunk."""
    word_at = words(original)
    keys, places = _values(original, chunk, spaced)
    key_end = np.ndarray((original.size - 3,), np.dtype("<u4"), original, strides=(1,))[keys - 3]
    kept = ((key_end != _PROCESS_KEYS[0]) & (key_end != _PROCESS_KEYS[1])).nonzero()[0]
    places, key_end = places[kept], key_end[kept]
    first = word_at[places]
    lengths = run_lengths(first)
    plain = (lengths == 1) | (first & _LOWEST_BYTE != _ZERO)
    follow_runs(word_at, places, lengths)
    plain &= lengths <= MOST_DIGITS
    behind = original[places + lengths]
    timed = (plain & (behind == _DOT) & ((key_end == _TIME_KEYS[0]) | (key_end == _TIME_KEYS[1]))).nonzero()[0]
    plain &= ~_EXPONENT[behind]

    decimals = places[timed] + lengths[timed] + 1
    count = run_lengths(word_at[decimals])
    fine = ((count > 0) & (count <= MOST_DECIMALS) & ~_EXPONENT[original[decimals + count]]).nonzero()[0]
    plain[timed[fine]] = True
    if not plain.all():
        places, lengths = places[plain], lengths[plain]
    filled_words = words(filled)
    overwrite(filled_words, places, lengths, FILL)
    overwrite(filled_words, decimals[fine], count[fine], FILL)


def _values(original: U8, chunk: slice, spaced: bool) -> tuple[I64, I64]:
    """Places of quotes in the chunk that close a key, and of the first digit of the number behind each."""

    def shifted(by: int) -> U8:
        return original[chunk.start + by : chunk.stop + by]

    gap = 3 if spaced else 2
    differs = shifted(0) ^ _QUOTE
    differs |= shifted(1) ^ _COLON
    if spaced:
        differs |= shifted(2) ^ _BLANK
    number = shifted(gap) - _ZERO
    hits = (number < 10).view(np.uint8)
    hits |= (number == _MINUS_LESS_ZERO).view(np.uint8)
    hits &= (differs == 0).view(np.uint8)
    keys = places_of(hits) + chunk.start
    keys = keys[(original[keys - 1] != _BACKSLASH) & (keys > 2)]
    places = keys + gap
    negative = original[places] == _MINUS
    if negative.any():
        places += negative
        kept = (original[places] - _ZERO) < 10
        keys, places = keys[kept], places[kept]
    return keys, places
