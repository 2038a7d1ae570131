"""A CPU's ops as work: each counts while no op runs inside it, and the innermost that has a cost is whose time it is."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from roofterm.analysis.categories import Category
from roofterm.analysis.host_work import with_host_work
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm.hardware.choice import RoofChoice
from roofterm_parsers import open_profile
from roofterm_parsers.profile import Kind
from tests.build import US, Build

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
ROOFS = RoofChoice(peaks={"fp32": 1e12}, bandwidths={"hbm": 1e11})


@pytest.fixture(autouse=True)
def no_user_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))


def op(build: Build, name: str, start: float, dur: float, dims: list[list[int]]) -> None:
    build.host(name, start, dur, dims=json.dumps(dims), types=json.dumps(["float"] * len(dims)))


def work_of(build: Build) -> list[tuple[str, float, float]]:
    """Name, start and end of each piece of work, in its order."""
    study = Study(build.profile()).roofed
    study.profile.check()
    names = study.profile.names["text"].gather(study.profile.slices["name"].gather(study.work["slice"]))
    return [(name, start / US, end / US) for name, start, end in zip(names, study.work["start_ps"], study.work["end_ps"], strict=True)]


def test_an_op_works_while_no_op_runs_inside_it() -> None:
    build = Build()
    build.host("outer", 10, 90)
    build.host("python", 20, 60, kind=Kind.PYTHON)
    build.host("first", 30, 10)
    build.host("second", 40, 20)
    build.host("inner", 40, 20)
    build.host("after", 120, 5)
    assert work_of(build) == [
        ("outer", 10, 30),
        ("first", 30, 40),
        ("inner", 40, 60),
        ("outer", 60, 100),
        ("after", 120, 125),
    ]


def test_threads_work_side_by_side_and_what_takes_no_time_is_no_work() -> None:
    build = Build()
    build.host("forward", 0, 10)
    build.host("instant", 5, 0)
    build.host("backward", 5, 10, thread=2)
    assert work_of(build) == [("forward", 0, 10), ("backward", 5, 15)]


def test_a_profile_with_an_accelerator_or_without_ops_is_left_alone() -> None:
    build = Build()
    build.host("aten::mm", 0, 10)
    build.kernel("sgemm", 20, 10)
    profile = build.profile()
    assert with_host_work(profile) is profile
    build = Build()
    build.host("aten::mm", 0, 10)
    build.call(5, 2)
    profile = build.profile()
    assert with_host_work(profile) is profile  # what it launched was not recorded
    build = Build()
    build.host("main", 0, 10, kind=Kind.PYTHON)
    profile = build.profile()
    assert with_host_work(profile) is profile


def test_the_innermost_op_with_a_cost_has_the_figures_and_its_wrappers_have_none() -> None:
    build = Build()
    build.step(1, 0, 400)
    op(build, "aten::linear", 0, 100, [[100, 100], [100, 100], [100]])
    op(build, "aten::addmm", 10, 80, [[100], [100, 100], [100, 100]])
    op(build, "aten::expand", 12, 4, [[100]])
    op(build, "aten::softmax", 200, 50, [[100, 100]])
    op(build, "aten::_softmax", 205, 40, [[100, 100]])
    rows = {row.name: row for row in Study(build.profile(), ROOFS).roofline(ALL, 0).ops}
    assert rows["aten::addmm"].flops == pytest.approx(2e6, rel=0.01)
    assert rows["aten::addmm"].time_us == pytest.approx(80)
    assert rows["aten::addmm"].calls == 1
    assert rows["aten::addmm"].pct_of_peak_flops == pytest.approx(2.5, rel=0.01)
    assert rows["aten::_softmax"].bytes == {"hbm": 80_000}
    assert rows["aten::softmax"].bytes == {}
    assert rows["aten::softmax"].time_us == pytest.approx(10)
    assert rows["aten::linear"].flops is None
    assert rows["aten::linear"].time_us == pytest.approx(20)


def test_the_program_has_no_launches_and_its_idle_time_is_pythons() -> None:
    build = Build()
    build.step(1, 0, 100)
    op(build, "aten::mm", 20, 50, [[100, 100], [100, 100]])
    study = Study(build.profile(), ROOFS)
    found = study.roofline(ALL, 0)
    busy = next(row for row in found.program if row.name == "Busy")
    assert busy.bound_by == "compute"
    assert busy.time_us == pytest.approx(50)
    assert busy.time_bound_us == pytest.approx(2e6 / 1e12 * 1e6)
    assert [row.step for row in found.steps] == ["1"]
    assert {roof.kind for roof in found.roofs} == {"compute", "memory"}
    assert study.device is None  # what asks for an accelerator finds none


def test_a_training_step_on_a_cpu_has_the_products_of_its_layers() -> None:
    """samples/record_transformer_cpu.py: 2 layers of width 256 (MLP 1024), vocabulary 2048, 4 sequences of 128 tokens."""
    study = Study(open_profile(str(SAMPLES / "transformer_cpu.pt.trace.json.gz"), cache=False)).roofed
    items = study.bounded().items
    layer = 256 * 768 + 256 * 256 + 2 * 256 * 1024
    forward = 2 * (4 * 128) * (2 * layer + 256 * 2048)
    products = items.filter(pl.col("category") == int(Category.GEMM))
    assert products.group_by("step").agg(pl.col("flops").sum())["flops"].to_list() == [3 * forward] * 4
    optimizer = items.filter(pl.col("category") == int(Category.OPTIMIZER))
    assert optimizer["hbm_bytes"].drop_nulls().len() == 4
    # Every moment of an op is in one item: the time of all of them is that of the ops.
    ops = (study.given.slices["kind"] == int(Kind.OP)).to_numpy()
    assert int(items["time_ps"].sum()) == int(study.self_ps[: ops.size][ops].sum()) > 0


def test_a_compiled_program_on_a_cpu_has_the_compilers_costs() -> None:
    study = Study(open_profile(str(SAMPLES / "mlp_jax_cpu.xplane.pb"), cache=False), ROOFS).roofed
    found = study.roofline(ALL, 0)
    assert found.coverage.modelled_pct is not None
    assert found.coverage.modelled_pct > 90
    dots = [row for row in found.ops if row.name.startswith("dot")]
    assert dots
    assert all(row.flops and row.bytes["hbm"] and row.time_us > 0 and row.flops_from == "hlo" for row in dots)
