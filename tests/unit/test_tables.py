from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from roofterm.analysis import tables
from roofterm.analysis.launch_places import launch_places
from roofterm.analysis.occupancy import occupancies
from roofterm.analysis.op_groups import split_by
from roofterm.analysis.profiler_tree import TopMemory, profiler_events, top_level_memory
from roofterm.analysis.study import Study
from roofterm.analysis.tables import category_table, host_op_table, kernel_table, profiler_op_table
from roofterm.analysis.work import device_work
from roofterm.results import TABLES
from roofterm_parsers import open_profile
from roofterm_parsers.nesting import self_times
from roofterm_parsers.profile import Kind, Profile
from tests.build import Build

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
DIMS = {"grid_x": 8, "grid_y": 4, "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1}
NO_CLASSES = pl.DataFrame(schema={"slice": pl.UInt32, "work_class": pl.UInt8})


def work_of(profile: Profile) -> pl.DataFrame:
    return device_work(profile, profile.slices["dur_ps"].to_numpy(), NO_CLASSES)


def facts_of(profile: Profile, **by_name: tuple[str, str | None, bool | None]) -> pl.DataFrame:
    work = work_of(profile)
    text = profile.names["text"].gather(profile.slices["name"].gather(work["slice"]))
    rows = [(s, *by_name[n]) for s, n in zip(work["slice"], text, strict=True)]
    schema = {"slice": pl.UInt32, "category": pl.String, "dtype": pl.String, "tensor_core": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(evidence=pl.lit("name"))


BLOCKS: dict[str, Any] = {"grid_x": 8, "grid_y": 4, "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1}


def kernels() -> Profile:
    build = Build()
    mm, add = build.host("aten::mm", 0, 50), build.host("aten::add", 60, 10)
    build.kernel(
        "gemm",
        100,
        30,
        stream=7,
        launch=build.call(5, 2),
        op=mm,
        **BLOCKS,
        registers=32,
        shared_bytes=1024,
        occupancy_pct=50.0,
    )
    build.kernel(
        "gemm",
        200,
        10,
        stream=8,
        launch=build.call(15, 2),
        op=mm,
        **BLOCKS,
        registers=32,
        shared_bytes=2048,
        occupancy_pct=10.0,
    )
    build.kernel("gemm", 300, 20, stream=7, launch=build.call(62, 2), op=add)
    build.kernel("add", 400, 40, launch=build.call(66, 2), op=add)
    return build.profile()


@pytest.mark.parametrize("sample", ["transformer_h100_synthetic.pt.trace.json.gz", "decoder_gpu_synthetic.xplane.pb"])
def test_what_is_usual_of_many_names_is_what_is_usual_of_each(sample: str, monkeypatch):
    profile = open_profile(SAMPLES / sample, cache=False)
    of_each = Study(profile).table("kernel")
    monkeypatch.setattr(tables, "MANY_NAMES", 0)
    assert Study(profile).table("kernel").equals(of_each)


def test_kernel_table_counts_sums_and_spreads():
    profile = kernels()
    table = kernel_table(
        profile,
        work_of(profile),
        facts_of(profile, gemm=("gemm", "bf16", True), add=("elementwise", None, False)),
        occupancies(profile),
        launch_places(profile, work_of(profile)),
    )
    assert tuple(table.columns) == TABLES["kernel"]
    gemm, add = table.iter_rows(named=True)
    assert (gemm["name"], gemm["calls"], gemm["total_us"], gemm["mean_us"], gemm["min_us"], gemm["max_us"]) == ("gemm", 3, 60, 20, 10, 30)
    # The median of 10, 20, 30; the 99th percentile interpolates between 20 and 30 at 1.98.
    assert (gemm["p50_us"], gemm["p99_us"]) == (20, pytest.approx(29.8))
    assert (gemm["pct"], add["pct"]) == (60, 40)
    assert gemm["stream_ids"] == [7, 8]
    assert gemm["short_name"] is None  # until it is shown
    assert (gemm["grid"], gemm["block"]) == ("8,4,1", "128,1,1")
    # Of 1 and 2 KiB, each once, the smaller stands.
    assert (gemm["registers"], gemm["shared_bytes"], gemm["evidence"]) == (32, 1024, "name")
    # (50 x 30 + 10 x 10) / 40: the kernel without an occupancy does not count.
    assert gemm["occupancy_pct"] == pytest.approx(40)
    # 32 blocks of 128 threads: 16 fit on each of 132 units by their threads (and 32 registers), so that 32 of 2,112 slots are taken.
    assert (gemm["waves"], gemm["tail_pct"]) == (pytest.approx(32 / 2112), pytest.approx(100 * 2080 / 2112))
    assert (add["waves"], add["tail_pct"], add["occupancy_pct"]) == (None, None, None)
    # 40 us under aten::mm against 20 us under aten::add.
    assert (gemm["launched_by"], add["launched_by"]) == ("aten::mm", "aten::add")
    assert (gemm["category"], gemm["dtype"], gemm["tensor_core"]) == ("gemm", "bf16", True)


def test_category_table_sums_kernels_of_a_category():
    profile = kernels()
    table = category_table(profile, work_of(profile), facts_of(profile, gemm=("gemm", "bf16", True), add=("elementwise", None, False)))
    assert table.select("name", "calls", "total_us").rows() == [("gemm", 3, 60.0), ("elementwise", 1, 40.0)]


def test_profiler_table_names_steps_as_one_and_shares_self_time():
    build = Build()
    for number in range(2):
        build.step(number, 100 * number, 80)
        build.host("aten::mm", 100 * number + 10, 20, dims="[[2,3],[3,4]]")
    profile = build.profile()
    events = profiler_events(profile, work_of(profile))
    table = profiler_op_table(profile, events, pl.Series([0, 48, 0, 48], dtype=pl.Int64), top_level_memory(profile, events))
    rows = {r["name"]: r for r in table.iter_rows(named=True)}
    assert set(rows) == {"ProfilerStep*", "aten::mm"}
    assert (rows["ProfilerStep*"]["calls"], rows["ProfilerStep*"]["self_us"], rows["ProfilerStep*"]["total_us"]) == (2, 120, 160)
    assert (rows["aten::mm"]["flops"], rows["aten::mm"]["pct"]) == (96, 25)


def test_profiler_table_by_shape_takes_tensor_lists_as_empty():
    build = Build()
    build.host("aten::cat", 0, 10, dims="[[[8,4],[8,4]],[]]")
    build.host("aten::mm", 20, 10, dims="[[2,3],[3,4]]")
    build.host("plain", 40, 10)
    profile = build.profile()
    events = profiler_events(profile, work_of(profile))
    table = profiler_op_table(
        profile, events, pl.Series([0, 0, 0], dtype=pl.Int64), TopMemory(0, 0, 0), split_by(profile, events["slice"], "shape")
    )
    assert dict(zip(table["name"], table["shapes"], strict=True)) == {"aten::cat": "[[],[]]", "aten::mm": "[[2,3],[3,4]]", "plain": "[]"}


def test_memory_outside_of_every_op_has_a_row_of_its_own():
    build = Build()
    build.host("op", 0, 10)
    build.memory(50, 4096, 4096, device_type=0)
    profile = build.profile()
    events = profiler_events(profile, work_of(profile))
    table = profiler_op_table(profile, events, pl.Series([0], dtype=pl.Int64), top_level_memory(profile, events))
    (row,) = table.filter(pl.col("name") == "[memory]").iter_rows(named=True)
    assert (row["calls"], row["memory_bytes"], row["self_us"]) == (1, 4096, 0)


def test_host_table_uses_slice_self_time():
    build = Build(format="chrome")
    build.host("outer", 0, 100, kind=Kind.OTHER)
    build.host("inner", 80, 40, kind=Kind.OTHER)
    profile = build.profile()
    slices = profile.slices
    own = self_times(slices["parent"].to_numpy(), slices["start_ps"].to_numpy(), slices["dur_ps"].to_numpy())
    table = host_op_table(profile, slices, pl.Series(own))
    # "inner" sticks out and ends with "outer": 20 us of it lie inside.
    assert dict(zip(table["name"], table["self_us"], strict=True)) == {"outer": 80, "inner": 20}
