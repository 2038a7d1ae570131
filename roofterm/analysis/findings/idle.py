"""The idle time in which a device waits for the host, put down to what kept the host: each moment to one cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.findings.host_causes import FIRST_FACTOR, Cause, HostCauses
from roofterm.analysis.gaps import covering
from roofterm.analysis.intervals import NONE, Intervals, both, union, without
from roofterm_parsers.profile import Kind

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

PAUSE_PS = 1_000_000_000
"""Launching takes microseconds to some hundred; a host that launches nothing for a millisecond does something else."""


def host_wait_by_cause(study: Study, gaps: pl.DataFrame, causes: HostCauses, main: dict[int, int]) -> dict[Cause, dict[int, Intervals]]:
    """Host wait of gaps (schema `gaps.GAPS`) by cause and device (row of devices); causes that explain none are absent.

    The thread that launches the next work is asked what it did; where it recorded nothing, the source's main thread
    (`main`, by row of sources) is asked instead. Earlier causes take precedence (`Cause`). What a device's own op waits for
    (infeed) is no question to a thread.
    """
    found: dict[Cause, dict[int, Intervals]] = {}
    waits = gaps.filter((pl.col("host_wait_ps") > 0) & pl.col("track").is_not_null())
    waits = waits.with_columns(wait_end=pl.col("start_ps") + pl.col("host_wait_ps"))
    sources = study.profile.devices["source"]
    for (device, track), group in waits.group_by("device", "track", maintain_order=True):
        number, thread = int(device), int(track)
        left = union(group["start_ps"].to_numpy(), group["wait_end"].to_numpy())
        first = main.get(int(sources[number]), thread)
        silent = NONE if first == thread else without(left, _recorded(study, thread))
        for cause in Cause:
            if cause >= Cause.DISPATCH:
                break
            taken = both(left, causes.on(thread, cause))
            if silent.start.size:
                taken = _joined(taken, both(silent, causes.on(first, cause)))
                silent = without(silent, taken)
            if taken.start.size:
                _add(found, cause, number, taken)
                left = without(left, taken)
        long = left.end - left.start >= PAUSE_PS
        pauses = Intervals(left.start[long], left.end[long])
        first_calls = _first_calls(study, thread, pauses)
        for cause, chosen in (
            (Cause.DISPATCH, Intervals(left.start[~long], left.end[~long])),
            (Cause.START_UP, Intervals(pauses.start[first_calls], pauses.end[first_calls])),
            (Cause.PAUSE, Intervals(pauses.start[~first_calls], pauses.end[~first_calls])),
        ):
            if chosen.start.size:
                _add(found, cause, number, chosen)
    return found


def _first_calls(study: Study, thread: int, pauses: Intervals) -> NDArray[np.bool_]:
    """Which pauses lie in the first call of an op in the file that takes far longer than its later calls: it sets something up."""
    slices = study.profile.slices
    found = np.zeros(pauses.start.size, np.bool_)
    tracks = pl.Series(np.full(pauses.start.size, thread), dtype=pl.UInt32)
    for at, host in enumerate(covering(study, tracks, pauses.start, pauses.end).to_list()):
        if host is None or study.kind[host] != int(Kind.OP):
            continue
        calls = np.flatnonzero(slices["name"].to_numpy() == slices["name"][host])
        start, end = study.start_ps[calls], study.start_ps[calls] + study.dur_ps[calls]
        later = calls[start > study.start_ps[host]]
        if not np.any(end <= study.start_ps[host]):
            settled = float(np.median(study.dur_ps[later])) if later.size else 0.0
            alone = later.size == 0 and study.profile.steps.height > 0
            found[at] = not alone and study.dur_ps[host] >= FIRST_FACTOR * settled
    return found


def _recorded(study: Study, track: int) -> Intervals:
    """When a thread has slices, annotations apart."""
    tracks = study.profile.slices["track"].to_numpy()
    rows = np.arange(np.searchsorted(tracks, track, "left"), np.searchsorted(tracks, track, "right"))
    rows = rows[~np.isin(study.kind[rows], (int(Kind.STEP), int(Kind.ANNOTATION)))]
    return union(study.start_ps[rows], study.start_ps[rows] + study.dur_ps[rows])


def _add(found: dict[Cause, dict[int, Intervals]], cause: Cause, device: int, taken: Intervals) -> None:
    known = found.setdefault(cause, {})
    known[device] = _joined(known[device], taken) if device in known else taken


def _joined(a: Intervals, b: Intervals) -> Intervals:
    return union(np.concatenate((a.start, b.start)), np.concatenate((a.end, b.end)))
