"""The clocks of a job's ranks: how far they disagree, told by collectives that all leave together, and mended where they do.

Files say when their zero was by the wall clock (`baseTimeNanoseconds`), and merging puts them on one axis by it. Hosts' clocks are
good to milliseconds or worse, collectives to microseconds: nobody leaves an all-reduce before the last has come, and then all
leave within the time of a message. So the ends of matched calls tell each file's offset, and how well the axis holds after it.
"""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.study import Study
from roofterm_parsers.merging import shift_sources

I64 = NDArray[np.int64]

TOGETHER = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""Kinds of collectives that end on every rank at once."""

LEAST_MEETINGS = 3
LEAST_PS = 10_000_000
"""Offsets below 10 us are as likely the network's as the clock's."""

STEADY = 4.0
"""An offset counts if it is so many times the spread of the ends that tell it."""


class Clocks(msgspec.Struct, frozen=True):
    """How well the files of a profile share an axis."""

    told_by: str
    """collectives (they moved a file), wall clock, or nothing"""
    moved_us: dict[str, float]
    """file: by how much its times were moved, where they were"""
    residual_us: float | None
    """median, over matched collectives that end together, of the latest less the earliest end; None: none was matched"""
    meetings: int
    """matched collectives that tell it"""


def aligned_study(study: Study) -> Study:
    """The study with its files' clocks aligned by matched collectives, where those show that they are not; else the study itself.

    Either way its `clocks` say how well they agree.
    """
    profile = study.given
    if len(profile.sources) < 2:
        return study
    ends = _ends(study, study.order_matched)
    offsets = source_offsets(ends, len(profile.sources))
    told = "wall clock" if profile.zero_unix_ns is not None else "nothing"
    if not offsets.any():
        study.clocks = Clocks(told, {}, *_residual(_ends(study, study.matched_calls)))
        return study
    moved = Study(shift_sources(profile, (-offsets).tolist()), study.roofs, study.captures, study.model)
    labels = [source.path for source in profile.sources]
    by = {labels[source]: -int(offset) / 1e6 for source, offset in enumerate(offsets) if offset}
    moved.clocks = Clocks("collectives", by, *_residual(_ends(moved, moved.matched_calls)))
    return moved


def source_offsets(ends: pl.DataFrame, sources: int) -> I64:
    """By how many ps each source's clock is ahead of the first one's, 0 where nothing steady tells it.

    `ends`: `match, source, end_ps` of calls that end together. Sources that meet in some group are placed one by one against
    those already placed, by the median difference of their ends.
    """
    offsets = np.zeros(sources, np.int64)
    pairs = ends.join(ends, on="match", suffix="_other").filter(pl.col("source") != pl.col("source_other"))
    if pairs.height == 0:
        return offsets
    differ = pairs.group_by("source", "source_other").agg(
        median=(pl.col("end_ps") - pl.col("end_ps_other")).median(),
        spread=((pl.col("end_ps") - pl.col("end_ps_other")).quantile(0.75) - (pl.col("end_ps") - pl.col("end_ps_other")).quantile(0.25)),
        count=pl.len(),
    )
    differ = differ.filter(pl.col("count") >= LEAST_MEETINGS).sort("source_other", "source")
    edges: dict[int, list[tuple[int, float, float]]] = {}
    for source, other, median, spread, _ in differ.iter_rows():
        edges.setdefault(int(other), []).append((int(source), median, spread))
    placed: dict[int, tuple[float, float]] = {}
    for first in range(sources):
        if first in placed:
            continue
        placed[first] = (0.0, 0.0)
        waiting = [first]
        while waiting:
            at = waiting.pop(0)
            for source, median, spread in edges.get(at, []):
                if source not in placed:
                    placed[source] = (placed[at][0] + median, max(placed[at][1], spread))
                    waiting.append(source)
    for source, (offset, spread) in placed.items():
        if abs(offset) >= LEAST_PS and abs(offset) > STEADY * spread:
            offsets[source] = round(offset)
    return offsets


def _ends(study: Study, matched: pl.DataFrame) -> pl.DataFrame:
    """Ends of those matched calls that all leave together, the first call of a source in each meeting."""
    calls = study.collective_calls.filter(pl.col("kind").is_in(TOGETHER)).select("slice", "source", "end_ps")
    met = matched.select("slice", "match").join(calls, on="slice", how="inner", maintain_order="left")
    return met.unique(["match", "source"], keep="first", maintain_order=True).select("match", "source", "end_ps")


def _residual(ends: pl.DataFrame) -> tuple[float | None, int]:
    apart = ends.group_by("match").agg((pl.col("end_ps").max() - pl.col("end_ps").min()).alias("apart"), pl.len()).filter(pl.col("len") > 1)
    median = apart["apart"].median()
    return (float(median) / 1e6 if isinstance(median, int | float) else None), apart.height
