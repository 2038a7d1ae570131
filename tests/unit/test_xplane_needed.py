"""Which lines of a TPU's profile are read for a roofline of its devices, and that leaving the others out changes no answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofterm.analysis.host_names import TELLING
from roofterm.analysis.scope import ALL, STEADY
from roofterm.analysis.scope_use import scope_use
from roofterm.analysis.study import Study
from roofterm.cli.arguments import parse
from roofterm.report.as_json import roofline_json
from roofterm.report.roofline_table import level_rows
from roofterm_parsers import open_profile
from roofterm_parsers.profile import DEVICE_ALONE, Profile, Source
from roofterm_parsers.xplane.reader import read
from tests.reference import reference
from tests.xspace import Plane, Ref, breakdown, space, text, tpu_plane

SAMPLES = Path(__file__).resolve().parents[2] / "samples"

LEVELS = ("program", "phase", "category", "module", "op", "kernel")
"""of `roofline --level`"""


def opened(*planes: Plane, more: bytes = b"") -> Profile:
    source = Source("test.xplane.pb", "xplane", "plain")
    return read(space(*planes) + more, source, lambda size: None, cancelled=lambda: False, device_alone=TELLING)


def is_alone(profile: Profile) -> bool:
    return bool(profile.sources[0].metadata.get(DEVICE_ALONE))


def tpu(*, steps: bool = True) -> Plane:
    """A TensorCore with two ops in each of two programs; two steps of 1 ms, if it marks them."""
    plane = tpu_plane()
    shape = "bf16[8,8]{1,0}"
    fusion = plane.op(
        f"%fusion.1 = {shape} fusion({shape} %p)",
        "fusion.1",
        hlo_category=Ref("loop fusion"),
        program_id=7,
        flops=2**30,
        bytes_accessed=2**20,
        memory_access_breakdown=breakdown((1, 1, 2**20)),
    )
    copy = plane.op(f"%copy.2 = {shape} copy({shape} %p)", "copy.2", hlo_category=Ref("copy"), program_id=7, bytes_accessed=2**20)
    starts = (1_000_000_000, 2_000_000_000)
    if steps:
        plane.line("Steps", [plane.event(str(i), at, 1_000_000_000) for i, at in enumerate(starts)], id=1)
    plane.line("XLA Modules", [plane.event("jit_f(7)", at, 700_000_000) for at in starts], id=2)
    ops = [(op, at + shift) for at in starts for op, shift in ((fusion, 0), (copy, 400_000_000))]
    plane.line("XLA Ops", [plane.event(op, at, 300_000_000) for op, at in ops], id=3)
    return plane


def host(*names: str, **stats: int | str) -> Plane:
    """A thread that is in each of these for a while within the first step."""
    plane = Plane("/host:CPU", id=1)
    plane.line("python", [plane.event(name, 1_100_000_000 + i, 5, **stats) for i, name in enumerate(names)], id=7)
    return plane


@pytest.mark.parametrize("steps", [True, False])
def test_a_host_that_tells_nothing_of_the_devices_work_is_left_out(steps: bool) -> None:
    thread = host("PjitFunction(f)", "$train.py:3 step", "ExecuteHelper", size=4, device_ordinal=0)
    profile = opened(tpu(steps=steps), thread)
    assert is_alone(profile)
    assert profile.tracks["process_name"].unique().to_list() == ["/device:TPU:0"]
    assert profile.steps.height == (2 if steps else 0)


@pytest.mark.parametrize(
    ("name", "stats", "needed_with_steps", "needed_without"),
    [
        ("train", {"step_num": 4}, False, True),  # the host's step markers count where the devices have none
        ("backend_compile", {}, True, False),  # a step that compiles is not steady; without steps nothing is
        ("TfrtTpuCompiler::Compile", {}, True, False),
        ("execute_context_0(0)_generation_4(4)", {}, True, True),  # an engine's batch tells the phase
        ("decode[bs=4 tok=4]", {}, True, True),
        ("prefill[bs=4 tok=4]", {}, True, True),
        ("step[DECODE bs=32]", {}, True, True),
        ("Optimizer.step#Adam.step", {}, True, True),  # an iteration ends with it
        ("launch", {"correlation_id": 9}, True, True),  # a launch may be of the device's work
        ("dot", {"hlo_op": "dot.1"}, True, True),  # an instruction that ran on the host
    ],
)
def test_the_host_is_read_where_it_tells_of_steps_phases_or_work(
    name: str, stats: dict[str, int | str], needed_with_steps: bool, needed_without: bool
) -> None:
    for steps, needed in ((True, needed_with_steps), (False, needed_without)):
        profile = opened(tpu(steps=steps), host("a", name, **stats))
        assert is_alone(profile) is not needed
        assert ("/host:CPU" in profile.tracks["process_name"]) is needed


def test_an_op_of_a_framework_on_the_host_is_read() -> None:
    thread = Plane("/host:CPU", id=1)
    thread.line("tf_worker", [thread.event(thread.op("layer/Cast:Cast", "Cast"), 0, 5)], id=7)
    assert not is_alone(opened(tpu(), thread))


def test_any_plane_that_is_no_device_is_asked() -> None:
    other = Plane("/device:CUSTOM:annotations", id=5)
    other.line("python", [other.event("Optimizer.step#Adam.step", 0, 5)], id=7)
    assert is_alone(opened(tpu(), host("a")))
    assert not is_alone(opened(tpu(), host("a"), other))


def test_beside_a_gpu_all_is_read() -> None:
    gpu = Plane("/device:GPU:0", id=9)
    gpu.line("Stream #1", [gpu.event("k", 0, 10)])
    assert not is_alone(opened(tpu(), gpu, host("a")))


def test_a_tpu_without_ops_leaves_its_host_to_be_read() -> None:
    empty = tpu_plane()
    empty.line("XLA Modules", [empty.event("jit_f(7)", 0, 10)])
    assert not is_alone(opened(empty, host("a")))


def test_a_damaged_file_is_read_whole() -> None:
    """As far as it goes: what is lost of it may have been names."""
    broken = text(1, text(2, "/host:CPU") + b"\x0b")  # a field of wire type 3
    assert not is_alone(opened(tpu(), host("a"), more=broken))


def test_damaged_events_of_a_device_have_the_whole_file_read() -> None:
    plane = tpu()
    plane.line("XLA Ops", [b"\x0b", plane.event("op", 0, 10)], id=4)
    profile = opened(plane, host("a"))
    assert not is_alone(profile)
    assert [warning.count for warning in profile.warnings if warning.code == "damaged-events"] == [1]


def test_a_devices_lines_without_work_are_left_out_unless_they_may_be_counters_of_kernels() -> None:
    def with_lines(**stat: int) -> Plane:
        plane = tpu()
        for i, name in enumerate(("XLA TraceMe", "Tensor Core Sync Flag", "_counters_", "Async XLA Ops", "a line of its own"), 10):
            plane.line(name, [plane.event("e", 1_200_000_000, 10, **stat)], id=i)
        return plane

    work = {"Steps", "XLA Modules", "XLA Ops", "Async XLA Ops", "a line of its own"}
    assert set(opened(with_lines(), host("a")).tracks["thread_name"]) == work
    counted = opened(with_lines(counter_value=3), host("a"))
    assert counted.counted.height
    assert set(counted.tracks["thread_name"]) == work | {"XLA TraceMe", "Tensor Core Sync Flag", "_counters_"}


@pytest.mark.parametrize(
    ("words", "of_devices"),
    [
        ([], True),
        (["--level", "op", "--step", "all", "--format", "csv"], True),
        (["--window", "0..1ms"], False),  # counts from the first event, which may be the host's
        (["--model", "config.json"], False),
        (["--capture", "folder"], False),
    ],
)
def test_which_rooflines_speak_of_devices_alone(words: list[str], of_devices: bool) -> None:
    assert parse(["roofline", "a.xplane.pb", *words]).of_devices is of_devices


def test_other_commands_read_the_whole_profile() -> None:
    for words in (["report"], ["steps"], ["ops", "--by", "kernel"], ["export", "-o", "a.csv"], ["roofline", "--xprof", "2.24.2"]):
        assert not parse([words[0], "a.xplane.pb", *words[1:]]).of_devices


def answers(profile: Profile) -> list[bytes]:
    """What `roofline --format json` says at every level, of the steady steps and of the whole file."""
    study = Study(profile).roofed
    return [
        roofline_json(study.device, study.selection(scope).text, study.roofline(scope, 0), level_rows(study, scope, level), use)
        for scope in (STEADY, ALL)
        for use in (scope_use(study, scope),)
        for level in LEVELS
    ]


def assert_same_answers(path: Path) -> None:
    whole, alone = open_profile(path, cache=False), open_profile(path, cache=False, device_alone=TELLING)
    assert is_alone(alone)
    assert not is_alone(whole)
    assert alone.slices.height < whole.slices.height
    assert answers(alone) == answers(whole)


@pytest.mark.parametrize("steps", [True, False])
def test_a_roofline_is_the_same_without_the_lines_left_out(tmp_path: Path, steps: bool) -> None:
    """Also where a thread began before the devices did, so that the profile's zero moves."""
    plane = tpu(steps=steps)
    plane.line("XLA TraceMe", [plane.event("barrier", 900_000_000, 10)], id=9)
    thread = Plane("/host:CPU", id=1)
    thread.line("python", [thread.event("PjitFunction(f)", 1_001, 1_100_000_000), thread.event("$a.py:1 f", 1_002, 50)], id=7)
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space(thread, plane))
    assert_same_answers(path)


def test_a_samples_roofline_is_the_same_without_its_host() -> None:
    assert_same_answers(SAMPLES / "decoder_tpu_synthetic.xplane.pb")


@pytest.mark.parametrize("name", ["tpu_v6e_inference", "tpu_v6e_pallas_matmul"])
def test_a_recorded_profiles_roofline_is_the_same_without_its_host(name: str) -> None:
    assert_same_answers(reference(f"traces/xplane/{name}.xplane.pb"))
