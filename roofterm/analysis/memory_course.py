"""What an allocator holds over time: after each of its events, and as a curve of equal parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.steps import US
from roofterm.results import MemoryCurve

if TYPE_CHECKING:
    from roofterm.analysis.memory import Memory

CURVE_PARTS = 120
"""Parts of a curve of use: more than a wide terminal has cells for would not be seen."""


class Course(NamedTuple):
    """What a pool holds over time: `held_bytes` from each time to the next; both of one length, times ascending."""

    time_ps: NDArray[np.int64]
    held_bytes: NDArray[np.int64]
    op: pl.Series
    """op of each event; null: outside of any"""
    known_from_zero: bool
    """False: the file gives no totals, so these are changes since the recording began"""
    peak: int | None
    """place of the last moment at which most is held; None: no event"""


def memory_curves(memory: Memory, parts: int = CURVE_PARTS) -> list[MemoryCurve]:
    """Use of each pool over time, in at most `parts` equal parts, each with the most in use at any moment of it."""
    curves = []
    for number in range(memory.pools.height):
        events = memory.events.filter((pl.col("pool") == number) & ~pl.col("out_of_memory")).drop_nulls("used_bytes")
        if events.height == 0:
            continue
        time = events["time_ps"].to_numpy()
        start, length = int(time[0]), max(int(time[-1] - time[0]), 1)
        count = min(parts, events.height)
        part = np.minimum((time - start) * count // length, count - 1)
        reserved = events["reserved_bytes"]
        curves.append(
            MemoryCurve(
                pool=number,
                start_us=start / US,
                part_us=length / count / US,
                used_bytes=_highest(part, events["used_bytes"].to_numpy(), count),
                reserved_bytes=_highest(part, reserved.to_numpy(), count) if reserved.null_count() == 0 else None,
            )
        )
    return curves


def memory_course(memory: Memory, pool: int) -> Course:
    """A pool's bytes in use after each of its events; where the file states no totals, the sum of its changes."""
    events = memory.events.filter((pl.col("pool") == pool) & ~pl.col("out_of_memory"))
    stated = events.filter(pl.col("used_bytes").is_not_null())
    if stated.height or not events.height:
        held = stated["used_bytes"].to_numpy()
        return Course(stated["time_ps"].to_numpy(), held, stated["op"], True, _last_peak(held))
    held = events["bytes"].fill_null(0).cum_sum().to_numpy()
    return Course(events["time_ps"].to_numpy(), held, events["op"], False, _last_peak(held))


def _last_peak(held: NDArray[np.int64]) -> int | None:
    return held.size - 1 - int(held[::-1].argmax()) if held.size else None


def _highest(part: NDArray[np.int64], sizes: NDArray[np.int64], count: int) -> list[int]:
    """The highest value at any moment of each part; what the part before ended with holds until the first event."""
    highest = np.full(count, -1, np.int64)
    np.maximum.at(highest, part, sizes)
    last = np.searchsorted(part, np.arange(count), side="right") - 1
    held = np.concatenate((sizes[:1], sizes[last[:-1]]))
    return [int(size) for size in np.maximum(highest, held)]
