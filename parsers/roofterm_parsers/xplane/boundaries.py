"""Where the events of a line begin and end.

An event's length stands before it, so that each boundary follows from the one before: a walk, and in Python a slow one.
Here many walkers set out at guessed places at once, one numpy operation moving all of them, and each is believed only
from the point where the walker before it, itself believed, arrives: the result is that of one walk from the start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.xplane.wire import I64, U8, Buffer, WireError, fields, varint

EVENT_TAG = 0x22
"""XLine.events, field 4; also that of XEvent.stats, which is why guesses may land inside an event."""
SHORT_BYTES = 1 << 16
"""Lines up to this size are walked in Python."""
STRIDE_BYTES = 1 << 14
"""Distance of the walkers at least."""
MOST_WALKERS = 4096
WINDOWS_BYTES = (96, 512)
"""A guess is looked for within the first, and where there is none within the second: two or more events of the usual kind."""
MOST_GUESSES = 12
FIRST_TAGS = np.zeros(256, bool)
FIRST_TAGS[[0x08, 0x10, 0x18, 0x22, 0x28]] = True
"""What an event may begin with: its fields' tags (writers put the metadata's id first)."""
STEPS_TRIED = 6
STEPS_TO_MEET = 32
"""More than an event of the usual kind has stats."""


class Boundaries(NamedTuple):
    start: I64
    """first byte of each event's payload, rising"""
    end: I64
    other: list[tuple[int, int, int, int]]
    """the line's other fields (number, wire type, a, b), as `wire.fields` gives them"""
    damaged_at: int | None
    """where the line stopped to be readable; None: it is whole"""


def boundaries(data: Buffer, array: U8, at: int, end: int) -> Boundaries:
    """Events of the line whose message is data[at:end]; `array` is the same memory as `data`."""
    other: list[tuple[int, int, int, int]] = []
    starts: list[I64] = []
    walked: list[int] = []
    position = at
    damaged_at: int | None = None
    try:
        if end - at > SHORT_BYTES:
            position = _walk(data, position, end, other, None)
            found, position = _walk_together(data, array, position, end)
            starts.append(found)
        position = _walk(data, position, end, other, walked)
    except WireError as error:
        damaged_at = error.at
    starts.append(np.array(walked, np.int64))
    start = np.concatenate(starts)
    lengths, payload = _lengths(array, start)
    stop = payload + lengths
    if damaged_at is not None and stop.size and stop[-1] > end:
        payload, stop = payload[:-1], stop[:-1]
    return Boundaries(payload, stop, other, damaged_at)


def _walk(data: Buffer, at: int, end: int, other: list[tuple[int, int, int, int]], events: list[int] | None) -> int:
    """Walk field by field, noting the other fields and the events' tags: to the end, or without a list to the first event."""
    while at < end:
        if data[at] == EVENT_TAG:
            if events is None:
                return at
            length, behind = varint(data, at + 1, end)
            if behind + length > end:
                raise WireError(at, f"an event of {length:,} bytes in {end - behind:,}")
            events.append(at)
            at = behind + length
            continue
        field = next(fields(data, at, end))
        other.append(field)
        at = field[3]
    return at


def _walk_together(data: Buffer, array: U8, at: int, end: int) -> tuple[I64, int]:
    """Tags of the events from `at`, where one begins, as far as nothing but events follows; and where that ends."""
    walkers = min(MOST_WALKERS, max(2, (end - at) // STRIDE_BYTES))
    limits = at + (np.arange(1, walkers + 1, dtype=np.int64) * (end - at)) // walkers
    here = np.concatenate(([at], _guesses(array, limits[:-1], end)))
    visited: list[I64] = []
    moving = here < limits
    last = array.size - 1
    while moving.any():
        one = array[np.minimum(here + 1, last)].astype(np.int64)
        following = here + 2 + one
        wide = np.flatnonzero(one >= 128)
        if wide.size:
            length, payload = _lengths(array, here[wide])
            following[wide] = payload + length
        good = array[np.minimum(here, last)] == EVENT_TAG
        good &= moving
        good &= following <= end
        visited.append(np.where(good, here, -1))
        here = np.where(good, following, here)
        moving = good & (here < limits)
    return _believe(data, np.ascontiguousarray(np.array(visited, np.int64).T), here, limits, at, end)


def _believe(data: Buffer, visited: I64, arrived: I64, limits: I64, at: int, end: int) -> tuple[I64, int]:
    """Join the walks: each from where the one before arrived. Stops at the first field that is no event."""
    whole = _met_early(visited, arrived, limits, at)
    if whole is not None:
        return whole, int(arrived[-1])
    joined: list[I64] = []
    for row, there, limit in zip(visited, arrived.tolist(), limits.tolist(), strict=True):
        steps = row[row >= 0]
        known = set(steps.tolist()) if steps.size and int(steps[0]) != at else ()
        bridge: list[int] = []
        # The guess lay inside an event, or the walk took a wrong turn: walk until its steps are met.
        while at < limit and at not in known and not (steps.size and int(steps[0]) == at):
            if data[at] != EVENT_TAG:
                joined.append(np.array(bridge, np.int64))
                return np.concatenate(joined), at
            length, behind = varint(data, at + 1, end)
            if behind + length > end:
                joined.append(np.array(bridge, np.int64))
                return np.concatenate(joined), at
            bridge.append(at)
            at = behind + length
        joined.append(np.array(bridge, np.int64))
        if at < limit:
            joined.append(steps[int(np.searchsorted(steps, at)) :])
            at = there
            if at < limit:  # the walk met something else than an event
                return np.concatenate(joined), at
    return np.concatenate(joined), at


def _met_early(visited: I64, arrived: I64, limits: I64, at: int) -> I64 | None:
    """All steps joined, if each walk comes through where the one before arrived within its first steps; else None.

    Guesses that lie on a stat of an event go on with the next event, so that this is the usual case. The steps before they
    met are struck out of `visited`.
    """
    if visited[0, 0] != at or bool((arrived < limits).any()):
        return None
    first = visited[1:, :STEPS_TO_MEET]
    met = first == arrived[:-1, None]
    if not met.any(axis=1).all():
        return None
    first[np.arange(first.shape[1]) < np.argmax(met, axis=1)[:, None]] = -1
    return visited[visited >= 0]


def _guesses(array: U8, near: I64, end: int) -> I64:
    """For each position a place at or behind it from which several events seem to follow; `end` where none is found."""
    guess = np.full(near.size, end, np.int64)
    for size in WINDOWS_BYTES:
        without = np.flatnonzero(guess == end)
        guess[without] = _guesses_within(array, near[without], end, size)
    return guess


def _guesses_within(array: U8, near: I64, end: int, size: int) -> I64:
    window = np.minimum(near[:, None] + np.arange(size), array.size - 4)
    looks = (array[window] == EVENT_TAG) & FIRST_TAGS[np.where(array[window + 1] < 128, array[window + 2], array[window + 3])]
    guess = np.full(near.size, end, np.int64)
    open_ = np.arange(near.size)
    for _ in range(MOST_GUESSES):
        open_ = open_[looks[open_].any(axis=1)]
        if open_.size == 0:
            break
        column = np.argmax(looks[open_], axis=1)
        looks[open_, column] = False
        tried = near[open_] + column
        good = _followed(array, tried, end)
        guess[open_[good]] = tried[good]
        open_ = open_[~good]
    return guess


def _followed(array: U8, at: I64, end: int) -> NDArray[np.bool_]:
    """Whether a walk from each position meets nothing but events for a few steps."""
    good = np.ones(at.size, bool)
    last = array.size - 1
    for _ in range(STEPS_TRIED):
        good &= array[np.minimum(at, last)] == EVENT_TAG
        length, payload = _lengths(array, np.minimum(at, last))
        following = np.minimum(payload + length, end)
        at = np.where(good & (following < end), following, at)
    return good


def _lengths(array: U8, tag_at: I64) -> tuple[I64, I64]:
    """Lengths (bytes) behind the tags, and where the payloads begin."""
    last = array.size - 1
    value = array[np.minimum(tag_at + 1, last)].astype(np.int64)
    behind = tag_at + 2
    open_ = np.flatnonzero(value >= 128)
    value[open_] &= 127
    for shift in range(7, 63, 7):
        if open_.size == 0:
            break
        byte = array[np.minimum(behind[open_], last)].astype(np.int64)
        value[open_] |= (byte & 127) << shift
        behind[open_] += 1
        open_ = open_[byte >= 128]
    return value, behind
