"""One row a rank (or host): how long its steps take, where the time goes, and whether the others wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.digest import steps_counted
from roofterm.analysis.steps import US, DeviceLine
from roofterm.results import RankRow, StepRow
from roofterm_parsers.profile import Profile

LATE_PCT = 1.0
"""A rank is late if it alone keeps the others waiting for this share of a step, or more."""

SLOW_FACTOR = 1.05
"""Without matched collectives: if its compute takes this many times the median rank's."""


def rank_rows(
    profile: Profile,
    windows: pl.DataFrame,
    steps: Sequence[StepRow],
    lines: dict[int, DeviceLine],
    calls: pl.DataFrame,
    matched: pl.DataFrame,
    chosen: NDArray[np.bool_] | None = None,
) -> list[RankRow]:
    """One record a source that worked, in order of rank, then host. Times are means a step, over the steady steps of each.

    `chosen`: means over these steps instead, row for row with `steps`.

    `windows` (schema `steps.WINDOWS`) and `steps` go row for row; `lines`: each device's work; `calls` and `matched` are of the
    schemas `collective_calls.CALLS` and `matching.MATCHED`. Without steps the whole file counts as one.
    """
    sources = profile.devices["source"][sorted(lines)].unique(maintain_order=True).to_list() if lines else []
    sources = sources or list(range(len(profile.sources)))
    meetings = calls.select("slice", "source", "step").join(matched, on="slice", how="inner")
    rows = []
    for source in sources:
        mine = (windows["source"] == source).to_numpy()
        rows_counted = np.flatnonzero(mine & chosen) if chosen is not None else _counted(steps, np.flatnonzero(mine))
        counted = [steps[row] for row in rows_counted]
        numbers = windows["step"][rows_counted]
        devices = [line for device, line in lines.items() if profile.devices["source"][device] == source]
        row = _row(profile, source, counted, devices)
        met = meetings.filter(pl.col("source") == source)
        if numbers.len():
            met = met.filter(pl.col("step").is_in(numbers.implode()))
        _add_meetings(row, met, max(len({step.name for step in counted}), 1))
        rows.append(row)
    _mark_late(rows)
    return sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, row.host or ""))


def _counted(steps: Sequence[StepRow], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of a rank's steps that averages speak of."""
    counted, _ = steps_counted([steps[row] for row in rows])
    return np.array([row for row in rows if any(steps[row] is step for step in counted)], np.int64)


def _row(profile: Profile, source: int, steps: Sequence[StepRow], lines: Sequence[DeviceLine]) -> RankRow:
    facts = profile.sources[source]
    known = {name: _mean([getattr(step, name) for step in steps]) for name in _MEANS}
    if not steps and lines:
        known |= _whole_file(lines)
    return RankRow(
        rank=facts.rank,
        host=facts.host,
        path=facts.path,
        devices=len(lines),
        steps=len(steps),
        step_us=known["dur_us"],
        slowest_us=max((step.dur_us for step in steps), default=None),
        compute_us=known["compute_us"],
        comm_us=known["comm_us"],
        exposed_comm_us=known["exposed_comm_us"],
        exposed_copy_us=known["exposed_copy_us"],
        idle_us=known["idle_us"],
        busy_pct=_share(known["dur_us"], known["idle_us"]),
        launches=known["launches"],
        host_wait_us=known.get("host_wait_us"),
    )


_MEANS = ("dur_us", "compute_us", "comm_us", "exposed_comm_us", "exposed_copy_us", "idle_us", "host_wait_us", "launches")


def _whole_file(lines: Sequence[DeviceLine]) -> dict[str, float | None]:
    """The breakdown from the first to the last work of all devices, their mean."""
    start = min(int(line.busy.start[0]) for line in lines if line.busy.start.size)
    end = max(int(line.busy.end[-1]) for line in lines if line.busy.end.size)
    parts = [line.breakdowns(np.array([start]), np.array([end])) for line in lines]
    names = ("compute", "comm", "exposed_comm", "exposed_copy", "idle")
    spent: dict[str, float | None] = {f"{name}_us": fmean(int(part[name][0]) for part in parts) / US for name in names}
    return {"dur_us": (end - start) / US, **spent}


def _add_meetings(row: RankRow, met: pl.DataFrame, steps: int) -> None:
    """What the matched collectives of a rank tell, a step."""
    if met.height == 0:
        return
    per_step = max(row.devices, 1) * steps * US
    sums = met.select(pl.col("wait_ps", "transfer_ps", "exposed_wait_ps", "exposed_transfer_ps", "lead_ps").sum()).row(0, named=True)
    row.wait_us = sums["wait_ps"] / per_step
    row.transfer_us = sums["transfer_ps"] / per_step
    row.exposed_wait_us = sums["exposed_wait_ps"] / per_step
    row.exposed_transfer_us = sums["exposed_transfer_ps"] / per_step
    row.kept_waiting_us = sums["lead_ps"] / per_step
    row.last_pct = 100 * float(met["is_last"].mean() or 0)  # type: ignore[arg-type]


def _mark_late(rows: Sequence[RankRow]) -> None:
    if len(rows) < 2:
        return
    computed = [row.compute_us for row in rows if row.compute_us is not None]
    usual = median(computed) if computed else None
    for row in rows:
        if row.kept_waiting_us is not None:
            row.late = row.kept_waiting_us >= (row.step_us or 0) * LATE_PCT / 100
        elif usual and row.compute_us is not None:
            row.late = row.compute_us > SLOW_FACTOR * usual


def _share(length: float | None, idle: float | None) -> float | None:
    return 100 * (1 - idle / length) if length and idle is not None else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
