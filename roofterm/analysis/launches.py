"""The way from a launching call to its work: delay, queues, short kernels, graph launches, work launched before the window."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.graphs import GRAPH_LAUNCH
from roofterm.analysis.steps import US
from roofterm.results import LaunchPath
from roofterm_parsers.profile import ROOT, Kind, Profile

I64 = NDArray[np.int64]

SHORT_PS = 10 * US
"""A kernel under 10 us takes about as long as its launch."""

LAUNCHES = pl.Schema(
    {
        "launch": pl.UInt32,  # slice of the call
        "device": pl.UInt16,
        "stream": pl.Int64,
        "call_start_ps": pl.Int64,
        "call_end_ps": pl.Int64,
        "first": pl.UInt32,  # the piece of its work that starts first
        "start_ps": pl.Int64,  # of that piece
        "delay_ps": pl.Int64,  # from the end of the call until it starts, 0 if it starts before the call ends; null: clock fault
        "pieces": pl.UInt32,
        "graph": pl.Boolean,
        "step": pl.UInt32,
    }
)
"""One row a call that launched work, in order of the call's start."""

QUEUE = pl.Schema(
    {
        "device": pl.UInt16,
        "stream": pl.Int64,
        "time_ps": pl.Int64,
        "length": pl.Int32,  # launched and not yet started, from this time on
        "launched": pl.Boolean,  # a call; else a start of work
    }
)
"""Queue length over time: one row a launch and one a start, in order of device, stream and time."""


def launches(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    """Calls with the first of the work that they launched: schema `LAUNCHES`. `work`: schema `work.WORK`, whole or a part.

    Work that starts before its call did is no delay but a fault of the clocks: its delay is null.
    """
    linked = work.drop_nulls("launch").sort("launch", "start_ps", "slice")
    if linked.height == 0:
        return pl.DataFrame(schema=LAUNCHES)
    calls = linked.group_by("launch", maintain_order=True).agg(
        pl.col("device", "start_ps", "step").first(),
        first=pl.col("slice").first(),
        pieces=pl.len(),
    )
    slices = profile.slices
    start = slices["start_ps"][calls["launch"]]
    graphs = profile.names["text"].str.contains(GRAPH_LAUNCH).arg_true()
    calls = calls.with_columns(
        call_start_ps=start,
        call_end_ps=start + slices["dur_ps"][calls["launch"]],
        stream=profile.tracks["stream"][slices["track"][calls["first"]]],
        graph=slices["name"][calls["launch"]].is_in(graphs.implode()),
    )
    late = pl.max_horizontal(pl.col("start_ps") - pl.col("call_end_ps"), pl.lit(0, dtype=pl.Int64))
    calls = calls.with_columns(delay_ps=pl.when(pl.col("start_ps") >= pl.col("call_start_ps")).then(late))
    return calls.select(list(LAUNCHES)).cast(LAUNCHES).sort("call_start_ps", maintain_order=True)


def queue_lengths(profile: Profile, work: pl.DataFrame, calls: pl.DataFrame | None = None) -> pl.DataFrame:
    """Length of each stream's queue over time, schema `QUEUE`: one more at a call's start, one less when its first work starts.

    `calls`: schema `LAUNCHES`, to leave some out. Of a launch and a start at the same time the launch comes first, so no
    queue is shorter than 0 unless clocks are at fault.
    """
    calls = launches(profile, work) if calls is None else calls
    count = calls.height
    change = np.repeat(np.array([1, -1], np.int32), count)
    time = np.concatenate((calls["call_start_ps"].to_numpy(), calls["start_ps"].to_numpy()))
    queue = pl.concat([calls.select("device", "stream")] * 2).select(pl.struct("device", "stream").rank("dense")).to_series().to_numpy()
    order = np.lexsort((-change, time, queue))
    fresh = np.flatnonzero(np.diff(queue[order], prepend=0))
    length = np.cumsum(change[order])
    before = np.repeat(length[fresh] - change[order][fresh], np.diff(np.append(fresh, order.size)))
    rows = calls.select("device", "stream")[order % count] if count else calls.select("device", "stream")
    return rows.with_columns(
        time_ps=pl.Series(time[order]), length=pl.Series(length - before), launched=pl.Series(change[order] > 0)
    ).select(pl.col(name).cast(kind) for name, kind in QUEUE.items())


def launch_path(profile: Profile, work: pl.DataFrame, steps: int) -> LaunchPath | None:
    """The launch path of a part of a profile in figures; None where no device worked.

    `work`: schema `work.WORK`; `steps`: how many steps the part has (0: none are known).
    """
    if work.height == 0:
        return None
    calls = launches(profile, work)
    kernels = work.filter(pl.col("kind") == int(Kind.KERNEL))
    length = (kernels["end_ps"] - kernels["start_ps"]).to_numpy()
    short = length < SHORT_PS
    replayed = work.join(calls.filter("graph").select("launch"), on="launch", how="semi")
    delay = calls["delay_ps"].drop_nulls()
    queue = queue_lengths(profile, work, calls)
    found = queue.filter("launched")["length"]
    own_calls = work["launch"].null_count() < work.height
    return LaunchPath(
        launches=calls.height,
        launches_per_step=calls.filter(pl.col("step").is_not_null()).height / steps if steps else None,
        kernels=kernels.height,
        mean_kernel_us=_us(length.mean()) if length.size else None,
        short_kernels=int(short.sum()),
        short_kernels_pct=100 * float(short.mean()) if length.size else None,
        short_time_pct=100 * float(length[short].sum() / length.sum()) if length.sum() else None,
        delay_mean_us=_us(delay.mean()),
        delay_p50_us=_us(delay.quantile(0.5, "linear")),
        delay_p99_us=_us(delay.quantile(0.99, "linear")),
        delay_max_us=_us(delay.max()),
        clock_faults=calls["delay_ps"].null_count(),
        queue_mean=_number(queue["length"].mean()),
        queue_max=int(_number(queue["length"].max()) or 0) if queue.height else None,
        found_empty_pct=100 * int((found <= 1).sum()) / found.len() if found.len() else None,
        graph_launches=int(calls["graph"].sum()),
        graph_pieces=replayed.height,
        orphans=work["launch"].null_count() if own_calls else None,
        silent_calls=_silent_calls(profile),
    )


def _silent_calls(profile: Profile) -> int:
    """Kernel launches of which the file holds no work: captured into a graph, or lost by the profiler."""
    if profile.launches.height:
        return profile.launches.height
    slices = profile.slices
    launching = profile.names["text"].str.contains(KERNEL_LAUNCH).to_numpy()
    runtime = np.flatnonzero(slices["kind"].to_numpy() == Kind.RUNTIME)
    calls = runtime[launching[slices["name"].to_numpy()[runtime]]]
    working = profile.links["launch"].drop_nulls().to_numpy()
    around = slices["parent"].to_numpy()
    outer = around[working]
    # A driver call inside a runtime call is the same launch.
    told, call = np.zeros((2, slices.height + 1), np.bool_)
    told[working] = told[outer[outer != ROOT]] = call[calls] = True
    inside = call[np.minimum(around[calls], slices.height)]
    return int((~told[calls] & ~inside).sum())


KERNEL_LAUNCH = r"^(cuda|cu|hip)(Ext|Module|ExtModule)*Launch(Cooperative)?Kernel"
"""Calls that launch one kernel: cudaLaunchKernelExC, cuLaunchKernelEx, hipExtModuleLaunchKernel and their like."""


def _us(ps: object) -> float | None:
    number = _number(ps)
    return None if number is None else number / US


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
