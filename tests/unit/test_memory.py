"""Memory by hand: peaks, who held them, steps, reserve, calls to the driver and failures."""

from __future__ import annotations

from typing import Any

import polars as pl

from roofterm.analysis.memory import EVENTS, POOLS, memory_by_op
from roofterm.analysis.memory_course import memory_course, memory_curves
from roofterm.analysis.study import Study
from roofterm.results import MemoryReport
from roofterm_parsers.profile import FRAMES, Kind, Profile
from tests.build import Build

GIB = 2**30
US = 1_000_000


def with_events(build: Build, *events: dict[str, Any], allocations: list[dict[str, Any]] | None = None) -> Profile:
    """The profile with allocator events on its first host thread; times in us, PyTorch's device 0 unless said."""
    profile = build.profile()
    thread = profile.tracks["device"].is_null().arg_true()[0]
    usual = {"track": thread, "device_type": 1, "device_id": 0, "out_of_memory": False}
    rows = [{name: None for name in FRAMES["memory"]} | usual | one | {"time_ps": round(one["time"] * US)} for one in events]
    profile.memory = pl.DataFrame(rows, schema=FRAMES["memory"])
    told = [{name: None for name in FRAMES["allocations"]} | {"memory": at} | one for at, one in enumerate(allocations or [])]
    profile.allocations = pl.DataFrame(told, schema=FRAMES["allocations"])
    return profile


def event(time: float, size: int, address: int, used: int, reserved: int | None = None, **facts: Any) -> dict[str, Any]:
    return {"time": time, "bytes": size, "address": address, "allocated_bytes": used, "reserved_bytes": reserved} | facts


def report_of(profile: Profile) -> MemoryReport:
    report = Study(profile).memory_report()
    assert report is not None
    return report


def two_ops() -> Build:
    """aten::mm from 10 to 20 and aten::add from 30 to 40, in a step from 0 to 100."""
    build = Build()
    build.step(3, 0, 100)
    build.host("aten::mm", 10, 10)
    build.host("aten::add", 30, 10)
    return build


def test_peak_and_who_held_it():
    """500 before; mm takes 100 and 50, frees the 50; add takes 200: at the peak of 800 mm holds 100 and add 200."""
    profile = with_events(
        two_ops(),
        event(12, 100, 1, 600),
        event(14, 50, 2, 650),
        event(18, -50, 2, 600),
        event(32, 200, 3, 800),
        event(36, -200, 3, 600),
        event(50, -100, 1, 500),
    )
    report = report_of(profile)
    (pool,) = report.pools
    assert (pool.name, pool.on_device, pool.device) == ("device 0", True, 0)
    assert (pool.peak_bytes, pool.peak_us, pool.peak_op, pool.peak_step) == (800, 32, "aten::add", "ProfilerStep#3")
    assert (pool.first_bytes, pool.last_bytes, pool.held_before_bytes) == (500, 500, 500)
    assert (pool.allocations, pool.frees) == (3, 3)
    assert [(holder.op, holder.bytes, holder.blocks) for holder in report.holders] == [("aten::add", 200, 1), ("aten::mm", 100, 1)]


def test_an_address_that_is_used_again_counts_for_its_last_op():
    profile = with_events(two_ops(), event(12, 100, 1, 100), event(18, -100, 1, 0), event(32, 120, 1, 120))
    assert [(holder.op, holder.bytes) for holder in report_of(profile).holders] == [("aten::add", 120)]


def test_what_lies_outside_of_any_op_has_none():
    profile = with_events(two_ops(), event(25, 100, 1, 100))
    assert [(holder.op, holder.bytes) for holder in report_of(profile).holders] == [(None, 100)]


def test_without_addresses_nobody_knows_what_was_held():
    """As PyTorch wrote until 1.10: sizes alone. What was taken and given back is known, what lay there at the peak of 150 is not."""
    events = [event(12, 100, 0, 100), event(14, 50, 0, 150), event(32, -50, 0, 100)]
    profile = with_events(two_ops(), *({**one, "address": None} for one in events))
    table = memory_by_op(Study(profile).memory)
    rows = table.select("op", "allocations", "allocated_bytes", "freed_bytes", "peak_bytes").rows()
    assert rows == [("aten::mm", 2, 150, 0, None), ("aten::add", 0, 0, 50, None)]
    (pool,) = report_of(profile).pools
    assert (pool.peak_bytes, pool.held_before_bytes) == (150, None)
    assert report_of(profile).holders == []


def test_memory_by_op():
    profile = with_events(two_ops(), event(12, 100, 1, 100), event(14, 50, 2, 150), event(32, 10, 3, 160), event(36, -50, 2, 110))
    table = memory_by_op(Study(profile).memory)
    rows = table.select("op", "allocations", "allocated_bytes", "freed_bytes", "peak_bytes").rows()
    assert rows == [("aten::mm", 2, 150, 0, 150), ("aten::add", 1, 10, 50, 10)]


def test_steps_have_their_own_peaks():
    build = Build()
    build.step(1, 0, 100)
    build.step(2, 100, 100)
    profile = with_events(build, event(10, 300, 1, 300), event(50, -100, 2, 200), event(150, 50, 3, 250))
    rows = [(s.step, s.peak_bytes, s.last_bytes, s.allocated_bytes, s.freed_bytes, s.allocations) for s in report_of(profile).steps]
    assert rows == [("ProfilerStep#1", 300, 200, 300, 100, 1), ("ProfilerStep#2", 250, 250, 50, 0, 1)]


def test_the_reserve_counts_for_how_full_the_device_is():
    """An H100 of 85,018,279,936 bytes: 20 GiB in use at the peak, 40 GiB reserved by then, 60 GiB at last."""
    build = Build()
    build.kernel("gemm", 0, 10)
    build.host("aten::mm", 0, 100)
    profile = with_events(build, event(1, 20 * GIB, 1, 20 * GIB, 40 * GIB), event(2, -5 * GIB, 1, 15 * GIB, 60 * GIB))
    (pool,) = report_of(profile).pools
    assert (pool.reserved_at_peak_bytes, pool.reserved_peak_bytes) == (40 * GIB, 60 * GIB)
    assert (pool.capacity_bytes, pool.peak_pct) == (85018279936, 100 * 60 * GIB / 85018279936)


def test_host_and_device_are_two_pools_and_the_host_has_no_reserve():
    host = {"device_type": 0, "device_id": -1}
    profile = with_events(two_ops(), event(12, 100, 1, 100, 0, **host), event(32, 200, 2, 200, 400))
    device, cpu = report_of(profile).pools
    assert (device.name, device.peak_bytes, device.reserved_peak_bytes) == ("device 0", 200, 400)
    assert (cpu.name, cpu.on_device, cpu.peak_bytes, cpu.reserved_peak_bytes, cpu.peak_pct) == ("host", False, 100, None, None)


def test_totals_that_a_file_does_not_state_are_unknown():
    """PyTorch of 2021 recorded sizes alone."""
    profile = with_events(two_ops(), event(12, 100, 1, None))  # type: ignore[arg-type]
    report = report_of(profile)
    assert (report.pools[0].peak_bytes, report.pools[0].allocations, report.holders) == (None, 1, [])


def test_a_failed_allocation_is_marked_and_counted_nowhere_else():
    profile = with_events(two_ops(), event(12, 100, 1, 100), event(32, 900, 0, 100, out_of_memory=True))
    (pool,) = report_of(profile).pools
    assert (pool.out_of_memory_us, pool.peak_bytes, pool.allocations) == ([32.0], 100, 1)


def test_a_tpu_counts_its_stack_and_what_is_left():
    """1,000 of heap and 5,000 of the program's stack; 4,000 left: a memory of 10,000."""
    build = two_ops()
    tpu = {"device_type": None, "device_id": 2}
    profile = with_events(build, event(12, 1000, 1, 1000, 5000, **tpu), allocations=[{"available_bytes": 4000, "framework_op": "dot"}])
    report = report_of(profile)
    (pool,) = report.pools
    assert (pool.name, pool.device, pool.peak_bytes, pool.peak_op, pool.reserved_peak_bytes) == ("device 2", 2, 6000, "dot", None)
    assert (pool.capacity_bytes, pool.peak_pct) == (10000, 60)


def test_allocators_of_xla_are_told_apart_by_name():
    named = [{"allocator": "GPU_1_bfc", "available_bytes": 900}, {"allocator": "xla_gpu_host_bfc", "available_bytes": 50}]
    unnumbered = {"device_type": None, "device_id": None}
    profile = with_events(two_ops(), event(12, 100, 1, 100, 0, **unnumbered), event(13, 50, 1, 50, 0, **unnumbered), allocations=named)
    pools = report_of(profile).pools
    assert [(pool.name, pool.on_device, pool.device, pool.capacity_bytes) for pool in pools] == [
        ("GPU_1_bfc", True, 1, 1000),
        ("xla_gpu_host_bfc", False, None, 100),
    ]


def test_the_curve_holds_the_most_of_each_part_and_keeps_it_where_nothing_happens():
    """100 in use from 0, 300 from 10, 200 from 20, 400 from 100: in four parts of 25 us the most is 300, 200, 200 and 400."""
    profile = with_events(
        two_ops(), event(0, 100, 1, 100, 512), event(10, 200, 2, 300, 512), event(20, -100, 1, 200, 512), event(100, 200, 3, 400, 1024)
    )
    (curve,) = memory_curves(Study(profile).memory, parts=4)
    assert (curve.start_us, curve.part_us) == (0, 25)
    assert curve.used_bytes == [300, 200, 200, 400]
    assert curve.reserved_bytes == [512, 512, 512, 1024]


def test_a_curve_of_one_moment_and_of_an_unknown_reserve():
    (curve,) = memory_curves(Study(with_events(two_ops(), event(5, 100, 1, 100))).memory)
    assert (curve.used_bytes, curve.reserved_bytes) == ([100], None)


def test_the_report_names_who_allocated_most():
    profile = with_events(two_ops(), event(12, 100, 1, 100), event(14, -100, 1, 0), event(32, 60, 2, 60))
    assert [(one.op, one.allocations, one.allocated_bytes, one.freed_bytes, one.peak_bytes) for one in report_of(profile).ops] == [
        ("aten::mm", 1, 100, 100, 100),
        ("aten::add", 1, 60, 0, 0),
    ]


def test_calls_to_the_driver_in_steady_steps_are_pressure():
    """Three steps of 100 us: one cudaMalloc of 30 us before, two cudaFree of 5 us in the second; a cudaFreeHost counts, cudaMemcpy not."""
    build = Build()
    build.call(0, 30, name="cudaMalloc")
    for number in range(3):
        build.step(number, 100 + 100 * number, 100)
    build.call(210, 5, name="cudaFree")
    build.call(220, 5, name="cudaFree")
    build.call(230, 1, name="cudaFreeHost")
    build.call(240, 9, name="cudaMemcpyAsync")
    pressure = {one.name: (one.calls, one.total_us, one.calls_per_step, one.us_per_step) for one in report_of(build.profile()).pressure}
    assert pressure == {"cudaMalloc": (1, 30, 0, 0), "cudaFree": (2, 10, 2 / 3, 10 / 3), "cudaFreeHost": (1, 1, 1 / 3, 1 / 3)}


def test_a_file_without_memory_has_no_report():
    build = Build()
    build.host("aten::mm", 0, 10, kind=Kind.OP)
    study = Study(build.profile())
    assert study.memory_report() is None
    assert (study.memory.pools.schema, study.memory.events.schema) == (POOLS, EVENTS)
    assert memory_by_op(study.memory).height == 0


def test_the_course_of_use_is_what_the_events_state():
    profile = with_events(two_ops(), event(12, 100, 1, 600), event(14, 50, 2, 650), event(18, -50, 2, 600))
    course = memory_course(Study(profile).memory, 0)
    assert course.known_from_zero
    assert course.time_ps.tolist() == [12 * US, 14 * US, 18 * US]
    assert course.held_bytes.tolist() == [600, 650, 600]
    assert course.peak == 1


def test_without_totals_the_course_is_the_sum_of_changes():
    """Profiles of 2021 state sizes alone: 100, 150, 100 more than when the recording began."""
    events = [event(12, 100, 1, 0), event(14, 50, 2, 0), event(18, -50, 2, 0)]
    profile = with_events(two_ops(), *({**one, "allocated_bytes": None} for one in events))
    course = memory_course(Study(profile).memory, 0)
    assert not course.known_from_zero
    assert course.held_bytes.tolist() == [100, 150, 100]
    assert course.peak == 1


def test_by_op_within_a_window_counts_what_happened_there_and_keeps_the_peak():
    """From 13 to 33: mm allocates 50 and frees 50, add allocates 200; at the peak of all mm holds 100."""
    profile = with_events(two_ops(), event(12, 100, 1, 600), event(14, 50, 2, 650), event(18, -50, 2, 600), event(32, 200, 3, 800))
    rows = {row["op"]: row for row in memory_by_op(Study(profile).memory, (13 * US, 33 * US)).iter_rows(named=True)}
    assert (rows["aten::mm"]["allocated_bytes"], rows["aten::mm"]["freed_bytes"], rows["aten::mm"]["peak_bytes"]) == (50, 50, 100)
    assert rows["aten::add"]["allocated_bytes"] == 200
