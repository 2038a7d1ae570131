"""What a profile can be limited to, one field of the filter at a time, with how much there is of each value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import polars as pl

from roofterm.analysis.row_filter import MEMORY_LEVELS, NETWORK_LINKS
from roofterm.analysis.scope import STEADY

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

LIMITERS = ("compute", "memory", "latency", "network", "unknown")
"""Values of `bound:` that a person chooses among; `memory` stands for every level of it."""


class LimitValue(msgspec.Struct, frozen=True):
    """A value of a field; `time_us` is the sum of the lengths of the work that has it."""

    value: str
    label: str
    pieces: int
    time_us: float


def category_values(study: Study) -> list[LimitValue]:
    """Categories of device work, most time first."""
    rows = study.table("category").select("name", "calls", "total_us").iter_rows()
    return [LimitValue(name, name, calls, total) for name, calls, total in rows]


def limiter_values(study: Study) -> list[LimitValue]:
    """What ops of the steady steps are held back by; `pieces` counts ops."""
    rows = study.roofline(STEADY).ops
    found = []
    for limiter in LIMITERS:
        mine = [row for row in rows if limiter_of(row.limiter) == limiter]
        found.append(LimitValue(limiter, limiter, len(mine), sum(row.time_us or 0.0 for row in mine)))
    return [value for value in found if value.pieces]


def limiter_of(limiter: str | None) -> str:
    """The value of `bound:` that a row's limiter falls under."""
    if limiter is None:
        return "unknown"
    return "memory" if limiter in MEMORY_LEVELS else "network" if limiter in NETWORK_LINKS else limiter


def stream_values(study: Study) -> list[LimitValue]:
    """Streams of devices, in order of number, all devices together."""
    profile = study.profile
    streams = profile.tracks["stream"][profile.slices["track"][study.work["slice"]]]
    work = study.work.select("own_ps", stream=streams, device=profile.devices["id"][study.work["device"]])
    rows = (
        work.drop_nulls("stream")
        .group_by("stream")
        .agg(pieces=pl.len(), time=pl.col("own_ps").sum(), devices=pl.col("device").unique().sort())
        .sort("stream")
    )
    return [
        LimitValue(
            str(row["stream"]), f"stream {row['stream']} of device {', '.join(map(str, row['devices']))}", row["pieces"], row["time"] / 1e6
        )
        for row in rows.iter_rows(named=True)
    ]


def rank_values(study: Study) -> list[LimitValue]:
    """Ranks of the files, with their device work; one rank alone is no choice."""
    profile = study.profile
    ranks = pl.Series([source.rank for source in profile.sources], dtype=pl.Int64)
    if ranks.n_unique() < 2:
        return []
    mine = ranks[profile.tracks["source"][profile.slices["track"][study.work["slice"]]]]
    rows = (
        study.work.select("own_ps", rank=mine)
        .drop_nulls("rank")
        .group_by("rank")
        .agg(pieces=pl.len(), time=pl.col("own_ps").sum())
        .sort("rank")
    )
    return [LimitValue(str(rank), f"rank {rank}", pieces, time / 1e6) for rank, pieces, time in rows.iter_rows()]


def phase_values(study: Study) -> list[LimitValue]:
    """Phases of device work, most time first; none where nothing tells them."""
    rows = (
        study.work.select("own_ps", phase=study.phase_of_work())
        .drop_nulls("phase")
        .group_by("phase")
        .agg(pieces=pl.len(), time=pl.col("own_ps").sum())
        .sort("time", descending=True)
    )
    return [LimitValue(phase, phase, pieces, time / 1e6) for phase, pieces, time in rows.iter_rows()]
