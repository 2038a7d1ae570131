"""Profiles of a few slices, told in nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from roofterm_parsers.nesting import nest
from roofterm_parsers.profile import DEVICES, LINKS, SLICES, TRACKS, Kind, Profile, Source, TrackKind


@dataclass(frozen=True)
class Track:
    kind: TrackKind
    name: str | None = None
    device: int | None = None
    stream: int | None = None
    process: str = "1"


@dataclass(frozen=True)
class Slice:
    track: int
    start_ns: float
    dur_ns: float
    name: str
    kind: Kind = Kind.KERNEL
    category: int = 0


STREAM = Track(TrackKind.DEVICE, "stream 7", device=0, stream=7)
THREAD = Track(TrackKind.HOST, "main")


def profile_of(tracks: Sequence[Track], slices: Sequence[Slice], links: Sequence[tuple[int, int]] = ()) -> tuple[Profile, np.ndarray]:
    """The profile, and the category of each of its slices. `links` are (work, launch) by the order of slices in the profile."""
    ordered = sorted(slices, key=lambda s: (s.track, s.start_ns, -s.dur_ns))
    start = np.array([round(s.start_ns * 1000) for s in ordered], np.int64)
    dur = np.array([round(s.dur_ns * 1000) for s in ordered], np.int64)
    track = np.array([s.track for s in ordered], np.uint32)
    parent, depth = nest(track, start, dur)
    names = sorted({s.name for s in ordered})
    profile = Profile(sources=[Source("a.json", "kineto", "plain")])
    profile.slices = pl.DataFrame(
        {
            "start_ps": start,
            "dur_ps": dur,
            "track": track,
            "name": [names.index(s.name) for s in ordered],
            "kind": [int(s.kind) for s in ordered],
            "parent": parent,
            "depth": depth,
            "offset": [0] * len(ordered),
        },
        schema=dict(SLICES),
    )
    profile.names = pl.DataFrame({"text": names, "cat": [""] * len(names)}, schema={"text": pl.String, "cat": pl.String})
    rows = [(int(t.kind), 0, t.process, str(at), None, t.name, t.device, t.stream, at) for at, t in enumerate(tracks)]
    profile.tracks = pl.DataFrame(rows, schema=dict(TRACKS), orient="row")
    devices = max((t.device + 1 for t in tracks if t.device is not None), default=0)
    profile.devices = pl.DataFrame(
        [{"source": 0, "id": d, "name": "H100", "kind": "gpu", "worked": True} for d in range(devices)], schema=dict(DEVICES)
    )
    profile.links = pl.DataFrame([(work, launch, None) for work, launch in links], schema=dict(LINKS), orient="row")
    profile.check()
    return profile, np.array([s.category for s in ordered], np.uint8)
