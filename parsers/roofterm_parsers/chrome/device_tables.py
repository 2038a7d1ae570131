"""Side tables of device work: kernels, copies, waits, and the devices and streams of their tracks."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers import linking
from roofterm_parsers.chrome.arguments import SHAPE, shape_of, text_of
from roofterm_parsers.chrome.categories import Group
from roofterm_parsers.chrome.codes import Columns
from roofterm_parsers.chrome.context import Context, GatheredIds, with_id
from roofterm_parsers.chrome.events import NULL
from roofterm_parsers.chrome.frames import bounded, nullable, table
from roofterm_parsers.chrome.naming import rank_prefix, trailing_number
from roofterm_parsers.profile import COPIES, KERNELS, LAUNCHES, WAITS, Kind, TrackKind

I64 = NDArray[np.int64]

_MOST_U32 = (1 << 32) - 1
_MOST_SHARED_BYTES = 1 << 40
_NO_STREAM = (-1, (1 << 32) - 1)
"""how a wait says that it is no stream's but the whole context's"""


def fill(context: Context) -> GatheredIds:
    """Fill kernels, copies and waits of the profile and the devices of its tracks; gives the ids that work is linked by."""
    ids = GatheredIds()
    profile = context.profile
    found = context.rows(Group.WORK)
    kinds = profile.slices["kind"].to_numpy()
    launches = context.rows(Group.LAUNCH)
    if launches is not None:
        _fill_launches(context, launches, found)
    if found is not None:
        slices, columns = found
        if launches is not None:
            _take_launch_shapes(context, launches, slices, columns)
        device = _devices(context, slices, columns["device"])
        stream = _streams(context, slices, columns["stream"])
        _set_tracks(context, slices, device, stream)
        kernel = kinds[slices] == Kind.KERNEL
        profile.kernels = table(
            KERNELS,
            {
                "slice": slices[kernel],
                "device": device[kernel],
                "stream": nullable(stream[kernel]),
                "correlation": nullable(columns["correlation"][kernel]),
                "external_id": nullable(columns["external"][kernel]),
                **_shapes(context, columns["shape"][kernel]),
                "registers": bounded(columns["registers"][kernel], _MOST_U32),
                "shared_bytes": bounded(columns["shared"][kernel], _MOST_SHARED_BYTES),
                "occupancy_pct": nullable(columns["occupancy"][kernel]),
                "blocks_per_unit": nullable(columns["blocks_per_unit"][kernel]),
                "warps_per_unit": nullable(columns["warps_per_unit"][kernel]),
                "graph": nullable(columns["graph"][kernel]),
                "graph_node": nullable(columns["graph_node"][kernel]),
            },
        )
        copy = (kinds[slices] == Kind.COPY) | (kinds[slices] == Kind.MEMSET)
        profile.copies = table(
            COPIES,
            {
                "slice": slices[copy],
                "device": device[copy],
                "stream": nullable(stream[copy]),
                "correlation": nullable(columns["correlation"][copy]),
                "external_id": nullable(columns["external"][copy]),
                "bytes": nullable(columns["bytes"][copy]),
                "peer": nullable(columns["peer"][copy]),
            },
        )
        work = kernel | copy
        ids.work = with_id(slices[work], columns["correlation"][work], NULL)
        ids.work_external = with_id(slices[work], columns["external"][work], NULL)
    _fill_waits(context)
    _name_other_tracks(context)
    return ids


def _fill_waits(context: Context) -> None:
    found = context.rows(Group.WAIT)
    if found is None:
        return
    slices, columns = found
    stream, on_stream = columns["stream"], columns["on_stream"]
    context.profile.waits = table(
        WAITS,
        {
            "slice": slices,
            "device": _devices(context, slices, columns["device"], worked=False),
            "stream": nullable(stream, np.isin(stream, (NULL, *_NO_STREAM))),
            "correlation": nullable(columns["correlation"]),
            "event_correlation": nullable(columns["event_correlation"]),
            "on_stream": nullable(on_stream, np.isin(on_stream, (NULL, *_NO_STREAM))),
        },
    )


def _devices(context: Context, slices: I64, number: I64, *, worked: bool = True) -> I64:
    """Row of devices for each slice: by its own `device`, else by the number of its process."""
    lane = context.lane[slices].astype(np.int64)
    of_process = np.array([trailing_number(pid) or 0 for _, _, pid, _ in context.lanes], np.int64)
    number = np.where(number == NULL, of_process[lane], number)
    rank = context.group_of_lane[lane]
    keys, back = np.unique(np.stack((rank, number), axis=1), axis=0, return_inverse=True)
    prefixes = _prefixes(context)
    rows = [context.devices.row(prefixes[rank], number, worked=worked) for rank, number in keys.tolist()]
    return np.array(rows, np.int64)[back.reshape(-1)]


def _prefixes(context: Context) -> dict[int, str]:
    return {int(group): rank_prefix(pid) for group, (_, _, pid, _) in zip(context.group_of_lane, context.lanes, strict=True)}


def _streams(context: Context, slices: I64, stream: I64) -> I64:
    """Stream of each slice: its own `stream`, else the number that its thread's id is or ends in ("stream 7")."""
    of_thread = np.array([NULL if (n := trailing_number(tid)) is None else n for _, _, _, tid in context.lanes], np.int64)
    return np.where(stream == NULL, of_thread[context.lane[slices]], stream)


def _set_tracks(context: Context, slices: I64, device: I64, stream: I64) -> None:
    """A track's device and stream are those of its first work."""
    track = context.profile.slices["track"].to_numpy()[slices]
    shown, first = np.unique(track, return_index=True)
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


def _shapes(context: Context, code: NDArray[np.uint32]) -> dict[str, pl.Series]:
    """Grid and block of each kernel."""
    used = np.flatnonzero(np.bincount(code, minlength=1))
    texts = list(context.gathered.texts)
    table = np.full((int(used.max(initial=0)) + 1, len(SHAPE)), -1, np.int64)
    for number in used.tolist():
        table[number] = shape_of(texts[number])
    known = np.take(table, code, axis=0)
    return {name: bounded(known[:, i], _MOST_U32) for i, name in enumerate(SHAPE)}


def _fill_launches(context: Context, launches: tuple[I64, Columns], work: tuple[I64, Columns] | None) -> None:
    """Keep what calls say of the work that they launch, where the file holds none of it."""
    calls, said = launches
    lost = np.ones(calls.size, np.bool_)
    if work is not None:
        lost = ~np.isin(calls, _calls_of(context, launches, work[0], work[1]["correlation"]))
    if not lost.any():
        return
    texts = list(context.gathered.texts)
    codes, place = np.unique(said["kernel"][lost], return_inverse=True)
    kernel = pl.Series([text_of(texts[code]) for code in codes.tolist()], dtype=pl.String).gather(place)
    context.profile.launches = table(
        LAUNCHES,
        {
            "slice": calls[lost],
            "kernel": kernel,
            **_shapes(context, said["shape"][lost]),
            "shared_bytes": bounded(said["shared"][lost], _MOST_SHARED_BYTES),
        },
    )


def _calls_of(context: Context, launches: tuple[I64, Columns], slices: I64, correlation: I64) -> I64:
    """The call among `launches` that launched each piece of work; negative where none did."""
    calls, said = launches
    group = context.group_of_lane[context.lane]
    lookup = linking.Lookup(linking.Ids(calls, group[calls], said["correlation"]), np.zeros(group.size, np.int64))
    found = lookup(linking.Ids(slices, group[slices], correlation))
    return np.where(correlation == NULL, linking.NONE, found)


def _take_launch_shapes(context: Context, launches: tuple[I64, Columns], slices: I64, columns: Columns) -> None:
    """Grid, block and shared memory of kernels that have none, from the call of the same correlation (ROCm writes them there)."""
    calls, shapes = launches
    missing = np.flatnonzero(columns["shape"] == 0)
    call = _calls_of(context, launches, slices[missing], columns["correlation"][missing])
    missing, call = missing[call >= 0], call[call >= 0]
    place = np.searchsorted(calls, call)
    columns["shape"][missing] = shapes["shape"][place]
    unknown = columns["shared"][missing] == NULL
    columns["shared"][missing[unknown]] = shapes["shared"][place[unknown]]
