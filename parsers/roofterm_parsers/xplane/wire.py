"""Protocol buffer wire format: one message at a time with `fields`, many varints at once with `varints`.

Wire types (protobuf.dev/programming-guides/encoding): 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Buffer: TypeAlias = memoryview
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes at `at` are no field of a message. `cut` is the number of the field whose payload begins there but is cut off."""

    def __init__(self, at: int, why: str, cut: int | None = None) -> None:
        super().__init__(f"{why} at byte {at}")
        self.at = at
        self.cut = cut


def varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    """The varint at `at` (unsigned, 64 bits) and the position behind it."""
    value = shift = 0
    while True:
        if at >= end:
            raise WireError(at, "the file ends inside a number")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise WireError(at, "a number of more than 64 bits")


def fields(data: Buffer, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Fields of the message in data[at:end] as (number, wire type, a, b).

    a is a varint's value; else data[a:b] holds the field. Raises WireError where the bytes are no message, or where a
    field claims more bytes than the message has: everything before it has been given by then.
    """
    while at < end:
        key, at = varint(data, at, end)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise WireError(at, "field number 0")
        if wire == VARINT:
            value, at = varint(data, at, end)
            yield number, wire, value, at
            continue
        if wire == BYTES:
            length, at = varint(data, at, end)
        elif wire == EIGHT:
            length = 8
        elif wire == FOUR:
            length = 4
        else:
            raise WireError(at, f"wire type {wire}")
        if at + length > end:
            raise WireError(at, f"a field of {length:,} bytes in {end - at:,}", number)
        yield number, wire, at, at + length
        at += length


def text(data: Buffer, at: int, end: int) -> str:
    return str(data[at:end], "utf-8", "replace")


def double(data: Buffer, at: int) -> float:
    value: float = struct.unpack_from("<d", data, at)[0]
    return value


def signed(value: int) -> int:
    """An int64 field's value from its varint."""
    return value - (1 << 64) if value >> 63 else value


_STOPS = np.uint64(0x8080808080808080)
_ONE, _BYTE = np.uint64(1), np.uint64(8)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
PADDING_BYTES = 4096
"""Zeros behind a block: more than the numbers of one event can run over its end."""


class Block:
    """A copy of some bytes, padded, of which any eight may be read as one word."""

    __slots__ = ("bytes", "words")

    def __init__(self, data: U8) -> None:
        self.bytes: U8 = np.empty(data.size + PADDING_BYTES, np.uint8)
        self.bytes[: data.size] = data
        self.bytes[data.size :] = 0
        self.words: U64 = np.ndarray((self.bytes.size - 7,), "<u8", self.bytes.data, strides=(1,))


def varints(block: Block, at: I64) -> tuple[U64, I64]:
    """The varints at the positions `at` of the block, and the positions behind them.

    The stop byte of a varint is the first with a clear top bit: found in a word by bit arithmetic, so that numbers of
    all lengths take the same few operations. Positions must lie inside the block; where no number ends within ten bytes
    the position behind is -1.
    """
    word = block.words[at]
    own, most = _own_bits(word)
    behind = at + _bytes_of(own)
    own &= word
    value = _squeezed(own, most)
    if most == _ALL:
        long = np.flatnonzero((word & _STOPS) == _STOPS)
        if long.size:
            value[long], behind[long] = _long_varints(block, at[long], value[long])
    return value, behind


def varints_behind_tags(block: Block, at: I64, word: U64) -> tuple[U64, I64]:
    """As `varints`, of numbers behind tags of one byte: `word` is what was read at the tags. It is used up."""
    word >>= _BYTE
    own, most = _own_bits(word)
    at += 1
    behind = at + _bytes_of(own)
    long = np.flatnonzero(own == _ALL) if most == _ALL else None
    own &= word
    value = _squeezed(own, most)
    if long is not None:  # eight bytes do not hold the tag and a number of as many
        value[long], behind[long] = varints(block, at[long])
    return value, behind


def behind_varints(block: Block, at: I64) -> I64:
    """The positions behind the varints at `at` (at least -1, see `varints`), without their values."""
    word = block.words[at]
    own, most = _own_bits(word)
    behind = at + _bytes_of(own)
    if most == _ALL:
        long = np.flatnonzero((word & _STOPS) == _STOPS)
        if long.size:
            _, behind[long] = _long_varints(block, at[long], word[long])
    return behind


def _own_bits(word: U64) -> tuple[U64, np.uint64]:
    """Which bits of each word are of its first varint (all, if none ends in it), and of the longest of them all."""
    own = ~word
    own &= _STOPS
    own ^= own - _ONE
    return own, own.max() if own.size else _ONE


def _bytes_of(own: U64) -> U8:
    bits = np.bitwise_count(own)
    bits >>= np.uint8(3)
    return bits


def _squeezed(word: U64, most: np.uint64) -> U64:
    """Up to eight groups of seven bits, one a byte, made one number of 56 bits, in place. `most`: the bits that are used."""
    if most <= 0xFF:
        return word
    high = word & np.uint64(0x7F007F007F007F00)
    high >>= _ONE
    word &= np.uint64(0x007F007F007F007F)
    word |= high
    if most <= 0xFFFF:
        return word
    np.bitwise_and(word, np.uint64(0x3FFF00003FFF0000), out=high)
    high >>= np.uint64(2)
    word &= np.uint64(0x00003FFF00003FFF)
    word |= high
    if most <= 0xFFFFFFFF:
        return word
    np.bitwise_and(word, np.uint64(0x0FFFFFFF00000000), out=high)
    high >>= np.uint64(4)
    word &= np.uint64(0x0FFFFFFF)
    word |= high
    return word


def _long_varints(block: Block, at: I64, low56: U64) -> tuple[U64, I64]:
    ninth, tenth = block.bytes[at + 8], block.bytes[at + 9]
    value = low56 | ((ninth & np.uint8(127)).astype(np.uint64) << np.uint64(56))
    more = ninth >= 128
    value[more] |= (tenth[more] & np.uint8(1)).astype(np.uint64) << np.uint64(63)
    behind = at + np.where(more, 10, 9)
    behind[more & (tenth >= 128)] = -1
    return value, behind
