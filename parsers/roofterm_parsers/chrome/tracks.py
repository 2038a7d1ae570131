"""Tracks: one for each process, thread and class (host, device work, device other, profiler) that holds anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.chrome.categories import TRACK_KINDS
from roofterm_parsers.chrome.codes import Lane
from roofterm_parsers.chrome.groups import FLOW_END, PHASES
from roofterm_parsers.chrome.naming import Names, natural, rank_prefix, trailing_number
from roofterm_parsers.profile import TRACKS, Kind, TrackKind

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]

_CLASSES = len(TrackKind)
CLASS_OF_KIND = np.array([int(TRACK_KINDS.get(Kind(kind), TrackKind.HOST)) for kind in range(len(Kind))], np.uint8)
_PROFILER_PROCESSES = frozenset({"Spans", "Traces", ""})
_DEVICE_ARROWS = frozenset({"ac2g", "async", "async_gpu", "async_cpu_to_gpu"})


@dataclass(slots=True)
class Track:
    process: str
    thread: str
    kind: TrackKind
    device: int | None = None
    stream: int | None = None


@dataclass(slots=True)
class Tracks:
    """Tracks in the order of their first use; `order` puts them as people look for them."""

    lanes: Sequence[Lane]
    rows: list[Track] = field(default_factory=list)
    _index: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def of_slices(self, lane: U32, kind: U8) -> U32:
        """Track of each slice."""
        code = lane.astype(np.int64) * _CLASSES + CLASS_OF_KIND[kind]
        table = np.zeros(len(self.lanes) * _CLASSES, np.uint32)
        for used in np.flatnonzero(np.bincount(code, minlength=table.size)).tolist():
            _, _, pid, tid = self.lanes[used // _CLASSES]
            table[used] = self._row(str(pid), str(tid), used % _CLASSES)
        track: U32 = table[code]
        return track

    def of_marks(self, lane: U32) -> U32:
        """Track of each mark or arrow: that of the slices of its thread, else a new one."""
        table = np.zeros(len(self.lanes), np.uint32)
        for used in np.flatnonzero(np.bincount(lane, minlength=table.size)).tolist():
            phase, category, pid, tid = self.lanes[used]
            process, thread = str(pid), str(tid)
            ends_on_device = PHASES.get(phase) == FLOW_END and category in _DEVICE_ARROWS
            choices = [TrackKind.HOST, TrackKind.PROFILER, TrackKind.DEVICE, TrackKind.DEVICE_OTHER]
            if ends_on_device:
                choices.insert(0, choices.pop(2))
            for choice in choices:
                found = self._index.get((process, thread, choice))
                if found is not None:
                    table[used] = found
                    break
            else:
                profiler = isinstance(pid, str) and pid in _PROFILER_PROCESSES
                table[used] = self._row(process, thread, TrackKind.PROFILER if profiler else TrackKind.HOST)
        track: U32 = table[lane]
        return track

    def order(self, names: Names) -> I64:
        """Place of each track: by process as the file sorts them, the profiler's own last, then by thread."""

        def key(row: int) -> tuple[Any, ...]:
            track = self.rows[row]
            is_profiler = track.kind == TrackKind.PROFILER
            sort = names.process_sort.get(track.process)
            thread = (track.process, track.thread)
            thread_sort = names.thread_sort.get(thread)
            on_device = track.kind in (TrackKind.DEVICE, TrackKind.DEVICE_OTHER)
            return (
                is_profiler,
                on_device,
                sort if sort is not None else trailing_number(track.process) or 0,
                natural(track.process),
                thread_sort if thread_sort is not None else 1 << 40,
                natural(track.thread),
                int(track.kind),
            )

        place = np.empty(len(self.rows), np.int64)
        place[sorted(range(len(self.rows)), key=key)] = np.arange(len(self.rows))
        return place

    def frame(self, names: Names, place: I64) -> pl.DataFrame:
        """TRACKS, in the order of `place`."""
        order = np.argsort(place).tolist()
        rows = [self.rows[i] for i in order]
        columns = {
            "kind": [int(t.kind) for t in rows],
            "source": [0] * len(rows),
            "process": [t.process for t in rows],
            "thread": [t.thread for t in rows],
            "process_name": [_process_name(t, names) for t in rows],
            "thread_name": [names.thread.get((t.process, t.thread)) for t in rows],
            "device": [t.device for t in rows],
            "stream": [t.stream for t in rows],
            "sort": list(range(len(rows))),
        }
        return pl.DataFrame(columns, schema=TRACKS)

    def _row(self, process: str, thread: str, kind: int) -> int:
        key = (process, thread, kind)
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self.rows)
            self.rows.append(Track(process, thread, TrackKind(kind)))
        return found


def groups_of(lanes: Sequence[Lane]) -> I64:
    """The rank that each lane belongs to, as a number: ids are compared within one rank only."""
    numbers: dict[str, int] = {"": 0}
    return np.array([numbers.setdefault(rank_prefix(pid), len(numbers)) for _, _, pid, _ in lanes], np.int64)


def _process_name(track: Track, names: Names) -> str | None:
    name, label = names.process.get(track.process), names.labels.get(track.process)
    if label and track.kind in (TrackKind.DEVICE, TrackKind.DEVICE_OTHER):
        return label
    return name or label
