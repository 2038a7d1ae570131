"""`ops --by op --group`: rows split by input shapes, Python stack and module, and the device's memory beside the host's."""

from __future__ import annotations

import polars as pl
import pytest

from roofterm.analysis.call_stacks import call_stacks
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm_parsers.profile import BACKWARD, CALLED, CALLERS, Kind, Profile
from tests.build import Build

PYTHON = Kind.PYTHON
GEMM = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT"


def rows(profile: Profile, group: str, *columns: str) -> set[tuple[object, ...]]:
    return set(Study(profile).table("op", ALL, group=group).select("name", *columns).rows())


def nested() -> Build:
    """main > train > two layers, with one aten::mm of 10 us in each and one in train itself."""
    build = Build()
    build.host("train.py(9): main", 0, 100, PYTHON)
    build.host("train.py(5): train", 1, 98, PYTHON)
    for start, layer in ((10, "Linear_0"), (40, "Linear_1")):
        build.host(f"nn.Module: {layer}", start, 20, PYTHON)
        build.host("torch/nn/modules/linear.py(130): forward", start + 1, 18, PYTHON)
        build.host("aten::mm", start + 2, 10, external_id=start)
    build.host("aten::mm", 80, 10, external_id=80)
    return build


def test_stacks_are_the_frames_around_the_innermost_first():
    found = rows(nested().profile(), "stack", "stack", "calls", "total_us")
    inside = "torch/nn/modules/linear.py(130): forward;nn.Module: Linear_{};train.py(5): train;train.py(9): main"
    assert {row for row in found if row[0] == "aten::mm"} == {
        ("aten::mm", inside.format(0), 1, 10),
        ("aten::mm", inside.format(1), 1, 10),
        ("aten::mm", "train.py(5): train;train.py(9): main", 1, 10),
    }
    assert ("train.py(9): main", None, 1, 100) in found


def test_stacks_end_after_five_frames_and_leave_out_what_torch_leaves_out():
    build = Build()
    for depth in range(8):
        build.host(f"a.py({depth}): f", depth, 100 - 2 * depth, PYTHON)
    build.host("torch/autograd/__init__.py(200): backward", 20, 20, PYTHON)
    build.host("aten::mm", 21, 10)
    profile = build.profile()
    mm = (profile.names["text"].gather(profile.slices["name"]) == "aten::mm").arg_true()
    assert call_stacks(profile, mm).to_list() == ["a.py(7): f;a.py(6): f;a.py(5): f;a.py(4): f;a.py(3): f"]


def test_backward_ops_have_the_stack_and_the_module_of_their_forward_op():
    build = nested()
    for start, sequence, name in ((200, 7, "MmBackward0"), (220, 8, "MmBackward0"), (240, None, "torch::autograd::AccumulateGrad")):
        build.host(f"autograd::engine::evaluate_function: {name}", start, 15, thread=2, forward_thread=1 if sequence else None)
        build.host(name, start + 1, 12, thread=2, forward_thread=1 if sequence else None)
        build.host("aten::mm", start + 2, 5, thread=2, external_id=start)
    profile = build.profile()
    texts = profile.names["text"].gather(profile.slices["name"])
    forward = (texts == "aten::mm").arg_true().to_list()[:2]
    backward = (texts == "MmBackward0").arg_true().to_list()
    profile.backward = pl.DataFrame({"backward": backward, "forward": forward}, schema=BACKWARD)
    found = rows(profile, "stack", "stack", "calls", "total_us")
    inside = "torch/nn/modules/linear.py(130): forward;nn.Module: Linear_{};train.py(5): train;train.py(9): main"
    # Each layer's row: 10 us forward and 5 us backward. What adds gradients up has no forward op, so no stack.
    assert {row for row in found if row[0] == "aten::mm"} == {
        ("aten::mm", inside.format(0), 2, 15),
        ("aten::mm", inside.format(1), 2, 15),
        ("aten::mm", "train.py(5): train;train.py(9): main", 1, 10),
        ("aten::mm", None, 1, 5),
    }
    modules = {row for row in rows(profile, "module", "module_path", "calls", "total_us") if row[0] == "aten::mm"}
    assert modules == {("aten::mm", "Linear_0", 2, 15), ("aten::mm", "Linear_1", 2, 15), ("aten::mm", None, 2, 15)}


def stating(build: Build, *places: tuple[str, str | None, str | None]) -> Profile:
    """The profile in which the first op of each name states its stack and its modules."""
    profile = build.profile()
    texts = profile.names["text"].gather(profile.slices["name"])
    rows = [int((texts == name).arg_true()[0]) for name, _, _ in places]
    order = sorted(range(len(rows)), key=rows.__getitem__)
    profile.callers = pl.DataFrame([place[1:] for place in places], schema=CALLERS, orient="row")
    profile.called = pl.DataFrame({"slice": [rows[at] for at in order], "caller": order}, schema=CALLED)
    return profile


def test_without_python_s_own_slices_ops_state_their_stacks():
    """As files of 2021: of six frames the five innermost that torch's tables show."""
    build = Build()
    build.host("aten::conv2d", 0, 20)
    build.host("aten::relu", 30, 5)
    stack = "a.py(1): a;torch/autograd/__init__.py(9): backward;b.py(2): b;c.py(3): c;d.py(4): d;e.py(5): e;f.py(6): f"
    profile = stating(build, ("aten::conv2d", stack, None))
    shown = "a.py(1): a;b.py(2): b;c.py(3): c;d.py(4): d;e.py(5): e"
    assert rows(profile, "stack", "stack") == {("aten::conv2d", shown), ("aten::relu", None)}


def test_ops_of_torchscript_state_their_modules():
    build = Build()
    build.host("aten::conv2d", 0, 20)
    build.host("aten::relu", 30, 5)
    hierarchy = "TOP(Net)::forward.stem(Sequential)::forward.0(Conv2d)::forward.::relu."  # as torch 2.13 writes it
    profile = stating(build, ("aten::conv2d", None, hierarchy), ("aten::relu", None, "unlike the others"))
    assert rows(profile, "module", "module_path") == {
        ("aten::conv2d", "TOP(Net)/stem(Sequential)/0(Conv2d)"),
        ("aten::relu", "unlike the others"),
    }


def test_kernels_are_launched_from_what_their_ops_state():
    build = Build()
    op = build.host("aten::conv2d", 0, 20, external_id=1)
    build.kernel("conv", 30, 10, launch=build.call(5, 5), op=op)
    build.kernel("orphan", 50, 10)
    stack = "/x/site-packages/torch/nn/conv.py(1): forward;model.py(7): forward;train.py(2): <module>"
    profile = stating(build, ("aten::conv2d", stack, "top(Net)::forward.conv(Conv2d)::forward"))
    table = Study(profile).table("kernel", ALL).select("name", "module_path", "launched_from")
    assert set(table.rows()) == {("conv", "top(Net)/conv(Conv2d)", "model.py(7): forward"), ("orphan", None, None)}
    (row,) = (row for row in Study(profile).module_rows(ALL) if row.name != "(no module)")
    assert (row.name, row.module_path, row.time_us) == ("conv(Conv2d)", "top(Net)/conv(Conv2d)", 10)


def test_modules_are_named_by_all_that_lie_around():
    build = Build()
    build.host("nn.Module: Net_0", 0, 100, PYTHON)
    build.host("nn.Module: Linear_3", 10, 50, PYTHON)
    build.host("aten::mm", 20, 10)
    assert ("aten::mm", "Net_0/Linear_3") in rows(build.profile(), "module", "module_path")


@pytest.mark.parametrize(("group", "column"), [("stack", "stack"), ("module", "module_path")])
def test_without_frames_there_is_nothing_to_split_by(group: str, column: str):
    build = Build()
    build.host("aten::mm", 0, 10)
    build.host("aten::mm", 20, 10)
    assert rows(build.profile(), group, column, "calls") == {("aten::mm", None, 2)}


def test_bytes_and_roofs_are_those_of_the_rows_own_shapes():
    """Products of 64 x 64 and of 256 x 256: by shape each row has its own bytes, by name their sum."""
    build = Build()
    for row, size in enumerate((64, 256)):
        dims, types = f"[[{size},{size}],[{size},{size}]]", '["c10::BFloat16","c10::BFloat16"]'
        op = build.host("aten::mm", 100 * row, 20, external_id=row, dims=dims, types=types)
        build.kernel(GEMM, 100 * row + 30, 10, launch=build.call(100 * row + 5, 5), op=op)
    profile = build.profile()
    # Three matrices of n x n, 2 bytes an element.
    want = {"[[64,64],[64,64]]": 3 * 2 * 64**2, "[[256,256],[256,256]]": 3 * 2 * 256**2}
    found = {shapes: size for name, shapes, size in rows(profile, "shape", "shapes", "bytes") if name == "aten::mm"}
    assert found == want
    whole = Study(profile).table("op", ALL)
    assert whole.filter(pl.col("name") == "aten::mm")["bytes"].to_list() == [sum(want.values())]


def test_memory_of_devices_stands_beside_that_of_the_host():
    """aten::mm allocates 100 on the device and 30 on the host; the aten::empty inside 80 of the 100; 7 on the device in no op."""
    build = Build()
    build.host("aten::mm", 0, 20)
    build.host("aten::empty", 5, 5)
    for time, size, kind in ((2, 20, 1), (3, 30, 0), (6, 80, 1), (50, 7, 1)):
        build.memory(time, size, size, device_type=kind)
    columns = ("memory_bytes", "self_memory_bytes", "device_memory_bytes", "self_device_memory_bytes")
    found = {row[0]: row[1:] for row in Study(build.profile()).table("op", ALL).select("name", *columns).rows()}
    assert found == {"aten::mm": (30, 30, 100, 20), "aten::empty": (0, 0, 80, 80), "[memory]": (0, 0, 7, 7)}
