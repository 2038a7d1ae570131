"""Side tables of device work: kernels, copies, waits, and the devices and streams of their tracks."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.chrome.arguments import counter_values
from roofterm_parsers.chrome.context import NO_ROWS, Context, GatheredIds, Rows, with_id
from roofterm_parsers.chrome.events import NULL
from roofterm_parsers.chrome.frames import bounded, nullable, table
from roofterm_parsers.chrome.groups import Group
from roofterm_parsers.chrome.launches import MOST_SHARED_BYTES, MOST_U32, Launches, shapes
from roofterm_parsers.chrome.naming import rank_prefix, trailing_number
from roofterm_parsers.profile import COPIES, COUNTED, KERNELS, WAITS, Kind, TrackKind

I64 = NDArray[np.int64]

_NO_STREAM = (-1, (1 << 32) - 1)
"""how a wait says that it is no stream's but the whole context's"""


def fill(context: Context) -> GatheredIds:
    """Fill kernels, copies and waits of the profile and the devices of its tracks; gives the ids that work is linked by."""
    ids = GatheredIds()
    rows = context.rows(Group.WORK)
    launches = Launches(context)
    if rows is not None:
        _fill_work(context, rows, launches, ids)
    else:
        launches.fill(NO_ROWS, NO_ROWS)
    _fill_waits(context)
    _fill_counted(context)
    _name_other_tracks(context)
    return ids


def _fill_work(context: Context, rows: Rows, launches: Launches, ids: GatheredIds) -> None:
    profile, slices = context.profile, rows.slices
    correlation, external = rows.take("correlation"), rows.take("external")
    shape, shared = rows.take("shape"), rows.take("shared")
    launches.complete(slices, correlation, shape, shared)
    launches.fill(slices, correlation)
    device = _devices(context, slices, rows.take("device"))
    stream = _streams(context, slices, rows.take("stream"))
    _set_tracks(context, slices, device, stream)
    kinds = profile.slices["kind"].to_numpy()[slices]
    kernel = kinds == Kind.KERNEL
    profile.kernels = table(
        KERNELS,
        {
            "slice": slices[kernel],
            "device": device[kernel],
            "stream": nullable(stream[kernel]),
            "correlation": nullable(correlation[kernel]),
            "external_id": nullable(external[kernel]),
            **shapes(context, shape[kernel]),
            "registers": bounded(rows.take("registers")[kernel], MOST_U32),
            "shared_bytes": bounded(shared[kernel], MOST_SHARED_BYTES),
            "occupancy_pct": nullable(rows.take("occupancy")[kernel]),
            "blocks_per_unit": nullable(rows.take("blocks_per_unit")[kernel]),
            "warps_per_unit": nullable(rows.take("warps_per_unit")[kernel]),
            "graph": nullable(rows.take("graph")[kernel]),
            "graph_node": nullable(rows.take("graph_node")[kernel]),
        },
    )
    copy = (kinds == Kind.COPY) | (kinds == Kind.MEMSET)
    profile.copies = table(
        COPIES,
        {
            "slice": slices[copy],
            "device": device[copy],
            "stream": nullable(stream[copy]),
            "correlation": nullable(correlation[copy]),
            "external_id": nullable(external[copy]),
            "bytes": nullable(rows.take("bytes")[copy]),
            "peer": nullable(rows.take("peer")[copy]),
        },
    )
    work = kernel | copy
    ids.work = with_id(slices[work], correlation[work], NULL)
    ids.work_external = with_id(slices[work], external[work], NULL)


def _fill_waits(context: Context) -> None:
    rows = context.rows(Group.WAIT)
    if rows is None:
        return
    stream, on_stream = rows.take("stream"), rows.take("on_stream")
    context.profile.waits = table(
        WAITS,
        {
            "slice": rows.slices,
            "device": _devices(context, rows.slices, rows.take("device"), worked=False),
            "stream": nullable(stream, np.isin(stream, (NULL, *_NO_STREAM))),
            "correlation": nullable(rows.take("correlation")),
            "event_correlation": nullable(rows.take("event_correlation")),
            "on_stream": nullable(on_stream, np.isin(on_stream, (NULL, *_NO_STREAM))),
        },
    )


def _fill_counted(context: Context) -> None:
    """Every number among a counted range's arguments is a hardware counter."""
    ranges = [(int(context.id_of[row]), args) for row, _, _, _, _, args in context.gathered.whole if row >= 0]
    rows = [(slice_id, *counter) for slice_id, args in sorted(ranges) if slice_id >= 0 for counter in counter_values("", args)]
    if rows:
        context.profile.counted = pl.DataFrame(rows, schema=COUNTED, orient="row")


def _devices(context: Context, slices: I64, number: I64, *, worked: bool = True) -> I64:
    """Row of devices for each slice: by its own `device`, else by the number of its process."""
    lane = context.lane[slices].astype(np.int64)
    of_process = np.array([trailing_number(pid) or 0 for _, _, pid, _ in context.lanes], np.int64)
    number = np.where(number == NULL, of_process[lane], number)
    rank = context.group_of_lane[lane]
    numbers, of_number = np.unique(number, return_inverse=True)
    code = rank * numbers.size + of_number
    used = np.bincount(code, minlength=1).nonzero()[0] if code.size else code
    prefixes = _prefixes(context)
    row_of = np.zeros(int(used[-1]) + 1 if used.size else 0, np.int64)
    for key in used.tolist():
        group, which = divmod(key, numbers.size)
        row_of[key] = context.devices.row(prefixes[group], int(numbers[which]), worked=worked)
    found: I64 = row_of[code]
    return found


def _prefixes(context: Context) -> dict[int, str]:
    return {int(group): rank_prefix(pid) for group, (_, _, pid, _) in zip(context.group_of_lane, context.lanes, strict=True)}


def _streams(context: Context, slices: I64, stream: I64) -> I64:
    """Stream of each slice: its own `stream`, else the number that its thread's id is or ends in ("stream 7")."""
    of_thread = np.array([NULL if (n := trailing_number(tid)) is None else n for _, _, _, tid in context.lanes], np.int64)
    return np.where(stream == NULL, of_thread[context.lane[slices]], stream)


def _set_tracks(context: Context, slices: I64, device: I64, stream: I64) -> None:
    """A track's device and stream are those of its first work."""
    track = context.profile.slices["track"].to_numpy()[slices].astype(np.int64)
    first = np.flatnonzero(np.diff(track, prepend=-1) != 0)  # slices lie track by track
    shown = track[first]
    original = np.argsort(context.track_place)
    for place, row in zip(shown.tolist(), first.tolist(), strict=True):
        found = context.tracks.rows[int(original[place])]
        if found.kind == TrackKind.DEVICE:
            found.device = int(device[row])
            found.stream = None if stream[row] == NULL else int(stream[row])


def _name_other_tracks(context: Context) -> None:
    """Annotations and waits of a device lie on the device of the stream beside them, else on that of their process number."""
    of_thread = {(t.process, t.thread): t.device for t in context.tracks.rows if t.kind == TrackKind.DEVICE}
    of_process = {t.process: t.device for t in context.tracks.rows if t.kind == TrackKind.DEVICE}
    for track in context.tracks.rows:
        if track.kind != TrackKind.DEVICE_OTHER:
            continue
        track.device = of_thread.get((track.process, track.thread), of_process.get(track.process))
        track.stream = trailing_number(track.thread)
        if track.device is None and (number := trailing_number(track.process)) is not None:
            track.device = context.devices.find(rank_prefix(track.process), number)
