"""Inputs made from others by chance, for where no fuzzer is installed that watches which code is reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

_MOST_CHANGES = 8
_TOKENS = [
    *(bytes([byte]) for byte in b'"{}[],:\\\n\x00\x01\xff-.0'),
    b"null",
    b"1e999",
    b"NaN",
    b'"ph":"X"',
    b'"traceEvents":[',
    b"9" * 20,
]


def mutants(seeds: Sequence[bytes], random: Random, most_bytes: int) -> Iterator[bytes]:
    """The seeds, then without end one or another with some changes."""
    yield from seeds
    while True:
        data = bytearray(random.choice(seeds))
        for _ in range(random.randint(1, _MOST_CHANGES)):
            _change(data, seeds, random)
        yield bytes(data[:most_bytes])


def _change(data: bytearray, seeds: Sequence[bytes], random: Random) -> None:
    at = random.randint(0, len(data))
    span = random.choice((0, 1, 1, 4, random.randint(0, 64)))
    match random.randrange(5):
        case 0:
            data[at : at + span] = b""
        case 1:
            data[at : at + span] = random.choice(_TOKENS)
        case 2 if at < len(data):
            data[at] ^= 1 << random.randrange(8)
        case 3:
            other = random.choice(seeds)
            begin = random.randint(0, len(other))
            data[at : at + span] = other[begin : begin + random.randint(0, 256)]
        case 4:
            del data[at:]
