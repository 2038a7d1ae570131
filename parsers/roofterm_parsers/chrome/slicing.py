"""What was gathered of events with a length, made into the frame of slices: one axis, kinds, tracks, order, nesting.

These are the largest arrays of all: each is given up as soon as the next is made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.chrome import doubts, marks, xla_tables
from roofterm_parsers.chrome.axis import Axis, axis_of, off_axis
from roofterm_parsers.chrome.codes import Columns, Lane
from roofterm_parsers.chrome.gathering import OPEN_PS, Gathered
from roofterm_parsers.chrome.kinds import XlaLanes, kinds_by_category, kinds_by_line, pair_names, xla_lanes
from roofterm_parsers.chrome.naming import Names
from roofterm_parsers.chrome.ordering import slice_order
from roofterm_parsers.chrome.pairing import pair
from roofterm_parsers.chrome.tracks import Tracks
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.nesting import nest
from roofterm_parsers.profile import NAMES, SLICES, Source, Warning

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]

_TYPES: dict[str, Any] = {"us": np.int64, "ps": np.int32, "dur": np.int64, "lane": np.uint32, "name": np.uint32, "offset": np.uint64}


SHORTEST_PS = 1
"""What XLA's writer gives events without a length (trace_events_to_json.cc)."""


@dataclass(slots=True)
class Sliced:
    """The frame of slices, and how it came from what was gathered."""

    slices: pl.DataFrame
    names: pl.DataFrame
    lane: U32
    """of each slice"""
    id_of: I32
    """gathered row to slice id; -1: left out"""
    axis: Axis
    tracks: Tracks
    place: I64
    """row of the frame of tracks for each track"""
    track_of_marks: dict[str, U32]
    lines: XlaLanes | None
    xla: Columns | None
    """arguments of a trace that was made from an XPlane"""
    warnings: list[Warning]


def make_slices(gathered: Gathered, names: Names, source: Source, *, xla: bool, check: Callable[[], None]) -> Sliced:
    """Slices, names and tracks. Raises ProfileError if nothing lies in time."""
    lanes = list(gathered.lanes)
    warnings: list[Warning] = []
    us, ps, dur, lane = (_column(gathered, name) for name in ("us", "ps", "dur", "lane"))
    _close_begins(us, ps, dur, lane, gathered, lanes, warnings, source)
    lost = off_axis(us, ps, dur)
    kept: I64 | slice = slice(None)
    if lost.any():
        warnings.append(doubts.off_axis(source, int(lost.sum())))
        kept = np.flatnonzero(~lost)
        us, ps, dur, lane = us[kept], ps[kept], dur[kept], lane[kept]
    rows = us.size
    axis = _axis(us, ps, gathered, source)
    start = axis.place_in(us, ps)
    del us, ps
    check()

    named = pair_names(_column(gathered, "name")[kept], lane, list(gathered.names), lanes)
    lines = xla_lanes(lanes, names) if xla else None
    kind = kinds_by_category(named) if lines is None else kinds_by_line(named, lane, lines)
    if xla:
        dur[dur == SHORTEST_PS] = 0
    id_of = np.full(lost.size, -1, np.int32)
    id_of[kept] = np.arange(rows, dtype=np.int32)
    xla_columns = xla_tables.refine_kinds(gathered, kind, id_of, lane, lines) if lines is not None else None
    tracks = Tracks(lanes)
    track = tracks.of_slices(lane, kind)
    track_of_marks = marks.place(gathered, tracks)
    place = tracks.order(names)
    track = place.astype(np.uint32)[track]
    check()

    order = slice_order(track, start, dur)
    start, dur = start[order], dur[order]
    track, lane, kind = track[order], lane[order], kind[order]
    name = named.of_slice[order]
    names_frame = pl.DataFrame({"text": named.texts, "cat": named.categories}, schema=NAMES)
    del named
    ids = np.empty(rows, np.int32)
    ids[order] = np.arange(rows, dtype=np.int32)
    id_of[kept] = ids
    del ids
    offset = _column(gathered, "offset")[kept][order]
    del order, kept, lost
    check()
    parent, depth = nest(track, start, dur)
    check()
    columns = {
        "start_ps": start,
        "dur_ps": dur,
        "track": track,
        "name": name,
        "kind": kind,
        "parent": parent,
        "depth": depth,
        "offset": offset,
    }
    del start, dur, track, name, kind, parent, depth, offset
    return Sliced(
        slices=pl.DataFrame([pl.Series(column, columns.pop(column), dtype=dtype) for column, dtype in SLICES.items()]),
        names=names_frame,
        lane=lane,
        id_of=id_of,
        axis=axis,
        tracks=tracks,
        place=place,
        track_of_marks={what: place.astype(np.uint32)[where] for what, where in track_of_marks.items()},
        lines=lines,
        xla=xla_columns,
        warnings=warnings,
    )


def _column(gathered: Gathered, name: str) -> NDArray[Any]:
    return gathered.slices.column(name) if gathered.slices.rows else np.zeros(0, _TYPES[name])


def _axis(us: I64, ps: I32, gathered: Gathered, source: Source) -> Axis:
    """The axis of the slices; in a file without any that of its marks and counters."""
    if us.size:
        return axis_of(us, ps)
    times = marks.times(gathered)
    if times is None:
        raise ProfileError(f"{source.path} holds no event that lies in time: there is nothing to show", source.path)
    return axis_of(*times)


def _close_begins(
    us: I64, ps: I32, dur: I64, lane: U32, gathered: Gathered, lanes: Sequence[Lane], warnings: list[Warning], source: Source
) -> None:
    """Give each slice that was begun its length; one that never ends lasts to the last time seen on its thread."""
    begins = np.flatnonzero(dur == OPEN_PS)
    ends = gathered.ends.join() if gathered.ends.rows else None
    if begins.size == 0 and ends is None:
        return
    numbers: dict[tuple[Any, Any], int] = {}
    thread_of_lane = np.array([numbers.setdefault((str(pid), str(tid)), len(numbers)) for _, _, pid, tid in lanes], np.int64)
    zero = Axis(int(us[begins[0]]) if begins.size else 0, 0)
    start = zero.place(us, ps)
    thread = thread_of_lane[lane]
    end_time = zero.place(ends["us"], ends["ps"]) if ends is not None else np.zeros(0, np.int64)
    end_thread = thread_of_lane[ends["lane"]] if ends is not None else np.zeros(0, np.int64)
    before = ends["before"] if ends is not None else np.zeros(0, np.int64)
    found = pair(
        np.concatenate((thread[begins], end_thread)),
        np.concatenate((start[begins], end_time)),
        np.concatenate((2 * begins + 1, 2 * before)),
        np.arange(begins.size + end_time.size) >= begins.size,
    )
    last = np.full(len(numbers), np.iinfo(np.int64).min)
    np.maximum.at(last, thread, start + np.maximum(dur, 0))
    np.maximum.at(last, end_thread, end_time)
    for mark_lane, time in marks.seen(gathered, zero):
        np.maximum.at(last, thread_of_lane[mark_lane], time)
    dur[begins[found.begin]] = end_time[found.end - begins.size] - start[begins[found.begin]]
    unclosed = begins[found.unclosed]
    dur[unclosed] = last[thread[unclosed]] - start[unclosed]
    if unclosed.size or found.stray:
        warnings.append(doubts.unmatched(source, unclosed.size, found.stray))
