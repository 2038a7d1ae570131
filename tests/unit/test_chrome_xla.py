"""Traces that were made from XPlanes: devices and lines by their names, work from streams and op lines only."""

from __future__ import annotations

import json
from typing import Any

from roofterm_parsers.profile import Kind, TrackKind
from tests.unit.chrome_traces import US, kinds, named, opened, texts_of, track_kinds


def trace(lines: dict[tuple[str, str], list[dict[str, Any]]], tail: str = ",{}") -> str:
    """A trace as jax.profiler writes it; lines by (process, thread), events without process and thread."""
    pids: dict[str, int] = {}
    events: list[dict[str, Any]] = []
    for tid, ((process, thread), held) in enumerate(lines.items(), start=1):
        pid = pids.setdefault(process, 701 if process.startswith("/host") else len(pids) + 1)
        events.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}})
        events.append({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": thread}})
        events += [{"ph": "X", "pid": pid, "tid": tid, **event} for event in held]
    body = json.dumps(events)[:-1] + tail
    return '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":' + body + "]}"


def event(name: str, ts: float, dur: float, **args: str) -> dict[str, Any]:
    return {"name": name, "ts": ts, "dur": dur, "args": args}


GPU = "/device:GPU:0"
TPU = "/device:TPU:0"
HOST = "/host:CPU"


def test_streams_are_work_and_derived_lines_are_not() -> None:
    profile = opened(
        trace(
            {
                (GPU, "Stream #13(Compute)"): [event("fusion_kernel", 10, 20, hlo_op="fusion", hlo_module="jit_step", correlation_id="40")],
                (GPU, "XLA Ops"): [event("fusion", 10, 20)],
                (GPU, "XLA Modules"): [event("jit_step", 10, 90)],
                (GPU, "Source code"): [event("model.py:10", 10, 80)],
            }
        )
    )
    assert kinds(profile) == {
        "fusion_kernel": Kind.KERNEL,
        "fusion": Kind.DEVICE_ANNOTATION,
        "jit_step": Kind.MODULE,
        "model.py:10": Kind.DEVICE_ANNOTATION,
    }
    assert track_kinds(profile)["fusion"] == TrackKind.DEVICE_OTHER
    assert texts_of(profile, profile.links["work"]) == ["fusion_kernel"]
    assert profile.kernels.select("stream", "correlation").rows() == [(13, 40)]
    assert profile.devices.select("id", "kind", "worked").rows() == [(0, "gpu", True)]
    assert profile.hlo_ops.select("program", "name").rows() == [("jit_step", "fusion")]
    assert profile.sources[0].format == "xla_json"


def test_the_empty_event_at_the_end_is_a_habit() -> None:
    assert opened(trace({(HOST, "python"): [event("a", 0, 1)]})).warnings == []


def test_launches_are_host_events_with_the_correlation_of_the_work() -> None:
    profile = opened(
        trace(
            {
                (HOST, "Host Threads/7"): [
                    event("hipModuleLaunchKernel", 0, 5, correlation_id="2", device_id="1"),
                    event("other", 6, 5, correlation_id="3"),
                ],
                (GPU, "Stream #2"): [event("k", 10, 5, correlation_id="2"), event("orphan", 20, 5, correlation_id="9")],
            }
        )
    )
    assert kinds(profile)["other"] == Kind.RUNTIME
    assert texts_of(profile, profile.links["launch"]) == ["hipModuleLaunchKernel", None]


def test_copies_are_told_by_details_or_name() -> None:
    profile = opened(
        trace(
            {
                (GPU, "Stream #3(MemcpyH2D)"): [
                    event("MemcpyH2D", 0, 5, memcpy_details="size:4096 dest:0 async:1"),
                    event("x", 9, 1, memcpy_details="kind:d2d size:8"),
                ]
            }
        )
    )
    assert kinds(profile) == {"MemcpyH2D": Kind.COPY, "x": Kind.COPY}
    assert profile.copies["bytes"].to_list() == [4096, 8]


def test_kernel_details_hold_grid_block_and_registers() -> None:
    details = "regs:38 static_shared:16 dynamic_shared:32 grid:160,2,1 block:1024,1,1 occ_pct:50"
    row = opened(trace({(GPU, "Stream #1"): [event("k", 0, 5, kernel_details=details)]})).kernels.row(0, named=True)
    assert [row[k] for k in ("grid_x", "grid_y", "block_x", "registers", "shared_bytes", "occupancy_pct")] == [160, 2, 1024, 38, 48, 50.0]


def test_a_tpu_s_op_line_is_its_work_and_says_the_program_by_time() -> None:
    op = {
        "hlo_category": "fusion",
        "long_name": "%fusion.1 = bf16[8] fusion(...)",
        "tf_op": "jit(f)/dot",
        "model_flops": "200",
        "bytes_accessed": "50",
        "source": "m.py:3",
    }
    profile = opened(
        trace(
            {
                (TPU, "XLA Modules"): [event("jit_f(123)", 0, 50), event("jit_g(456)", 60, 50)],
                (TPU, "XLA Ops"): [event("while", 0, 40), event("fusion.1", 5, 10, **op), event("fusion.1", 65, 10, **op)],
                (TPU, "Steps"): [event("7", 0, 50), event("8", 60, 50)],
                (TPU, "Some line of tomorrow"): [event("new", 0, 1)],
            }
        )
    )
    assert kinds(profile)["fusion.1"] == Kind.KERNEL
    assert kinds(profile)["new"] == Kind.DEVICE_ANNOTATION
    assert dict(named(profile).select("text", "depth").rows())["while"] == 0
    columns = ("program", "program_id", "name", "category", "framework_op", "model_flops", "bytes", "flops", "source")
    assert profile.hlo_ops.select(columns).rows() == [
        ("jit_f", 123, "fusion.1", "fusion", "jit(f)/dot", 200.0, 50.0, None, "m.py:3"),
        ("jit_g", 456, "fusion.1", "fusion", "jit(f)/dot", 200.0, 50.0, None, "m.py:3"),
    ]
    assert profile.hlo["op"].to_list() == [0, 1]
    assert profile.steps.select("number", "start_ps", "device").rows() == [(7, 0, 0), (8, 60 * US, 0)]


def test_host_marks_with_a_step_number_are_steps_where_no_device_has_a_line() -> None:
    profile = opened(
        trace({(HOST, "python"): [event("train", 0, 50, step_num="4"), event("$profiler.py:91 start", 5, 1), event("load", 8, 1)]})
    )
    assert profile.steps.select("number", "name", "device").rows() == [(4, "train 4", None)]
    assert kinds(profile) == {"train": Kind.STEP, "$profiler.py:91 start": Kind.PYTHON, "load": Kind.ANNOTATION}


def test_counters_of_a_device_are_counted_and_no_work() -> None:
    profile = opened(trace({(TPU, "_counters_"): [event("MXU", 3, 1, **{"% util": "12.5"})], (TPU, "XLA Ops"): [event("dot", 0, 9)]}))
    assert kinds(profile)["MXU"] == Kind.COUNTED
    assert profile.counters.select("time_ps", "process", "series", "value").rows() == [(3 * US, TPU, "MXU % util", 12.5)]


def test_a_device_without_events_has_a_row_that_did_not_work() -> None:
    profile = opened(trace({(GPU, "Stream #1"): [event("k", 0, 5)], ("/device:GPU:1", "Stream #1"): []}))
    assert profile.devices.select("id", "worked").rows() == [(0, True), (1, False)]


def test_the_trace_viewer_names_hosts_before_devices() -> None:
    profile = opened(trace({("node-1 /device:TPU:0", "XLA Ops"): [event("dot", 0, 9)]}))
    assert kinds(profile) == {"dot": Kind.KERNEL}
