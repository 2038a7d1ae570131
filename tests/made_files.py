"""Small profiles made in a test, as bytes: nothing here is taken from a file."""

from __future__ import annotations

import json
from typing import Any


def kineto(
    rank: int | None = None, *, kernels: int = 2, base_ns: int | None = 1_700_000_000_000_000_000, correlation: int = 10, **top: Any
) -> bytes:
    """A trace of torch.profiler: a step of 1000 us, and in it `kernels` launches of 5 us with kernels of 40 us, 100 us apart."""
    events: list[dict[str, Any]] = [event("ProfilerStep#1", "user_annotation", 100, 1000, 77, 77)]
    for i in range(kernels):
        launch = {"External id": i + 1, "correlation": correlation + i}
        events.append(event("cudaLaunchKernel", "cuda_runtime", 110 + 100 * i, 5, 77, 77, launch))
        events.append(event(f"kernel_{i}", "kernel", 130 + 100 * i, 40, 0, 7, launch | {"device": 0, "stream": 7}))
    facts: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}]}
    if rank is not None:
        facts["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 8}
    if base_ns is not None:
        facts["baseTimeNanoseconds"] = base_ns
    return json.dumps({**facts, **top, "traceEvents": events}).encode()


def event(name: str, cat: str, ts_us: float, dur_us: float, pid: int, tid: int, args: dict[str, Any] | None = None) -> dict[str, Any]:
    """A complete event of a Chrome trace."""
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts_us, "dur": dur_us, "args": args or {}}


def xla_json(ops: int = 2) -> bytes:
    """A trace as JAX converts one from an XPlane: a TPU core with an `XLA Ops` line, and the empty object at its end."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:TPU:0"}},
        {"ph": "M", "pid": 3, "tid": 3, "name": "thread_name", "args": {"name": "XLA Ops"}},
        *(
            {"ph": "X", "pid": 3, "tid": 3, "name": f"fusion.{i}", "ts": 10 * i, "dur": 5, "args": {"hlo_category": "fusion"}}
            for i in range(ops)
        ),
        {},
    ]
    return json.dumps({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events}).encode()


def xspace(ops: int = 2, *, start_ns: int = 1_700_000_000_000_000_000) -> bytes:
    """An XSpace with one TPU core and `ops` events of 5 us, 10 us apart, on its `XLA Ops` line."""
    names = b"".join(_part(4, _number(1, i + 1) + _part(2, _number(1, i + 1) + _part(2, b"fusion.%d" % i))) for i in range(ops))
    events = b"".join(_part(4, _number(1, i + 1) + _number(2, 10_000_000 * i) + _number(3, 5_000_000)) for i in range(ops))
    line = _number(1, 3) + _part(2, b"XLA Ops") + _number(3, start_ns) + events
    plane = _number(1, 2) + _part(2, b"/device:TPU:0") + _part(3, line) + names
    return _part(1, plane)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _part(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data
