"""The figures that a reader of a written trace must find, added up from what was played and not from the trace.

Nanoseconds until the last line; the definitions are those of roofterm's glossary, computed here a second time and slowly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from h100.machine import Host, Rank, Work
from h100.tensors import Tensor

Spans = list[tuple[int, int]]


def summary(rank: Rank, slices: int, threads: int) -> dict[str, Any]:
    """Facts of the whole file, named as in the report."""
    kernels = [work for work in rank.work if work.cat == "kernel"]
    collectives = [work for work in kernels if work.role == "collective"]
    busy = union(rank.work)
    return {
        "slices": slices,
        "threads": threads,
        "kernels": len(kernels),
        "distinct_kernels": len({work.name for work in kernels}),
        "kernel_us": us(total(kernels)),
        "memcpy_us": us(total(work for work in rank.work if work.cat != "kernel")),
        "gpu_busy_us": us(length(busy)),
        "gpu_idle_in_step_us": us(sum(step.end - step.start - length(clipped(busy, step.start, step.end)) for step in rank.windows)),
        "comm_us": us(total(collectives)),
        "exposed_comm_us": us(length(without(union(collectives), union(work for work in kernels if work.role != "collective")))),
        "steps": len(rank.windows),
        "step_names": [step.name for step in rank.windows],
        "step_us": [us(step.end - step.start) for step in rank.windows],
        "device_step_us": [us(end - start) for start, end in step_windows(rank)],
        "devices": 1,
        "unlinked_kernels": sum(work.launch is None for work in kernels),
        "sync_us": us(sum(event.end - event.start for event in rank.host if event.name.endswith("Synchronize"))),
        "peak_mem_bytes": max(memory.allocated for memory in rank.memory),
    }


def steps(rank: Rank) -> list[dict[str, Any]]:
    """The breakdown of each step; the four parts add up to its length."""
    compute = union(work for work in rank.work if work.cat == "kernel" and work.role != "collective")
    collectives = union(work for work in rank.work if work.role == "collective")
    copies = union(work for work in rank.work if work.cat != "kernel")
    rows = []
    for window, (start, end) in zip(rank.windows, step_windows(rank), strict=True):
        inside = [clipped(spans, start, end) for spans in (compute, collectives, copies)]
        exposed_comm = without(inside[1], inside[0])
        exposed_copy = without(without(inside[2], inside[0]), inside[1])
        busy = union_of([*inside[0], *inside[1], *inside[2]])
        gaps = without([(start, end)], busy)
        idle = [parts for gap in gaps if (parts := host_and_kernel_part(rank.work, gap))]
        rows.append(
            {
                "name": window.name,
                "dur_us": us(end - start),
                "host_dur_us": us(window.end - window.start),
                "compute_us": us(length(inside[0])),
                "comm_us": us(length(inside[1])),
                "exposed_comm_us": us(length(exposed_comm)),
                "copy_us": us(length(inside[2])),
                "exposed_copy_us": us(length(exposed_copy)),
                "idle_us": us(length(gaps)),
                "host_wait_us": us(sum(host for host, _ in idle)),
                "kernel_gap_us": us(sum(kernel for _, kernel in idle)),
                "launched_device_us": us(length(union(launched_in(rank.work, window)))),
            }
        )
    return rows


def step_windows(rank: Rank) -> Spans:
    """From the later of host start and the previous end, to the later of host end and the end of what the step launched."""
    previous = max((work.end for work in rank.work if work.launch is None), default=rank.first)
    windows = []
    for window in rank.windows:
        end = max([window.end, *(work.end for work in launched_in(rank.work, window))])
        windows.append((max(previous, window.start), end))
        previous = end
    return windows


def host_and_kernel_part(work: list[Work], gap: tuple[int, int]) -> tuple[int, int] | None:
    """An idle gap, cut where the launch of the next work had ended; None if nothing follows whose launch is known."""
    start, end = gap
    following = min((item for item in work if item.start >= end), key=lambda item: item.start, default=None)
    if following is None or following.launch is None:
        return None
    launched = min(max(following.launch.end, start), end)
    return launched - start, end - launched


def operators(rank: Rank) -> dict[str, dict[str, float]]:
    """Calls of the ops that compute, FLOPs as `with_flops` counts them (mm, mul, add), and device time launched under each.

    An op inside another of the same name would be merged by the profiler; the model has none.
    """
    wanted = (
        "aten::mm",
        "aten::mul",
        "aten::add",
        "aten::_flash_attention_forward",
        "aten::_flash_attention_backward",
        "aten::_fused_adamw_",
    )
    rows: dict[str, dict[str, float]] = {name: {"calls": 0, "flops": 0, "device_us": 0} for name in wanted}
    device: dict[str, int] = defaultdict(int)
    for event in rank.host:
        if event.name in rows:
            rows[event.name]["calls"] += 1
            rows[event.name]["flops"] += profiler_flops(event)
    for work in rank.work:
        for event in work.ops:
            device[event.name] += work.end - work.start
    for name, row in rows.items():
        row["device_us"] = us(device[name])
    return rows


def products(rank: Rank) -> list[dict[str, Any]]:
    """One row for each shape of `aten::mm`: FLOPs 2 m n k and bytes 2 (m k + k n + m n) of all calls, bf16, and kernel time."""
    rows: dict[tuple[int, int, int], dict[str, Any]] = {}
    for work in rank.work:
        if not (work.ops and work.ops[-1].name == "aten::mm"):
            continue
        (m, k), (_, n) = work.ops[-1].args["Input Dims"]
        row = rows.setdefault((m, k, n), {"dims": [[m, k], [k, n]], "calls": 0, "flops": 0, "bytes": 0, "kernel_us": 0})
        row["calls"] += 1
        row["flops"] += 2 * m * n * k
        row["bytes"] += 2 * (m * k + k * n + m * n)
        row["kernel_us"] += work.end - work.start
    return [{**row, "kernel_us": us(row["kernel_us"])} for _, row in sorted(rows.items())]


def profiler_flops(event: Host) -> int:
    dims = event.args["Input Dims"]
    if event.name == "aten::mm":
        return 2 * dims[0][0] * dims[0][1] * dims[1][1]
    return Tensor(tuple(dims[0])).numel if event.name in ("aten::mul", "aten::add") else 0


def work_by_role(rank: Rank) -> dict[str, dict[str, float]]:
    """Executed FLOPs and time of the kernels that do matrix work, those without a launch apart."""
    rows: dict[str, dict[str, float]] = {}
    for role in ("gemm", "attention forward", "attention backward"):
        kernels = [work for work in rank.work if work.role == role and work.launch is not None]
        rows[role] = {"calls": len(kernels), "flops": sum(work.flops for work in kernels), "kernel_us": us(total(kernels))}
    return rows


def launched_in(work: Iterable[Work], window: Host) -> list[Work]:
    return [item for item in work if item.launch and window.start <= item.launch.start and item.launch.end <= window.end]


# Intervals


def union(work: Iterable[Work]) -> Spans:
    return union_of([(item.start, item.end) for item in work])


def union_of(spans: Spans) -> Spans:
    out: Spans = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def without(spans: Spans, others: Spans) -> Spans:
    """What of `spans` lies outside `others`; both merged and in order."""
    out: Spans = []
    for span_start, span_end in spans:
        at = span_start
        for start, end in others:
            if end <= at or start >= span_end:
                continue
            if start > at:
                out.append((at, start))
            at = max(at, end)
        if at < span_end:
            out.append((at, span_end))
    return out


def clipped(spans: Spans, start: int, end: int) -> Spans:
    return [(max(a, start), min(b, end)) for a, b in spans if b > start and a < end]


def length(spans: Spans) -> int:
    return sum(end - start for start, end in spans)


def total(work: Iterable[Work]) -> int:
    return sum(item.end - item.start for item in work)


def us(nanoseconds: int) -> float:
    return nanoseconds / 1000
