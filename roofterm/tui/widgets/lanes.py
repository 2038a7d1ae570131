"""The lanes of a timeline, built once from a profile's frames: devices and their streams, then host threads by depth."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.tui.widgets.glyphs import NO_CATEGORY
from roofterm.tui.widgets.pieces import disjoint, union
from roofterm.tui.widgets.raster import Lane, Pieces
from roofterm_parsers.profile import ROOT, WORK_KINDS, Profile, TrackKind

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
U8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]

WRAPPERS = 4
"""slices on a lane that may be there only to hold those below"""


@dataclass
class Group:
    """Lanes under one label: one for a stream, one a depth for a thread (the outermost first)."""

    label: str
    kind: TrackKind
    rows: list[Lane] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    """nesting that each lane shows; a filter leaves out the depths of which nothing passes"""
    tracks: list[int] = field(default_factory=list)
    busy: Pieces | None = None
    """a device's busy time instead of lanes"""
    head: int = 0
    """the lane that stands for all of them while they are folded"""

    @property
    def folds(self) -> bool:
        return len(self.rows) > 1


@dataclass
class Lanes:
    """Everything a timeline shows. Arrays over slices are the profile's own, indexed by slice id."""

    groups: list[Group]
    busy: list[Pieces]
    """union of the work of each device that worked"""
    start_ps: I64
    dur_ps: I64
    track: U32
    depth: NDArray[np.uint16]
    name: U32
    category: U8
    names: list[str]
    """text of each row of the profile's names"""
    launch_of: dict[str, U32]
    """work and launch: the linked pairs, ordered by work"""
    begin_ps: int
    end_ps: int
    keep: Mask | None = None

    @classmethod
    def build(cls, profile: Profile, category: U8, *, keep: Mask | None = None, collective: Mask | None = None) -> Lanes:
        """Lanes of a profile. `category` is a code below 255 for each slice; `keep` leaves out the slices that a filter hides,
        `collective` marks communication, which gets a lane of its own on a device whose streams mix it with other work.

        For a worker's thread: 5 million slices take seconds. About 20 bytes stay for each slice.
        """
        frame = profile.slices
        return _Builder(profile, frame, np.minimum(category, NO_CATEGORY - 1), keep, collective).lanes()

    def empty(self) -> bool:
        return not self.groups

    def categories(self) -> list[int]:
        """Codes of the categories that the outermost lanes show, the one with most time first."""
        time: dict[int, int] = {}
        for group in self.groups:
            for code, pieces in group.rows[group.head].pieces.items() if group.rows else ():
                time[code] = time.get(code, 0) + int(pieces.total_ps[-1])
        return sorted(time, key=lambda code: -time[code])

    def place(self, slice_id: int) -> tuple[int, int] | None:
        """(group, depth) of the lane in which a slice is shown."""
        track = int(self.track[slice_id])
        for at, group in enumerate(self.groups):
            if track in group.tracks:
                row = bisect_right(group.depths, int(self.depth[slice_id])) - 1
                return at, max(row, 0)
        return None

    def same_name(self, slice_id: int) -> U32:
        """Ids of the slices with the same name, in order of time."""
        same = self.name == self.name[slice_id]
        if self.keep is not None:
            same &= self.keep
        ids = np.flatnonzero(same)
        return ids[np.argsort(self.start_ps[ids], kind="stable")].astype(np.uint32)

    def linked(self, slice_id: int) -> int | None:
        """The launch of a piece of device work, or the first work of a launch; None if the file links none."""
        work, launch = self.launch_of["work"], self.launch_of["launch"]
        at = int(np.searchsorted(work, slice_id))
        if at < work.size and work[at] == slice_id:
            return int(launch[at])
        back = np.flatnonzero(launch == slice_id)
        return int(work[back[0]]) if back.size else None

    def text(self, slice_id: int) -> str:
        """A slice's name as in the file: not yet safe to show."""
        return self.names[int(self.name[slice_id])]


class _Builder:
    def __init__(self, profile: Profile, slices: pl.DataFrame, category: U8, keep: Mask | None, collective: Mask | None) -> None:
        self.profile = profile
        self.category, self.keep, self.collective = category, keep, collective
        self.start = slices["start_ps"].to_numpy()
        self.dur = slices["dur_ps"].to_numpy()
        self.end = self.start + self.dur
        self.track = slices["track"].to_numpy()
        self.depth = slices["depth"].to_numpy()
        self.parent = slices["parent"].to_numpy()
        self.kind = slices["kind"].to_numpy()
        self.bounds = np.searchsorted(self.track, np.arange(profile.tracks.height + 1, dtype=np.int64)).tolist()
        self.tracks = profile.tracks.to_dicts()
        self.busy: list[Pieces] = []

    def lanes(self) -> Lanes:
        found = [*self._device_groups(), *self._host_groups(TrackKind.HOST), *self._host_groups(TrackKind.PROFILER)]
        links = self.profile.links.drop_nulls("launch")
        on_axis = self.start >= 0  # what lies before the zero was marked off the axis by the parser
        return Lanes(
            groups=[group for group in map(_without_empty_lanes, found) if group.rows or group.busy is not None],
            busy=self.busy,
            start_ps=self.start,
            dur_ps=self.dur,
            track=self.track,
            depth=self.depth,
            name=self.profile.slices["name"].to_numpy(),
            category=self.category,
            names=self.profile.names["text"].to_list(),
            launch_of={"work": links["work"].to_numpy(), "launch": links["launch"].to_numpy()},
            begin_ps=0,
            end_ps=max(int(self.end[on_axis].max(initial=0)), 1),
            keep=self.keep,
        )

    def _device_groups(self) -> list[Group]:
        found: list[Group] = []
        devices = sorted({t["device"] for t in self.tracks if t["device"] is not None})
        unions = {device: self._work(device) for device in devices}
        self.busy = [parts for parts in unions.values() if len(parts)]
        for device in devices:
            label = self._device_label(device)
            if len(self.busy) > 1 and len(unions[device]):
                found.append(Group(f"{label} busy", TrackKind.DEVICE, busy=unions[device]))
            streams = [self._stream(t, label) for t in self._of(TrackKind.DEVICE, device)]
            found += [*streams, *self._communication(device, label)]
            for track in self._of(TrackKind.DEVICE_OTHER, device):
                name = f"{label} {self._thread(track)}"
                same = any(stream.label == name for stream in streams)  # Kineto's ranges lie on the stream of their kernels
                found.append(self._by_depth(track, f"{name} ranges" if same else name))
        return found

    def _host_groups(self, kind: TrackKind) -> list[Group]:
        rows = [t for t, track in enumerate(self.tracks) if track["kind"] == kind and track["device"] is None]
        rows.sort(key=lambda t: (self.tracks[t]["source"], self.tracks[t]["sort"] or 0, -self._count(t), t))
        labels = [self._rank(self.tracks[t]["source"]) + self._thread(t) for t in rows]
        processes = [self.tracks[t]["process_name"] or self.tracks[t]["process"] for t in rows]
        alike = {label for label in labels if labels.count(label) > 1}
        named = [f"{p} {label}" if label in alike else label for label, p in zip(labels, processes, strict=True)]
        return [self._by_depth(t, label) for t, label in zip(rows, named, strict=True)]

    def _of(self, kind: TrackKind, device: int) -> list[int]:
        rows = [t for t, track in enumerate(self.tracks) if track["kind"] == kind and track["device"] == device]
        return sorted(rows, key=lambda t: (self.tracks[t]["sort"] or 0, self.tracks[t]["stream"] or 0, t))

    def _stream(self, track: int, device: str) -> Group:
        a, b = self.bounds[track], self.bounds[track + 1]
        parent = self.parent[a:b].astype(np.int64) - a
        parent[self.parent[a:b] == ROOT] = -1
        first, last, of = disjoint(self.start[a:b], self.end[a:b], parent)
        group = Group(f"{device} {self._thread(track)}", TrackKind.DEVICE, tracks=[track])
        return self._with_row(group, first, last, of + a)

    def _by_depth(self, track: int, label: str) -> Group:
        a, b = self.bounds[track], self.bounds[track + 1]
        group = Group(label, TrackKind(self.tracks[track]["kind"]), tracks=[track])
        order = np.argsort(self.depth[a:b], kind="stable")
        depth = self.depth[a:b][order]
        edges = np.searchsorted(depth, np.arange(int(depth[-1]) + 2 if depth.size else 1, dtype=np.int64)).tolist()
        for begin, end in pairwise(edges):
            rows = order[begin:end] + a
            first, last, of = disjoint(self.start[rows], self.end[rows])
            self._with_row(group, first, last, rows[of])
        return group

    def _communication(self, device: int, label: str) -> list[Group]:
        """A lane of the device's collectives, unless they have streams to themselves already."""
        if self.collective is None:
            return []
        mixed = False
        parts: list[NDArray[np.int64]] = []
        for track in self._of(TrackKind.DEVICE, device):
            a, b = self.bounds[track], self.bounds[track + 1]
            here = np.flatnonzero(self.collective[a:b])
            mixed |= 0 < here.size < b - a
            parts.append(here + a)
        rows = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        if not mixed or not rows.size:
            return []
        rows = rows[np.argsort(self.start[rows], kind="stable")]
        first, last, of = disjoint(self.start[rows], self.end[rows])
        return [self._with_row(Group(f"{label} collectives", TrackKind.DEVICE), first, last, rows[of])]

    def _with_row(self, group: Group, first: I64, last: I64, slices: NDArray[np.int64]) -> Group:
        if self.keep is not None:
            kept = self.keep[slices]
            first, last, slices = first[kept], last[kept], slices[kept]
        group.rows.append(Lane.of(first, last, slices.astype(np.uint32), self.category[slices]))
        return group

    def _work(self, device: int) -> Pieces:
        parts: list[NDArray[np.int64]] = []
        for track in self._of(TrackKind.DEVICE, device):
            a, b = self.bounds[track], self.bounds[track + 1]
            kind = self.kind[a:b]
            parts.append(np.flatnonzero(np.isin(kind, np.array(WORK_KINDS, np.uint8))) + a)
        rows = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        rows = rows[np.argsort(self.start[rows], kind="stable")]
        return Pieces.of(*union(self.start[rows], self.end[rows]))

    def _count(self, track: int) -> int:
        return int(self.bounds[track + 1] - self.bounds[track])

    def _device_label(self, device: int) -> str:
        row = self.profile.devices.row(device, named=True)
        kind = row["kind"] or "device"
        return f"{self._rank(row['source'])}{kind.upper() if len(kind) <= 4 else kind}{row['id']}"

    def _rank(self, source: int) -> str:
        """A prefix that tells ranks apart, empty if there is one."""
        ranks = [s.rank for s in self.profile.sources]
        return f"r{ranks[source]} " if len(set(ranks)) > 1 and source < len(ranks) and ranks[source] is not None else ""

    def _thread(self, track: int) -> str:
        row = self.tracks[track]
        if row["thread_name"]:
            return str(row["thread_name"])
        return f"stream {row['stream']}" if row["stream"] is not None else row["thread"] or row["process"] or f"track {track}"


def _without_empty_lanes(group: Group) -> Group:
    """So that a folded thread shows the outermost of what a filter leaves, however deep that lies."""
    kept = [depth for depth, row in enumerate(group.rows) if len(row)]
    group.rows, group.depths = [group.rows[depth] for depth in kept], kept
    group.head = telling_lane(group.rows)
    return group


def telling_lane(rows: Sequence[Lane]) -> int:
    """The outermost lane that tells its time apart: not the few slices that wrap all others, as a script's own frames do.

    It must hold most of the time of the outermost lane; where none does, that one stands for all.
    """
    whole = rows[0].total_ps() if rows else 0
    for at, row in enumerate(rows):
        if len(row) > WRAPPERS and 2 * row.total_ps() >= whole:
            return at
    return 0
