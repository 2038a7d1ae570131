"""Dictionaries that number things as they appear, and the block of columns that speaks in their codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

K = TypeVar("K", bound=Hashable)
Columns = dict[str, NDArray[Any]]
Lane = tuple[str, str, int | str, int | str]
"""Phase, category, process and thread of an event: events that agree in them are of one kind and one track."""
Whole = tuple[int, str, str, int | str, int | str, bytes]
"""An event whose arguments have keys of their own: row, phase, name, process, thread, arguments as JSON."""


class Codes(dict[K, int], Generic[K]):
    """Numbers things in the order of their first appearance; remembers those that nobody has been told of."""

    def __init__(self, *first: K) -> None:
        super().__init__()
        self._new: list[K] = []
        for key in first:
            _ = self[key]

    def __missing__(self, key: K) -> int:
        code = self[key] = len(self)
        self._new.append(key)
        return code

    def take_new(self) -> list[K]:
        """What was numbered since the last call, in order."""
        new, self._new = self._new, []
        return new


def in_order_of_use(codes: NDArray[Any], count: int) -> NDArray[np.int64]:
    """The distinct ones of some codes below `count`, in the order in which they come first: whoever gave them, in whatever order."""
    first = np.full(count, codes.size, np.int32)
    first[codes[::-1]] = np.arange(codes.size, dtype=np.int32)[::-1]
    used = np.flatnonzero(first < codes.size)
    found: NDArray[np.int64] = used[np.argsort(first[used])]
    return found


@dataclass(slots=True)
class Block:
    """Columns of one block of events, in file order."""

    columns: Columns
    """lane u4, name u4, us i8, ps i4, state u1, length_us i8, length_ps i4, length_state u1, offset u8"""
    groups: dict[int, Columns]
    """by Group: `row` (event of this block) and the columns of its kind"""
    whole: list[Whole] = field(default_factory=list)
    new_lanes: list[Lane] = field(default_factory=list)
    new_names: list[str] = field(default_factory=list)
    new_texts: list[bytes] = field(default_factory=list)
    damage: Counter[str] = field(default_factory=Counter)
    """mended, skipped, cut: how many"""
    trailers: list[bytes] = field(default_factory=list)
    """text behind the end of the list of events"""
    ended: bool = False
    """the list of events ends in this block"""
    lists: int = 0
    """lists of events that begin in this block behind the end of another"""
