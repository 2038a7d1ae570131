"""The facts of a whole file (`summary` of the report): one value each, for the whole input."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.intervals import covered
from roofterm.analysis.memory import Memory
from roofterm.analysis.steps import US, DeviceLine, exposed_communication
from roofterm.analysis.work import WorkClass
from roofterm.results import StepRow, Summary
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import Kind, Profile, TrackKind

SYNC_CALL = r"^(cuda|hip|cu)\w*Synchronize"


def summarise(
    profile: Profile,
    work: pl.DataFrame,
    lines: dict[int, DeviceLine],
    self_ps: NDArray[np.int64],
    steps: list[StepRow],
    flops_total: float | None,
    memory: Memory | None,
) -> Summary:
    """Facts of `profile`; `steps` are its step rows, `work` its device work (schema `work.WORK`), `lines` that of each device,
    `memory` its allocators; None: nobody asked."""
    kernels = work.filter(pl.col("kind") == Kind.KERNEL)
    copies = work.filter(pl.col("kind") != Kind.KERNEL)
    span = _span(profile)
    busy_ps = sum(line.busy.length for line in lines.values())
    compute_ps = sum(line.compute.length for line in lines.values())
    window = span * len(lines)
    communication = kernels.filter(pl.col("work_class") == int(WorkClass.COMMUNICATION))
    ids, sources = (profile.devices[column][kernels["device"]] for column in ("id", "source"))
    host_steps = profile.steps
    return Summary(
        slices=profile.slices.height,
        kernels=kernels.height,
        kernel_us=int(kernels["own_ps"].sum()) / US,
        memcpy_us=int(copies["own_ps"].sum()) / US,
        gpu_busy_us=busy_ps / US,
        gpu_busy_pct=100 * busy_ps / window if window else None,
        gpu_idle_in_step_us=_idle_in_steps(profile, lines),
        comm_us=int(communication["own_ps"].sum()) / US,
        exposed_comm_us=sum(exposed_communication(line) for line in lines.values()) / US,
        steps=host_steps["number"].n_unique(),
        step_us=_longest(host_steps),
        step_names=host_steps.unique("number", keep="first").sort("number")["name"].to_list(),
        devices=len(lines),
        device_names=_names(profile, lines),
        kernel_us_by_device=_sums(ids, kernels["own_ps"]),
        ranks=_distinct([s.rank for s in profile.sources]),
        hosts=_distinct([s.host for s in profile.sources]),
        runs=_runs(profile),
        kernel_us_by_rank=_by_rank(profile, kernels, sources),
        unlinked_kernels=kernels["launch"].null_count(),
        total_self_us=int(self_ps.sum()) / US,
        self_us_min=_smallest_self(profile, self_ps),
        sync_us=_sync(profile) / US,
        span_us=span / US,
        flops_total=flops_total,
        distinct_kernels=profile.slices["name"][kernels["slice"]].n_unique(),
        threads=_threads(profile),
        process_names=sorted(set(profile.tracks["process_name"].drop_nulls().to_list()) - {""}),
        counter_series=profile.counters["series"].unique().sort().to_list(),
        peak_mem_bytes=None if memory is None else _peak_memory(memory),
        min_launch_delay_us=_least_delay(profile, work),
        cpu_top=_top_op(profile),
        device_step_us=_device_steps(steps),
        compute_busy_pct=100 * compute_ps / window if window else None,
        mfu_pct=None,
        mfu_palm_pct=None,
        hfu_pct=None,
        mbu_pct=None,
        self_cpu_us=None,
        self_device_us=int(work["own_ps"].sum()) / US if work.height else None,
    )


def _span(profile: Profile) -> int:
    """Last end less first start of what is shown, ps: the profiler's own rows do not stretch it."""
    start, dur, kind = (profile.slices[name].to_numpy() for name in ("start_ps", "dur_ps", "kind"))
    shown = kind != Kind.OVERHEAD
    if not shown.any():
        shown[:] = True
    if start.size == 0:
        times = [frame["time_ps"] for frame in (profile.counters, profile.instants, profile.memory) if frame.height]
        return max((int(t.max()) for t in times), default=0) - min((int(t.min()) for t in times), default=0)  # type: ignore[arg-type]
    return int((start + dur)[shown].max()) - int(start[shown].min())


def _idle_in_steps(profile: Profile, lines: dict[int, DeviceLine]) -> float | None:
    """Length of the steps (as annotated) less the union of device work inside them, over devices."""
    if profile.steps.height == 0 or not lines:
        return None
    idle = 0
    for device, line in lines.items():
        steps = profile.steps.filter(
            (pl.col("source") == profile.devices["source"][device]) & (pl.col("device").is_null() | (pl.col("device") == device))
        )
        start = steps["start_ps"].to_numpy()
        end = start + steps["dur_ps"].to_numpy()
        idle += int((end - start).sum() - covered(line.busy, start, end).sum())
    return idle / US


def _longest(annotated: pl.DataFrame) -> list[float]:
    """The longest annotation (us) of each step number, in order: a step takes as long as its slowest rank."""
    return [ps / US for ps in annotated.group_by("number").agg(pl.col("dur_ps").max()).sort("number")["dur_ps"]]


def _device_steps(steps: list[StepRow]) -> list[float]:
    longest: dict[str, float] = {}
    for step in steps:
        longest[step.name] = max(longest.get(step.name, 0.0), step.dur_us)
    return list(longest.values())


def _names(profile: Profile, lines: dict[int, DeviceLine]) -> list[str]:
    worked = profile.devices[sorted(lines)] if lines else profile.devices[:0]
    names = worked["name"].drop_nulls().to_list()
    return list(dict.fromkeys(names))


def _sums(key: pl.Series, value: pl.Series) -> dict[str, float]:
    frame = pl.DataFrame({"key": key, "value": value}).group_by("key").agg(pl.col("value").sum()).cast({"key": pl.String}).sort("key")
    return {str(k): v / US for k, v in frame.iter_rows()}


def _distinct(values: list[int | None] | list[str | None]) -> int | None:
    known = {v for v in values if v is not None}
    return len(known) or None


def _runs(profile: Profile) -> int | None:
    """Runs of the folder that was named, those that were not opened too."""
    names = {str(name) for source in profile.sources for name in source.metadata.get("runs", [])}
    return len(names) or _distinct([source.run for source in profile.sources])


def _by_rank(profile: Profile, kernels: pl.DataFrame, source: pl.Series) -> dict[str, float] | None:
    ranks = pl.Series([s.rank for s in profile.sources], dtype=pl.Int64)
    if ranks.null_count() == len(ranks):
        return None
    rank = ranks[source]
    return _sums(rank.drop_nulls(), kernels["own_ps"].filter(rank.is_not_null()))


def _threads(profile: Profile) -> int:
    """Distinct pairs of process and thread that hold a slice."""
    used = profile.tracks[occurring(profile.slices["track"].to_numpy())]
    return used.select("source", "process", "thread").n_unique()


def _smallest_self(profile: Profile, self_ps: NDArray[np.int64]) -> float | None:
    """The smallest self time by name, us."""
    if self_ps.size == 0:
        return None
    text = profile.names["text"].rank("dense")[profile.slices["name"]]  # one text may stand in several categories
    total, calls = _totals(text.to_numpy(), self_ps)
    return int(total[calls > 0].min()) / US


def _sync(profile: Profile) -> int:
    """Time of the host in calls that wait for the device, ps."""
    waits = profile.names["text"].str.contains(SYNC_CALL).to_numpy()
    if not waits.any():
        return 0
    kind = profile.slices["kind"].to_numpy()
    called = ((kind == Kind.SYNC) | (kind == Kind.RUNTIME)) & waits[profile.slices["name"].to_numpy()]
    return int(profile.slices["dur_ps"].to_numpy()[called].sum())


def _peak_memory(memory: Memory) -> int | None:
    """Most in use by any allocator of a device (or of the host, if no device has memory events), bytes."""
    pools = memory.pools["on_device"].arg_true()
    on_device = memory.events.filter(pl.col("pool").is_in(pools.implode()))
    peak = (on_device if on_device.height else memory.events)["used_bytes"].max()
    return None if peak is None else int(peak)  # type: ignore[arg-type]


def _least_delay(profile: Profile, work: pl.DataFrame) -> float | None:
    """The shortest time from the end of a launching call to the start of its work; a clock that says less than 0 gives 0."""
    linked = work.drop_nulls("launch")
    if linked.height == 0:
        return None
    start, dur = (profile.slices[column][linked["launch"]] for column in ("start_ps", "dur_ps"))
    delay = linked["start_ps"] - start - dur
    return max(int(delay.min()), 0) / US  # type: ignore[arg-type]


def _top_op(profile: Profile) -> str | None:
    """The host op with the most total time."""
    host = (profile.tracks["kind"] == int(TrackKind.HOST)).to_numpy()
    track, kind, name = (profile.slices[column].to_numpy() for column in ("track", "kind", "name"))
    for kinds in ((Kind.OP,), (Kind.ANNOTATION, Kind.RUNTIME, Kind.SYNC, Kind.OTHER)):
        ops = np.flatnonzero(np.isin(kind, np.array(kinds, np.uint8)))
        ops = ops[host[track[ops]]]
        if ops.size:
            total, calls = _totals(name[ops], profile.slices["dur_ps"].to_numpy()[ops])
            return str(profile.names["text"][int(np.where(calls > 0, total, -1).argmax())])
    return None


def _totals(key: NDArray[np.unsignedinteger[Any]], value: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each key up to the largest: the sum of its values, and how many there are."""
    calls = np.bincount(key)
    total = np.zeros(calls.size, np.int64)
    np.add.at(total, key, value)  # exact; bincount's own sums go through float
    return total, calls
