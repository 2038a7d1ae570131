"""Work of TPU cores and GPUs as XProf takes it: by the device's own clock, with self times."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.xprof.nesting import self_ps
from roofterm_parsers.profile import WORK_KINDS, Kind, Profile, TrackKind

I64 = NDArray[np.int64]


def device_events(profile: Profile, hardware: str) -> pl.DataFrame:
    """Work events by the device's own clock: slice, device, op (row of hlo_ops, null), start_ps, dur_ps, self_ps.

    On a TPU the `XLA Ops` lines, nested; on a GPU everything on its streams, each event on its own.
    """
    slices = profile.slices
    kinds = (Kind.KERNEL,) if hardware == "TPU" else WORK_KINDS
    tracks = tracks_of(profile, hardware)
    device_of = np.full(profile.tracks.height, -1, np.int32)
    device_of[tracks["track"].to_numpy()] = tracks["device"].to_numpy()
    track = slices["track"].to_numpy()
    is_work = np.zeros(256, bool)
    is_work[[int(kind) for kind in kinds]] = True
    rows = np.flatnonzero((device_of >= 0)[track] & is_work[slices["kind"].to_numpy()]).astype(np.uint32)
    track = track[rows]
    if hardware == "TPU":  # in file order: what is inside what depends on it where the device's clock and the host's disagree
        at = slices["offset"].to_numpy()[rows]
        if np.any((at[1:] < at[:-1]) & (track[1:] == track[:-1])):
            order = np.lexsort((at, track))
            rows, track = rows[order], track[order]
    start, dur = device_time(profile, rows)
    own = _self_by_track(track, start, dur) if hardware == "TPU" else dur
    op = np.full(slices.height, -1, np.int32)
    op[profile.hlo["slice"].to_numpy()] = profile.hlo["op"].to_numpy()
    op = op[rows]
    return pl.DataFrame(
        {
            "slice": rows,
            "device": device_of[track].astype(np.uint16),
            "op": pl.Series(op.view(np.uint32)) if (op >= 0).all() else pl.Series(op).set(pl.Series(op < 0), None).cast(pl.UInt32),
            "start_ps": start,
            "dur_ps": dur,
            "self_ps": own,
        }
    )


def tracks_of(profile: Profile, hardware: str, steps: bool = False) -> pl.DataFrame:
    """Tracks of the devices of a kind that hold work, or their other tracks: track, device."""
    kind = TrackKind.DEVICE_OTHER if steps else TrackKind.DEVICE
    devices = profile.devices.with_row_index("device").filter(pl.col("kind") == hardware.lower()).select(pl.col("device").cast(pl.UInt16))
    tracks = profile.tracks.with_row_index("track").filter(pl.col("kind") == int(kind)).join(devices, on="device")
    return tracks.select("track", "device").sort("track")


def device_time(profile: Profile, rows: NDArray[np.integer[Any]]) -> tuple[I64, I64]:
    """Start and length of the slices by the device's own clock where it is known."""
    start, dur = profile.slices["start_ps"].to_numpy()[rows], profile.slices["dur_ps"].to_numpy()[rows]
    clock = profile.device_clock
    if clock.is_empty() or rows.size == 0:
        return start, dur
    known = clock["slice"].to_numpy()
    if np.array_equal(known, rows):
        return clock["start_ps"].to_numpy(), clock["dur_ps"].to_numpy()
    at = np.searchsorted(known, rows.astype(known.dtype))
    at[at == known.size] = 0
    here = known[at] == rows
    return np.where(here, clock["start_ps"].to_numpy()[at], start), np.where(here, clock["dur_ps"].to_numpy()[at], dur)


def _self_by_track(track: NDArray[np.uint32], start: I64, dur: I64) -> I64:
    own = np.empty(dur.size, np.int64)
    cuts = np.flatnonzero(np.diff(track)) + 1 if track.size else np.empty(0, np.int64)
    for a, b in zip([0, *cuts.tolist()], [*cuts.tolist(), track.size], strict=True):
        own[a:b] = self_ps(start[a:b], dur[a:b])
    return own
