"""Step windows and the breakdown that adds up, on traces small enough to count by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from roofterm.analysis.steps import device_lines, step_rows, step_windows
from roofterm.analysis.work import WorkClass, device_work
from roofterm.results import StepRow
from roofterm_parsers.profile import Kind, Profile
from tests.build import Build


def rows(profile: Profile, communication: tuple[str, ...] = ()) -> list[StepRow]:
    names = profile.names["text"].gather(profile.slices["name"])
    wire = np.flatnonzero(names.is_in(list(communication)).to_numpy())
    classes = pl.DataFrame(
        {"slice": wire, "work_class": [int(WorkClass.COMMUNICATION)] * wire.size}, schema={"slice": pl.UInt32, "work_class": pl.UInt8}
    )
    work = device_work(profile, profile.slices["dur_ps"].to_numpy(), classes)
    return step_rows(profile, step_windows(profile, work), device_lines(profile, work))


def test_without_device_work_a_step_is_the_hosts():
    build = Build()
    build.step(0, 10, 100)
    (step,) = rows(build.profile())
    assert (step.start_us, step.dur_us, step.host_dur_us, step.compute_us) == (10, 100, 100, None)


def test_a_step_lasts_until_the_work_it_launched_has_ended():
    build = Build()
    build.step(0, 0, 100)
    build.kernel("k", 90, 60, launch=build.call(50, 5))
    (step,) = rows(build.profile())
    # The host step ends at 100, its kernel at 150.
    assert (step.start_us, step.dur_us, step.host_dur_us) == (0, 150, 100)
    assert (step.compute_us, step.idle_us) == (60, 90)


def test_the_host_runs_ahead_and_steps_follow_the_device():
    """Host steps of 10 us each launch a kernel of 100 us: the device's period is 100 us, whatever the host says."""
    build = Build()
    launches = []
    for number in range(3):
        build.step(number, 10 * number, 10)
        launches.append(build.call(10 * number + 1, 1))
    for number, launch in enumerate(launches):
        build.kernel("k", 5 + 100 * number, 100, launch=launch)
    steps = rows(build.profile())
    # Step 0 starts with the host at 0 and ends with its kernel at 105; the others start where the one before ended.
    assert [(s.start_us, s.dur_us) for s in steps] == [(0, 105), (105, 100), (205, 100)]
    assert [s.idle_us for s in steps] == [5, 0, 0]


def test_the_first_step_starts_after_the_work_launched_before_the_window():
    build = Build()
    build.kernel("orphan", 0, 30)
    build.step(0, 20, 50)
    build.kernel("k", 40, 20, launch=build.call(25, 2))
    (step,) = rows(build.profile())
    assert (step.start_us, step.dur_us) == (30, 40)


def test_breakdown_takes_compute_before_communication_before_copies_and_adds_up():
    build = Build()
    build.step(0, 0, 100)
    launch = build.call(0, 1)
    build.kernel("gemm", 10, 30, stream=7, launch=launch)  # compute 10..40
    build.kernel("nccl", 30, 30, stream=8, launch=launch)  # communication 30..60, exposed 40..60
    build.kernel("Memcpy HtoD", 50, 20, stream=9, launch=launch, kind=Kind.COPY)  # copy 50..70, exposed 60..70
    (step,) = rows(build.profile(), ("nccl",))
    assert (step.compute_us, step.exposed_comm_us, step.exposed_copy_us, step.idle_us) == (30, 20, 10, 40)
    assert (step.comm_us, step.copy_us) == (30, 20)
    assert step.dur_us == 30 + 20 + 10 + 40
    assert (step.busy_pct, step.compute_busy_pct) == (60, 30)


def test_idle_is_host_wait_until_the_next_launch_has_ended_then_kernel_gap():
    build = Build()
    build.step(0, 0, 100)
    build.kernel("a", 5, 15, launch=build.call(0, 4))  # gap 0..5: the call ends at 4, so 4 host wait and 1 kernel gap
    build.kernel("b", 50, 50, launch=build.call(30, 10))  # gap 20..50: the call ends at 40, so 20 and 10
    (step,) = rows(build.profile())
    assert (step.idle_us, step.host_wait_us, step.kernel_gap_us) == (35, 24, 11)


def test_a_gap_before_work_without_a_launch_is_neither_wait_nor_kernel_gap():
    build = Build()
    build.step(0, 0, 100)
    build.kernel("a", 0, 20, launch=build.call(0, 0.5))
    build.kernel("orphan", 60, 10)
    (step,) = rows(build.profile())
    assert (step.idle_us, step.host_wait_us, step.kernel_gap_us) == (70, 0, 0)


def test_launches_are_counted_once_for_many_kernels():
    build = Build()
    build.step(0, 0, 100)
    graph = build.call(0, 5, name="cudaGraphLaunch")
    for at in range(4):
        build.kernel("k", 10 + 5 * at, 5, launch=graph)
    build.kernel("k", 50, 5, launch=build.call(40, 5))
    (step,) = rows(build.profile())
    assert step.launches == 2
    assert step.launched_device_us == 25


def test_a_slow_first_step_is_not_steady():
    build = Build()
    for number, (start, length) in enumerate([(0, 200), (200, 100), (300, 100), (400, 100)]):
        build.step(number, start, length)
        build.kernel("k", start + 10, length - 20, launch=build.call(start + 1, 2))
    # The median of the four is 100; the first takes 200 > 1.5 x 100.
    assert [s.steady for s in rows(build.profile())] == [False, True, True, True]


def test_a_last_step_with_a_fraction_of_the_work_is_not_complete():
    build = Build()
    for number, pieces in enumerate((10, 10, 7)):
        build.step(number, 100 * number, 100)
        for piece in range(pieces):
            build.kernel("k", 100 * number + 10 + 5 * piece, 4, launch=build.call(100 * number + 2 + piece, 1))
    # 7 < 0.8 x 10
    assert [s.complete for s in rows(build.profile())] == [True, True, False]


def test_a_step_with_compilation_inside_is_not_steady():
    build = Build()
    for number in range(3):
        build.step(number, 100 * number, 100)
        build.kernel("k", 100 * number + 20, 60, launch=build.call(100 * number + 2, 1))
    build.host("_compile.compile_inner (dynamo_timed)", 110, 30)
    assert [s.steady for s in rows(build.profile())] == [True, False, True]


def test_running_what_was_compiled_is_steady():
    """The frames around each call of a compiled graph come from the same files as compilation, but compile nothing."""
    build = Build()
    for number in range(3):
        build.step(number, 100 * number, 100)
        build.host("torch/_inductor/compile_fx.py(1767): run", 100 * number + 1, 20, Kind.PYTHON)
        build.kernel("k", 100 * number + 30, 60, launch=build.call(100 * number + 2, 1))
    assert [s.steady for s in rows(build.profile())] == [True, True, True]


@pytest.mark.parametrize("seed", range(20))
def test_breakdown_adds_up_on_random_work(seed: int):
    random = np.random.default_rng(seed)
    build = Build()
    build.step(0, 0, 1000)
    launch = build.call(0, 1)
    for name, stream in (("gemm", 7), ("nccl", 8), ("copy", 9)):
        at = 0.0
        for _ in range(20):
            at += float(random.integers(1, 40))
            dur = float(random.integers(1, 30))
            build.kernel(name, at, dur, stream=stream, launch=launch, kind=Kind.COPY if name == "copy" else Kind.KERNEL)
            at += dur
    (step,) = rows(build.profile(), ("nccl",))
    parts = (step.compute_us, step.exposed_comm_us, step.exposed_copy_us, step.idle_us)
    assert sum(p for p in parts if p is not None) == pytest.approx(step.dur_us, abs=1e-9)
