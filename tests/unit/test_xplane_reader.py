"""What an XSpace holds and what the profile says of it."""

from __future__ import annotations

import threading

import msgspec
import polars as pl
import pytest

from roofterm_parsers import threads as threads_module
from roofterm_parsers.errors import Interrupted, ProfileError
from roofterm_parsers.profile import ROOT, Kind, Profile, Source, TrackKind
from roofterm_parsers.xplane import events as events_module
from roofterm_parsers.xplane import reader as reader_module
from roofterm_parsers.xplane.reader import looks_like_xplane, read
from tests.xspace import Plane, Ref, breakdown, number, space, text, tpu_plane

EPOCH_NS = 1_731_000_000_000_000_000


def opened(data: bytes, *, device_alone: bool = False) -> Profile:
    source = Source("test.xplane.pb", "xplane", "plain", bytes=len(data))
    profile = read(data, source, lambda size: None, cancelled=lambda: False, device_alone=device_alone)
    profile.check()
    return profile


def named(profile: Profile, name: str) -> pl.DataFrame:
    names = profile.names["text"]
    return profile.slices.with_row_index("slice").filter(pl.Series(names.gather(profile.slices["name"]) == name))


def codes(profile: Profile) -> set[str]:
    return {warning.code for warning in profile.warnings}


def host(*events: bytes, plane: Plane | None = None) -> Plane:
    plane = plane or Plane("/host:CPU", id=1)
    plane.line("python", list(events), id=7, start_ns=EPOCH_NS)
    return plane


def test_times_are_exact_to_the_picosecond_years_from_zero() -> None:
    plane = Plane("/host:CPU")
    plane.line("python", [plane.event("a", 3, 5), plane.event("b", 1_000_000_000_000_000_001, 7)], start_ns=EPOCH_NS)
    profile = opened(space(plane))
    assert profile.slices["start_ps"].to_list() == [0, 999_999_999_999_999_998]
    assert profile.slices["dur_ps"].to_list() == [5, 7]
    assert profile.zero_unix_ns == EPOCH_NS


def test_lines_that_count_from_the_start_of_the_profile_are_placed_by_its_environment() -> None:
    environment = Plane("Task Environment", stats={"profile_start_time": EPOCH_NS})
    plane = Plane("/host:CPU")
    plane.line("python", [plane.event("a", 2_000, 10)], start_ns=500)
    profile = opened(space(plane, environment))
    assert profile.zero_unix_ns == EPOCH_NS + 500 + 2


def test_lines_start_at_their_own_time() -> None:
    plane = Plane("/host:CPU")
    plane.line("one", [plane.event("a", 0, 10)], id=1, start_ns=EPOCH_NS)
    plane.line("two", [plane.event("b", 7, 10)], id=2, start_ns=EPOCH_NS + 1)
    assert opened(space(plane)).slices["start_ps"].to_list() == [0, 1007]


def test_a_line_on_another_clock_is_kept_at_the_start_and_named() -> None:
    plane = Plane("/host:CPU")
    plane.line("good", [plane.event("a", 0, 10), plane.event("b", 20, 10)], id=1, start_ns=EPOCH_NS)
    plane.line("also good", [plane.event("a", 0, 10)], id=3, start_ns=EPOCH_NS)
    plane.line("lost", [plane.event("c", 5, 10)], id=2, start_ns=0)
    profile = opened(space(plane))
    assert named(profile, "c")["start_ps"].to_list() == [5]
    assert "other-clock" in codes(profile)


def test_ops_of_a_tpu_nest_and_know_their_instruction() -> None:
    tpu = tpu_plane()
    loop = tpu.op("%while.1 = while()", hlo_category="while", program_id=5, symbol_id=1, flops=10, bytes_accessed=8)
    body = tpu.op(
        "%fusion.2 = bf16[8,128]{1,0} fusion(bf16[8,128]{1,0} %p.1), kind=kLoop",
        display="fusion.2",
        hlo_category="loop fusion",
        program_id=5,
        symbol_id=2,
        flops=1000,
        model_flops=900,
        bytes_accessed=70,
        memory_access_breakdown=breakdown((1, 1, 40), (2, 1, 20), (1, 3, 10)),
        source="model.py:12",
        tf_op="jit(f)/add:",
    )
    tpu.line("XLA Ops", [tpu.event(loop, 0, 100), tpu.event(body, 10, 30), tpu.event(body, 50, 30)])
    tpu.line("XLA Modules", [tpu.event("jit_f(5)", 0, 100)], id=2)
    profile = opened(space(tpu))
    bodies = named(profile, "fusion.2")
    outer = named(profile, "while.1")
    assert bodies["parent"].to_list() == [outer["slice"].item()] * 2
    assert (outer["parent"].item(), bodies["depth"].to_list()) == (ROOT, [1, 1])
    op = profile.hlo.join(bodies.select("slice"), on="slice").join(profile.hlo_ops.with_row_index("op"), on="op").row(0, named=True)
    assert (op["program"], op["name"], op["category"], op["source"]) == ("jit_f", "fusion.2", "loop fusion", "model.py:12")
    assert (op["flops"], op["model_flops"], op["bytes"], op["flops_from"]) == (1000, 900, 70, "trace")
    assert (op["hbm_read_bytes"], op["hbm_write_bytes"], op["vmem_read_bytes"], op["vmem_write_bytes"]) == (40, 20, 10, 0)
    facts = profile.hlo_facts.filter(symbol_id=2).row(0, named=True)
    assert (facts["opcode"], facts["shape"]) == ("fusion", "bf16[8,128]{1,0}")


def test_bytes_by_memory_are_unknown_where_the_compiler_gives_none() -> None:
    tpu = tpu_plane()
    op = tpu.op("%copy-done = f32[8]", hlo_category="copy-done", bytes_accessed=32, memory_access_breakdown=b"")
    tpu.line("XLA Ops", [tpu.event(op, 0, 10)])
    row = opened(space(tpu)).hlo_ops.row(0, named=True)
    assert (row["bytes"], row["hbm_read_bytes"], row["flops"]) == (32, None, None)


def test_lines_of_a_tpu_say_what_is_work() -> None:
    tpu = tpu_plane()
    kinds = {
        "XLA Ops": Kind.KERNEL,
        "XLA Modules": Kind.MODULE,
        "Async XLA Ops": Kind.ASYNC,
        "Steps": Kind.STEP,
        "XLA TraceMe": Kind.DEVICE_ANNOTATION,
        "Framework Name Scope": Kind.DEVICE_ANNOTATION,
        "Tensor Core Sync Flag": Kind.DEVICE_WAIT,
        "_counters_": Kind.COUNTED,
    }
    for i, name in enumerate(kinds, 1):
        tpu.line(name, [tpu.event(f"event of {name}", 0, 10)], id=i)
    profile = opened(space(tpu))
    assert {name: named(profile, f"event of {name}")["kind"].item() for name in kinds} == {name: int(kind) for name, kind in kinds.items()}
    work = profile.tracks.filter(kind=int(TrackKind.DEVICE))
    assert work["thread_name"].to_list() == ["XLA Ops"]


def test_steps_come_from_the_devices_line_before_the_hosts_annotations() -> None:
    tpu = tpu_plane()
    tpu.line("Steps", [tpu.event("11", 0, 100, group_id=11), tpu.event("12", 100, 50, group_id=12)], start_ns=EPOCH_NS)
    plane = Plane("/host:CPU", id=1)
    host(plane.event("train", 0, 300, step_num=4, _r=1), plane=plane)
    steps = opened(space(tpu, plane)).steps
    assert steps.select("number", "name", "start_ps", "dur_ps", "device").rows() == [(11, "11", 0, 100, 0), (12, "12", 100, 50, 0)]


def test_steps_of_a_host_are_annotations_with_a_number() -> None:
    plane = Plane("/host:CPU", id=1)
    host(plane.event("train", 0, 30, step_num=0), plane.event("train", 40, 30, step_num=1), plane.event("eval", 80, 5), plane=plane)
    profile = opened(space(plane))
    assert profile.steps.select("number", "name", "device").rows() == [(0, "train 0", None), (1, "train 1", None)]
    assert named(profile, "train")["kind"].to_list() == [int(Kind.STEP)] * 2


def test_two_cores_have_their_steps_once() -> None:
    cores = [tpu_plane(0), tpu_plane(1)]
    for core in cores:
        core.line("Steps", [core.event("3", core.id, 100, group_id=3)])
    profile = opened(space(*cores))
    assert profile.steps["number"].to_list() == [3]
    assert profile.slices.filter(kind=int(Kind.STEP)).height == 2


def test_a_tpus_peaks_are_read_as_stated() -> None:
    tpu = tpu_plane(peak_vmem_rd_bw_gigabytes_per_second=23296.0099876864)
    tpu.line("XLA Ops", [tpu.event("op", 0, 10)])
    device = opened(space(tpu)).devices.row(0, named=True)
    assert (device["name"], device["kind"], device["peak_flops"], device["worked"]) == ("TPU test", "tpu", 100e12, True)
    assert msgspec.json.decode(device["bandwidths"]) == {"hbm": 1000e9, "vmem_read": pytest.approx(23296.0099876864e9, rel=1e-15)}


def test_a_gpus_capabilities_are_read_from_numbers_or_text() -> None:
    gpu = Plane(
        "/device:GPU:3",
        stats={"device_vendor": "Nvidia", "core_count": "132", "clock_rate": 1980000, "memory_size": 80 << 30, "compute_cap_major": 9},
    )
    device = opened(space(gpu, host(Plane("/host:CPU").event("a", 0, 1)))).devices.row(0, named=True)
    assert (device["id"], device["units"], device["clock_hz"], device["memory_bytes"]) == (3, 132, 1.98e9, 80 << 30)
    assert (device["capability"], device["name"], device["worked"]) == ("9.0", None, False)


def test_kernels_copies_and_sets_of_a_stream_are_told_apart() -> None:
    gpu = Plane("/device:GPU:0")
    details = "regs:168 static_shared:1024 dynamic_shared:49152 grid:160,2,1 block:256,1,1 occ_pct:37.5"
    gpu.line(
        "Stream #13(Compute,MemcpyH2D)",
        [
            gpu.event("gemm", 0, 100, kernel_details=Ref(details), correlation_id=8),
            gpu.event("MemcpyH2D", 100, 50, memcpy_details="kind_src:pageable size:4096 dest:0 async:1", correlation_id=9),
            gpu.event("Memset", 150, 5, memset_details="kind:device size:64"),
            gpu.event(
                "__amd_rocclr_copyBuffer.kd", 160, 5, kernel_details=Ref(" grid:4,1,1 block:512,1,1 private_mem:0 group_mem:0 occ_pct:0")
            ),
        ],
    )
    profile = opened(space(gpu))
    kinds = dict(zip(profile.names["text"].gather(profile.slices["name"]), profile.slices["kind"], strict=True))
    assert kinds == {
        "gemm": int(Kind.KERNEL),
        "MemcpyH2D": int(Kind.COPY),
        "Memset": int(Kind.MEMSET),
        "__amd_rocclr_copyBuffer.kd": int(Kind.KERNEL),
    }
    gemm, copy_kernel = profile.kernels.rows(named=True)
    assert (gemm["registers"], gemm["shared_bytes"], gemm["occupancy_pct"], gemm["stream"]) == (168, 50176, 37.5, 13)
    assert [gemm[f"{side}_{axis}"] for side in ("grid", "block") for axis in "xyz"] == [160, 2, 1, 256, 1, 1]
    assert (copy_kernel["registers"], copy_kernel["occupancy_pct"]) == (None, None)
    assert profile.copies["bytes"].to_list() == [4096, 64]


def test_derived_lines_of_a_gpu_are_no_work() -> None:
    gpu = Plane("/device:GPU:0")
    gpu.line("Stream #1(Kernel)", [gpu.event("k", 0, 10)])
    gpu.line("Anything", [gpu.event("scope", 0, 10)], id=0xFFFFFFFFDEADBEF2)
    profile = opened(space(gpu))
    assert named(profile, "scope")["kind"].item() == Kind.DEVICE_ANNOTATION
    assert profile.kernels.height == 1


def test_a_kernel_is_linked_to_the_call_with_its_correlation_and_what_is_around_it() -> None:
    gpu, cpu = Plane("/device:GPU:0"), Plane("/host:CPU")
    gpu.line("Stream #1(Kernel)", [gpu.event("a", 50, 10, correlation_id=5), gpu.event("b", 70, 10, correlation_id=6)])
    cpu.line("thread", [cpu.event("PjitFunction(f)", 0, 40), cpu.event("cuLaunchKernel", 10, 5, correlation_id=5)])
    profile = opened(space(gpu, cpu))
    call, op = named(profile, "cuLaunchKernel")["slice"].item(), named(profile, "PjitFunction(f)")["slice"].item()
    assert profile.links.select("launch", "op").rows() == [(call, op), (None, None)]
    assert named(profile, "cuLaunchKernel")["kind"].item() == Kind.RUNTIME


def test_the_framework_op_of_a_kernel_without_hlo_is_kept() -> None:
    gpu = Plane("/device:GPU:0")
    gpu.line("Stream #1(Compute)", [gpu.event("EigenMetaKernel", 0, 10, level__0=Ref("layer/Mul:Mul"))])
    profile = opened(space(gpu))
    assert profile.hlo_ops.select("name", "framework_op").rows() == [(None, "layer/Mul:Mul")]


def test_allocator_events_are_memory_in_order_of_time() -> None:
    cpu = Plane("/host:CPU")
    common = {"allocator_name": Ref("GPU_0_bfc"), "addr": 4096, "bytes_reserved": 0, "peak_bytes_in_use": 300}
    cpu.line("t1", [cpu.event("MemoryDeallocation", 90, 0, allocation_bytes=256, bytes_allocated=0, **common)], id=1)
    cpu.line("t2", [cpu.event("MemoryAllocation", 10, 0, allocation_bytes=256, bytes_allocated=256, fragmentation=0.25, **common)], id=2)
    profile = opened(space(cpu))
    assert profile.memory.select("time_ps", "bytes", "allocated_bytes").rows() == [(0, 256, 256), (80, -256, 0)]
    assert profile.allocations.select("memory", "allocator", "fragmentation").rows() == [(0, "GPU_0_bfc", 0.25), (1, "GPU_0_bfc", None)]


def test_what_an_event_starts_elsewhere_is_an_arrow() -> None:
    cpu = Plane("/host:CPU")
    cpu.line("t1", [cpu.event("enqueue", 10, 5, _pt=7, _p=1 << 63)], id=1)
    cpu.line("t2", [cpu.event("run", 30, 5, _ct=7, _c=1 << 63)], id=2)
    flows = opened(space(cpu)).flows
    assert flows.select("id", "phase", "time_ps", "track").rows() == [(f"7:{1 << 63}", 0, 0, 0), (f"7:{1 << 63}", 2, 20, 1)]


def test_device_counters_are_series() -> None:
    tpu = tpu_plane()
    tpu.line("_counters_", [tpu.event("MXU", 10, 5, **{"%__util": 72.5}), tpu.event("MXU", 20, 5, **{"%__util": 0.0})])
    counters = opened(space(tpu)).counters
    assert counters.select("time_ps", "series", "value").rows() == [(0, "MXU % util", 72.5), (10, "MXU % util", 0.0)]


def test_a_line_of_a_kernels_counters_is_counted_and_no_work() -> None:
    gpu = Plane("/device:GPU:0")
    gpu.line("Stream #1(Kernel)", [gpu.event("k", 0, 10)])
    gpu.line(
        "k", [gpu.event(name, 0, 10, counter_value=value, performance_counter_id=7) for name, value in (("hits", 3), ("misses", 5))], id=9
    )
    profile = opened(space(gpu))
    assert profile.counters.select("process", "series", "value").rows() == [
        ("/device:GPU:0 k", "hits", 3),
        ("/device:GPU:0 k", "misses", 5),
    ]
    assert (profile.slices["kind"] == int(Kind.KERNEL)).sum() == 1
    # Both were counted over the same 10 ps, which are one range.
    assert profile.counted.select("counter", "value").rows() == [("hits", 3), ("misses", 5)]
    assert profile.counted["slice"].n_unique() == 1


def test_the_devices_own_clock_stands_beside_the_aligned_times() -> None:
    tpu = tpu_plane()
    tpu.line("XLA Ops", [tpu.event("op", 1000, 50, device_offset_ps=900, device_duration_ps=47)])
    profile = opened(space(tpu))
    assert profile.slices.select("start_ps", "dur_ps").rows() == [(0, 50)]
    assert profile.device_clock.select("start_ps", "dur_ps").rows() == [(-100, 47)]


def test_costs_that_single_events_state_are_kept_and_averaged_for_the_instruction() -> None:
    tpu = tpu_plane()
    call = tpu.op("%kernel.1 = f32[8] custom-call()", display="kernel.1", hlo_category="custom-call", program_id=1, symbol_id=1)
    tpu.line("XLA Ops", [tpu.event(call, 0, 10, flops=100, bytes_accessed=8), tpu.event(call, 20, 10, flops=300, bytes_accessed=8)])
    profile = opened(space(tpu))
    assert profile.hlo_events["flops"].to_list() == [100, 300]
    assert profile.hlo_ops.select("flops", "bytes", "flops_from").rows() == [(200, 8, "trace")]


def test_unknown_fields_and_odd_stats_are_passed_over() -> None:
    plane = Plane("/host:CPU")
    unknown = number(90, 5) + text(77, b"\x00\xff") + number(12, 1 << 63)
    odd = plane.event("a", 10, 5, extra=unknown, long="x" * 100_000, nan=float("nan"), negative=-1, raw=b"\x80\x80", ref=Ref("name"))
    plane.line("python", [odd, plane.event("b", 20, 5)])
    profile = opened(text(88, b"from the future") + space(plane))
    assert profile.slices.select("start_ps", "dur_ps").rows() == [(0, 5), (10, 5)]
    assert "damaged-events" not in codes(profile)


def test_events_without_metadata_keep_a_name() -> None:
    plane = Plane("/host:CPU")
    plane.line("python", [number(1, 4711) + number(3, 5)])
    assert opened(space(plane)).names["text"].to_list() == ["event 4711"]


def test_the_files_own_errors_are_shown() -> None:
    profile = opened(space(host(Plane("/host:CPU").event("a", 0, 1)), errors=("buffer full: dropped 512 events",), warnings=("clock",)))
    messages = [warning.message for warning in profile.warnings]
    assert any("dropped 512 events" in message for message in messages)
    assert any("clock" in message for message in messages)


def test_a_host_without_accelerator_says_so() -> None:
    assert "no-device" in codes(opened(space(host(Plane("/host:CPU").event("a", 0, 1)))))


@pytest.mark.parametrize("cut", [1, 5, 40, 400])
def test_what_stands_before_a_cut_is_kept(cut: int) -> None:
    tpu, plane = tpu_plane(), Plane("/host:CPU")
    tpu.line("XLA Ops", [tpu.event("op", i * 10, 5) for i in range(20)])
    plane.line("python", [plane.event("p", i * 10, 5) for i in range(100)])
    profile = opened(space(tpu, plane)[:-cut])
    assert named(profile, "op").height == 20
    assert "truncated" in codes(profile)


def test_a_damaged_event_is_left_out_alone() -> None:
    plane = Plane("/host:CPU")
    plane.line("python", [plane.event("a", 0, 5), b"\x0f\xff\xff", plane.event("b", 10, 5)])
    profile = opened(space(plane))
    assert profile.slices.height == 2
    assert [warning.count for warning in profile.warnings if warning.code == "damaged-events"] == [1]


@pytest.mark.parametrize("data", [b"", space(Plane("/host:CPU")), space(Plane("Task Environment", stats={"profile_start_time": 5}))])
def test_a_file_without_events_is_refused(data: bytes) -> None:
    with pytest.raises(ProfileError, match=r"test\.xplane\.pb .*event"):
        opened(data)


def test_loading_stops_when_it_is_cancelled() -> None:
    data = space(host(Plane("/host:CPU").event("a", 0, 1)))
    with pytest.raises(Interrupted):
        read(data, Source("x", "xplane", "plain"), lambda size: None, cancelled=lambda: True)


def test_progress_adds_up_to_no_more_than_the_file() -> None:
    plane = Plane("/host:CPU")
    data = space(host(*[plane.event("a", i, 1) for i in range(5000)], plane=plane))
    sizes: list[int] = []
    read(data, Source("x", "xplane", "plain"), sizes.append, cancelled=lambda: False)
    assert len(data) / 2 < sum(sizes) <= len(data)


def test_lines_read_side_by_side_give_the_same_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = tpu_plane()
    for line in range(5):
        events = [plane.event(f"op {i % 7}", 10 * i, 4, dma_stall_duration_ps=i, group_id=i % 3) for i in range(300)]
        plane.line("XLA Ops", events[line:], id=line, start_ns=EPOCH_NS + line)
    data = space(plane, host(*[plane.event("a", i, 1) for i in range(50)]))
    monkeypatch.setattr(events_module, "BLOCK_EVENTS", 16)
    monkeypatch.setattr(events_module, "PART_EVENTS", 64)
    alone = opened(data)
    monkeypatch.setattr(reader_module, "WORTH_THREADS_BYTES", 0)
    monkeypatch.setattr(threads_module, "usable_cores", lambda: 3)
    together = opened(data)
    assert together.slices.height == 5 * 300 - 10 + 50
    for name, frame in alone.frames().items():
        assert together.frames()[name].equals(frame, null_equal=True), name


def test_threads_end_when_loading_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "WORTH_THREADS_BYTES", 0)
    monkeypatch.setattr(threads_module, "usable_cores", lambda: 2)
    data = space(host(Plane("/host:CPU").event("a", 0, 1)))
    with pytest.raises(Interrupted):
        read(data, Source("x", "xplane", "plain"), lambda size: None, cancelled=lambda: True)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("roofterm")]


def test_a_file_is_known_by_how_it_begins() -> None:
    good = space(tpu_plane())
    assert looks_like_xplane(good[:64])
    assert looks_like_xplane(text(2, "an error of the profiler"))
    for other in (b"", b"{", b'{"traceEvents": []}', b"\x1f\x8b\x08", b"PK\x03\x04", b"\n\n[]", b"hello world", b"\x0a\x05hello"):
        assert not looks_like_xplane(other)


def test_a_shared_names_stat_is_stated_twice_and_the_last_counts() -> None:
    plane = Plane("/host:CPU")
    twice = plane.event("train", 0, 5, extra=text(4, plane.stat("step_num", 1)) + text(4, plane.stat("step_num", 2)))
    plane.line("python", [twice])
    assert opened(space(plane)).steps["number"].to_list() == [2]


@pytest.mark.parametrize(
    ("line", "stats", "host_is_read"),
    [
        ("XLA Modules", {}, False),  # without steps nothing hangs on the host
        ("Steps", {"group_id": 4}, False),  # the steps say their own numbers
        ("Steps", {}, True),  # the host's annotations may number them
    ],
)
def test_a_tpus_devices_alone_are_read_where_the_host_numbers_no_step(line: str, stats: dict[str, int], host_is_read: bool) -> None:
    tpu = tpu_plane()
    tpu.line(line, [tpu.event("4", 0, 100, **stats)], id=1)
    tpu.line("XLA Ops", [tpu.event("op", 0, 10)], id=2)
    thread = Plane("/host:CPU", id=1)
    thread.line("python", [thread.event("train", 0, 50, **stats)], id=7)
    profile = opened(space(tpu, thread), device_alone=True)
    assert (int(TrackKind.HOST) in profile.tracks["kind"]) is host_is_read
    assert profile.slices.filter(pl.col("kind") == int(Kind.KERNEL)).height == 1


def test_devices_alone_are_a_matter_of_tpus_that_worked() -> None:
    tpu, gpu = tpu_plane(), Plane("/device:GPU:0")
    gpu.line("Stream #1", [gpu.event("k", 0, 10)])
    for planes in ((gpu,), (tpu,)):  # a GPU's steps are the host's; a TPU without ops leaves nothing else to read
        assert int(TrackKind.HOST) in opened(space(*planes, host(Plane("/host:CPU").event("a", 0, 1))), device_alone=True).tracks["kind"]
