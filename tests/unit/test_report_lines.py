"""Lines of the triage report on memory, on several ranks, and on the host against the device."""

from __future__ import annotations

import pytest

from roofterm.analysis.scope import STEADY
from roofterm.analysis.study import Study
from roofterm.report.as_text import balance_line, report_text, totals_line, use_line
from roofterm.report.memory_text import memory_lines
from roofterm.report.ranks_text import ranks_lines
from roofterm.report.triage import triage
from roofterm.results import HostBalance, MemoryCurve, MemoryHolder, MemoryPool, MemoryPressure, MemoryReport, RankRow
from roofterm.text.course import course
from roofterm_parsers.profile import Kind
from tests.build import Build
from tests.unit.made_steps import GEMM, healthy, launched

GIB = 2**30


def pool(**facts: object) -> MemoryPool:
    usual = {"name": "device 0", "rank": None, "host": None, "device": 0, "on_device": True, "allocations": 9, "frees": 8}
    return MemoryPool(**{**usual, "capacity_bytes": 80 * GIB, "out_of_memory_us": [], **facts})  # type: ignore[arg-type]


def test_memory_is_its_fullest_pool_with_who_held_it_what_failed_and_what_the_driver_was_asked():
    full = pool(
        peak_bytes=60 * GIB,
        peak_us=7.0,
        peak_op="aten::mm",
        peak_step="ProfilerStep#3",
        peak_pct=90.0,
        reserved_peak_bytes=72 * GIB,
        held_before_bytes=20 * GIB,
        out_of_memory_us=[12_300.0, 9_000.0],
    )
    report = MemoryReport(
        pools=[pool(peak_bytes=10 * GIB, peak_pct=12.5), full, pool(on_device=False, peak_bytes=GIB)],
        holders=[MemoryHolder(0, "aten::cat", GIB, 1), MemoryHolder(1, "aten::mm", 30 * GIB, 3), MemoryHolder(1, None, 10 * GIB, 1)],
        steps=[],
        pressure=[MemoryPressure("cudaMalloc", 24, 43_000.0, 2.0, 10.0), MemoryPressure("cudaFree", 1, 5.0, 0.5, 1.0)],
        curves=[MemoryCurve(1, 0.0, 10.0, [0, *([30 * GIB] * 10), *([60 * GIB] * 9)], None)],
    )
    assert list(memory_lines(report, 60)) == [
        "peak 60.00 GiB in use, up to 72.00 GiB reserved of 80.00 GiB (90.0%), the fullest of 2 devices, in aten::mm, ProfilerStep#3; "
        "20.00 GiB of it from before the recording",
        "[_==========#########] over 200.0 us",
        "held at the peak by aten::mm 30.00 GiB, what is in no op 10.00 GiB",
        "out of memory 2 times, first at 9.000 ms",
        "from the driver: 24 x cudaMalloc (43.00 ms), 1 x cudaFree (5.000 us); 2.500 calls a steady step",
    ]


def test_a_narrow_terminal_gets_the_most_of_each_cell():
    report = MemoryReport([pool(peak_bytes=4)], [], [], [], curves=[MemoryCurve(0, 0.0, 1.0, [1, 4, 2, 2, 1, 1] * 10, None)])
    curve = list(memory_lines(report, len("[__________] over 60.00 us")))[1]
    # Six of the sixty parts share a cell, each six with a 4 among them.
    assert curve == "[##########] over 60.00 us"


def test_memory_of_the_host_alone_and_calls_alone_have_their_lines():
    assert list(memory_lines(MemoryReport([pool(on_device=False, peak_bytes=1024, capacity_bytes=None)], [], [], []), 60)) == [
        "peak 1.000 KiB in use, on the host"
    ]
    calls = [MemoryPressure("cudaFree", 3, 6.0, 0.0, 0.0)]
    assert list(memory_lines(MemoryReport([], [], [], calls), 60)) == ["from the driver: 3 x cudaFree (6.000 us); none in the steady steps"]


def test_the_course_of_values():
    # Seven levels: 6 and 7 of 7 share the highest.
    assert course([0, 1, 2, 3, 4, 5, 6, 7]) == "_.-=+*##"
    assert course([7, 0]) == "#_"
    assert course([0, 0]) == course([]) == ""


def rank(number: int | None, step: float, compute: float, **facts: object) -> RankRow:
    usual = {"host": None, "path": "x", "devices": 1, "steps": 3, "slowest_us": step, "comm_us": 0.0, "exposed_comm_us": 0.0}
    usual |= {"exposed_copy_us": 0.0, "idle_us": 0.0, "busy_pct": 100.0, "launches": 10.0}
    return RankRow(rank=number, step_us=step, compute_us=compute, **{**usual, **facts})  # type: ignore[arg-type]


def test_ranks_say_how_far_they_lie_apart_and_who_is_late():
    rows = [
        rank(0, 1000, 400, exposed_comm_us=300.0, exposed_wait_us=250.0),
        rank(1, 1200, 600, exposed_comm_us=100.0, exposed_wait_us=50.0, late=True, kept_waiting_us=150.0, last_pct=80.0),
        rank(2, 1100, 500, exposed_comm_us=200.0),
    ]
    assert list(ranks_lines(rows)) == [
        "3, a step: step 1.000 ms (rank 0) to 1.200 ms (rank 1); compute 400.0 us (rank 0) to 600.0 us (rank 1); "
        "exposed comm 100.0 us (rank 1) to 300.0 us (rank 0); of it waiting for others 50.00 us (rank 1) to 250.0 us (rank 0)",
        "rank 1 is late: it alone keeps the others waiting 150.0 us a step, last of all in 80.0% of the collectives",
    ]


def test_ranks_without_steps_or_names_and_one_rank_alone():
    rows = [rank(None, 1000, 400, steps=0, host="node\x1b[7"), rank(None, 1000, 900, steps=0, late=True, host="b")]
    assert list(ranks_lines(rows)) == [
        "2, in the whole file: work 1.000 ms; compute 400.0 us (node\\x1b[7) to 900.0 us (b)",
        "b is late: it computes 900.0 us in the whole file",
    ]
    assert list(ranks_lines(rows[:1])) == []


def test_the_totals_and_the_balance_of_a_loop_that_waits_for_its_host():
    """Three steps of 1,000 us, each with 20 ops of 40 us that launch 10 us each: 800 us of the host against 200 of the device."""
    build = Build()
    for number in range(3):
        start = 1000.0 * number
        build.step(number, start, 1000)
        for row in range(20):
            at = start + 50 * row
            op = build.host("aten::add", at, 40, external_id=row)
            build.kernel("vectorized_elementwise_kernel", at + 41, 10, launch=build.call(at + 30, 9), op=op)
    study = Study(build.profile())
    balance = study.host_balance()
    assert balance is not None
    # The step's own slice and its ops fill all of it; the device works 20 x 10 us, and waits from each kernel's end for the next launch's.
    assert (balance.per, balance.host_self_us, balance.device_busy_us, balance.host_to_device_ratio) == ("step", 1000, 200, 5)
    assert balance.reading == "overhead-bound"
    assert (balance.self_cpu_us, balance.self_device_us, balance.raw_ratio) == (3000, 600, 5)
    assert totals_line(study.summary(), balance) == "Self CPU time total 3.000 ms, Self CUDA time total 600.0 us (5.000 to 1)"
    said = balance_line(balance)
    assert said.startswith("1.000 ms of own work against 200.0 us of the device's (5.000 to 1) a step, synchronisation apart")
    assert said.endswith(": overhead-bound")


def test_a_copy_that_waits_for_the_device_is_no_work_of_the_host():
    """A step of 1,000 us: a kernel until 480, and from 40 on a copy to the host whose call returns when it is done, at 490."""
    build = Build()
    build.step(0, 0, 1000)
    build.kernel(GEMM, 20, 460, launch=build.call(10, 5))
    build.kernel("Memcpy DtoH (Device -> Pageable)", 480, 8, launch=build.call(40, 450, "cudaMemcpyAsync"), kind=Kind.COPY)
    balance = Study(build.profile()).host_balance()
    assert balance is not None
    assert (balance.host_self_us, balance.device_busy_us) == (1000 - 450, 468)
    # The call blocks from 40 to 490; meanwhile the kernel runs until 480 and the copy from there to 488.
    assert (balance.blocked_us, balance.blocked_busy_us) == (450, 448)


def test_time_in_which_the_device_waits_for_the_loader():
    """Two steps of 1,000 us: the loader runs until 600, then one kernel is launched that runs from 650 to 950."""
    build = Build()
    for number in range(2):
        start = 1000.0 * number
        build.step(number, start, 1000)
        build.host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, 600, kind=Kind.ANNOTATION)
        build.kernel(GEMM, start + 650, 300, launch=build.call(start + 630, 10))
    balance = Study(build.profile()).host_balance()
    assert balance is not None
    # The step as the device sees it begins and ends with the host's; it waits for the loader until 600, then for the launch.
    assert balance.input_wait_us == pytest.approx(600)
    assert balance.input_wait_pct == pytest.approx(60)


def test_a_healthy_loop_is_compute_bound_and_a_few_launches_say_nothing():
    balance = Study(healthy().profile()).host_balance()
    assert balance is not None
    assert balance.reading == "compute-bound"
    build = Build()
    launched(build, GEMM, 0, 10, 100)
    few = Study(build.profile()).host_balance()
    assert few is not None
    assert few.reading is None
    assert Study(Build().profile()).host_balance() is None


@pytest.mark.parametrize("reading", ["overhead-bound", "compute-bound", "neither", None])
def test_every_reading_has_words(reading: str | None):
    balance = HostBalance("window", 1.0, 2.0, 0.5, None, None, None, 0.0, reading)
    said = balance_line(balance)
    assert ("in the window" in said, said.endswith(": " + (reading or ""))) == (True, reading in ("overhead-bound", "compute-bound"))


def test_the_use_of_a_step_is_the_mean_of_the_steady_ones_that_know_it():
    steps = Study(healthy(steps=3).profile()).steps()
    for step, share in zip(steps, (10.0, 20.0, None), strict=True):
        step.tensor_core_pct, step.sm_efficiency_pct, step.host_busy_pct, step.steady = share, None, 50.0, True
    assert use_line(steps) == "tensor cores 15.0%, host busy 50.0% of the step"
    steps[1].steady = False
    assert use_line(steps) == "tensor cores 10.0%, host busy 50.0% of the step"
    assert use_line([]) == ""


def test_one_iteration_is_called_one():
    report = triage(Study(healthy(steps=1).profile()), STEADY, 5)
    report.steps_told_by = "engine"
    assert any(line.startswith("iteration  1,") for line in report_text(report, 100))
