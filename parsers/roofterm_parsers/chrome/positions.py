"""Where the events of a piece of text begin."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
_BLANK = np.isin(np.arange(256), list(b" \t\r\n"))
_OPENS = np.isin(np.arange(256), list(b",["))
_FIRST = np.isin(np.arange(256), list(b'"}'))
_MOST_BLANKS = 64
_BETWEEN = re.compile(rb'\}\s*,(\s*)\{(\s*)"')


def event_starts(text: bytes, count: int) -> I64 | None:
    """Positions of the `count` events of a list in brackets; None if the text does not show them at once.

    An event is a `{` behind a comma and before a key. So is an object of a list in some event's arguments, or a name that
    looks so: then there are more of them than events, and nothing is said.
    """
    symbols = np.frombuffer(text, np.uint8)
    braces = np.flatnonzero(symbols == ord("{"))
    starts = _spaced_alike(text, symbols, braces)
    if starts.size != count:
        starts = braces[_OPENS[symbols[_beyond(symbols, braces, -1)]]]
        starts = starts[_FIRST[symbols[_beyond(symbols, starts, 1)]]]
    return starts if starts.size == count else None


def _spaced_alike(text: bytes, symbols: NDArray[np.uint8], braces: I64) -> I64:
    """The first brace, and those that have as many blanks before and behind them as the first between two events has."""
    between = _BETWEEN.search(text)
    if between is None or braces.size == 0:
        return braces[:1]
    rest = braces[1:]
    rest = rest[rest + 1 + len(between[2]) < symbols.size]
    rest = rest[_OPENS[symbols[rest - 1 - len(between[1])]]]
    rest = rest[_FIRST[symbols[rest + 1 + len(between[2])]]]
    return np.concatenate((braces[:1], rest))


def _beyond(symbols: NDArray[np.uint8], places: I64, step: int) -> I64:
    """The next place of each that holds no blank, in the direction of `step`. The text begins and ends with brackets."""
    at = places + step
    open_rows = np.flatnonzero(_BLANK[symbols[at]])
    for _ in range(_MOST_BLANKS):
        if open_rows.size == 0:
            break
        at[open_rows] += step
        open_rows = open_rows[_BLANK[symbols[at[open_rows]]]]
    return at
