"""Microseconds as written, read exactly: whole microseconds and picoseconds within them, both integers.

No number goes through a float: a double holds 0.25 µs at today's epoch, and half a nanosecond from 2^43 µs on. The digits of
many values are taken from their joined text at once; what is not plain digits (text numbers, exponents, more than six
decimals) is read one by one as a decimal fraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from functools import lru_cache

import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

PS_PER_US = 1_000_000
GOOD, ABSENT, UNUSABLE = 0, 1, 2
"""State of a value: read; not there or null; there but no finite number."""

LONGEST_US = 1 << 60
LONGEST_TEXT = 400
_COMMA, _DOT, _MINUS, _ZERO, _FIVE = ord(","), ord("."), ord("-"), ord("0"), ord("5")
_FEW = 8
"""So many are read sooner one by one."""
_MOST_DIGITS = 18
_MOST_DECIMALS = 25
_TENS = 10 ** np.arange(_MOST_DIGITS + 1, dtype=np.int64)
_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN, Emax=999999, Emin=-999999)


def comma_separated(texts: Sequence[bytes | Raw]) -> bytes:
    """Values joined by commas, as `microseconds` takes them; one that holds a comma itself (a list, an object, a text) is no number."""
    text = b",".join(texts)
    if text.count(b",") != len(texts) - 1:
        return b",".join([b"[]" if b"," in bytes(value) else value for value in texts])
    return text


def microseconds(joined: bytes, count: int) -> tuple[I64, I64, U8]:
    """Values (µs) as `comma_separated` gives them: (whole µs, rest in ps with the sign of the value, state)."""
    us = np.zeros(count, np.int64)
    ps = np.zeros(count, np.int64)
    state = np.zeros(count, np.uint8)
    if count <= _FEW:
        values = joined.split(b",") if count else []
        if len(values) != count:
            raise ValueError(f"{len(values)} values instead of {count}")
        for i, value in enumerate(values):
            us[i], ps[i], state[i] = one(value)
        return us, ps, state
    text = np.frombuffer(joined + b",", np.uint8)
    ends = np.flatnonzero(text == _COMMA)
    if ends.size != count:
        raise ValueError(f"{ends.size} values instead of {count}")
    starts = np.empty(count, np.int64)
    starts[0] = 0
    np.add(ends[:-1], 1, out=starts[1:])
    minus = text[starts] == _MINUS
    firsts = starts + minus
    dots = np.flatnonzero(text == _DOT)
    points = ends.copy()
    owner = np.searchsorted(ends, dots)
    points[owner[::-1]] = dots[::-1]  # the first dot of each value
    odd = (text - _ZERO > 9) & (text != _COMMA) & (text != _DOT) & (text != _MINUS)
    plain = (points > firsts) & (points - firsts <= _MOST_DIGITS)
    decimals = np.where(points < ends, ends - points - 1, 0)
    plain &= (decimals <= _MOST_DECIMALS) & ((points == ends) | (decimals > 0))
    plain[np.searchsorted(ends, np.flatnonzero(odd))] = False
    if dots.size > 1:
        plain[owner[1:][owner[1:] == owner[:-1]]] = False
    hyphens = np.flatnonzero(text == _MINUS)
    if hyphens.size:
        inner = np.searchsorted(ends, hyphens)
        plain[inner[hyphens != starts[inner]]] = False
    finer = np.flatnonzero(plain & (decimals > 6))
    if finer.size:  # a tie between two picoseconds is left to exact arithmetic
        plain[finer] = text[points[finer] + 7] != _FIVE
    shape = (points - firsts) * 32 + decimals
    for kind in np.flatnonzero(np.bincount(shape[plain])).tolist():
        whole, rest = divmod(kind, 32)
        rows = np.flatnonzero(plain & (shape == kind))
        us[rows] = _digits(text, firsts[rows], whole)
        if rest:
            ps[rows] = _digits(text, points[rows] + 1, min(rest, 6)) * _TENS[6 - min(rest, 6)]
        if rest > 6:
            ps[rows] += text[points[rows] + 7] > _FIVE
    over = ps == PS_PER_US
    us += over
    ps[over] = 0
    if minus.any():
        np.negative(us, out=us, where=minus)
        np.negative(ps, out=ps, where=minus)
    empty = ends == starts
    state[empty] = ABSENT
    for i in np.flatnonzero(~plain & ~empty).tolist():
        us[i], ps[i], state[i] = one(joined[starts[i] : ends[i]])
    return us, ps, state


@lru_cache(1 << 14)
def one(text: bytes) -> tuple[int, int, int]:
    """A single value of whatever form: a number, a number in quotes, null, anything else."""
    if text in (b"", b"null"):
        return 0, 0, ABSENT
    if len(text) > LONGEST_TEXT:
        return 0, 0, UNUSABLE
    try:
        value = Decimal(text.decode("ascii").strip().strip('"').strip())
    except (InvalidOperation, UnicodeDecodeError):
        return 0, 0, UNUSABLE
    if not value.is_finite() or abs(value) >= LONGEST_US:
        return 0, 0, UNUSABLE
    total = int(value.scaleb(6, _EXACT).to_integral_value(ROUND_HALF_EVEN, _EXACT))
    us, ps = divmod(abs(total), PS_PER_US)
    return (us, ps, GOOD) if total >= 0 else (-us, -ps, GOOD)


def _digits(text: U8, first: I64, width: int) -> I64:
    """The numbers of `width` digits that begin at `first`."""
    if width == 0:
        return np.zeros(first.size, np.int64)
    table = text[first[:, None] + np.arange(width)]
    out = np.zeros(first.size, np.int64)
    for column in range(width):
        out *= 10
        out += table[:, column]
    return out - _ZERO * int(sum(_TENS[:width]))
