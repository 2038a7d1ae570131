"""What was played, written as PyTorch's profiler writes a trace today."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from h100 import card
from h100.machine import COLLECTIVE_STREAM, COMPUTE_STREAM, Host, Rank, Work
from h100.step import WORLD

BASE_NS = 1790857026 * 10**9
"""`baseTimeNanoseconds`; all times in the file count from here"""

Event = dict[str, Any]


def write(path: Path, rank: Rank, events: list[Event]) -> None:
    """Write a gzipped trace; the same bytes for the same rank."""
    head = {
        "schemaVersion": 1,
        "deviceProperties": card.properties(WORLD),
        "cupti_version": 26,
        "cuda_runtime_version": 12090,
        "cuda_driver_version": 13000,
        "trace_id": f"5A17E71C{rank.number:024X}",
        "record_shapes": 1,
        "profile_memory": 1,
        "with_flops": 1,
        "host_name": "synthetic-h100",
        "synthetic": "not recorded: written by samples/make_transformer_h100.py",
        "distributedInfo": {
            "backend": "nccl",
            "rank": rank.number,
            "world_size": WORLD,
            "pg_count": 1,
            "pg_config": [
                {
                    "pg_name": "0",
                    "pg_desc": "default_pg",
                    "backend_config": "cuda:nccl",
                    "pg_size": WORLD,
                    "ranks": list(range(WORLD)),
                }
            ],
            "nccl_version": "2.27.5",
        },
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }
    lines = ["{", *(f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()), '  "traceEvents": [']
    lines.append(",\n".join(_text(event) for event in events))
    lines += ["  ],", f'  "traceName": {json.dumps(path.name.removesuffix(".gz"))}', "}", ""]
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:  # gzip.compress has another header in each Python
        packed.write("\n".join(lines).encode())


def events(rank: Rank, process: int) -> list[Event]:
    """All events of a rank, in Kineto's order: names, host, device, memory, and the window."""
    host = sorted(rank.host, key=lambda event: event.start)
    arrows = {id(forward): number for number, (forward, _) in enumerate(rank.arrows, 1)}
    arrows_in = {id(backward): number for number, (_, backward) in enumerate(rank.arrows, 1)}
    out = _names(rank, process)
    for index, event in enumerate(host):
        out.append(_host(event, process, index))
        for phase, number in (("s", arrows.get(id(event))), ("f", arrows_in.get(id(event)))):
            if number:
                out.append(_arrow(phase, "fwdbwd", number, process, event.thread, event.start))
        if event.correlation:
            out.append(_arrow("s", "ac2g", event.correlation, process, event.thread, event.start))
    for work in sorted(rank.work, key=lambda work: work.start):
        out.append(_work(work, rank.number))
        out.append(_arrow("f", "ac2g", work.correlation, rank.number, work.stream, work.start))
    out += _device_annotations(rank)
    for count, memory in enumerate(rank.memory):
        args = {
            "Total Reserved": memory.reserved,
            "Total Allocated": memory.allocated,
            "Bytes": memory.bytes,
            "Device Id": rank.number,
            "Device Type": 1,
            "Addr": memory.address,
            "Ev Idx": len(host) + count,
        }
        out.append(
            {
                "ph": "i",
                "cat": "cpu_instant_event",
                "s": "t",
                "name": "[memory]",
                "pid": process,
                "tid": memory.thread,
                "ts": memory.time,
                "args": args,
            }
        )
    span = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler"}
    out.append({**span, "ts": rank.first, "dur": rank.last - rank.first, "args": {"Op count": 0}})
    marks = (
        ("Iteration Start: PyTorch Profiler", "Traces", "Trace PyTorch Profiler", rank.first),
        ("Record Window End", "", "", rank.last),
    )
    return out + [{"ph": "i", "s": "g", "name": name, "pid": pid, "tid": tid, "ts": time} for name, pid, tid, time in marks]


def _names(rank: Rank, process: int) -> list[Event]:
    out: list[Event] = []

    def say(kind: str, pid: int | str, tid: int | str, **args: str | int) -> None:
        out.append({"ph": "M", "name": kind, "ts": rank.first, "pid": pid, "tid": tid, "args": args})

    for pid, label in ((process, "CPU"), *((number, f"GPU {number}") for number in range(WORLD))):
        say("process_name", pid, 0, name="python3")
        say("process_labels", pid, 0, labels=label)
        say("process_sort_index", pid, 0, sort_index=pid if label == "CPU" else 5_000_000 + pid)
    for thread, name in ((rank.main_thread, "python3"), (rank.autograd_thread, f"pt_autograd_{rank.number}")):
        say("thread_name", process, thread, name=f"thread {thread} ({name})")
        say("thread_sort_index", process, thread, sort_index=thread)
    for stream in (COMPUTE_STREAM, COLLECTIVE_STREAM):
        say("thread_name", rank.number, stream, name=f"stream {stream} ")
        say("thread_sort_index", rank.number, stream, sort_index=stream)
    say("process_name", "Spans", 0, name="Spans")
    say("process_name", "Traces", 0, name="Traces")
    return out


def _host(event: Host, process: int, index: int) -> Event:
    if event.correlation:
        args: dict[str, Any] = {"External id": event.external, **event.args} if event.external else dict(event.args)
    else:
        args = {"External id": event.external, "Record function id": 0, **event.args, "Ev Idx": index}
    return _slice(event.cat, event.name, process, event.thread, event.start, event.end, args)


def _work(work: Work, device: int) -> Event:
    args: dict[str, Any] = {"External id": work.launch.external} if work.launch and work.launch.external else {}
    place = {"device": device, "context": 1, "stream": work.stream, "correlation": work.correlation}
    facts = dict(work.args)
    if work.cat == "kernel":
        grid, block, registers, shared = (facts.pop(key) for key in ("grid", "block", "registers", "shared"))
        blocks, warps, occupancy = card.occupancy(grid, block, registers, shared)
        args |= {"queued": 0, **place, "registers per thread": registers, "shared memory": shared}
        args |= {"blocks per SM": round(blocks, 6), "warps per SM": round(warps, 6), "grid": list(grid), "block": list(block)}
        args |= {"est. achieved occupancy %": occupancy, **facts}
    else:
        args |= {**place, "bytes": facts["bytes"], "memory bandwidth (GB/s)": facts["bytes"] / (work.end - work.start)}
    return _slice(work.cat, work.name, device, work.stream, work.start, work.end, args)


def _device_annotations(rank: Rank) -> list[Event]:
    """Each annotation again on each stream, around the work that was launched under it: from 1 ns before the first."""
    spans: dict[tuple[int, int], tuple[Host, int, int]] = {}
    for work in rank.work:
        for annotation in work.annotations:
            key = (annotation.external, work.stream)
            _, start, end = spans.get(key, (annotation, work.start - 1, work.end))
            spans[key] = (annotation, min(start, work.start - 1), max(end, work.end))
    return [
        _slice("gpu_user_annotation", annotation.name, rank.number, stream, start, end, {"External id": annotation.external})
        for (_, stream), (annotation, start, end) in spans.items()
    ]


def _slice(cat: str, name: str, pid: int, tid: int, start: int, end: int, args: dict[str, Any]) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": end - start, "args": args}


def _arrow(phase: str, kind: str, number: int, pid: int, tid: int, time: int) -> Event:
    event: Event = {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": time, "cat": kind, "name": kind}
    return {**event, "bp": "e"} if phase == "f" else event


def _text(event: Event) -> str:
    """Three or four lines an event; times in microseconds with three decimals, so that no nanosecond is lost."""
    parts = [f'"{key}": {json.dumps(event[key])}' for key in ("ph", "id", "cat", "s", "name", "pid", "tid", "bp") if key in event]
    times = [f'"{key}": {event[key] // 1000}.{event[key] % 1000:03d}' for key in ("ts", "dur") if key in event]
    lines = ["    " + ", ".join(parts), "    " + ", ".join(times)]
    if "args" in event:
        lines.append('    "args": ' + json.dumps(event["args"]))
    return "  {\n" + ",\n".join(lines) + "\n  }"


def count(found: list[Event]) -> tuple[int, int]:
    """(slices, threads that hold one)."""
    places = Counter((event["pid"], event["tid"]) for event in found if event["ph"] == "X")
    return sum(places.values()), len(places)
