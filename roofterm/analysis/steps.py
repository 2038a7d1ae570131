"""Steps: how long each really took on the device, and the breakdown of that time, which adds up.

A step's window is that of torch-tb-profiler (definitions.md, step window): it starts at the later of the previous
step's end and the host's start, and ends at the later of the host's end and the end of the last device work that was
launched inside the host step. So a job whose host runs ahead has steps as long as the device needs.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.compilation import compiles
from roofterm.analysis.intervals import I64, Intervals, both, covered, cut, gaps, union, without
from roofterm.analysis.work import WorkClass, busy
from roofterm.results import StepRow
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import Kind, Profile, TrackKind

US = 1_000_000
"""picoseconds in a microsecond"""

COMPLETE_SHARE = 0.8
"""A last step with less device work than this share of the step before it was cut (tb_plugin's rule)."""

STEADY_FACTOR = 1.5
"""The first step is left out of the steady ones if it takes longer than this many medians."""

WINDOWS = pl.Schema(
    {
        "step": pl.UInt32,  # row of Profile.steps
        "source": pl.UInt16,
        "device": pl.UInt16,  # null: a host step
        "start_ps": pl.Int64,
        "end_ps": pl.Int64,
        "host_start_ps": pl.Int64,
        "host_end_ps": pl.Int64,
        "pieces": pl.UInt32,  # pieces of device work that count for it
        "launches": pl.UInt32,  # calls that launched them
        "complete": pl.Boolean,
        "compiling": pl.Boolean,
        "steady": pl.Boolean,
    }
)


def step_windows(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    """The window of each step (schema `WINDOWS`), in the order of `profile.steps`."""
    steps = profile.steps
    if steps.height == 0:
        return pl.DataFrame(schema=WINDOWS)
    launched = (
        work.drop_nulls("step")
        .group_by("step")
        .agg(
            first=pl.col("start_ps").min(),
            last=pl.col("end_ps").max(),
            pieces=pl.len().cast(pl.UInt32),
            launches=pl.col("launch").drop_nulls().n_unique().cast(pl.UInt32),
        )
    )
    rows = (
        steps.with_row_index("step")
        .select(
            "step",
            "source",
            "device",
            host_start_ps="start_ps",
            host_end_ps=pl.col("start_ps") + pl.col("dur_ps"),
        )
        .join(launched, on="step", how="left", maintain_order="left")
        .with_columns(pl.col("pieces", "launches").fill_null(0))
        .sort("source", "device", "host_start_ps", maintain_order=True)
    )
    parts = [_windows_of(group, key, profile, work) for key, group in rows.group_by("source", "device", maintain_order=True)]
    frame = pl.concat(parts)
    return frame.with_columns(compiling=_compiling(profile, frame)).pipe(_mark_steady).sort("step").select(list(WINDOWS))


def step_rows(profile: Profile, windows: pl.DataFrame, lines: dict[int, DeviceLine]) -> list[StepRow]:
    """One record a step and source (rank), with its breakdown; times in us. `lines`: the work of each device (`device_lines`).

    With several devices in one source the breakdown is their mean, which adds up to the step as each of them does.
    """
    source_of = profile.devices["source"].to_list()
    start, end = windows["start_ps"].to_numpy(), windows["end_ps"].to_numpy()
    parts = {device: line.breakdowns(start, end) for device, line in lines.items()}
    launched = {device: line.launched(windows["step"].to_numpy()) for device, line in lines.items()}
    names = profile.steps["name"][windows["step"]]
    rows = []
    for at, (window, name) in enumerate(zip(windows.iter_rows(named=True), names, strict=True)):
        if window["device"] is None:
            mine = [device for device in lines if source_of[device] == window["source"]]
        else:
            mine = [window["device"]] if window["device"] in lines else []
        shares = [{part: int(lengths[at]) for part, lengths in parts[device].items()} for device in mine]
        rows.append(_row(profile, window, name, shares, [int(launched[device][at]) for device in mine]))
    return rows


def device_lines(profile: Profile, work: pl.DataFrame) -> dict[int, DeviceLine]:
    """The work of each device, by its row in `profile.devices`."""
    device = work["device"].to_numpy()
    worked = occurring(device).tolist()
    if len(worked) == 1:
        return {worked[0]: DeviceLine(work, profile)}
    return {number: DeviceLine(work.filter(pl.Series(device == number)), profile) for number in worked}


class DeviceLine:
    """One device's work in order of time, with the unions that every window is cut from."""

    def __init__(self, work: pl.DataFrame, profile: Profile) -> None:
        work = work.sort("start_ps", maintain_order=True)
        self.busy = busy(work)
        leaves = work.filter(pl.col("own_ps") == pl.col("end_ps") - pl.col("start_ps"))
        self.communication = busy(leaves, WorkClass.COMMUNICATION)
        self.copies = busy(leaves, WorkClass.COPY)
        self.waiting = busy(work, WorkClass.WAITING)
        if leaves.height < work.height:
            # Ops nest on one line (TPU): what is no collective and no copy is compute, the containers' own time with it.
            self.compute = without(without(self.busy, self.communication), self.copies)
        else:
            self.compute = busy(work, WorkClass.COMPUTE)
        neither = [int(WorkClass.COMMUNICATION), int(WorkClass.WAITING)]
        others = work.filter((pl.col("kind") == Kind.KERNEL) & ~pl.col("work_class").is_in(neither))
        self.kernels_but_communication = self.compute if leaves.height < work.height else busy(others)
        self.start = work["start_ps"].to_numpy()
        launch = work["launch"]
        ends = profile.slices["start_ps"].to_numpy() + profile.slices["dur_ps"].to_numpy()
        self.launch_end = np.where(launch.is_null().to_numpy(), -1, ends[launch.fill_null(0).to_numpy()] if ends.size else -1)
        self.step = work["step"]
        self.work = work

    def breakdowns(self, start: I64, end: I64) -> dict[str, I64]:
        """Of each window [start, end), ps: compute, exposed communication, exposed copies and idle, which add up to its length;
        all communication (comm), all copies (copy), and of the idle time host_wait and kernel_gap."""
        host_wait, kernel_gap = self._idle(start, end)
        return {
            "compute": covered(self.compute, start, end),
            "exposed_comm": covered(self._exposed, start, end),
            "exposed_copy": covered(self._exposed_copies, start, end),
            "idle": end - start - covered(self.busy, start, end),
            "comm": covered(self.communication, start, end),
            "copy": covered(self.copies, start, end),
            "host_wait": host_wait,
            "kernel_gap": kernel_gap,
        }

    def launched(self, steps: NDArray[np.uint32]) -> I64:
        """For each step (row of `profile.steps`) the union (ps) of the work that counts for it, wherever it ran."""
        step = self.step.cast(pl.Int64).fill_null(-1).to_numpy()
        order = np.argsort(step, kind="stable")
        first, last = (np.searchsorted(step[order], steps, side=side) for side in ("left", "right"))
        begin, end = self.start[order], self.work["end_ps"].to_numpy()[order]
        return np.array([union(begin[a:b], end[a:b]).length for a, b in zip(first, last, strict=True)], np.int64)

    @cached_property
    def _exposed(self) -> Intervals:
        return without(self.communication, self.compute)

    @cached_property
    def _exposed_copies(self) -> Intervals:
        return without(without(self.copies, self.compute), self.communication)

    def _idle(self, start: I64, end: I64) -> tuple[I64, I64]:
        """Host wait and kernel gap (ps) of the idle time in each window (definitions.md, Idle).

        Host wait lasts from the end of the previous work until the call that launches the next has ended. A gap whose
        next work has no known launch is neither: it stays unexplained idle time, but for what an op spends on waiting for the
        host (a TPU's infeed).
        """
        if start.size == 0 or self.start.size == 0:
            return np.zeros(start.size, np.int64), np.zeros(start.size, np.int64)
        window, free = cut(gaps(self.busy, int(start.min()), int(end.max())), start, end)
        following = np.searchsorted(self.start, free.end, side="left")
        known = following < self.start.size
        launch_end = np.where(known, self.launch_end[np.minimum(following, self.start.size - 1)], -1)
        known &= launch_end >= 0
        waiting = covered(self.waiting, free.start, free.end)
        wait = np.where(known, np.clip(launch_end, free.start, free.end) - free.start, waiting)
        rest = np.where(known, free.end - free.start - wait, 0)
        bounds = np.searchsorted(window, np.arange(start.size + 1))
        return _sums_between(wait, bounds), _sums_between(rest, bounds)


def _sums_between(values: I64, bounds: NDArray[np.int64]) -> I64:
    """Sum of the values from each bound to the next."""
    sums: I64 = np.diff(np.concatenate(([0], np.cumsum(values)))[bounds])
    return sums


def _windows_of(rows: pl.DataFrame, key: tuple[object, ...], profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    host_start, host_end = rows["host_start_ps"].to_list(), rows["host_end_ps"].to_list()
    last = rows["last"].to_list()
    if key[1] is not None:
        start, end = host_start, host_end
    else:
        start, end = [], []
        previous = _end_before(rows, key[0], profile, work)
        for begin, stop, device_end in zip(host_start, host_end, last, strict=True):
            # A step that lies whole in the previous one's tail is empty, never negative.
            start.append(max(begin, previous))
            end.append(max(stop, device_end if device_end is not None else stop, start[-1]))
            previous = end[-1]
    return rows.select(
        "step",
        "source",
        "device",
        pl.Series("start_ps", start, pl.Int64),
        pl.Series("end_ps", end, pl.Int64),
        "host_start_ps",
        "host_end_ps",
        "pieces",
        "launches",
        pl.Series("complete", _complete(rows["pieces"].to_list())),
    )


def _end_before(rows: pl.DataFrame, source: object, profile: Profile, work: pl.DataFrame) -> int:
    """End of the latest work of this source that no step launched and that ended before the first step's first work."""
    first_start = int(rows["host_start_ps"][0])
    first_work = rows["first"][0]
    if first_work is None:
        return first_start
    devices = profile.devices.with_row_index("device").filter(pl.col("source") == source)["device"].cast(pl.UInt16)
    early = work.filter(pl.col("step").is_null() & pl.col("device").is_in(devices.implode()) & (pl.col("end_ps") < first_work))
    latest = early["end_ps"].max()
    return max(first_start, int(latest)) if latest is not None else first_start  # type: ignore[arg-type]


def _complete(pieces: list[int]) -> list[bool]:
    """Whether each step is whole: the last ones are not if they launched nothing, or far less than the one before."""
    whole = [True] * len(pieces)
    if not any(pieces):
        return whole
    end = len(pieces)
    while end > 0 and pieces[end - 1] == 0:
        end -= 1
        whole[end] = False
    if end >= 2 and pieces[end - 1] < COMPLETE_SHARE * pieces[end - 2]:
        whole[end - 1] = False
    return whole


def _compiling(profile: Profile, windows: pl.DataFrame) -> pl.Series:
    """Whether compilation began on the host inside each step."""
    named = compiles(profile.names["text"]).arg_true().to_numpy()
    at = np.flatnonzero(np.isin(profile.slices["name"].to_numpy(), named)) if named.size else np.zeros(0, np.int64)
    on_host = np.isin(profile.tracks["kind"].to_numpy(), (TrackKind.HOST, TrackKind.PROFILER))
    at = at[on_host[profile.slices["track"].to_numpy()[at]]]
    start = profile.slices["start_ps"].to_numpy()[at]
    source = profile.tracks["source"].to_numpy()[profile.slices["track"].to_numpy()[at]]
    flags = []
    for window in windows.iter_rows(named=True):
        inside = (start >= window["host_start_ps"]) & (start < window["host_end_ps"]) & (source == window["source"])
        flags.append(bool(inside.any()))
    return pl.Series("compiling", flags, pl.Boolean)


def _mark_steady(windows: pl.DataFrame) -> pl.DataFrame:
    """Steady: complete, nothing compiled inside, and not a first step of more than 1.5 medians."""
    steady: NDArray[np.bool_] = (windows["complete"] & ~windows["compiling"]).to_numpy()
    length = (windows["end_ps"] - windows["start_ps"]).to_numpy()
    source = windows["source"].to_numpy()
    device = windows["device"].fill_null(0xFFFF).to_numpy()
    steady = steady.copy()
    for key in set(zip(source.tolist(), device.tolist(), strict=True)):
        mine = np.flatnonzero((source == key[0]) & (device == key[1]) & steady)
        if mine.size > 1 and length[mine[0]] > STEADY_FACTOR * np.median(length[mine]):
            steady[mine[0]] = False
    return windows.with_columns(steady=pl.Series(steady))


def _row(profile: Profile, window: dict[str, int], name: str, parts: list[dict[str, int]], launched: list[int]) -> StepRow:
    """`parts`: breakdown of the step on each of its devices, ps; `launched`: length of the work that it launched there, ps."""
    start, end = window["start_ps"], window["end_ps"]
    row = StepRow(
        name=name,
        rank=profile.sources[window["source"]].rank,
        phase=None,
        complete=bool(window["complete"]),
        steady=bool(window["steady"]),
        start_us=start / US,
        dur_us=(end - start) / US,
        host_dur_us=(window["host_end_ps"] - window["host_start_ps"]) / US,
        compute_us=None,
        exposed_comm_us=None,
        exposed_copy_us=None,
        idle_us=None,
        comm_us=None,
        copy_us=None,
        host_wait_us=None,
        kernel_gap_us=None,
        launched_device_us=None,
        busy_pct=None,
        compute_busy_pct=None,
        launches=int(window["launches"]) if parts else None,
    )
    if not parts:
        return row
    for kind in parts[0]:
        setattr(row, f"{kind}_us", sum(part[kind] for part in parts) / len(parts) / US)
    row.launched_device_us = sum(launched) / len(launched) / US
    if end > start:
        row.busy_pct = 100 * (1 - row.idle_us / row.dur_us) if row.idle_us is not None else None
        row.compute_busy_pct = 100 * row.compute_us / row.dur_us if row.compute_us is not None else None
    return row


def exposed_communication(line: DeviceLine) -> int:
    """Length (ps) of a device's collectives outside of every other kernel, over the whole file."""
    return line.communication.length - both(line.communication, line.kernels_but_communication).length
