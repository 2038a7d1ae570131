"""XProf's steps: which events belong to them, what their time goes on, whether they wait for input."""

from __future__ import annotations

import pytest

from roofterm.analysis.xprof.input_ops import input_breakdown, input_category
from roofterm.analysis.xprof.input_pipeline import xprof_input_pipeline
from roofterm.analysis.xprof.overview import duty_cycle_pct
from roofterm.analysis.xprof.step_breakdown import Activity, flattened
from roofterm_parsers.profile import Profile, Source
from roofterm_parsers.xplane.reader import read
from tests.xspace import Plane, Signed, space, tpu_plane

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
    # The first step's device work lasts from 20 to 36 ms; what nothing has launched goes on with the second, but is no work of it.
    assert [(row["stepTimeMs"], row["deviceComputeTimeMs"], row["infeedTimeMs"], row["otherTimeMs"]) for row in found["steps"]] == [
        (16, 4, 6, 6),
        (25, 10, 0, 15),
    ]
    assert found["verdict"] == "moderate"  # 6 of 41 ms


def test_a_gpus_step_without_length_is_none() -> None:
    host, events = annotated(*[(i * 10, 10) for i in range(6)])
    events += [host.event("cuLaunchKernel", (i * 10 + 1) * MS, MS, correlation_id=i + 1) for i in range(6)]
    host.line("main", events)
    gpu = Plane("/device:GPU:0", id=2)
    gpu.line("Stream #1(Kernel)", [gpu.event("gemm", i * 10 * MS, (i % 5) * MS, correlation_id=i + 1) for i in range(6)])
    # Steps 0 and 5 take no time; the four others are few enough that none is left out.
    assert [row["stepTimeMs"] for row in xprof_input_pipeline(opened(gpu, host), "2.24.2")["steps"]] == [1, 2, 3, 4]


def test_a_tpus_step_is_infeed_idle_time_and_the_rest() -> None:
    core = tpu_plane()
    feed = core.op("%infeed = f32[]", display="infeed", hlo_category="infeed", program_id=1, symbol_id=1)
    fusion = core.op("%fusion = f32[]", display="fusion", hlo_category="loop fusion", program_id=1, symbol_id=2)
    core.line("Steps", [core.event("0", 0, 100 * MS)], id=1)
    core.line("XLA Ops", [core.event(feed, 0, 3 * MS), core.event(fusion, 3 * MS, 77 * MS)], id=3)
    found = xprof_input_pipeline(opened(core), "2.24.2")
    [step] = found["steps"]
    assert (step["tcInfeedTimeMs"], step["tcComputeTimeMs"], step["tcIdleTimeMs"], step["stepTimeMs"]) == (3, 77, 20, 100)
    assert (found["input_pct"], found["verdict"]) == (3, "none")


def test_a_core_that_waits_for_a_sparsecore_does_so_beyond_the_conversion_of_its_own() -> None:
    core = tpu_plane()
    names = ("sparsecorev0 infeed", "sparsecorev0 outfeed", "loop fusion")
    ops = [core.op(f"%op.{i} = f32[]", display=f"op.{i}", hlo_category=name, program_id=1, symbol_id=i + 1) for i, name in enumerate(names)]
    core.line("Steps", [core.event("0", 0, 100 * MS)], id=1)
    core.line(
        "XLA Ops", [core.event(op, at * MS, length * MS) for op, at, length in zip(ops, (0, 30, 40), (30, 10, 50), strict=True)], id=3
    )
    [step] = xprof_input_pipeline(opened(core), "2.24.2")["steps"]
    # 30 ms of infeed, of which 10 are the same conversion as the outfeed's; 10 ms nothing runs. XProf, profile_time_breakdown.cc.
    assert (step["scv0ComputeTimeMs"], step["scv0InfeedTimeMs"], step["tcComputeTimeMs"], step["tcIdleTimeMs"]) == (20, 0, 70, 10)


def test_infeed_is_given_as_a_share_of_each_core() -> None:
    cores = []
    for number, infeed in enumerate((10, 40)):
        core = tpu_plane(number)
        feed = core.op("%infeed = f32[]", display="infeed", hlo_category="infeed", program_id=1, symbol_id=1)
        work = core.op("%fusion = f32[]", display="fusion", hlo_category="loop fusion", program_id=1, symbol_id=2)
        core.line("Steps", [core.event("0", 0, 100 * MS)], id=1)
        core.line("XLA Ops", [core.event(feed, 0, infeed * MS), core.event(work, infeed * MS, (100 - infeed) * MS)], id=3)
        cores.append(core)
    [step] = xprof_input_pipeline(opened(*cores), "2.24.2")["steps"]
    assert [step[f"infeedPercent{which}"] for which in ("Average", "Min", "Max")] == [25, 10, 40]
    # The step computes as the core that computes least, 60 ms, and waits as the one that waits longest, 40.
    assert (step["tcComputeTimeMs"], step["tcInfeedTimeMs"], step["tcIdleTimeMs"]) == (60, 40, 0)


@pytest.mark.parametrize(
    ("name", "kind", "category"),
    [
        ("Iterator::Prefetch", "Dataset", "Preprocessing"),
        ("Iterator::Batch::TFRecord", "Dataset", "Demanded file read"),
        ("Iterator::Root::Prefetch::TFRecord", "Dataset", "Advanced file read"),
        ("a", "InfeedEnqueueTuple", "Enqueue"),
        ("MemcpyHtoD", "MemcpyHToD", "Enqueue"),
        ("IteratorGetNext", "IteratorGetNext", None),
    ],
)
def test_what_an_op_does_for_the_input(name: str, kind: str, category: str | None) -> None:
    assert input_category(name, kind) == category


def test_the_hosts_input_time_follows_from_what_is_sent() -> None:
    rows = [
        {"category": category, "selfTimeInMs": ms} for category, ms in (("Enqueue", 10), ("Preprocessing", 30), ("Demanded file read", 10))
    ]
    # A quarter of the time goes into sending, 10 ms: 30 ms into the rest, three quarters of it preprocessing.
    assert input_breakdown(rows, 0.25) == {
        "enqueue_us": 10_000,
        "demanded_file_read_us": 7_500,
        "advanced_file_read_us": 0,
        "preprocessing_us": 22_500,
        "unclassified_nonequeue_us": 0,
    }
    assert input_breakdown(rows, 0)["preprocessing_us"] == 30_000


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


def stepped_core(programs: int = 4, started: tuple[int, ...] = (), named: bool = False, id: int = 0) -> Plane:
    """A step of 90 ms each 100 ms with one program and one op; `started` programs are ends of launches, `named` ops state steps."""
    core = tpu_plane(id)
    fusion = core.op("%fusion = f32[]", display="fusion", hlo_category="loop fusion", program_id=1, symbol_id=1)
    starts = [i * 100 * MS for i in range(programs)]
    launches = {i: {"_ct": 12, "_c": 70 + i} for i in started}
    states = [{"group_id": Signed(20 + i)} if named else {} for i in range(programs)]
    core.line("Steps", [core.event(str(20 + i), at, 90 * MS, **states[i]) for i, at in enumerate(starts)], id=1)
    core.line("XLA Modules", [core.event("jit_f(1)", at, 90 * MS, **launches.get(i, {})) for i, at in enumerate(starts)], id=2)
    core.line("XLA Ops", [core.event(fusion, at + MS, 40 * MS, **states[i]) for i, at in enumerate(starts)], id=3)
    return core


def launching(annotations: int, each: int = 1, launches: tuple[int, ...] = ()) -> Plane:
    """Annotations on the host, in each of which this many launches may begin."""
    host, events = annotated(*[(i * 50, 40) for i in range(annotations)])
    events += [host.event("launch", (n // each * 50 + 1 + 3 * (n % each)) * MS, MS, _pt=12, _p=70 + n) for n in launches]
    host.line("main", events)
    return host


def steps_of(*planes: Plane) -> list[tuple[str, float]]:
    return [(step["stepnum"], step["stepTimeMs"]) for step in xprof_input_pipeline(opened(*planes), "2.24.2")["steps"]]


# What XProf 2.24.2 itself gives for these planes.


def test_steps_of_a_core_are_numbered_after_the_hosts_when_the_host_starts_none_of_them() -> None:
    assert steps_of(stepped_core(3), launching(2)) == [("2", 90), ("3", 90), ("4", 90)]
    assert steps_of(stepped_core(3)) == [("0", 90), ("1", 90), ("2", 90)]


def test_steps_of_a_core_that_the_hosts_annotations_start_take_their_numbers_and_the_others_are_dropped() -> None:
    assert steps_of(stepped_core(started=(1, 2)), launching(4, launches=(1, 2))) == [("1", 90), ("2", 90)]


def test_programs_that_one_annotation_starts_are_one_step() -> None:
    all_four = (0, 1, 2, 3)
    assert steps_of(stepped_core(started=all_four), launching(2, each=2, launches=all_four)) == [("0", 190), ("1", 190)]


def test_the_steps_of_a_grouped_file_are_those_that_it_states() -> None:
    assert steps_of(stepped_core(3, named=True)) == [("20", 90), ("21", 90), ("22", 90)]


def test_ops_that_state_other_steps_than_those_of_an_ungrouped_file_are_in_none() -> None:
    assert steps_of(stepped_core(3, named=True), launching(2)) == []


def test_of_two_cores_the_one_whose_steps_nothing_starts_has_none() -> None:
    assert steps_of(stepped_core(started=(0, 1)), stepped_core(id=1), launching(3, launches=(0, 1))) == [("0", 90), ("1", 90)]
