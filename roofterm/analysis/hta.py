"""HolisticTraceAnalysis' figures by its own rules (0.5.0, times not rounded): temporal breakdown, idle causes, overlap.

They stand beside roofterm's own under its name. What differs: with two steps or more the last one is left out, and with it all
work whose launch lies in it or is not in the file; waits of a stream count as work; kernels are classed by how their names
begin, so that custom all-reduce, MSCCL, NVSHMEM and DeepEP are computation; streams idle one by one, whatever the others do.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.intervals import Intervals, both, union
from roofterm_parsers.profile import WORK_KINDS, Profile

EVENTS = pl.Schema(
    {
        "slice": pl.UInt32(),
        "source": pl.UInt16(),
        "stream": pl.Int64(),
        "start_ps": pl.Int64(),
        "end_ps": pl.Int64(),
        "launched_ps": pl.Int64(),  # start of the launching call
        "kernel_type": pl.Enum(("computation", "communication", "memory", "other")),
        "is_work": pl.Boolean(),  # false: a wait of a stream
    }
)
"""Events of the device's streams that HTA's analyses see, in order of slice."""

BREAKDOWN = pl.Schema({"source": pl.UInt16, "idle_ps": pl.Int64, "compute_ps": pl.Int64, "non_compute_ps": pl.Int64, "kernel_ps": pl.Int64})

IDLE = pl.Schema({"source": pl.UInt16, "stream": pl.Int64, "idle_category": pl.String, "idle_ps": pl.Int64, "gaps": pl.UInt32})

CONSECUTIVE_KERNEL_DELAY_PS = 30_000_000
"""HTA's default of 30: its documentation says nanoseconds, its code compares it with microseconds."""

_COMMUNICATION = r"^nccl.*Kernel"
_MEMORY = r"^Memcpy|^Memset|^dma"
_NO_COMPUTATION = r"^nccl.*Kernel|Memcpy|^Memset|^.*Sync"


def events(profile: Profile) -> pl.DataFrame:
    """Kernels, copies, memsets and stream waits as HTA keeps them: frame of schema `EVENTS`."""
    slices = profile.slices
    found = pl.concat([_work(profile), _waits(profile)])
    if found.height == 0:
        return pl.DataFrame(schema=EVENTS)
    start = slices["start_ps"][found["slice"]]
    found = found.with_columns(
        source=profile.tracks["source"][slices["track"][found["slice"]]],
        start_ps=start,
        end_ps=start + slices["dur_ps"][found["slice"]],
        launched_ps=slices["start_ps"][found["launch"]],
        kernel_type=_types(profile.names["text"])[slices["name"][found["slice"]]],
    )
    steps = profile.names["text"].str.contains("ProfilerStep")
    if profile.names["text"].filter(steps).n_unique() > 1:
        marks = slices.filter(steps[slices["name"]])
        source = profile.tracks["source"][marks["track"]]
        last = marks.select("start_ps", source=source).group_by("source").agg(last_ps=pl.col("start_ps").max())
        # Projections of the last step on the device count as its start too: work that was launched until then stays.
        found = found.join(last, on="source", how="left").filter(pl.col("launched_ps") < pl.col("last_ps"))
    return found.select(list(EVENTS)).cast(EVENTS).sort("slice")


def temporal_breakdown(found: pl.DataFrame) -> pl.DataFrame:
    """Of `events`, by source, the time from the first event's start to the last one's end by what it went to: schema `BREAKDOWN`.

    Idle is what no event covers, compute the union of computation kernels, non-compute the rest (get_temporal_breakdown).
    """
    rows = []
    for key, group in found.group_by("source", maintain_order=True):
        busy, compute = _union(group), _of_type(group, "computation").length
        kernel = int(busy.end[-1] - busy.start[0]) if busy.start.size else 0
        idle = kernel - busy.length
        rows.append(
            {"source": key[0], "idle_ps": idle, "compute_ps": compute, "non_compute_ps": kernel - compute - idle, "kernel_ps": kernel}
        )
    return pl.DataFrame(rows, schema=BREAKDOWN).sort("source")


def comm_comp_overlap(found: pl.DataFrame) -> pl.DataFrame:
    """Of `events` the share of each source's communication under which it computes, null without any: columns source, overlap_pct."""
    rows = []
    for key, group in found.group_by("source", maintain_order=True):
        communication, compute = _of_type(group, "communication"), _of_type(group, "computation")
        share = 100 * both(communication, compute).length / communication.length if communication.length else None
        rows.append({"source": key[0], "overlap_pct": share})
    return pl.DataFrame(rows, schema={"source": pl.UInt16, "overlap_pct": pl.Float64}).sort("source")


def idle_breakdown(profile: Profile, found: pl.DataFrame, consecutive_kernel_delay_ps: int = CONSECUTIVE_KERNEL_DELAY_PS) -> pl.DataFrame:
    """Of the `events` of a profile: idle time of each stream by cause: frame of schema `IDLE` (get_idle_time_breakdown).

    The gap before a piece of work is host_wait if its launching call began after the work before had ended; else kernel_wait
    if it is shorter than the delay; else other. Work that overlaps the one before has a gap below 0. A kernel without a launch
    is taken as launched by the file's first event: HTA keeps 0 for "none", and joins it with the event of that number.
    """
    work = found.filter("is_work").join(_first_events(profile), on="source", how="left")
    previous = pl.col("end_ps").shift(1).over("source", "stream", order_by="start_ps")
    work = work.sort("start_ps", maintain_order=True).with_columns(
        previous_ps=previous, launched_ps=pl.coalesce("launched_ps", "first_ps"), gap_ps=pl.col("start_ps") - previous
    )
    cause = (
        pl.when((pl.col("launched_ps") > pl.col("previous_ps")).fill_null(False))
        .then(pl.lit("host_wait"))
        .when((pl.col("gap_ps") < consecutive_kernel_delay_ps).fill_null(False))
        .then(pl.lit("kernel_wait"))
        .otherwise(pl.lit("other"))
    )
    table = work.group_by("source", "stream", cause.alias("idle_category")).agg(
        idle_ps=pl.col("gap_ps").sum(), gaps=pl.col("gap_ps").count().cast(pl.UInt32)
    )
    return table.select(list(IDLE)).sort("source", "stream", "idle_category")


def _work(profile: Profile) -> pl.DataFrame:
    rows = np.flatnonzero(np.isin(profile.slices["kind"].to_numpy(), np.array(WORK_KINDS, np.uint8)))
    work = pl.DataFrame({"slice": pl.Series(rows, dtype=pl.UInt32)})
    work = work.join(profile.links.select(slice="work", launch="launch"), on="slice", how="left", maintain_order="left")
    streams = pl.concat([profile.kernels.select("slice", "stream"), profile.copies.select("slice", "stream")]).unique("slice")
    work = work.join(streams, on="slice", how="left", maintain_order="left")
    return work.select("slice", "launch", "stream", is_work=pl.lit(True))


def _waits(profile: Profile) -> pl.DataFrame:
    """Waits on a stream, with the call that asked for each."""
    calls = profile.runtime.select(launch="slice", correlation="correlation").unique("correlation", keep="last")
    waits = profile.waits.filter(pl.col("stream") >= 0).join(calls, on="correlation", how="left", maintain_order="left")
    return waits.select("slice", pl.col("launch").cast(pl.UInt32), "stream", is_work=pl.lit(False))


def _types(name: pl.Series) -> pl.Series:
    """Type of kernels of each name, first come first served."""
    text = pl.lit(name)
    return pl.select(
        pl.when(text.str.contains(_COMMUNICATION))
        .then(pl.lit("communication"))
        .when(text.str.contains(_MEMORY))
        .then(pl.lit("memory"))
        .when(~text.str.contains(_NO_COMPUTATION))
        .then(pl.lit("computation"))
        .otherwise(pl.lit("other"))
    ).to_series()


def _first_events(profile: Profile) -> pl.DataFrame:
    """Start of the first event of each source's file."""
    slices = profile.slices.select("start_ps", "offset", source=profile.tracks["source"][profile.slices["track"]])
    return slices.sort("offset", maintain_order=True).group_by("source").agg(first_ps=pl.col("start_ps").first())


def _of_type(group: pl.DataFrame, kernel_type: str) -> Intervals:
    return _union(group.filter(pl.col("kernel_type") == kernel_type))


def _union(frame: pl.DataFrame) -> Intervals:
    return union(frame["start_ps"].to_numpy(), frame["end_ps"].to_numpy())
