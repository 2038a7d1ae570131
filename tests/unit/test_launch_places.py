"""Module and line of Python from which device work is launched."""

from __future__ import annotations

import polars as pl
import pytest

from roofterm.analysis.launch_places import launch_places, own_code
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm_parsers.profile import BACKWARD, Kind, Profile
from tests.build import Build

PYTHON = Kind.PYTHON


@pytest.mark.parametrize(
    ("frame", "own"),
    [
        ("model/attention.py(81): forward", True),
        ("transformers/models/qwen2/modeling_qwen2.py(50): forward", True),
        ("torch/nn/modules/linear.py(130): forward", False),
        ("/usr/lib/python3.12/site-packages/timm/layers/norm.py(5): forward", False),
        ("contextlib.py(120): decorate", False),
        ("threading.py(1032): _bootstrap", False),
        ("<built-in function linear>", False),
        ("<frozen importlib._bootstrap>(233): _call", False),
        ("nn.Module: Linear_0", False),
    ],
)
def test_own_code(frame: str, own: bool):
    assert own_code(pl.Series([frame])).to_list() == [own]


def model() -> Build:
    """train.py calls a layer whose product and sum it launches; the optimizer's update comes from train.py itself."""
    build = Build()
    build.host("train.py(9): step", 0, 100, PYTHON)
    build.host("model.py(3): forward", 1, 40, PYTHON)
    build.host("nn.Module: Linear_0", 2, 30, PYTHON)
    build.host("torch/nn/modules/linear.py(130): forward", 3, 25, PYTHON)
    for start, name in ((5, "gemm"), (60, "adam")):
        op = build.host("aten::op", start, 10, external_id=start)
        build.kernel(name, 200 + start, 30, launch=build.call(start + 2, 3), op=op)
    return build


def places(profile: Profile) -> dict[str, tuple[str | None, str | None]]:
    table = Study(profile).table("kernel", ALL)
    return {name: (module, line) for name, module, line in table.select("name", "module_path", "launched_from").rows()}


def test_work_is_launched_from_the_innermost_line_of_own_code_and_its_module():
    assert places(model().profile()) == {"gemm": ("Linear_0", "model.py(3): forward"), "adam": (None, "train.py(9): step")}


def test_backward_work_is_of_its_forward_op():
    build = model()
    build.host("AddmmBackward0", 300, 20, thread=2, forward_thread=1)
    op = build.host("aten::mm", 302, 10, thread=2, external_id=302)
    build.kernel("dgrad", 400, 30, launch=build.call(304, 3, thread=2), op=op)
    profile = build.profile()
    texts = profile.names["text"].gather(profile.slices["name"])
    pair = {"backward": (texts == "AddmmBackward0").arg_true()[:1], "forward": (texts == "aten::op").arg_true()[:1]}
    profile.backward = pl.DataFrame(pair, schema=BACKWARD)
    assert places(profile)["dgrad"] == ("Linear_0", "model.py(3): forward")


def test_most_time_decides_and_unknown_stays_unknown():
    build = model()
    late = build.host("aten::op", 80, 10, external_id=80)
    build.kernel("gemm", 500, 70, launch=build.call(82, 3), op=late)
    build.kernel("orphan", 600, 5)
    found = places(build.profile())
    # 30 us of gemm from the layer, 70 from the loop, which is in no module.
    assert found["gemm"] == (None, "train.py(9): step")
    assert found["orphan"] == (None, None)


def test_without_work_there_is_no_row():
    assert launch_places(Build().profile(), Study(Build().profile()).work).height == 0


def test_layers_of_one_kind_are_one_place():
    """30 us in each of two layers' linears and 40 in the head: the layers together took more, and differ in their numbers alone."""
    build = Build()
    build.host("nn.Module: Net_0", 0, 300, PYTHON)
    for row, (layer, linear, length) in enumerate((("Layer_0", "Linear_2", 30), ("Layer_1", "Linear_5", 30), (None, "Linear_9", 40))):
        if layer is not None:
            build.host(f"nn.Module: {layer}", 10 + 50 * row, 40, PYTHON)
        build.host(f"nn.Module: {linear}", 15 + 50 * row, 30, PYTHON)
        op = build.host("aten::mm", 20 + 50 * row, 10, external_id=row)
        build.kernel("gemm", 400 + 50 * row, length, launch=build.call(22 + 50 * row, 3), op=op)
    assert places(build.profile())["gemm"][0] == "Net_0/Layer_*/Linear_*"
