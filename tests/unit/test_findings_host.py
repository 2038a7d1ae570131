"""Findings about the host: each fires on a loop that has the fault and is silent on the same loop without it."""

from __future__ import annotations

import pytest

from roofterm_parsers.profile import Kind, Profile
from tests.build import Build
from tests.unit.made_steps import GEMM, KERNEL, STEP, findings, healthy, healthy_step, launched, with_flags


def test_nothing_is_found_in_a_healthy_loop():
    assert findings(healthy().profile()) == {}


def dispatching(gap: float, op_us: float = 8, kernels: int = 40, dur: float = 50.0) -> Profile:
    """Two steps of kernels of 50 us; the host launches each `gap` us after the one before has ended."""
    build = Build()
    period = dur + gap
    length = kernels * period
    for number in range(2):
        start = number * length
        build.step(number, start, length)
        for row in range(kernels):
            at = start + row * period + gap  # the kernel starts here; its call has just ended
            op = build.host("aten::mm", at - op_us, op_us, external_id=1)
            build.kernel(GEMM, at, dur, launch=build.call(at - 4, 4), op=op)
    return build.profile()


def test_overhead_bound_is_the_idle_time_while_the_host_dispatches():
    # 40 kernels of 50 us, each 150 us after the one before: 6,000 us of 8,000 idle, all of it until a launch has ended.
    found = findings(dispatching(gap=150))["overhead-bound"]
    assert found.time_at_stake_us == pytest.approx(6000)
    assert found.share_of_step_pct == pytest.approx(75)
    assert found.severity == "high"
    assert found.evidence["device_busy_us"] == pytest.approx(2000)
    # Host self time: the whole step of 8,000 us, since everything lies within its annotation.
    assert found.evidence["host_to_device_ratio"] == pytest.approx(4)


def test_overhead_bound_is_silent_where_the_host_keeps_ahead():
    # 2 us between kernels of 50 us: 80 of 2,080 us.
    assert "overhead-bound" not in findings(dispatching(gap=2))


def test_host_findings_drop_one_severity_and_name_the_flags():
    found = findings(with_flags(dispatching(gap=150), with_stack=1, record_shapes=1))["overhead-bound"]
    assert found.severity == "medium"
    assert found.evidence["slowed_by_flags"] == ["with_stack", "record_shapes"]
    assert "with_stack, record_shapes" in found.advice


def small(gap: float, dur: float) -> Profile:
    """One step of 100 kernels launched long before, `gap` us apart on the device."""
    build = Build()
    build.step(0, 0, 100 * (dur + gap))
    for row in range(100):
        launched(build, GEMM, 1 + 0.01 * row, 6 + row * (dur + gap), dur, op=None)
    return build.profile()


def test_many_small_kernels_claim_the_gaps_before_them():
    # 100 kernels of 4 us with 3 us between, all launched within the first 7 us: 99 gaps, and 6 us until the first launch has ended.
    found = findings(small(gap=3, dur=4))["many-small-kernels"]
    assert found.evidence["kernels_under_10_us"] == 100
    assert found.evidence["kernel_gaps_us"] == pytest.approx(99 * 3)
    assert found.time_at_stake_us == pytest.approx(99 * 3 + 6)


@pytest.mark.parametrize(("gap", "dur"), [(0.1, 4), (3, 40)])
def test_many_small_kernels_are_silent_without_gaps_or_with_long_kernels(gap: float, dur: float):
    assert "many-small-kernels" not in findings(small(gap, dur))


def syncing(wait: bool) -> Profile:
    """Four steps of 25 kernels of 200 us. With `wait` the host reads a value at each step's end: the call lasts until the device
    has run dry, and the next step's first kernel starts 900 us after it, when the host has prepared and launched it."""
    build = Build()
    ready = 0.0
    for number in range(4):
        start = ready
        prepare = 900.0 if wait else 0.0
        build.step(number, start, prepare + 5000 + (0 if wait else 5))
        for row in range(25):
            at = start + prepare + row * 200
            launched(build, GEMM, start + prepare - 8 + 0.3 * row if row else start + prepare - 5, at, 200, op=None)
        end = start + prepare + 5000
        if wait:
            item = build.host("aten::_local_scalar_dense", end - 4500, 4500, external_id=2)
            assert item is not None
            build.host("cudaStreamSynchronize", end - 4400, 4400, Kind.SYNC)
        ready = end
    return build.profile()


def test_blocking_syncs_claim_the_idle_time_until_the_host_has_launched_again():
    found = findings(syncing(wait=True))["blocking-syncs"]
    # The wait of 4,400 us is longer than the 900 us of idle time after it, so all of that is claimed, but for the last step's.
    assert found.evidence["worst_call"] == "cudaStreamSynchronize"
    assert found.evidence["worst_op"] == "aten::_local_scalar_dense"
    assert found.time_at_stake_us == pytest.approx(900 * 3 / 4, rel=0.02)
    assert found.share_of_step_pct == pytest.approx(100 * 900 * 3 / 4 / 5900, rel=0.02)


def test_blocking_syncs_are_silent_without_them_and_for_the_one_that_flushes_the_profiler():
    build = healthy()
    build.host("cudaDeviceSynchronize", 4 * STEP - 3000, 3000, Kind.SYNC)
    assert "blocking-syncs" not in findings(build.profile())
    assert "blocking-syncs" not in findings(syncing(wait=False))


def loading(us: float, name: str = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__") -> Profile:
    """Four steps that begin with `us` of loading, followed by 5 ms of device work."""
    build = Build()
    length = us + 5000
    for number in range(4):
        start = number * length
        build.step(number, start, length)
        build.host(name, start, us, Kind.ANNOTATION)
        for row in range(25):
            launched(build, GEMM, start + us + 1 + row * 9, start + us + 20 + row * 199, 199)
    return build.profile()


def test_input_bound_is_idle_time_under_the_loader():
    found = findings(loading(2500))["input-bound"]
    # 2,500 us of each 7,500 us; the last kernel of a step ends within its first 20 us of the next.
    assert found.time_at_stake_us == pytest.approx(2500, rel=0.01)
    assert found.share_of_step_pct == pytest.approx(100 / 3, rel=0.01)
    assert "num_workers" in found.advice


def test_input_bound_is_silent_for_a_quick_loader_and_for_one_that_the_device_covers():
    assert "input-bound" not in findings(loading(200))
    build = healthy()
    for number in range(4):  # the host loads the next batch while the device works
        build.host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", number * STEP + 400, 6000, Kind.ANNOTATION)
    assert "input-bound" not in findings(build.profile())


def test_input_bound_on_a_host_alone_is_the_loaders_time():
    build = Build()
    for number in range(3):
        build.step(number, number * 1000, 1000)
        build.host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", number * 1000, 400, Kind.ANNOTATION)
        build.host("aten::mm", number * 1000 + 400, 600)
    found = findings(build.profile())["input-bound"]
    assert found.time_at_stake_us == pytest.approx(400)
    assert found.share_of_step_pct == pytest.approx(40)


def pausing(us: float) -> Profile:
    """A healthy step, then `us` in which the host writes a checkpoint before it launches again."""
    build = Build()
    length = STEP + us
    for number in range(3):
        start = number * length
        build.step(number, start, length)
        build.host("save_checkpoint", start, us, Kind.ANNOTATION)
        for row in range(30):
            launched(build, GEMM, start + us + 10 + row * 9, start + us + 50 + row * KERNEL, KERNEL)
    return build.profile()


def test_host_pauses_name_what_the_host_did():
    found = findings(pausing(3000))["host-pauses"]
    # Idle from the last kernel's end (step end - 50) until the next launch has ended: 50 + 3,000 + 15 us, in three steps of 13,000.
    assert found.evidence["longest_doing"] == "save_checkpoint"
    assert found.time_at_stake_us == pytest.approx(3000 + 15 + 50 * 2 / 3, rel=0.01)


def test_host_pauses_are_silent_below_a_millisecond():
    assert "host-pauses" not in findings(pausing(300))


def uneven(last: float) -> Profile:
    build = Build()
    start = 0.0
    for number, length in enumerate([1000, 1000, 1000, last]):
        build.step(number, start, length)
        for row in range(20):
            launched(build, GEMM, start + 1 + row, start + 30 + row * 45, 45)
        start += length
    return build.profile()


def test_uneven_steps_claim_what_exceeds_the_median():
    found = findings(uneven(1600))["uneven-steps"]
    # Median 1,000; the last takes 600 more: 150 of a mean of 1,150.
    assert found.time_at_stake_us == pytest.approx(150)
    assert found.share_of_step_pct == pytest.approx(100 * 150 / 1150)
    assert found.evidence["slowest"] == "ProfilerStep#3"


def test_uneven_steps_are_silent_for_even_ones_and_for_two():
    assert "uneven-steps" not in findings(uneven(1050))
    build = Build()
    build.step(0, 0, 1000)
    build.step(1, 1000, 1900)
    assert "uneven-steps" not in findings(build.profile())


def test_warm_up_is_the_excess_of_the_first_steps():
    build = Build()
    for number, (start, length) in enumerate([(0, 5000), (5000, 1000), (6000, 1000), (7000, 1000)]):
        build.step(number, start, length)
        build.host("aten::mm", start, length)
    found = findings(build.profile())["warm-up-in-window"]
    assert found.time_at_stake_us == pytest.approx(4000)
    assert found.share_of_step_pct == pytest.approx(80)
    assert "warm-up-in-window" not in findings(healthy().profile())


def starting(slow: float) -> Profile:
    """A stream is created and a kernel launched for the first time before the steps begin."""
    build = Build()
    build.call(0, slow, "cudaStreamCreateWithFlags")
    build.kernel(GEMM, slow + 10, 5, launch=build.call(slow + 2, 6))
    for number in range(3):
        healthy_step(build, number, slow + 100 + number * STEP)
    return build.profile()


def test_cold_start_is_waiting_for_calls_of_start_up():
    found = findings(starting(20_000))["cold-start"]
    assert found.time_at_stake_us == pytest.approx(20_000)
    # The file spans 20,000 + 100 + 30,000 us.
    assert found.share_of_step_pct == pytest.approx(100 * 20_000 / 50_100)
    assert found.evidence["worst"] == "cudaStreamCreateWithFlags"


def test_cold_start_is_silent_for_calls_that_are_quick_and_for_occupancy_queries():
    assert "cold-start" not in findings(starting(50))
    build = healthy()
    for number in range(4):
        build.call(number * STEP + 9000, 900, "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")
    assert "cold-start" not in findings(build.profile())


def test_cold_start_tells_the_first_launch_of_a_kernel_from_a_full_queue():
    build = Build()
    build.kernel(GEMM, 6000, 5, launch=build.call(500, 5495))  # loads its module: the device waits
    for row in range(40):
        launched(build, GEMM, 6010 + 10 * row, 6020 + 100 * row, 100)
    assert findings(build.profile())["cold-start"].evidence["start_up_us"] == pytest.approx(5495, rel=0.01)
    build = Build()
    build.kernel(GEMM, 0, 9000, launch=build.call(0, 5))
    build.kernel("other_gemm", 9000, 100, launch=build.call(500, 8400))  # as long, but the device works meanwhile
    assert "cold-start" not in findings(build.profile())


def compiled(us: float, name: str = "_compile.compile_inner (dynamo_timed)") -> Profile:
    build = Build()
    start = 0.0
    for number, length in enumerate([us + 1000, 1000, 1000, 1000]):
        build.step(number, start, length)
        if number == 0 and us:
            build.host(name, start + 100, us)
        build.host("aten::mm", start + length - 900, 800)
        start += length
    return build.profile()


def test_compile_in_window_is_the_union_of_compilation():
    found = findings(compiled(50_000))["compile-in-window"]
    assert found.time_at_stake_us == pytest.approx(50_000)
    assert found.share_of_step_pct == pytest.approx(100 * 50_000 / 51_000)
    assert found.evidence["steps"] == ["ProfilerStep#0"]
    assert "warm-up-in-window" not in findings(compiled(50_000))


@pytest.mark.parametrize(
    "name",
    ["torch/_inductor/compile_fx.py(1767): run", "Torch-Compiled Region: 0/0", "TorchDynamo Cache Lookup"],
)
def test_running_compiled_code_is_no_compilation(name: str):
    assert "compile-in-window" not in findings(compiled(50_000, name))
    assert "compile-in-window" not in findings(compiled(0))


def regions(between: float, frames: tuple[int, ...] = (0, 1, 2), upkeep: float = 2, inside: float = 3) -> Profile:
    """Three steps of 15 compiled regions: a look-up, three launches of `inside` + 3 us, three kernels of 30 us after each other.

    The host goes on to the next region `between` us after the third launch or, if that is later, 90 us after the region's start.
    """
    build = Build()
    clock = free = 0.0
    for number in range(3):
        begin = clock
        for frame in frames * 5:
            build.host("TorchDynamo Cache Lookup", clock, upkeep)
            start = clock + upkeep
            build.host(f"Torch-Compiled Region: {frame}/0", start, 3 * (inside + 3))
            for row in range(3):
                ended = start + (row + 1) * (inside + 3)
                free = max(free, ended)
                build.kernel("triton_poi_fused_add_0", free, 30, launch=build.call(ended - 3, 3))
                free += 30
            clock = start + max(90.0, 3 * (inside + 3)) + between
        build.step(number, begin, clock - begin)
    return build.profile()


def test_graph_breaks_are_the_idle_time_between_regions_of_different_frames():
    found = findings(regions(between=200))["graph-breaks"]
    assert found.evidence["compiled_frames"] == 3
    # A region's kernels end 6 + 90 us after its start, the next region starts 90 + 200 + 2 us after it: 196 us, between 45 regions.
    assert found.time_at_stake_us == pytest.approx(44 * 196 / 3)
    assert "graph-breaks" not in findings(regions(between=200, frames=(0, 0, 0)))
    assert "graph-breaks" not in findings(regions(between=1))


def test_guard_cost_is_the_idle_time_of_look_ups():
    found = findings(regions(between=1, upkeep=120))["guard-cost"]
    # The kernels end 96 us after the region's start, the look-up lasts from 91 to 211: 115 us before all regions but the first.
    assert found.time_at_stake_us == pytest.approx((44 * 115 + 120) / 3)
    assert "guard-cost" not in findings(regions(between=1, upkeep=1))


def test_compiled_overhead_compares_the_host_in_a_region_with_its_device_work():
    found = findings(regions(between=1, inside=200))["compiled-overhead"]
    # 3 launches of 203 us for 3 kernels of 30 us.
    assert found.evidence["host_us"] == pytest.approx(15 * 609)
    assert found.evidence["device_us"] == pytest.approx(15 * 90)
    assert "compiled-overhead" not in findings(regions(between=1))


def querying(calls: int) -> Profile:
    """Kernels of 20 us; after each the host asks the driver `calls` times for 2 us and launches the next in 5 us."""
    build = Build()
    build.step(0, 0, 100 * (2 * calls + 30))
    clock = 0.0
    for _ in range(100):
        for _ in range(calls):
            build.call(clock, 2, "hipGetDevicePropertiesR0600")
            clock += 2
        build.kernel(GEMM, clock + 5, 20, launch=build.call(clock, 5, "hipLaunchKernel"))
        clock += 25
    return build.profile()


def test_query_storm_counts_the_idle_time_of_queries():
    found = findings(querying(12))["query-storm"]
    assert found.evidence["calls"] == 1200
    # Before each of the 100 kernels the host asks 12 times for 2 us, and begins when the kernel before has ended.
    assert found.time_at_stake_us == pytest.approx(100 * 24)
    assert "query-storm" not in findings(querying(1))


def allocating(us: float) -> Profile:
    build = Build()
    for number in range(3):
        start = number * (STEP + us)
        build.step(number, start, STEP + us)
        build.call(start, us, "cudaMalloc")
        for row in range(30):
            launched(build, GEMM, start + us + 10 + row * 9, start + us + 50 + row * KERNEL, KERNEL)
    return build.profile()


def test_allocations_in_the_step_are_found_there_and_not_as_cold_start():
    found = findings(allocating(800))
    assert found["allocations-in-step"].time_at_stake_us == pytest.approx(800, rel=0.01)
    assert "cold-start" not in found
    assert "allocations-in-step" not in findings(allocating(10))


def test_profiler_overhead_is_told_apart_and_never_more_than_a_remark():
    build = Build()
    build.step(0, 0, 12_000)
    build.host("Activity Buffer Request", 0, 2000, Kind.OVERHEAD)
    for row in range(30):
        launched(build, GEMM, 2010 + 9 * row, 2050 + row * KERNEL, KERNEL)
    found = findings(build.profile())
    assert found["profiler-overhead"].severity == "info"
    assert found["profiler-overhead"].time_at_stake_us == pytest.approx(2000)
    assert "host-pauses" not in found
    assert "profiler-overhead" not in findings(healthy().profile())


def decoding(graph: bool, name: str = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)") -> Profile:
    """Five iterations of decode: 60 kernels of 5 us each, 20 us apart when they are launched one by one."""
    build = Build()
    for iteration in range(5):
        start = iteration * 1600.0
        build.host(name, start, 1550, Kind.ANNOTATION)
        call = build.call(start + 10, 20, "cudaGraphLaunch") if graph else None
        for row in range(60):
            at = start + 40 + row * (5.2 if graph else 25)
            build.kernel(GEMM, at, 5, launch=call if call is not None else build.call(at - 6, 5))
    return build.profile()


def test_graphs_are_missed_only_where_decode_is_launched_kernel_by_kernel():
    found = findings(decoding(graph=False))["graphs-missing-in-decode"]
    assert found.evidence["launches_in_them"] == 60
    # Between two kernels of an iteration the host needs 19 of 20 us until the launch has ended, 59 times, and 39 us before the first;
    # an iteration's annotation ends 30 us after its last kernel, which in all but the last is waiting for the next one's launch.
    assert found.time_at_stake_us == pytest.approx(59 * 19 + 39 + 30 * 4 / 5)
    assert "graphs-missing-in-decode" not in findings(decoding(graph=True))
    assert "graphs-missing-in-decode" not in findings(decoding(graph=False, name="forward"))


def ranges(long: str) -> Profile:
    """Six ranges that no profiler marked as steps, of 12 kernels each; the last two run the kernel `long` for three times as long."""
    build = Build()
    start = 0.0
    for number in range(6):
        slow = number >= 4
        build.host("infer", start, 3700 if slow else 1300, Kind.ANNOTATION)
        for row in range(12):
            launched(build, long if slow else GEMM, start + 10 + 9 * row, start + 30 + row * (300 if slow else 100), 300 if slow else 100)
        start += 3700 if slow else 1300
    return build.profile()


def test_iterations_of_different_programs_are_not_compared():
    assert findings(ranges(GEMM))["uneven-steps"].evidence["slowest_us"] == pytest.approx(3700, rel=0.05)
    assert "uneven-steps" not in findings(ranges("another_program"))
