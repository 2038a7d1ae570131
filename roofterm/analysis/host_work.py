"""A profile of a CPU alone: its ops taken for device work, so that costs, bounds and rooflines hold for it too.

An op works while it runs and no op inside it does; whoever asks what an op cost takes the innermost that has a cost, as on an
accelerator (`owners`). Threads that an op uses beside its own are in its time, not in its work.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import DEVICES, HLO, HOST_CALL_KINDS, LINKS, ROOT, SLICES, TRACKS, WORK_KINDS, Kind, Profile, TrackKind

CPU = "cpu"
"""`devices.kind` of a host that is taken for a device"""


def with_host_work(profile: Profile) -> Profile:
    """The profile with the CPU of each of its files as a device; the profile itself where no op ran, or where it has an accelerator:
    there an op may have done nothing but launch what was not recorded."""
    kind = profile.slices["kind"].to_numpy()
    calls_device = np.isin(kind, np.array((*WORK_KINDS, *HOST_CALL_KINDS), np.uint8)).any()
    if profile.devices.height or calls_device:
        return profile
    chosen = np.zeros(kind.size, np.bool_)
    compiled = profile.hlo.height > 0
    if compiled:
        chosen[profile.hlo["slice"].to_numpy()] = True
    else:
        chosen[:] = kind == int(Kind.OP)
    op, start, end = _alone(profile, chosen)
    if op.size == 0:
        return profile
    host = profile.slices["track"].to_numpy()[op]
    order = np.lexsort((start, host))
    op, start, end, host = op[order], start[order], end[order], host[order]
    used, place = np.unique(host, return_inverse=True)
    tracks = profile.tracks[used]
    source = tracks["source"].unique().sort()
    devices = pl.DataFrame({"source": source}).with_columns(id=pl.lit(-1), kind=pl.lit(CPU), worked=pl.lit(True))
    device = pl.Series(np.searchsorted(source.to_numpy(), tracks["source"].to_numpy()), dtype=pl.UInt16)
    slices = pl.DataFrame(
        {
            "start_ps": start,
            "dur_ps": end - start,
            "track": profile.tracks.height + place,
            "name": profile.slices["name"][op],
            "kind": np.full(op.size, int(Kind.KERNEL)),
            "parent": np.full(op.size, ROOT, np.uint32),
            "depth": np.zeros(op.size, np.int64),
            "offset": profile.slices["offset"][op],
        }
    )
    work = np.arange(op.size) + profile.slices.height
    links = pl.DataFrame({"work": work, "launch": op, "op": op}).with_columns(op=pl.lit(None) if compiled else pl.col("op"))
    hlo = pl.DataFrame({"work": work, "slice": op.astype(np.uint32)}).join(profile.hlo.unique("slice", keep="first"), on="slice")
    return dataclasses.replace(
        profile,
        devices=_as(devices, DEVICES),
        tracks=pl.concat([profile.tracks, _as(tracks.with_columns(device, kind=pl.lit(int(TrackKind.DEVICE))), TRACKS)]),
        slices=pl.concat([profile.slices, _as(slices, SLICES)]),
        links=_as(links, LINKS),
        hlo=pl.concat([profile.hlo, _as(hlo.select("op", slice="work").sort("slice"), HLO)]),
    )


def _as(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """The frame with the columns of a schema, null where it has none."""
    return frame.select((pl.col(name) if name in frame.columns else pl.lit(None)).cast(kind).alias(name) for name, kind in schema.items())


def _alone(profile: Profile, chosen: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Slice, start and end of the times in which a chosen slice runs and no chosen one inside it, by track."""
    slices = profile.slices
    around = _nearest(slices["parent"].to_numpy(), chosen)
    start = slices["start_ps"].to_numpy()
    # A slice that sticks out of its parent ends with it; parents come before what they hold.
    end = start + slices["dur_ps"].to_numpy()
    mine = np.flatnonzero(chosen)
    depth = slices["depth"].to_numpy().astype(np.int64)
    for level in occurring(depth[mine]):
        row = mine[(depth[mine] == level) & (around[mine] >= 0)]
        end[row] = np.minimum(end[row], end[around[row]])
    mine = mine[end[mine] > start[mine]]
    track = slices["track"].to_numpy()[mine].astype(np.int64)
    # Each start puts a slice on top, each end what lies around it. Of one moment the ends come first, the inner before the outer.
    time = np.concatenate((start[mine], end[mine]))
    top = np.concatenate((mine, around[mine]))
    begins = np.repeat((1, 0), mine.size)
    inward = np.concatenate((depth[mine], -depth[mine]))
    line = np.concatenate((track, track))
    order = np.lexsort((inward, begins, time, line))
    time, top, line = time[order], top[order], line[order]
    until = np.append(time[1:], 0)
    kept = (top >= 0) & (np.append(line[1:], -1) == line) & (until > time)
    return top[kept], time[kept], until[kept]


def _nearest(parent: NDArray[np.uint32], chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The nearest chosen slice around each slice, -1 for none."""
    found = np.full(parent.size, -1, np.int64)
    active = np.flatnonzero(parent != ROOT)
    current = parent[active].astype(np.int64)
    while active.size:
        hit = chosen[current]
        found[active[hit]] = current[hit]
        above = parent[current]
        goes_on = ~hit & (above != ROOT)
        active, current = active[goes_on], above[goes_on].astype(np.int64)
    return found
