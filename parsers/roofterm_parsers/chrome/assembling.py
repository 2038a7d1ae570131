"""All that was gathered from a file, made into a profile: one axis, tracks, order, nesting, side tables, links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers import linking
from roofterm_parsers.chrome import device_tables, doubts, header, host_tables, marks, xla_tables
from roofterm_parsers.chrome.axis import Axis, axis_of, off_axis
from roofterm_parsers.chrome.categories import KINETO_CATEGORIES
from roofterm_parsers.chrome.codes import Columns, Lane
from roofterm_parsers.chrome.context import Context
from roofterm_parsers.chrome.devices import Devices
from roofterm_parsers.chrome.gathering import OPEN_PS, Gathered
from roofterm_parsers.chrome.kinds import kinds_by_category, kinds_by_line, pair_names, xla_lanes
from roofterm_parsers.chrome.naming import Names
from roofterm_parsers.chrome.ordering import slice_order
from roofterm_parsers.chrome.pairing import pair
from roofterm_parsers.chrome.steps import steps_of
from roofterm_parsers.chrome.tracks import Tracks, groups_of
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.nesting import nest
from roofterm_parsers.profile import NAMES, SLICES, Profile, Source, Warning

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]

_NO_SLICES: Columns = {
    "us": np.zeros(0, np.int64),
    "ps": np.zeros(0, np.int32),
    "dur": np.zeros(0, np.int64),
    "lane": np.zeros(0, np.uint32),
    "name": np.zeros(0, np.uint32),
    "offset": np.zeros(0, np.uint64),
}


@dataclass(slots=True)
class FileFacts:
    """What is known of the file beside its events."""

    top: dict[str, Any]
    is_list: bool
    left_out: int
    """texts too long to be an event"""
    damaged_header: int


def assemble(gathered: Gathered, file: FileFacts, source: Source, *, xla: bool) -> Profile:
    """The profile of one file. Raises ProfileError if nothing of it lies on a time axis."""
    lanes = list(gathered.lanes)
    names = Names()
    names.learn((name, pid, tid, text) for row, phase, name, pid, tid, text in gathered.whole if phase == "M")
    slices = gathered.slices.join() if gathered.slices.rows else dict(_NO_SLICES)
    warnings: list[Warning] = []
    _close_begins(slices, gathered, lanes, warnings, source)
    lost = off_axis(slices["us"], slices["ps"], slices["dur"])
    if lost.any():
        warnings.append(doubts.off_axis(source, int(lost.sum())))
    kept = np.flatnonzero(~lost)
    axis = _axis(slices, kept, gathered, source)

    named = pair_names(slices["name"][kept], slices["lane"][kept], list(gathered.names), lanes)
    lane = slices["lane"][kept]
    lines = xla_lanes(lanes, names) if xla else None
    kinds = kinds_by_category(named) if lines is None else kinds_by_line(named, lane, lines)
    row_of = np.full(lost.size, -1, np.int64)
    row_of[kept] = np.arange(kept.size)
    xla_columns = xla_tables.refine_kinds(gathered, kinds, row_of, lane, lines) if lines is not None else None

    tracks = Tracks(lanes)
    track = tracks.of_slices(lane, kinds)
    marks_on = marks.place(gathered, tracks)
    place = tracks.order(names)
    track = place.astype(np.uint32)[track]
    marks_on = {what: place.astype(np.uint32)[where] for what, where in marks_on.items()}
    start = axis.place(slices["us"][kept], slices["ps"][kept])
    dur = slices["dur"][kept]
    order = slice_order(track, start, dur)
    id_of = np.empty(order.size, np.int64)
    id_of[order] = np.arange(order.size)
    row_of[kept] = id_of  # from here on: gathered slice -> slice id
    frame = _slices(start[order], dur[order], track[order], named.of_slice[order], kinds[order], slices["offset"][kept][order])
    lane = lane[order]
    del start, dur, order, slices, kept, id_of

    names_frame = pl.DataFrame({"text": named.texts, "cat": named.categories}, schema=NAMES)
    profile = Profile(slices=frame, names=names_frame)
    context = Context(
        profile=profile,
        gathered=gathered,
        id_of=row_of,
        lane=lane,
        lanes=lanes,
        group_of_lane=groups_of(lanes),
        names=names,
        tracks=tracks,
        track_place=place,
        devices=Devices(header.device_properties(file.top), _device_kind(lanes)),
        axis=axis,
    )
    if lines is None or xla_columns is None:
        ids = device_tables.fill(context)
        host_tables.fill(context, ids)
    else:
        ids = xla_tables.fill(context, lines, xla_columns)
    profile.tracks = tracks.frame(names, place)
    profile.devices = context.devices.frame()
    profile.links = linking.link(profile.slices, ids.linkable(profile, context))
    marks.fill(context, marks_on)
    profile.steps = steps_of(profile, context.xla_steps)

    form = _form(lanes, file, xla)
    base_ns = header.integer(file.top.get("baseTimeNanoseconds"))
    unix_ns = axis.unix_ns(base_ns)
    profile.zero_unix_ns = unix_ns
    profile.sources = [header.describe(source, file.top, form=form, events=gathered.events, base_unix_ns=unix_ns)]
    warnings += doubts.of_reading(source, gathered, file)
    warnings += doubts.of_profile(source, profile, nests=xla)
    profile.warnings = warnings
    return profile


def _slices(start: I64, dur: I64, track: U32, name: U32, kind: U8, offset: NDArray[np.uint64]) -> pl.DataFrame:
    parent, depth = nest(track, start, dur)
    columns: Columns = {
        "start_ps": start,
        "dur_ps": dur,
        "track": track,
        "name": name,
        "kind": kind,
        "parent": parent,
        "depth": depth,
        "offset": offset,
    }
    return pl.DataFrame({key: pl.Series(key, values) for key, values in columns.items()}, schema=SLICES)


def _axis(slices: Columns, kept: I64, gathered: Gathered, source: Source) -> Axis:
    """The axis of the slices; in a file without any that of its marks and counters."""
    if kept.size:
        return axis_of(slices["us"][kept], slices["ps"][kept])
    times = marks.times(gathered)
    if times is None:
        raise ProfileError(f"{source.path} holds no event that lies in time: there is nothing to show", source.path)
    return axis_of(*times)


def _close_begins(slices: Columns, gathered: Gathered, lanes: Sequence[Lane], warnings: list[Warning], source: Source) -> None:
    """Give each slice that was begun its length; one that never ends lasts to the last time seen on its thread."""
    begins = np.flatnonzero(slices["dur"] == OPEN_PS)
    ends = gathered.ends.join() if gathered.ends.rows else None
    if begins.size == 0 and ends is None:
        return
    numbers: dict[tuple[Any, Any], int] = {}
    thread_of_lane = np.array([numbers.setdefault((str(pid), str(tid)), len(numbers)) for _, _, pid, tid in lanes], np.int64)
    zero = Axis(int(slices["us"][begins[0]]) if begins.size else 0, 0)
    start = zero.place(slices["us"], slices["ps"])
    thread = thread_of_lane[slices["lane"]]
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
    np.maximum.at(last, thread, start + np.maximum(slices["dur"], 0))
    np.maximum.at(last, end_thread, end_time)
    for lane, time in marks.seen(gathered, zero):
        np.maximum.at(last, thread_of_lane[lane], time)
    dur = slices["dur"]
    dur[begins[found.begin]] = end_time[found.end - begins.size] - start[begins[found.begin]]
    unclosed = begins[found.unclosed]
    dur[unclosed] = last[thread[unclosed]] - start[unclosed]
    if unclosed.size or found.stray:
        warnings.append(doubts.unmatched(source, unclosed.size, found.stray))


def _device_kind(lanes: Sequence[Lane]) -> str:
    """Accelerator of a trace that is not made from an XPlane."""
    return "npu" if any(category.lower().startswith(("mtia", "hpu")) for _, category, _, _ in lanes) else "gpu"


def _form(lanes: Sequence[Lane], file: FileFacts, xla: bool) -> str:
    if xla:
        return "xla_json"
    if header.is_kineto(file.top) or any(category.lower() in KINETO_CATEGORIES for _, category, _, _ in lanes):
        return "kineto"
    return "chrome"
