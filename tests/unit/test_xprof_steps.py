"""XProf's steps: which events belong to them, what their time goes on, whether they wait for input."""

from __future__ import annotations

import pytest

from roofterm.analysis.xprof.input_pipeline import xprof_input_pipeline
from roofterm.analysis.xprof.overview import duty_cycle_pct
from roofterm.analysis.xprof.step_breakdown import Activity, flattened
from roofterm_parsers.profile import Profile, Source
from roofterm_parsers.xplane.reader import read
from tests.xspace import Plane, space, tpu_plane

MS = 1_000_000_000


def opened(*planes: Plane) -> Profile:
    return read(space(*planes), Source("test.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False)


def annotated(*steps: tuple[int, int]) -> tuple[Plane, list[bytes]]:
    """Annotations of a host thread, (start, length) in ms."""
    plane = Plane("/host:CPU")
    events = [plane.event("train", start * MS, length * MS, step_num=i, _r=1) for i, (start, length) in enumerate(steps)]
    return plane, events


def test_a_host_step_is_what_its_annotation_holds_and_what_that_starts_on_other_threads() -> None:
    plane, events = annotated((0, 100), (100, 100))
    events += [plane.event("IteratorGetNext", 5 * MS, 30 * MS), plane.event("enqueue", 40 * MS, 10 * MS, _pt=7, _p=3)]
    events += [plane.event("compute", 110 * MS, 95 * MS)]  # ends after the second step, and is in none
    events += [plane.event("compute", 120 * MS, 20 * MS)]
    plane.line("main", events, id=1)
    plane.line("pool", [plane.event("run", 60 * MS, 20 * MS, _ct=7, _c=3), plane.event("inner", 65 * MS, 5 * MS)], id=2)
    plane.line("else", [plane.event("noise", 0, 200 * MS)], id=3)
    found = xprof_input_pipeline(opened(plane), "2.24.2")
    facts = [
        (row["stepnum"], row["infeedTimeMs"], row["hostComputeTimeMs"], row["otherTimeMs"], row["stepTimeMs"]) for row in found["steps"]
    ]
    assert facts == [("train 0", 30, 10 + 20, 40, 100), ("train 1", 0, 20, 80, 100)]
    # 30 of 200 ms are spent waiting for input.
    assert (found["input_pct"], found["verdict"]) == (15, "moderate")


@pytest.mark.parametrize(("version", "names"), [("2.24.2", ["train 1", "train 2", "train 3", "train 4"]), ("2.23.1", None)])
def test_of_more_than_five_steps_the_first_and_the_last_are_left_out_since_2_24(version: str, names: list[str] | None) -> None:
    plane, events = annotated(*[(i * 10, 10) for i in range(6)])
    events += [plane.event("compute", (i * 10 + 1) * MS, MS) for i in range(6)]
    plane.line("main", events)
    found = xprof_input_pipeline(opened(plane), version)["steps"]
    assert [step["stepnum"] for step in found] == (names or [f"train {i}" for i in range(6)])


def test_a_gpus_steps_are_the_kernels_that_were_launched_in_an_annotation() -> None:
    host, events = annotated((0, 10), (10, 10))
    events += [host.event("cuLaunchKernel", at * MS, MS, correlation_id=number) for at, number in ((1, 1), (5, 2), (11, 3))]
    host.line("main", events)
    gpu = Plane("/device:GPU:0", id=2)
    spans = (("half_gemm", 20, 4, 1), ("MemcpyHtoD", 30, 6, 2), ("gemm", 40, 10, 3), ("gemm", 60, 5, None))
    kernels = [
        gpu.event(name, at * MS, length * MS, **({"correlation_id": number} if number else {})) for name, at, length, number in spans
    ]
    gpu.line("Stream #1(Kernel)", kernels)
    found = xprof_input_pipeline(opened(gpu, host), "2.24.2")
    # The first step's device work lasts from 20 to 36 ms.
    assert [(row["stepTimeMs"], row["deviceComputeTimeMs"], row["infeedTimeMs"], row["otherTimeMs"]) for row in found["steps"]] == [
        (16, 4, 6, 6),
        (10, 10, 0, 0),
    ]
    assert found["verdict"] == "high"


def test_a_tpus_step_is_infeed_idle_time_and_the_rest() -> None:
    core = tpu_plane()
    feed = core.op("%infeed = f32[]", display="infeed", hlo_category="infeed", program_id=1, symbol_id=1)
    fusion = core.op("%fusion = f32[]", display="fusion", hlo_category="loop fusion", program_id=1, symbol_id=2)
    core.line("Steps", [core.event("0", 0, 100 * MS, group_id=0)], id=1)
    core.line("XLA Ops", [core.event(feed, 0, 3 * MS), core.event(fusion, 3 * MS, 77 * MS)], id=3)
    found = xprof_input_pipeline(opened(core), "2.24.2")
    [step] = found["steps"]
    assert (step["tcInfeedTimeMs"], step["tcComputeTimeMs"], step["tcIdleTimeMs"], step["stepTimeMs"]) == (3, 77, 20, 100)
    assert (found["input_pct"], found["verdict"]) == (3, "none")


def test_the_highest_of_several_activities_counts() -> None:
    spans = [(Activity.HOST_COMPUTE, 0, 10), (Activity.DEVICE_TO_HOST, 4, 6), (Activity.DEVICE_COMPUTE_16, 5, 8)]
    assert [(a.name, start, end) for a, start, end in flattened(spans)] == [
        ("HOST_COMPUTE", 0, 4),
        ("DEVICE_TO_HOST", 4, 5),
        ("DEVICE_COMPUTE_16", 5, 6),
        ("DEVICE_COMPUTE_16", 6, 8),
        ("HOST_COMPUTE", 8, 10),
    ]


def test_a_cores_duty_cycle_is_its_time_without_what_it_waits_for() -> None:
    core = tpu_plane()
    feed = core.op("%infeed = f32[]", display="infeed", hlo_category="infeed", program_id=1, symbol_id=1)
    fusion = core.op("%fusion = f32[]", display="fusion", hlo_category="loop fusion", program_id=1, symbol_id=2)
    core.line("XLA Modules", [core.event("jit_f(1)", 0, 50 * MS)], id=2)
    core.line(
        "XLA Ops", [core.event(feed, 10 * MS, 10 * MS), core.event(fusion, 20 * MS, 20 * MS), core.event(fusion, 90 * MS, 10 * MS)], id=3
    )
    # 30 ms of work between the program's start and the last op's end.
    assert duty_cycle_pct(opened(core)) == 30
