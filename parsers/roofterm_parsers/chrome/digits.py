"""Places in a text, and runs of decimal digits from there, eight bytes at a time for many places at once.

A word is eight bytes of the text as a little-endian number, so that the first is its lowest byte. Numbers are read by three
multiplications a word, which pair the digits, then the pairs, then the fours (D. Lemire, "Quickly parsing eight digits",
2018). All of it is integer arithmetic modulo 2**64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]

WORD_BYTES = 8
PADDING = 32
"""Bytes that must follow a text, so that a word may begin at its last place and runs be followed from there."""
MOST_DIGITS = 18
"""Longer numbers may not fit into 64 bits."""

_ZEROS, _NIBBLES = np.uint64(0x3030303030303030), np.uint64(0x0F0F0F0F0F0F0F0F)
_LOW_BITS, _HIGH_BITS = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(0x8080808080808080)
_BEYOND_NINE = np.uint64(0x7676767676767676)
"""added to a byte of at most 0x7F, it sets the high bit if the byte is more than 9"""
_PAIRS, _FOURS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
_BY_10, _BY_100, _BY_10000 = np.uint64(10 << 8 | 1), np.uint64(100 << 16 | 1), np.uint64(10000 << 32 | 1)
_ONE, _THREE, _EIGHT, _SIXTEEN, _THIRTY_TWO = (np.uint64(n) for n in (1, 3, 8, 16, 32))
_FIRST = np.array([(1 << 8 * n) - 1 for n in range(WORD_BYTES + 1)], np.uint64)
"""masks of the first bytes of a word, by their number"""


def words(buffer: U8) -> U64:
    """The word that begins at each place of a buffer (a view of it), but for the last seven."""
    return np.ndarray((buffer.size - WORD_BYTES + 1,), np.dtype("<u8"), buffer, strides=(1,))


def places_of(mask: U8) -> I64:
    """Where a mask of few hits is 1, and not 0. Its size must be a multiple of eight."""
    word = mask.view("<u8")
    rows = (word != 0).nonzero()[0]
    left = word[rows]
    at: I64 = (rows << 3) + _trailing_bytes(left)
    left &= left - _ONE
    if not left.any():
        return at
    found = [at]
    while (again := left.nonzero()[0]).size:
        rows, left = rows[again], left[again]
        found.append((rows << 3) + _trailing_bytes(left))
        left &= left - _ONE
    return np.sort(np.concatenate(found), kind="stable")


def run_lengths(word: U64) -> I64:
    """How many digits each word begins with, up to eight."""
    other = word ^ _ZEROS
    beyond = other & _LOW_BITS
    beyond += _BEYOND_NINE
    beyond |= other
    beyond &= _HIGH_BITS
    return _trailing_bytes(beyond)


def follow_runs(word_at: U64, places: I64, lengths: I64) -> None:
    """Complete the lengths of runs that fill their first word, up to MOST_DIGITS and a few more."""
    at = WORD_BYTES
    rows = (lengths == at).nonzero()[0]
    while rows.size and at <= MOST_DIGITS:
        lengths[rows] += run_lengths(word_at[places[rows] + at])
        at += WORD_BYTES
        rows = rows[lengths[rows] == at]


def numbers(word_at: U64, places: I64, lengths: I64) -> I64:
    """The numbers (1 to MOST_DIGITS digits) that begin at the places."""
    rest = np.maximum(lengths - WORD_BYTES, 0)
    word = word_at[places + rest]
    word <<= ((WORD_BYTES - lengths + rest) << 3).astype(np.uint64)
    word &= _NIBBLES
    word *= _BY_10
    word >>= _EIGHT
    word &= _PAIRS
    word *= _BY_100
    word >>= _SIXTEEN
    word &= _FOURS
    word *= _BY_10000
    word >>= _THIRTY_TWO
    value = word.view(np.int64)
    rows = rest.nonzero()[0]
    if rows.size:
        value[rows] += numbers(word_at, places[rows], rest[rows]) * 10**WORD_BYTES
    return value


def overwrite(word_at: U64, places: I64, lengths: I64, symbol: int) -> None:
    """Put `symbol` over each run; the places must rise, and runs must not touch."""
    fill = np.uint64(int.from_bytes(bytes([symbol]) * WORD_BYTES, "little"))
    while places.size:
        # A word is written back whole: what lies behind its run is what was read, or is written again by the next one.
        mask = _FIRST[np.minimum(lengths, WORD_BYTES)]
        word = word_at[places]
        word |= mask
        word ^= mask
        mask &= fill
        word |= mask
        word_at[places] = word
        rows = (lengths > WORD_BYTES).nonzero()[0]
        places, lengths = places[rows] + WORD_BYTES, lengths[rows] - WORD_BYTES


def _trailing_bytes(word: U64) -> I64:
    """Number of zero bytes below the lowest bit that is set; eight if none is."""
    below = ~word
    below &= word - _ONE
    count: I64 = (np.bitwise_count(below) >> np.uint8(3)).astype(np.int64)
    return count
