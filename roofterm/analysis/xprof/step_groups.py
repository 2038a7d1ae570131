"""Which events belong to which step by XProf's grouping (group_events.cc): what an annotation holds and starts elsewhere.

A group is everything within a step's annotation on its thread, and what that starts on other threads (arrows of XLA's
contexts) and on devices (launches); on a GPU what none has started goes on with the group before it. A file whose profiler
has grouped its events already says the groups itself.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.profile import Kind, Profile, TrackKind

I64 = NDArray[np.int64]
NO_GROUP = -1


def groups(profile: Profile) -> I64:
    """The group of each slice, or NO_GROUP. Groups of annotations are numbered by their start."""
    found = np.full(profile.slices.height, NO_GROUP, np.int64)
    if is_grouped(profile):
        stated = profile.hlo_events.drop_nulls("step")
        found[stated["slice"].to_numpy()] = stated["step"].to_numpy()
        return found
    annotations = roots(profile).tolist()
    threads = _Threads(profile) if annotations else None
    for number, root in enumerate(annotations):
        if threads is not None:
            threads.spread(found, root, number)
    if annotations:
        _carry_on(profile, found)
    return found


def _carry_on(profile: Profile, group: I64) -> None:
    """What runs on a GPU and has no group takes that of what began before it on any stream of the device."""
    gpus = profile.devices.filter(pl.col("kind") == "gpu").select(device="id")
    tracks = profile.tracks.with_row_index("track").filter(pl.col("kind") == int(TrackKind.DEVICE)).join(gpus, on="device", how="semi")
    work = profile.slices.with_row_index("slice").join(tracks.select("track", "device"), on="track")
    work = work.with_columns(own=pl.Series(group[work["slice"].to_numpy()])).with_columns(pl.col("own").replace(NO_GROUP, None))
    work = work.sort(["device", "start_ps", "track", "offset"], descending=[False, False, True, False])
    work = work.with_columns(pl.col("own").forward_fill().over("device")).drop_nulls("own")
    group[work["slice"].to_numpy()] = work["own"].to_numpy()


def is_grouped(profile: Profile) -> bool:
    """Whether the profiler has written groups: all planes that hold events know of them."""
    return bool(profile.sources) and all(source.metadata.get("events_grouped") for source in profile.sources)


def roots(profile: Profile) -> I64:
    """Steps' annotations on host threads that lie in no other, by start."""
    host = profile.tracks.with_row_index("track").filter(pl.col("kind") == int(TrackKind.HOST)).select("track")
    steps = steps_of_file(profile).join(host, on="track", how="semi")
    steps = steps.with_columns(end_ps=pl.col("start_ps") + pl.col("dur_ps")).sort("track", "start_ps", "slice")
    around = pl.col("end_ps").cum_max().shift(1).over("track")
    return steps.filter((pl.col("end_ps") > around).fill_null(True)).sort("start_ps")["slice"].to_numpy().astype(np.int64)


def steps_of_file(profile: Profile) -> pl.DataFrame:
    """The slices that are steps, with their numbers (slice)."""
    rows = np.flatnonzero(profile.slices["kind"].to_numpy() == int(Kind.STEP)).astype(np.uint32)
    return profile.slices[rows].with_columns(slice=pl.Series(rows))


class _Threads:
    """Slices by thread, and what each starts elsewhere."""

    def __init__(self, profile: Profile) -> None:
        slices = profile.slices
        self.start = slices["start_ps"].to_numpy()
        self.end = self.start + slices["dur_ps"].to_numpy()
        track = slices["track"].to_numpy()
        self.at = slices["offset"].to_numpy()
        self.after = np.searchsorted(track, track, side="right")
        """row after the last one of the same track"""
        self.starts = _arrows(profile)
        for work, launch in profile.links.drop_nulls("launch").select("work", "launch").iter_rows():
            self.starts.setdefault(launch, []).append(work)

    def spread(self, group: I64, root: int, number: int) -> None:
        """Give the group to the root and all that follows from it; what has a group keeps it."""
        waiting = [root]
        while waiting:
            row = waiting.pop()
            if group[row] != NO_GROUP:
                continue
            last = int(np.searchsorted(self.start[row : self.after[row]], self.end[row], side="right")) + row
            inside = np.arange(row, last)
            written_later = self.at[inside] >= self.at[row]
            inside = inside[(self.end[inside] <= self.end[row]) & (group[inside] == NO_GROUP) & written_later]
            group[inside] = number
            waiting += [other for one in self._starting(inside) for other in self.starts[one]]

    def _starting(self, rows: I64) -> Iterable[int]:
        return (row for row in rows.tolist() if row in self.starts)


def _arrows(profile: Profile) -> dict[int, list[int]]:
    """For each slice that starts others, those; an arrow leaves the last slice that begins at its time and ends at the first."""
    flows = profile.flows.filter(pl.col("cat") == "context")
    if flows.is_empty():
        return {}
    slices = profile.slices.select("track", time_ps="start_ps").with_row_index("slice")
    starts = slices.unique(["track", "time_ps"], keep="last").join(flows.filter(pl.col("phase") == 0), on=["track", "time_ps"])
    ends = slices.unique(["track", "time_ps"], keep="first").join(flows.filter(pl.col("phase") == 2), on=["track", "time_ps"])
    pairs = starts.select("id", "slice").join(ends.select("id", other="slice"), on="id").select("slice", "other")
    found: dict[int, list[int]] = {}
    for slice_, other in pairs.iter_rows():
        found.setdefault(slice_, []).append(other)
    return found
