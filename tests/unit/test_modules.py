"""Modules: by the frames around a launch, by the forward op of a backward one, by the names of compiled instructions."""

from __future__ import annotations

import json

import polars as pl
import pytest

from roofterm.analysis.modules import NO_MODULE, NONE, instruction_paths, module_rows, work_modules
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from roofterm_parsers.profile import BACKWARD, Kind
from tests.build import Build
from tests.reference import reference

BF16 = "c10::BFloat16"


def mm(build: Build, start: float, thread: int = 1) -> int:
    made = build.host(
        "aten::mm", start, 10, thread=thread, dims=json.dumps([[64, 64], [64, 64]]), types=json.dumps([BF16, BF16]), sequence=int(start)
    )
    build.kernel("nvjet_tst_64x64", start + 1000, 5, launch=build.call(start + 2, 3, thread=thread), op=made)
    return made


def built() -> Build:
    build = Build()
    build.host("nn.Module: Model_0", 0, 300, Kind.PYTHON)
    build.host("train.py(7): forward", 5, 290, Kind.PYTHON)
    for number, start in ((0, 10), (1, 100)):
        build.host("nn.Module: Block_0", start, 60, Kind.PYTHON)
        build.host(f"nn.Module: Linear_{number}", start + 5, 40, Kind.PYTHON)
        mm(build, start + 10)
    mm(build, 200)
    mm(build, 400)
    return build


def names(study: Study) -> list[tuple[str | None, str | None]]:
    found = work_modules(study.profile, study.work)
    order = study.work.with_row_index("row").sort("start_ps")["row"].to_list()
    codes = [int(found.of_work[row]) for row in order]
    return [(None, None) if code == NONE else (found.names[code], found.paths[code]) for code in codes]


def test_the_innermost_module_around_the_launch_counts() -> None:
    assert names(Study(built().profile())) == [
        ("Linear_0", "Model_0/Block_0/Linear_0"),
        ("Linear_1", "Model_0/Block_0/Linear_1"),
        ("Model_0", "Model_0"),
        (None, None),
    ]


def test_backward_work_counts_for_the_module_of_its_forward_op() -> None:
    build = built()
    build.host("MmBackward0", 500, 50, thread=2, external_id=9)
    mm(build, 510, thread=2)
    profile = build.profile()
    ops = profile.names["text"].gather(profile.slices["name"])
    start = profile.slices["start_ps"]
    backward = ops.to_frame("name").with_row_index("row").filter(pl.col("name") == "MmBackward0")["row"][0]
    forward = next(row for row in range(len(ops)) if ops[row] == "aten::mm" and start[row] == 110_000_000)
    profile.backward = pl.DataFrame({"backward": [backward], "forward": [forward]}, schema=BACKWARD)
    assert names(Study(profile))[-1] == ("Linear_1", "Model_0/Block_0/Linear_1")


def test_a_row_holds_the_work_of_all_calls_of_a_module() -> None:
    study = Study(built().profile())
    rows = {row.name: row for row in module_rows(study.bounded(ALL), study.work, work_modules(study.profile, study.work), study.device)}
    assert set(rows) == {"Linear_0", "Linear_1", "Model_0", NO_MODULE}
    assert rows["Linear_1"].module_path == "Model_0/Block_0/Linear_1"
    assert all(row.level == "module" and row.flops == 2 * 64**3 and row.time_us == pytest.approx(5) for row in rows.values())


NAMES = [
    ("jit(step)/jvp(dense_0)/dot_general", "dense_0"),
    ("jit(step)/transpose(jvp(dense_0))/transpose", "dense_0"),
    ("jit(step)/jit(main)/transpose(jvp(Model))/layer_1/mlp/dot_general:", "Model/layer_1/mlp"),
    ("jit(step)/while/body/Decoder/vmap(attention)/reduce_max", "Decoder/attention"),
    ("jit(step)/checkpoint/rematted_computation/Block_3/add", "Block_3"),
    ("jit(step)/jvp(jit(log_softmax))/exp", None),
    ("jit(matmul)/dot_general", None),
    ("transformer/layer_2/einsum/Einsum:Einsum", "transformer/layer_2/einsum"),
    ("kernel", None),
    (None, None),
]


@pytest.mark.parametrize(("name", "path"), NAMES)
def test_the_name_of_an_instruction_holds_its_module(name: str | None, path: str | None) -> None:
    assert instruction_paths(pl.Series([name], dtype=pl.String))[0] == path


def test_the_layers_of_a_real_profile_have_the_same_work() -> None:
    """Qwen's decoder layers are alike: each attention's output projection multiplies 8,944 rows by [1024, 1024]."""
    study = Study(open_profile(str(reference("traces/torch/tracelens_h100_qwen05b_chat.json.gz")), cache=False))
    rows = module_rows(study.bounded(ALL), study.work, work_modules(study.profile, study.work), study.device)
    paths = {row.name: row for row in rows}
    attention = [row for row in rows if row.name.startswith("Qwen2Attention_")]
    assert len(attention) == 24
    assert {row.calls for row in attention} == {15}
    output = paths["Linear_3"]
    assert output.module_path == "Qwen2Model_0/Qwen2DecoderLayer_0/Qwen2Attention_0/Linear_3"
    assert output.flops == 2 * 8944 * 1024 * 1024
