"""The profile being made from one file, and how a line becomes a track with slices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.profile import TrackKind
from roofterm_parsers.xplane.gather import Gather
from roofterm_parsers.xplane.hlo_rows import HloRows, short_name
from roofterm_parsers.xplane.lines import Line
from roofterm_parsers.xplane.space import Plane
from roofterm_parsers.xplane.wire import I64, U32, Buffer

FAR_PS = 1 << 62
"""Lines further apart than this (53 days) do not share an axis."""


@dataclass(slots=True)
class Step:
    device: int | None
    """row of devices; None: a host annotation"""
    name: str
    number: int
    slice: int
    start_ps: int
    dur_ps: int


@dataclass(slots=True)
class Making:
    data: Buffer
    reference_ps: int
    """time that all others are counted from while the profile is made"""
    gather: Gather
    hlo: HloRows = field(default_factory=HloRows)
    tracks: list[dict[str, Any]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    far_lines: list[str] = field(default_factory=list)
    aggregated: int = 0

    def base_ps(self, line: Line) -> int:
        """The line's zero, counted from the reference; a line of another age is put at the reference and noted."""
        base = line.base_ps - self.reference_ps
        if abs(base) < FAR_PS:
            return base
        if line.name not in self.far_lines:
            self.far_lines.append(line.name)
        return 0

    def add_track(
        self, plane: Plane, line: Line, kind: TrackKind, names: U32, kinds: NDArray[np.uint8], device: int | None, stream: int | None
    ) -> U32:
        """Make the line a track; returns the slice id of each of its events."""
        self.tracks.append(
            {
                "kind": int(kind),
                "source": 0,
                "process": plane.name,
                "thread": str(line.id),
                "process_name": plane.name,
                "thread_name": line.display_name or line.name or f"line {line.id}",
                "device": device,
                "stream": stream,
                "sort": len(self.tracks),
            }
        )
        events = line.events
        first, order = self.gather.add_line(self.base_ps(line), events.offset_ps, events.dur_ps, names, kinds, events.at)
        self.aggregated += events.aggregated
        ids = np.arange(first, first + events.metadata.size, dtype=np.uint32)
        if order is not None:
            ids[order] = ids.copy()
        return ids


@dataclass(slots=True)
class Codes:
    """Distinct metadata ids of a line's events, and for each event its place among them."""

    ids: list[int]
    of_event: I64


def codes(metadata: I64) -> Codes:
    if metadata.size and int(metadata.min()) >= 0 and int(metadata.max()) < 1 << 20:
        place = np.zeros(int(metadata.max()) + 1, np.int64)
        place[metadata] = 1
        ids = np.flatnonzero(place)
        place[ids] = np.arange(ids.size)
        return Codes(ids.tolist(), place[metadata])
    unique, of_event = np.unique(metadata.view(np.uint64), return_inverse=True)
    return Codes(unique.tolist(), of_event.astype(np.int64))


def event_name(plane: Plane, metadata: int) -> str:
    """The name of an event by its metadata id; a file cut before its metadata has none."""
    found = plane.event_metadata.get(metadata)
    return short_name(found) if found is not None else f"event {metadata}"
