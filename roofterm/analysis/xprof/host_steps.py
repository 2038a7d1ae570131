"""Which steps of several hosts are one step to XProf: those that lie over one another in time (step_intersection.cc)."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

I64 = NDArray[np.int64]

STEP_OF = pl.Schema({"source": pl.UInt16(), "number": pl.Int64(), "step": pl.Int64()})
"""A host's step by its own number, and the step that it counts for."""


def steps_over_hosts(spans: pl.DataFrame) -> pl.DataFrame:
    """Steps that all hosts have, schema `STEP_OF`. `spans`: source, number, begin_ps, end_ps: each step of each host.

    One host's steps keep their numbers. Of several hosts the one whose steps take the least time in all leads; each other one
    is shifted by whole steps to where its steps overlap with the leader's longest, and what all have is numbered from 0.
    """
    hosts = {source: own.sort("number") for (source,), own in spans.group_by(["source"], maintain_order=True)}
    if len(hosts) < 2:
        return spans.select("source", "number", step="number").cast(STEP_OF)
    times = {source: own.select("begin_ps", "end_ps").to_numpy().astype(np.int64) for source, own in hosts.items()}
    leader = min(hosts, key=lambda source: int(times[source][:, 1].max() - times[source][:, 0].min()))
    shifts = {source: 0 if source == leader else _shift(own, times[leader]) for source, own in times.items()}
    first = max(max(shift, 0) for shift in shifts.values())
    last = min(min(len(times[leader]), shift + len(times[source])) for source, shift in shifts.items())
    parts = [
        hosts[source].slice(first - shift, max(last - first, 0)).select("source", "number").with_row_index("step")
        for source, shift in shifts.items()
    ]
    return pl.concat(parts).select(list(STEP_OF)).cast(STEP_OF)


def _shift(own: I64, leader: I64) -> int:
    """The place among the leader's steps where the first of one's own belongs; below 0 if it came before the leader's first."""
    best, most = 0, -1
    for shift in (*range(len(leader)), *range(-1, -len(own), -1)):
        mine, theirs = own[max(-shift, 0) :], leader[max(shift, 0) :]
        count = min(len(mine), len(theirs))
        overlap = np.minimum(mine[:count, 1], theirs[:count, 1]) - np.maximum(mine[:count, 0], theirs[:count, 0])
        total = int(np.maximum(overlap, 0).sum())
        if total > most:
            best, most = shift, total
    return best
