"""How far each step uses what it has: share of kernel time on tensor cores, estimated SM efficiency, share of busy host time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.intervals import I64, Intervals, covered, union, without
from roofterm_parsers.profile import Kind, Profile, TrackKind

ENOUGH = 0.95
"""Share of kernel time of which the grid, or the unit it runs on, must be known; with less, the figure is unknown."""

BUSY_KINDS = (Kind.OP, Kind.RUNTIME)
"""What a host thread works in. Annotations and Python frames say where it is, not that it works."""

USE = pl.Schema({"tensor_core_pct": pl.Float64, "sm_efficiency_pct": pl.Float64, "host_busy_pct": pl.Float64})


def step_use(profile: Profile, work: pl.DataFrame, windows: pl.DataFrame, tensor_core: pl.DataFrame, blocks: pl.DataFrame) -> pl.DataFrame:
    """Frame of schema `USE`, one row a window of `windows` (schema `steps.WINDOWS`), percent; null where unknown.

    `tensor_core`: columns slice, tensor_core; `blocks`: columns slice, blocks_per_unit. All kernels that run in the window
    count, cut to it. With several devices in a source the figures are their means.

    Tensor-core share: length of kernels on tensor cores over the length of all kernels. SM efficiency: mean over the window of
    min(sum of the running kernels' blocks per SM, 1) (torch-tb-profiler, gpu_metrics_parser). Host busy: union over the
    host's threads of ops and runtime calls, without calls in which the thread waits for the device.
    """
    kernels = work.filter(pl.col("kind") == Kind.KERNEL).join(tensor_core, on="slice", how="left", maintain_order="left")
    kernels = kernels.join(blocks, on="slice", how="left", maintain_order="left")
    lines = {int(key[0]): _Line(group) for key, group in kernels.group_by("device")}
    start, end = windows["start_ps"].to_numpy(), windows["end_ps"].to_numpy()
    source, device = windows["source"].to_numpy(), windows["device"].to_list()
    source_of = profile.devices["source"].to_list()
    tensor, efficiency = np.full((2, windows.height), np.nan)
    for key in set(zip(source.tolist(), device, strict=True)):
        mine = np.flatnonzero((source == key[0]) & np.array([d == key[1] for d in device]))
        used = [line for d, line in lines.items() if (source_of[d] == key[0] if key[1] is None else d == key[1])]
        if used:
            tensor[mine] = _mean([line.tensor_share(start[mine], end[mine]) for line in used])
            efficiency[mine] = _mean([line.efficiency(start[mine], end[mine]) for line in used])
    host = np.full(windows.height, np.nan)
    for number in set(source.tolist()):
        mine = np.flatnonzero(source == number)
        busy = host_busy(profile, number)
        if busy.start.size:
            host[mine] = _share(covered(busy, start[mine], end[mine]), end[mine] - start[mine])
    columns = zip(USE, (tensor, efficiency, host), strict=True)
    return pl.DataFrame({name: pl.Series(values).fill_nan(None) for name, values in columns}, schema=USE)


def host_busy(profile: Profile, source: int) -> Intervals:
    """When any thread of a source's host was in an op or a runtime call other than one that waits for the device."""
    hosts = (profile.tracks["kind"] == int(TrackKind.HOST)) & (profile.tracks["source"] == source)
    kind = profile.slices["kind"].to_numpy()
    track = profile.slices["track"].to_numpy()
    start = profile.slices["start_ps"].to_numpy()
    end = start + profile.slices["dur_ps"].to_numpy()
    works, waits = np.isin(kind, [int(k) for k in BUSY_KINDS]), kind == Kind.SYNC
    starts, ends = [], []
    for number in np.flatnonzero(hosts.to_numpy()):
        # Slices are sorted by track.
        first, last = np.searchsorted(track, [number, number + 1])
        rows = slice(int(first), int(last))
        at, to, mine, pauses = start[rows], end[rows], works[rows], waits[rows]
        busy = without(union(at[mine], to[mine]), union(at[pauses], to[pauses]))
        starts.append(busy.start)
        ends.append(busy.end)
    return union(np.concatenate(starts), np.concatenate(ends)) if starts else union(np.zeros(0, np.int64), np.zeros(0, np.int64))


class _Line:
    """One device's kernels as functions over time."""

    def __init__(self, kernels: pl.DataFrame) -> None:
        start, end = kernels["start_ps"].to_numpy(), kernels["end_ps"].to_numpy()
        known = kernels["blocks_per_unit"].is_not_null().to_numpy()
        told = kernels["tensor_core"].is_not_null().to_numpy()
        tensor = kernels["tensor_core"].fill_null(False).to_numpy()
        edges = edges_of(start, end)
        self._all = level(edges)
        self._tensor = level(edges, chosen=tensor)
        self._told = self._all if told.all() else level(edges, chosen=told)
        self._known = self._all if known.all() else level(edges, chosen=known)
        self._filled = level(edges, kernels["blocks_per_unit"].fill_null(0.0).to_numpy(), chosen=known, most=1.0)

    def tensor_share(self, start: I64, end: I64) -> NDArray[np.float64]:
        told, whole = self._told.between(start, end), self._all.between(start, end)
        share = _share(self._tensor.between(start, end), whole)
        return np.where(told >= ENOUGH * whole, share, np.nan)

    def efficiency(self, start: I64, end: I64) -> NDArray[np.float64]:
        known, whole = self._known.between(start, end), self._all.between(start, end)
        share = _share(self._filled.between(start, end), end - start)
        return np.where((whole > 0) & (known >= ENOUGH * whole), share, np.nan)


class Level(NamedTuple):
    """A function of time that is constant between `time` points, and its integral up to each of them."""

    time: I64
    value: NDArray[np.float64]
    integral: NDArray[np.float64]

    def between(self, start: I64, end: I64) -> NDArray[np.float64]:
        """Integral over each [start, end)."""
        return self._upto(end) - self._upto(start)

    def _upto(self, time: I64) -> NDArray[np.float64]:
        if self.time.size == 0:
            return np.zeros(time.size)
        at = np.searchsorted(self.time, time, side="right") - 1
        inside = np.maximum(at, 0)
        return np.where(at < 0, 0.0, self.integral[inside] + self.value[inside] * (time - self.time[inside]))


class Edges(NamedTuple):
    """Where pieces start and end, in order of time."""

    time: I64
    piece: I64
    """row of each piece; its end: less the number of pieces, so below 0"""


def edges_of(start: I64, end: I64) -> Edges:
    time = np.concatenate((start, end))
    order = np.argsort(time, kind="stable")
    return Edges(time[order], np.where(order < start.size, order, order - 2 * start.size))


def level(edges: Edges, weight: NDArray[np.float64] | None = None, chosen: NDArray[np.bool_] | None = None, most: float = np.inf) -> Level:
    """Sum of the weights (None: 1 each) of what runs at each moment, at most `most`; of all pieces or those `chosen`."""
    time, piece = edges
    if chosen is not None and not chosen.all():
        mine = chosen[piece]
        time, piece = time[mine], piece[mine]
    starts = piece >= 0
    change = np.where(starts, 1.0, -1.0) if weight is None else np.where(starts, weight[piece], -weight[piece])
    value = np.minimum(np.cumsum(change), most)
    steps = np.concatenate(([0.0], (value[:-1] * np.diff(time)))) if time.size else np.zeros(0)
    return Level(time, value, np.cumsum(steps))


def _share(part: NDArray[np.float64] | I64, whole: NDArray[np.float64] | I64) -> NDArray[np.float64]:
    return np.where(whole > 0, 100.0 * part / np.where(whole > 0, whole, 1), np.nan)


def _mean(values: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Mean over devices of what is known; unknown where no device tells."""
    stacked = np.array(values)
    known = ~np.isnan(stacked)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, stacked, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)
