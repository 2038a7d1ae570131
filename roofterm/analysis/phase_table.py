"""Where a step's device time goes by phase, and the roofline of each phase."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.bounded import Bounded
from roofterm.analysis.intervals import Intervals, covered, union, without
from roofterm.analysis.levels import records, summed, with_shares
from roofterm.analysis.phases import OTHER, PHASE_TITLES, Phase
from roofterm.analysis.steps import US
from roofterm.results import DeviceInfo, PhaseTime, RooflineRow
from roofterm_parsers.profile import Kind, Profile

U8 = NDArray[np.uint8]

BREAKDOWN = pl.Schema(
    {
        "step": pl.UInt32,  # row of Profile.steps
        "phase": pl.String,  # "other" for work without a phase
        "device_us": pl.Float64,  # union of the phase's work within the step's window, mean over devices
        "exposed_us": pl.Float64,  # of that, time in which no other phase's work ran
        "pieces": pl.UInt32,  # pieces of work launched by the step
        "host_us": pl.Float64,  # self time of ops and calls that start in the host's step, over all threads
    }
)
"""One row a step and phase that has time, in order of step and of `phases.Phase`."""


def phase_breakdown(
    profile: Profile, work: pl.DataFrame, windows: pl.DataFrame, phases: U8, host: U8, self_ps: NDArray[np.int64]
) -> pl.DataFrame:
    """The device and host time of each step by phase, schema `BREAKDOWN`.

    `work`: schema `work.WORK`; `windows`: schema `steps.WINDOWS`; `phases`: of `work`, row for row; `host`: of every slice;
    `self_ps`: of every slice. Exposed times, what several phases share and idle time add up to the step.
    """
    if windows.height == 0:
        return pl.DataFrame(schema=BREAKDOWN)
    device_ps, exposed_ps = _device_times(profile, work, windows, phases)
    pieces = _pieces(work, windows, phases)
    host_ps = _host_times(profile, windows, host, self_ps)
    shown = (device_ps > 0) | (pieces > 0) | (host_ps > 0)
    rows, codes = np.nonzero(shown)
    titles = pl.Series([title or OTHER for title in PHASE_TITLES], dtype=pl.String)
    frame = pl.DataFrame(
        {
            "step": windows["step"][rows],
            "phase": titles[codes],
            "device_us": device_ps[rows, codes] / US,
            "exposed_us": exposed_ps[rows, codes] / US,
            "pieces": pieces[rows, codes],
            "host_us": host_ps[rows, codes] / US,
        }
    )
    return frame.cast(BREAKDOWN)


def phase_times(breakdown: pl.DataFrame, steps: Sequence[int]) -> list[PhaseTime]:
    """The mean of some steps by phase, in the order of `phases.Phase`, what has no phase last.

    `breakdown`: schema `BREAKDOWN`; `steps`: rows of `Profile.steps`. A phase that a step does not have counts as 0 there.
    """
    order = {title or OTHER: at if title else len(PHASE_TITLES) for at, title in enumerate(PHASE_TITLES)}
    sums = (pl.col("device_us", "exposed_us", "pieces", "host_us").sum() / max(len(steps), 1)).cast(pl.Float64)
    means = breakdown.filter(pl.col("step").is_in(list(steps))).group_by("phase").agg(sums)
    return sorted((PhaseTime(**row) for row in means.iter_rows(named=True)), key=lambda row: order[row.phase])


def phase_rows(found: Bounded, work: pl.DataFrame, phases: U8, device: DeviceInfo | None) -> list[RooflineRow]:
    """One roofline row a phase, most time first. An op counts for the phase in which its first kernel was launched."""
    items = _with_phase(found, work, phases)
    rows = with_shares(summed(items, ["text"])).sort("time_ps", descending=True, maintain_order=True)
    return records(rows, "phase", device)


def _with_phase(found: Bounded, work: pl.DataFrame, phases: U8) -> pl.DataFrame:
    titles = pl.Series([title or OTHER for title in PHASE_TITLES], dtype=pl.String)
    of_piece = pl.DataFrame({"slice": work["slice"], "start_ps": work["start_ps"], "phase": titles[phases]})
    pieces = found.costed.pieces.select("slice", "item").join(of_piece, on="slice", how="inner")
    of_item = pieces.sort("start_ps", maintain_order=True).group_by("item", maintain_order=True).agg(text=pl.col("phase").first())
    return found.items.drop("text").join(of_item, on="item", how="inner", maintain_order="left")


def _device_times(
    profile: Profile, work: pl.DataFrame, windows: pl.DataFrame, phases: U8
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Device and exposed time (ps) by window and phase, means over the devices of the window's source (or its own device)."""
    shape = (windows.height, len(Phase))
    device_ps, exposed_ps = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    counts = np.zeros((windows.height, 1), np.int64)
    begin, end = windows["start_ps"].to_numpy(), windows["end_ps"].to_numpy()
    source, own = windows["source"].to_numpy(), windows["device"].cast(pl.Int64).fill_null(-1).to_numpy()
    sources = profile.devices["source"].to_numpy()
    for key, rows in work.with_columns(phase=pl.Series(phases)).group_by("device", maintain_order=True):
        device = int(str(key[0]))
        mine = np.flatnonzero(np.where(own < 0, source == sources[device], own == device))
        counts[mine] += 1
        unions = {int(str(phase[0])): _union(group) for phase, group in rows.group_by("phase")}
        for phase, ran in unions.items():
            others = [rest for other, rest in unions.items() if other != phase]
            alone = without(ran, _joined(others))
            device_ps[mine, phase] += covered(ran, begin[mine], end[mine])
            exposed_ps[mine, phase] += covered(alone, begin[mine], end[mine])
    counts = np.maximum(counts, 1)
    return device_ps / counts, exposed_ps / counts


def _union(rows: pl.DataFrame) -> Intervals:
    return union(rows["start_ps"].to_numpy(), rows["end_ps"].to_numpy())


def _joined(sets: list[Intervals]) -> Intervals:
    if not sets:
        return union(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return union(np.concatenate([one.start for one in sets]), np.concatenate([one.end for one in sets]))


def _pieces(work: pl.DataFrame, windows: pl.DataFrame, phases: U8) -> NDArray[np.int64]:
    counts = np.zeros((windows.height, len(Phase)), np.int64)
    rows = work.select("step", phase=pl.Series(phases)).join(windows.select("step").with_row_index("row"), on="step", how="inner")
    np.add.at(counts, (rows["row"].to_numpy(), rows["phase"].to_numpy()), 1)
    return counts


def _host_times(profile: Profile, windows: pl.DataFrame, host: U8, self_ps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Self time (ps) of ops and calls by window and phase: ranges, Python frames and synchronisation may only be waiting."""
    times = np.zeros((windows.height, len(Phase)), np.int64)
    start = profile.slices["start_ps"].to_numpy()
    source = profile.tracks["source"].to_numpy()[profile.slices["track"].to_numpy()]
    counted = np.flatnonzero(np.isin(profile.slices["kind"].to_numpy(), (Kind.OP, Kind.RUNTIME)))
    for number in windows["source"].unique().to_list():
        at = np.flatnonzero((windows["source"] == number).to_numpy() & windows["device"].is_null().to_numpy())
        if at.size == 0:
            continue
        at = at[np.argsort(windows["host_start_ps"].to_numpy()[at], kind="stable")]
        mine = counted[source[counted] == number]
        place = np.searchsorted(windows["host_start_ps"].to_numpy()[at], start[mine], side="right") - 1
        inside = (place >= 0) & (start[mine] < windows["host_end_ps"].to_numpy()[at[np.maximum(place, 0)]])
        np.add.at(times, (at[place[inside]], host[mine[inside]]), self_ps[mine[inside]])
    return times
