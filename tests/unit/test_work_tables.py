"""Device work by module and by HLO instruction: `ops --by module` and `ops --by hlo`."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from roofterm.analysis.study import Study
from roofterm.analysis.xprof.hlo_stats import xprof_hlo_stats
from roofterm.cli.main import main
from roofterm.results import TABLES
from roofterm.tui.slice_details import slice_details
from roofterm_parsers import open_profile
from roofterm_parsers.profile import Kind
from tests.build import Build
from tests.reference import reference

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def test_work_belongs_to_the_innermost_module_around_its_launch():
    """Net_0 around Linear_0 (two launches of 10 us) and one of its own (30 us); one more outside of both (5 us)."""
    build = Build()
    build.host("nn.Module: Net_0", 0, 100, kind=Kind.PYTHON)
    build.host("nn.Module: Linear_0", 10, 40, kind=Kind.PYTHON)
    for start, dur in ((12, 10), (30, 10), (60, 30), (120, 5)):
        build.kernel("volta_sgemm", start + 200, dur, launch=build.call(start, 3))
    table = Study(build.profile()).table("module")
    assert tuple(table.columns) == TABLES["module"]
    assert table.select("name", "module_path", "calls", "total_us").rows() == [
        ("Net_0", "Net_0", 1, 30.0),
        ("Linear_0", "Net_0/Linear_0", 2, 20.0),
        ("(no module)", "(no module)", 1, 5.0),
    ]
    assert table["pct"].to_list() == pytest.approx([100 * us / 55 for us in (30, 20, 5)])


@pytest.mark.parametrize("name", ["gpu_mi300x_jax_gemm", "gpu_mi300x_jax_attention", "tpu_v6e_pallas_matmul"])
def test_hlo_instructions_have_the_occurrences_and_times_of_xprofs_table(name: str):
    """XProf's hlo_stats, which other tests hold against XProf itself: same instructions, calls and self times."""
    profile = open_profile(reference(f"traces/xplane/{name}.xplane.pb"), cache=False)
    theirs = {
        (row["hlo_op_name"], row["occurrences"]): row["total_self_time"] for row in xprof_hlo_stats(profile, "2.24.2") if row["occurrences"]
    }
    table = Study(profile).table("hlo")
    mine = {(row["name"], row["calls"]): row["self_us"] for row in table.iter_rows(named=True)}
    assert set(mine) == {key for key in theirs if key[0] != "IDLE"}
    totals = [sum(rows.values()) for rows in (mine, {key: us for key, us in theirs.items() if key[0] != "IDLE"})]
    assert totals[0] == pytest.approx(totals[1], rel=1e-4)


def test_the_sample_of_a_gpu_tells_program_category_and_source():
    table = Study(open_profile(SAMPLES / "decoder_gpu_synthetic.xplane.pb", cache=False)).table("hlo")
    assert tuple(table.columns) == TABLES["hlo"]
    assert table.height > 5
    assert table["program"].null_count() == table["hlo_category"].null_count() == 0
    assert table["pct"].sum() == pytest.approx(100)
    whole = Study(open_profile(SAMPLES / "decoder_gpu_synthetic.xplane.pb", cache=False)).work
    assert float(table["total_us"].sum()) <= float((whole["end_ps"] - whole["start_ps"]).sum()) / 1e6 + 1e-6


def test_an_instruction_says_what_it_takes_and_who_takes_its_result():
    """As samples/make_xplane_gpu.py wires the program: up and gate multiply x, their product is what down multiplies."""
    table = Study(open_profile(SAMPLES / "decoder_gpu_synthetic.xplane.pb", cache=False)).table("hlo")
    rows = {row["name"]: row for row in table.iter_rows(named=True)}
    assert (rows["gemm_fusion_dot.3"]["operands"], rows["gemm_fusion_dot.3"]["users"]) == ("x, w.up", "loop_multiply_fusion")
    assert (rows["cublas-gemm.2"]["operands"], rows["cublas-gemm.2"]["users"]) == ("loop_multiply_fusion, w.down", None)


def test_a_slices_details_tell_its_instruction():
    study = Study(open_profile(SAMPLES / "decoder_gpu_synthetic.xplane.pb", cache=False))
    op = study.profile.hlo_ops["name"].to_list().index("gemm_fusion_dot.3")
    run = study.profile.hlo.filter(study.profile.hlo["op"] == op)["slice"][0]
    facts = {fact.label: fact.value for fact in slice_details(study, run).facts}
    assert (facts["instruction"], facts["operands"], facts["users"]) == ("gemm_fusion_dot.3", "x, w.up", "loop_multiply_fusion")
    assert facts["fused"]
    assert facts["HLO text"].startswith("%gemm_fusion_dot.3 = ")


def test_both_are_tables_of_the_command(capsysbinary: pytest.CaptureFixture[bytes]):
    sample = str(SAMPLES / "decoder_gpu_synthetic.xplane.pb")
    for by in ("hlo", "module"):
        assert main(["ops", sample, "--by", by, "--format", "json", "--no-cache", "-q"]) == 0
        answer = json.loads(capsysbinary.readouterr().out)
        assert answer["by"] == by
        assert answer["rows"]
    assert main(["ops", str(SAMPLES / "transformer_h100_synthetic.pt.trace.json.gz"), "--by", "hlo", "--no-cache", "-q"]) == 0
    assert "belongs to an HLO instruction" in capsysbinary.readouterr().out.decode()
    assert main(["ops", sample, "--by", "hlo", "--where", "hlo:fusion", "--format", "json", "--no-cache", "-q"]) == 0
    rows = json.loads(capsysbinary.readouterr().out)["rows"]
    assert pl.DataFrame(rows)["hlo_category"].str.contains("fusion").all()


def test_xprofs_op_profile_is_a_table_of_the_command(capsysbinary: pytest.CaptureFixture[bytes]):
    """Each node before its children, with their times in it; the sample's five programs' time is its maker's."""
    sample = str(SAMPLES / "decoder_tpu_synthetic.xplane.pb")
    assert main(["ops", sample, "--by", "op_profile", "--group", "category", "--format", "json", "--no-cache", "-q"]) == 0
    answer = json.loads(capsysbinary.readouterr().out)
    assert (answer["by"], answer["group"], answer["version"]) == ("op_profile", "category", "2.24.2")
    rows = {row["node"].replace("\t", "/"): row for row in answer["rows"]}
    made = json.loads((SAMPLES / "decoder_tpu_synthetic.expected.json").read_text())["ops"]
    infeed = rows["by_category/infeed/infeed.1"]
    assert (infeed["depth"], infeed["calls"], infeed["total_us"]) == (2, made["infeed.1"]["calls"], made["infeed.1"]["total_us"])
    assert infeed["wasted_us"] == pytest.approx(infeed["total_us"], rel=1e-3)  # it neither computes nor moves much
    assert rows["by_category/infeed"]["total_us"] == infeed["total_us"]


def test_a_grouping_belongs_to_its_table(capsys: pytest.CaptureFixture[str]):
    sample = str(SAMPLES / "decoder_tpu_synthetic.xplane.pb")
    for words in (
        ["--by", "hlo", "--group", "category"],
        ["--by", "op_profile", "--group", "shape"],
        ["--by", "op_profile", "--where", "x"],
    ):
        assert main(["ops", sample, *words, "--no-cache", "-q"]) == 2
    assert "--by op_profile shows a tree whole" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ((5, 3), "cudaLaunchKernel, 2.000 us before"),  # from 8 to the kernel's start at 10
        ((5, 9), "cudaLaunchKernel, ended 4.000 us after it began"),  # a call that waits for its copy
    ],
)
def test_a_slices_details_tell_how_long_its_launch_was_ahead(call, told):
    build = Build()
    build.kernel("gemm", 10, 20, launch=build.call(*call))
    study = Study(build.profile())
    kernel = int(study.profile.links["work"][0])
    assert {fact.label: fact.value for fact in slice_details(study, kernel).facts}["launch"] == told
