"""A second reader of Kineto traces for the tests: slow, in plain Python, written from the definitions alone.

It shares no code with roofterm: one list of events, integers of picoseconds, sets of unit intervals by sweeping.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

KERNEL = {"kernel"}
COPY = {"gpu_memcpy", "memcpy"}
SET = {"gpu_memset", "memset"}
RUNTIME = {"cuda_runtime", "cuda_driver", "runtime", "hip_runtime", "xpu_runtime", "mtia_runtime"}
ANNOTATION = {"user_annotation", "operator"}
SYNC = re.compile(r"^(cuda|hip|cu)\w*Synchronize")
STEP = re.compile(r"^ProfilerStep#(\d+)$")
COLLECTIVE = re.compile(r"nccl|msccl|cross_device_reduce", re.IGNORECASE)


@dataclass
class Piece:
    name: str
    start: int
    end: int
    device: Any
    cat: str
    correlation: Any = None
    launch: tuple[int, int] | None = None
    step: int | None = None


@dataclass
class Facts:
    """What `summary` says of a file, as this reader sees it; times in ps."""

    slices: int = 0
    pieces: list[Piece] = field(default_factory=list)
    steps: dict[int, tuple[int, int]] = field(default_factory=dict)
    sync: int = 0
    threads: set[tuple[str, str]] = field(default_factory=set)
    memory: dict[bool, int] = field(default_factory=dict)
    """most allocated, by whether it is a device's"""
    self_by_name: dict[str, int] = field(default_factory=dict)

    def of(self, cats: set[str]) -> list[Piece]:
        return [p for p in self.pieces if p.cat in cats]

    @property
    def kernels(self) -> list[Piece]:
        return self.of(KERNEL)

    def busy(self) -> int:
        by_device: dict[Any, list[tuple[int, int]]] = defaultdict(list)
        for piece in self.pieces:
            by_device[piece.device].append((piece.start, piece.end))
        return sum(length(spans) for spans in by_device.values())

    def collectives(self) -> list[Piece]:
        return [p for p in self.kernels if COLLECTIVE.search(p.name)]

    def exposed(self) -> int:
        """Of the union of collectives on each device, what no other kernel covers."""
        total = 0
        for device in {p.device for p in self.kernels}:
            here = [p for p in self.kernels if p.device == device]
            others = [(p.start, p.end) for p in here if not COLLECTIVE.search(p.name)]
            total += length([(p.start, p.end) for p in here]) - length(others)
        return total

    def idle_in_steps(self) -> int:
        """Length of the steps on the host less the union of each device's work inside them, over devices."""
        idle = 0
        for device in {p.device for p in self.pieces}:
            for start, end in self.steps.values():
                inside = [(max(p.start, start), min(p.end, end)) for p in self.pieces if p.device == device]
                idle += end - start - length([(a, b) for a, b in inside if a < b])
        return idle

    def least_delay(self) -> int | None:
        """From the end of a launching call to the start of its work, at least 0."""
        delays = [p.start - p.launch[1] for p in self.pieces if p.launch is not None]
        return max(min(delays), 0) if delays else None

    def device_steps(self) -> list[tuple[int, int]]:
        """Windows by the rule of torch-tb-profiler, in order of number."""
        windows = []
        order = sorted(self.steps.values())
        first = [p.start for p in self.pieces if p.step == 0]
        previous = order[0][0] if order else 0
        if first:
            early = [p.end for p in self.pieces if p.step is None and p.end < min(first)]
            previous = max([previous, *early])
        for at, (start, end) in enumerate(order):
            last = max((p.end for p in self.pieces if p.step == at), default=end)
            windows.append((max(start, previous), max(end, last)))
            previous = windows[-1][1]
        return windows


def exact_ps(value: Any) -> int | None:
    """Microseconds as written, in whole picoseconds."""
    if value is None or isinstance(value, bool):
        return None
    whole, _, part = str(value).partition(".")
    if whole.isdigit() and len(part) <= 6 and (not part or part.isdigit()):
        return int(whole) * 1_000_000 + int(part.ljust(6, "0"))
    return int(Decimal(str(value)) * 1_000_000)


def length(spans: list[tuple[int, int]]) -> int:
    """Length of the union: sweep in order of start."""
    total, reach = 0, None
    for start, end in sorted(spans):
        if reach is None or start > reach:
            total += end - start
            reach = end
        elif end > reach:
            total += end - reach
            reach = end
    return total


Slice = tuple[int, int, str]


def self_times(slices: list[Slice]) -> dict[str, int]:
    """Self time by name on one thread: longer first where two start together; what sticks out of its parent ends with it."""
    found: dict[str, int] = defaultdict(int)
    stack: list[tuple[int, str]] = []
    for start, end, name in sorted(slices, key=lambda one: (one[0], -one[1])):
        while stack and stack[-1][0] <= start:
            stack.pop()
        if stack:
            end = min(end, stack[-1][0])
            found[stack[-1][1]] -= end - start
        found[name] += end - start
        stack.append((end, name))
    return found


def read(path: Path) -> Facts:
    """The facts of one Kineto trace, plain or gzip."""
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    document = json.loads(raw.decode("utf-8", "replace"), parse_float=str, parse_constant=str)
    events = document if isinstance(document, list) else document["traceEvents"]
    facts = Facts()
    calls: dict[Any, tuple[int, int]] = {}
    by_thread: dict[tuple[str, str, bool], list[Slice]] = defaultdict(list)
    for event in events:
        if isinstance(event, dict) and event.get("name") == "[memory]" and "Total Allocated" in event["args"]:
            on_device = event["args"]["Device Type"] != 0
            facts.memory[on_device] = max(facts.memory.get(on_device, 0), int(event["args"]["Total Allocated"]))
        if not isinstance(event, dict) or event.get("ph") != "X":
            continue
        start = exact_ps(event.get("ts"))
        if start is None:
            continue
        end = start + max(exact_ps(event.get("dur")) or 0, 0)
        facts.slices += 1
        # The device's copies of annotations and its marks of waiting lie beside its work: they call nothing.
        thread = (str(event.get("pid")), str(event.get("tid")))
        beside = str(event.get("cat", "")).lower() in ("gpu_user_annotation", "cuda_sync")
        by_thread[*thread, beside].append((start, end, str(event.get("name", ""))))
        cat, name, args = str(event.get("cat", "")).lower(), event.get("name", ""), event.get("args") or {}
        if cat in KERNEL | COPY | SET:
            facts.pieces.append(Piece(name, start, end, args.get("device", event.get("pid")), cat, args.get("correlation")))
        elif cat in RUNTIME:
            correlation = args.get("correlation", args.get("external id"))
            if correlation is not None:
                calls[correlation] = (start, end)
            if SYNC.match(name):
                facts.sync += end - start
        elif cat in ANNOTATION and (number := STEP.match(name)):
            facts.steps.setdefault(int(number[1]), (start, end))
    facts.threads = {(process, thread) for process, thread, _ in by_thread}
    for slices in by_thread.values():
        for name, own in self_times(slices).items():
            facts.self_by_name[name] = facts.self_by_name.get(name, 0) + own
    order = sorted(facts.steps.values())
    for piece in facts.pieces:
        piece.launch = calls.get(piece.correlation)
        if piece.launch is not None:
            for at, (start, end) in enumerate(order):
                if start <= piece.launch[0] and piece.launch[1] <= end:
                    piece.step = at
    return facts
