"""Export: every format holds the same slices, filters choose among them, and a file is written whole or not at all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest

from roofterm.analysis.scope import Scope
from roofterm.analysis.slice_table import SLICES, chosen_slices, slice_table, step_number
from roofterm.analysis.study import Study
from roofterm.cli.main import main
from roofterm.report import slice_files
from roofterm.report.as_trace import trace_json
from roofterm_parsers import open_profile
from roofterm_parsers.profile import Kind, Profile
from tests.build import Build

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "transformer_h100_synthetic.pt.trace.json.gz"


def run(*arguments: str) -> int:
    return main(["export", *arguments, "--no-cache", "-q"])


def small() -> Build:
    """Two steps of 100 us: an op of 30 us that launches a kernel, and a copy outside of both."""
    build = Build(rank=3)
    for number in (5, 6):
        start = 100.0 * (number - 5)
        build.step(number, start, 100)
        op = build.host("aten::mm", start + 10, 30, dims="[[2,3],[3,4]]", types='["float","float"]')
        build.kernel(
            "volta_sgemm_128x64_nn",
            start + 30,
            20,
            launch=build.call(start + 15, 5),
            op=op,
            correlation=number,
            grid_x=4,
            grid_y=2,
            grid_z=1,
        )
    build.kernel("Memcpy HtoD (Pinned -> Device)", 250, 8, kind=Kind.COPY, bytes=4096)
    return build


def rows_of(profile: Profile, **scope: Any) -> list[dict[str, Any]]:
    study = Study(profile)
    table = slice_table(study, chosen_slices(study, Scope(**scope)))
    assert table.schema == SLICES
    return table.rows(named=True)


def test_a_row_tells_everything_of_a_slice_in_words():
    kernel = rows_of(small().profile(), where="name:volta step:6")[0]
    told = ("name", "cat", "kind", "category", "dtype", "tensor_core", "rank", "device", "stream", "step", "correlation", "op", "grid")
    assert {name: kernel[name] for name in told} == {
        "name": "volta_sgemm_128x64_nn", "cat": "kernel", "kind": "kernel", "category": "gemm", "dtype": "fp32", "tensor_core": False,
        "rank": 3, "device": 0, "stream": 7, "step": 6, "correlation": 6, "op": "aten::mm", "grid": "4,2,1",
    }  # fmt: skip
    assert (kernel["start_us"], kernel["dur_us"], kernel["self_us"]) == (130, 20, 20)
    (op,) = [row for row in rows_of(small().profile()) if row["name"] == "aten::mm" and row["step"] == 6]
    assert (op["shapes"], op["self_us"], op["depth"], op["rank"], op["device"]) == ("[[2,3],[3,4]]", 25, 1, 3, None)


def test_launches_and_parents_are_ids_of_other_rows():
    rows = {row["id"]: row for row in rows_of(small().profile())}
    for row in rows.values():
        if row["kind"] == "kernel":
            assert rows[row["launch"]]["name"] == "cudaLaunchKernel"
            assert rows[rows[row["launch"]]["parent"]]["name"] == "aten::mm"
    assert {row["name"]: row["bytes"] for row in rows.values() if row["kind"] == "copy"} == {"Memcpy HtoD (Pinned -> Device)": 4096}
    assert {row["name"]: row["step"] for row in rows.values() if row["kind"] == "copy"} == {"Memcpy HtoD (Pinned -> Device)": None}


@pytest.mark.parametrize(
    ("scope", "names"),
    [
        ({"where": "dur>25us"}, {"ProfilerStep#5", "ProfilerStep#6", "aten::mm"}),
        ({"where": "cat:copy|gemm"}, {"volta_sgemm_128x64_nn", "Memcpy HtoD (Pinned -> Device)"}),
        ({"where": "!cat:gemm", "step": "5"}, {"ProfilerStep#5", "aten::mm", "cudaLaunchKernel"}),
        ({"window_ps": (250_000_000, 251_000_000)}, {"Memcpy HtoD (Pinned -> Device)"}),
    ],
)
def test_filters_and_steps_choose_slices(scope: dict[str, Any], names: set[str]):
    assert {row["name"] for row in rows_of(small().profile(), **scope)} == names


def test_every_format_holds_the_same_rows(tmp_path: Path):
    whole = slice_table(study := Study(open_profile(SAMPLE)), np.ones(study.profile.slices.height, np.bool_))
    for ending in ("parquet", "arrow", "csv", "json"):
        assert run(str(SAMPLE), "-o", str(tmp_path / f"x.{ending}")) == 0
    assert pl.read_parquet(tmp_path / "x.parquet").equals(whole)
    assert pl.read_ipc(tmp_path / "x.arrow").equals(whole)
    assert pl.read_csv(tmp_path / "x.csv", schema=SLICES).equals(whole)
    answer = json.loads((tmp_path / "x.json").read_bytes())
    assert answer["schema"] == "roofterm.slices/1"
    assert [(row["id"], row["name"], row["dur_us"]) for row in answer["rows"]] == whole.select("id", "name", "dur_us").rows()
    # 18,454 slices by the sample's maker.
    assert whole.height == 18454


def test_times_are_the_nearest_double_of_the_exact_ones():
    profile = open_profile(SAMPLE)
    table = slice_table(Study(profile), np.ones(profile.slices.height, np.bool_))
    assert (table["dur_us"].to_numpy() == profile.slices["dur_ps"].to_numpy() / 1e6).all()
    assert 109492.763 in table["dur_us"].to_list()


def test_a_kernel_belongs_to_the_step_that_launched_it():
    """The host runs ahead: the kernel of step 5 runs while the host is in step 6."""
    build = Build()
    build.step(5, 0, 100)
    build.step(6, 100, 100)
    build.kernel("late", 120, 10, launch=build.call(90, 5))
    build.kernel("own", 140, 10, launch=build.call(105, 5))
    kernels = {number: [r["name"] for r in rows_of(build.profile(), step=number) if r["kind"] == "kernel"] for number in ("5", "6")}
    assert kernels == {"5": ["late"], "6": ["own"]}


def test_where_is_asked_of_slices(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "kernels.csv"
    assert run(str(SAMPLE), "-o", str(path), "--where", "cat:attention", "--step", "12") == 0
    table = pl.read_csv(path, schema=SLICES)
    assert (set(table["category"]), set(table["step"]), table.height) == ({"attention"}, {12}, 4 + 4 * 3)
    assert run(str(SAMPLE), "-o", str(path), "--where", "roof>50") == 2
    assert "single slices have no roof" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([str(SAMPLE)], "export needs -o FILE"),
        ([str(SAMPLE), "-o", "x.xlsx"], "the ending tells the format"),
        ([str(SAMPLE), "-o", "/nowhere/at/all/x.csv"], "cannot write"),
        ([str(SAMPLE), "-o", "x.csv", "--step", "99"], "no such step"),
        ([str(SAMPLE), "-o", "x.csv", "--format", "json"], "unrecognized arguments: --format"),
    ],
)
def test_what_cannot_be_done_ends_with_2(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "x.csv"
    path.write_text("before")

    def fails(_study: Study, _chosen: Any, file: Any) -> None:
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(slice_files.SLICE_WRITERS, ".csv", fails)
    assert run(str(SAMPLE), "-o", str(path)) == 2
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


# The Chrome trace


def again(profile: Profile, tmp_path: Path, chosen: Any = None) -> Profile:
    """The profile written as a Chrome trace and read back."""
    path = tmp_path / "again.trace.json"
    mask = np.ones(profile.slices.height, np.bool_) if chosen is None else chosen
    path.write_bytes(b"".join(trace_json(profile, mask, whole=chosen is None)))
    return open_profile(path, cache=False)


def test_the_sample_opens_again_with_the_same_facts(tmp_path: Path):
    path = tmp_path / "again.trace.json.gz"
    assert run(str(SAMPLE), "-o", str(path)) == 0
    before, after = Study(open_profile(SAMPLE)), Study(open_profile(path, cache=False))
    assert msgspec.to_builtins(after.summary()) == msgspec.to_builtins(before.summary())
    assert after.table("op").equals(before.table("op"))
    assert after.table("kernel").equals(before.table("kernel"))
    assert after.table("collective").equals(before.table("collective"))
    assert after.profile.sources[0].metadata["distributedInfo"] == before.profile.sources[0].metadata["distributedInfo"]


def test_a_part_of_a_trace_holds_that_part(tmp_path: Path):
    path = tmp_path / "part.trace.json"
    assert run(str(SAMPLE), "-o", str(path), "--where", "cat:attention") == 0
    document = json.loads(path.read_bytes())
    names = {event["name"] for event in document["traceEvents"] if event["ph"] == "X"}
    assert all("flash" in name for name in names)
    assert {event["ph"] for event in document["traceEvents"]} == {"X", "M"}
    assert Study(open_profile(path, cache=False)).summary().kernels == 4 * 6 + 4 * 6 * 3


def test_texts_stay_what_they_are(tmp_path: Path):
    """Quotes, control characters, escapes and wide letters in names; a text for a thread, a negative number for another."""
    build = Build()
    build.host('name "quoted" \x1b[31m \u202e 中文 \\', 0, 10)
    profile = build.profile()
    profile.tracks = profile.tracks.with_columns(thread=pl.lit("main \u2028 thread"), process=pl.lit("-1"))
    back = again(profile, tmp_path)
    assert back.names["text"].to_list() == profile.names["text"].to_list()
    assert back.tracks.select("process", "thread").rows() == [("-1", "main \u2028 thread")]


@pytest.mark.parametrize(("step", "written"), [(1, "0.000001"), (1000, "0.001"), (10**6, "1")])
def test_times_have_the_decimals_they_need(step: int, written: str, tmp_path: Path):
    build = Build()
    build.host("a", 0, 1)
    build.host("b", 2, 1)
    profile = build.profile()
    profile.slices = profile.slices.with_columns(start_ps=pl.Series([0, 5 * step]), dur_ps=pl.Series([step, step]))
    lines = b"".join(trace_json(profile, np.ones(2, np.bool_), whole=True))
    assert f'"dur":{written}}}'.encode() in lines
    assert again(profile, tmp_path).slices.select("start_ps", "dur_ps").rows() == [(0, step), (5 * step, step)]


def test_several_ranks_go_into_one_file_under_their_numbers(tmp_path: Path):
    folder = SAMPLE.parent / "transformer_h100_2ranks_synthetic"
    ranks = open_profile([folder / "rank0.pt.trace.json.gz", folder / "rank1.pt.trace.json.gz"])
    back = again(ranks, tmp_path)
    assert {"[rank 0] 0", "[rank 0] 5200", "[rank 1] 1", "[rank 1] 5201"} <= set(back.tracks["process"])
    before, after = Study(ranks).summary(), Study(back).summary()
    assert (after.kernels, after.kernel_us, after.gpu_busy_us, after.devices) == (before.kernels, before.kernel_us, before.gpu_busy_us, 2)


def test_the_same_profile_gives_the_same_bytes(tmp_path: Path):
    for name in ("a", "b"):
        assert run(str(SAMPLE), "-o", str(tmp_path / f"{name}.trace.json.gz"), "--where", "nccl") == 0
    assert (tmp_path / "a.trace.json.gz").read_bytes() == (tmp_path / "b.trace.json.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.trace.json.gz").read_bytes()).startswith(b'{"schemaVersion":1')


def test_the_step_of_one_slice_is_that_of_its_row():
    study = Study(open_profile(SAMPLE, cache=False))
    table = slice_table(study, np.ones(study.profile.slices.height, np.bool_))
    ids = range(0, table.height, 97)
    assert [step_number(study, one) for one in ids] == [table["step"][one] for one in ids]
    assert {table["step"][one] for one in ids} > {None, 12}
