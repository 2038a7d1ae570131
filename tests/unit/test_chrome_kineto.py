"""What PyTorch's profiler writes: devices, work and its launches, ops with shapes, memory, collectives, of all vendors."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm_parsers.profile import Kind
from tests.unit.chrome_traces import US, call, codes, kernel, kinds, named, opened, texts_of, x

H100 = {
    "id": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 85_045_346_304,
    "computeMajor": 9,
    "computeMinor": 0,
    "warpSize": 32,
    "numSms": 132,
}


def trace(events: list[dict[str, Any]], devices: list[dict[str, Any]] | None = None, **top: Any) -> dict[str, Any]:
    return {"schemaVersion": 1, "deviceProperties": [H100] if devices is None else devices, "traceEvents": events, **top}


def test_a_kernel_s_arguments_are_columns() -> None:
    args = {
        "External id": 4,
        "registers per thread": 90,
        "shared memory": 1024,
        "blocks per SM": 31.25,
        "warps per SM": 124.5,
        "grid": [4096, 2, 1],
        "block": [128, 1, 1],
        "est. achieved occupancy %": 62,
        "graph id": 5,
        "graph node id": 6,
    }
    row = opened(trace([kernel("k", 0, 5, 17, **args)])).kernels.row(0, named=True)
    assert row == {
        "slice": 0,
        "device": 0,
        "stream": 7,
        "correlation": 17,
        "external_id": 4,
        "grid_x": 4096,
        "grid_y": 2,
        "grid_z": 1,
        "block_x": 128,
        "block_y": 1,
        "block_z": 1,
        "registers": 90,
        "shared_bytes": 1024,
        "occupancy_pct": 62.0,
        "blocks_per_unit": 31.25,
        "warps_per_unit": 124.5,
        "graph": 5,
        "graph_node": 6,
    }


def test_what_a_kernel_does_not_say_is_null() -> None:
    row = opened(trace([kernel("k", 0, 5)])).kernels.row(0, named=True)
    assert {name for name, value in row.items() if value is not None} == {"slice", "device", "stream"}


def test_the_words_of_2021_mean_the_same() -> None:
    events = [
        x(
            "aten::mm",
            0,
            12,
            cat="Operator",
            pid=29,
            tid="29",
            **{"External id": 3, "Input dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]},
        ),
        x("cudaLaunchKernel", 2, 6, cat="Runtime", pid=29, tid="3239786240", correlation=1, **{"external id": 3}),
        {**x("sgemm", 12, 15, cat="Kernel", pid=0, tid="stream 7", correlation=1, **{"external id": 3, "theoretical occupancy %": 25})},
    ]
    profile = opened(events)
    assert profile.kernels.select("device", "stream", "external_id", "occupancy_pct").row(0) == (0, 7, 3, 25.0)
    assert profile.signatures.row(0) == ("[[2,3],[3,4]]", '["float","float"]', None, None)
    # the thread of the call is a number of pthreads: the op is found by its id
    assert texts_of(profile, profile.links["launch"]) == ["cudaLaunchKernel"]
    assert texts_of(profile, profile.links["op"]) == ["aten::mm"]


def test_signatures_are_kept_once_and_as_recorded() -> None:
    shapes: dict[str, Any] = {
        "Input Dims": [[2, 3], [[4], [5]], []],
        "Input type": ["c10::Half", "TensorList", ""],
        "Concrete Inputs": ["", "", "[1, 1]"],
    }
    numbered = {**x("aten::mul", 6, 1), "args": {"Sequence number": 1}}
    profile = opened(
        [
            x("aten::cat", 0, 1, **shapes),
            x("aten::cat", 2, 1, **shapes),
            x("aten::add", 4, 1),
            numbered,
        ]
    )
    assert profile.signatures.rows() == [("[[2,3],[[4],[5]],[]]", '["c10::Half","TensorList",""]', None, '["","","[1, 1]"]')]
    assert profile.ops.select("slice", "sequence", "signature").rows() == [(0, None, 0), (1, None, 0), (3, 1, None)]


def test_where_ops_were_called_from_is_kept_once() -> None:
    stack = {"Call stack": "net.py(3): forward;train.py(9): <module>"}
    scripted = {"Module Hierarchy": "top(Net)::forward.fc(Linear)::forward", "Call stack": ""}
    empty = {"Call stack": "", "Module Hierarchy": ""}
    events = [x("aten::mm", 0, 1, **stack), x("aten::mm", 2, 1, **scripted), x("aten::mm", 4, 1, **empty), x("aten::mm", 6, 1, **stack)]
    profile = opened(events)
    assert profile.callers.rows() == [(stack["Call stack"], None), (None, scripted["Module Hierarchy"])]
    assert profile.called.rows() == [(0, 0), (1, 1), (3, 0)]


def test_copies_and_sets_hold_their_bytes() -> None:
    profile = opened(
        trace(
            [
                x("Memcpy PtoP", 0, 5, cat="gpu_memcpy", pid=0, tid=7, device=0, stream=7, bytes=4096, toDevice=1),
                x("Memset (Device)", 9, 1, cat="gpu_memset", pid=0, tid=7, device=0, stream=7, bytes="2560"),
            ]
        )
    )
    assert profile.copies.select("bytes", "peer").rows() == [(4096, 1), (2560, None)]


def test_every_device_with_work_has_a_row_and_the_others_too() -> None:
    profile = opened(trace([kernel("k", 0, 5, device=1)], [H100, {**H100, "id": 1}, {**H100, "id": 2}]))
    assert profile.devices.sort("id").select("id", "name", "worked").rows() == [(i, "NVIDIA H100 80GB HBM3", i == 1) for i in range(3)]
    row = profile.devices.filter(profile.devices["worked"]).row(0, named=True)
    assert (row["memory_bytes"], row["units"], row["capability"], row["warp_size"]) == (85_045_346_304, 132, "9.0", 32)
    assert profile.devices["id"][profile.kernels["device"][0]] == 1
    assert profile.devices["id"][profile.tracks["device"][0]] == 1


def test_properties_of_early_2021_have_other_names() -> None:
    old = {"id": 0, "name": "Tesla V100", "major": 7, "minor": 0, "globalMem": 34_000_000_000}
    profile = opened({"computeProperties": [old], "traceEvents": [kernel("k", 0, 1)]})
    assert profile.devices.select("name", "capability", "memory_bytes").row(0) == ("Tesla V100", "7.0", 34_000_000_000)


def test_a_device_numbered_otherwise_is_the_only_model_of_the_list() -> None:
    # ROCm counts the host's sockets too: deviceProperties say 0, kernels say 2
    profile = opened(trace([kernel("k", 0, 5, device=2)], [{**H100, "name": "AMD Instinct MI300X"}]))
    assert profile.devices.select("id", "name", "worked").rows() == [(2, "AMD Instinct MI300X", True)]


def test_of_two_models_none_is_guessed() -> None:
    profile = opened(trace([kernel("k", 0, 5, device=9)], [H100, {**H100, "id": 1, "name": "NVIDIA A10"}]))
    assert profile.devices.filter(profile.devices["worked"]).select("id", "name").rows() == [(9, None)]


@pytest.mark.parametrize("name", ["", "  ", None])
def test_a_device_without_a_name_is_nameless(name: str | None) -> None:
    assert opened(trace([kernel("k", 0, 1)], [{**H100, "name": name}])).devices["name"].to_list() == [None]


def test_rocm_writes_the_grid_at_the_call() -> None:
    shape = {"kernel": "gemm", "grid": [8, 4, 1], "block": [256, 1, 1], "shared memory": 512}
    profile = opened(trace([call("hipLaunchKernel", 0, 2, 5, **shape), kernel("gemm", 4, 9, 5), kernel("other", 20, 9, 6)]))
    assert profile.kernels.select("grid_x", "grid_y", "block_x", "shared_bytes").rows() == [(8, 4, 256, 512), (None, None, None, None)]


def test_a_call_without_work_says_what_it_would_have_launched() -> None:
    """While a graph is captured nothing runs: on ROCm the calls alone name the kernels."""
    shape = {"kernel": 'gemm<"a">', "grid": [8, 4, 1], "block": [256, 1, 1], "shared memory": 512}
    profile = opened(
        trace(
            [
                call("hipLaunchKernel", 0, 2, 5, **shape),
                call("hipLaunchKernel", 3, 2, 6, **shape),
                kernel("gemm", 4, 9, 5),
                call("hipFree", 9, 1, 7),
            ]
        )
    )
    assert profile.slices["start_ps"].gather(profile.launches["slice"]).to_list() == [3 * US]
    assert profile.launches.drop("slice").rows() == [('gemm<"a">', 8, 4, 1, 256, 1, 1, 512)]
    alone = opened(trace([call("hipLaunchKernel", 3, 2, 6, **shape), call("hipLaunchKernel", 6, 2, 7, grid=[1, 1, 1])]))
    assert alone.launches.select("kernel", "grid_x").rows() == [('gemm<"a">', 8), (None, 1)]


def test_xpu_names_its_queue_otherwise() -> None:
    launch = x("urEnqueueKernelLaunch", 0, 8, cat="xpu_runtime", correlation=1023)
    work = x("gemm", 20, 12, cat="kernel", pid=0, tid=64, device=0, correlation=1023, **{"l0 queue": "0x55d0", "sycl queue": 64})
    profile = opened(trace([launch, work], [{"id": 0, "name": "Intel(R) Data Center GPU Max 1550", "gpuEuCount": 512}]))
    assert profile.kernels["stream"].to_list() == [64]
    assert profile.devices["units"].to_list() == [512]
    assert texts_of(profile, profile.links["launch"]) == ["urEnqueueKernelLaunch"]


def test_mtia_s_work_is_told_by_name() -> None:
    events = [
        x("pe_exe", 0, 5, cat="mtia_ccp_events", pid=17, tid=3, stream=112),
        x("dma_request", 6, 5, cat="mtia_ccp_events", pid=17, tid=3, stream=112, size=1024),
        x("event_wait", 12, 5, cat="mtia_ccp_events", pid=17, tid=3, stream=112, wait_on_stream=104),
    ]
    profile = opened(trace(events, [{"id": 17, "name": "ARTEMIS", "maxGridHeight": 8}]))
    assert kinds(profile) == {"pe_exe": Kind.KERNEL, "dma_request": Kind.COPY, "event_wait": Kind.DEVICE_WAIT}
    assert profile.copies["bytes"].to_list() == [1024]
    assert profile.devices.select("id", "kind", "worked").rows() == [(17, "npu", True)]


def test_waits_say_what_is_waited_for() -> None:
    wait = {"stream": 20, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 88, "correlation": 90, "device": 0}
    profile = opened(
        trace(
            [
                x("Stream Wait Event", 0, 1, cat="cuda_sync", pid=0, tid=20, **wait),
                x("Context Sync", 5, 1, cat="cuda_sync", pid=0, tid=0, stream=4294967295, device=0),
            ]
        )
    )
    columns = ("stream", "on_stream", "event_correlation", "correlation")
    assert sorted(profile.waits.select(columns).rows(), key=str) == [(20, 7, 88, 90), (None, None, None, None)]


def test_memory_events_are_rows_of_their_own() -> None:
    def memory(ts: float, name: str = "[memory]", **args: Any) -> dict[str, Any]:
        return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": name, "pid": 1, "tid": 1, "ts": ts, "args": args}

    full: dict[str, Any] = {"Total Reserved": 40, "Total Allocated": 10, "Bytes": -7, "Addr": 99, "Device Id": 0, "Device Type": 1}
    profile = opened([x("a", 0, 9), memory(5, **full), memory(3, "[OutOfMemory]", Bytes=5), {**memory(7, Bytes=1), "name": "other"}])
    assert profile.memory.drop("track").rows() == [
        (3 * US, 5, None, None, None, None, None, True),
        (5 * US, -7, 99, 10, 40, 1, 0, False),
    ]
    assert profile.names["text"].gather(profile.instants["name"]).to_list() == ["other"]


def test_collectives_are_read_from_kernels_and_ops() -> None:
    facts: dict[str, Any] = {
        "Collective name": "allreduce",
        "In msg nelems": 100,
        "Out msg nelems": 200,
        "Group size": 8,
        "dtype": "BFloat16",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": [0, 1],
        "Seq": 3,
    }
    waiting: dict[str, Any] = {"Collective name": "wait", "Process Group Ranks": "[0, 1]"}
    profile = opened(
        [
            x("record_param_comms", 0, 9, **facts),
            kernel("ncclDevKernel", 20, 5, **waiting),
        ]
    )
    assert profile.collectives.rows() == [
        (0, "allreduce", "0", "default_pg", 8, "BFloat16", 100, 200, "[0,1]", 3),
        (1, "wait", None, None, None, None, None, None, "[0, 1]", None),
    ]


def test_python_frames_know_their_parents_and_modules() -> None:
    frame: dict[str, Any] = {"Python id": 2, "Python parent id": 1, "Python module id": 3}
    root = {"Python id": 1, "Python parent id": None}
    profile = opened([x("main", 0, 9, cat="python_function", **root), x("nn.Module: Linear_0", 1, 5, cat="python_function", **frame)])
    assert profile.python.rows() == [(0, 1, None, None), (1, 2, 1, 3)]


def test_the_header_may_stand_behind_the_events() -> None:
    events = '{"schemaVersion": 1, "traceEvents": [{"ph":"X","name":"a","pid":1,"tid":1,"ts":5,"dur":1}]'
    text = events + ', "displayTimeUnit": "ms", "baseTimeNanoseconds": 1000000, "traceName": "x"}'
    profile = opened(text)
    assert profile.zero_unix_ns == 1_005_000
    assert profile.sources[0].metadata["traceName"] == "x"
    assert profile.warnings == []


def test_rank_world_flags_and_versions_are_facts_of_the_source() -> None:
    top: dict[str, Any] = {
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
        "with_stack": 1,
        "host_name": "node7",
        "hip_runtime_version": 60443483,
    }
    source = opened(trace([x("a", 0, 1)], **top)).sources[0]
    assert (source.format, source.rank, source.world_size, source.host, source.events) == ("kineto", 3, 8, "node7", 1)
    assert source.metadata["with_stack"] == 1
    assert source.producer == "PyTorch profiler (Kineto, ROCm)"


@pytest.mark.parametrize("rank", [None, "first", -1, 1.5])
def test_a_rank_that_is_no_number_is_unknown(rank: Any) -> None:
    assert opened(trace([x("a", 0, 1)], distributedInfo={"rank": rank})).sources[0].rank is None


def test_ranks_in_one_file_are_linked_each_for_itself() -> None:
    events = []
    for rank, base in (("[TP00]", 0), ("[TP01]", 1000)):
        events += [call(f"launch {rank}", base, 2, 1, pid=f"{rank} 83"), kernel(f"k {rank}", base + 5, 3, 1, device=f"{rank} 0")]
        events[-1]["args"]["device"] = 0
    profile = opened(events)
    assert texts_of(profile, profile.links["work"]) == ["k [TP00]", "k [TP01]"]
    assert texts_of(profile, profile.links["launch"]) == ["launch [TP00]", "launch [TP01]"]
    assert named(profile)["process"].n_unique() == 4


def test_correlation_ids_beyond_64_bits_stay_apart() -> None:
    big = (1 << 64) + 3
    profile = opened(
        [
            call("a", 0, 1, big),
            call("b", 2, 1, 3),
            call("c", 4, 1, big + 1),
            kernel("ka", 10, 1, big),
            kernel("kb", 12, 1, 3),
            kernel("kc", 14, 1, big + 1),
        ]
    )
    assert texts_of(profile, profile.links["launch"]) == ["a", "b", "c"]


def test_a_graph_launch_owns_many_kernels() -> None:
    profile = opened([call("cudaGraphLaunch", 0, 12, 900), *(kernel(f"k{i}", 30 + 6 * i, 5, 900) for i in range(40))])
    assert texts_of(profile, profile.links["launch"]) == ["cudaGraphLaunch"] * 40


def test_work_launched_before_the_window_has_no_launch_and_no_op() -> None:
    ids: dict[str, Any] = {"External id": 9}
    profile = opened([x("aten::mm", 0, 50, **ids), call("cudaLaunchKernel", 1, 2, 5), kernel("orphan", 10, 5, 4, **ids)])
    assert profile.links.select("launch", "op").rows() == [(None, None)]


def test_launches_without_a_single_kernel_are_said_at_once() -> None:
    assert codes(opened([call("cudaLaunchKernel", 0, 5, 1), call("cudaLaunchKernel", 9, 5, 2)])) == {"no-kernels": 2}


def test_a_job_on_the_cpu_is_no_alarm() -> None:
    assert codes(opened([x("aten::mm", 0, 5), call("cudaGetDeviceCount", 9, 5)])) == {}


def test_kernels_before_their_launch_are_a_matter_of_clocks() -> None:
    profile = opened([call("a", 100, 5, 1), kernel("early", 60, 5, 1), call("b", 200, 5, 2), kernel("fine", 210, 5, 2)])
    assert codes(profile) == {"clock": 1}
    assert "40.000 µs" in profile.warnings[0].message


def test_a_kernel_that_covers_the_later_ones_of_its_stream_is_implausible() -> None:
    later = [kernel(f"k{i}", 100 * i, 60) for i in range(6)]
    profile = opened([*later, kernel("fmha_bwd", 80, 1_600_000)])
    assert codes(profile) == {"implausible": 1}
    assert "fmha_bwd" in profile.warnings[0].message


def test_dependent_launches_may_overlap_a_little() -> None:
    assert codes(opened([kernel(f"k{i}", 35 * i, 40) for i in range(5)])) == {}


def test_kernels_of_two_streams_may_cover_each_other() -> None:
    short = [kernel(f"k{i}", 100 * i, 60, stream=20) for i in range(6)]
    assert codes(opened([kernel("long", 0, 1_000_000), *short])) == {}
