"""`ops --by op` against torch's own `key_averages()` of the same run, recorded here where torch is installed: also by Python stack."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from roofterm_parsers.profile import Kind

torch = pytest.importorskip("torch")
FRAMES = 5


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """Two training steps of a small network under the profiler, with everything on, and the trace it wrote."""
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import ProfilerActivity, profile, record_function

    torch.manual_seed(0)
    shared = torch.nn.Linear(16, 16)
    network = torch.nn.Sequential(shared, torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(16, 16), shared))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    batch = torch.randn(8, 16)
    with suppress(ImportError):  # imported within the window its frame would lose its name
        import_module("torch.profiler._cupti_monitor")
    options = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True, "with_modules": True}
    with profile(activities=[ProfilerActivity.CPU], experimental_config=_ExperimentalConfig(verbose=True), **options) as profiler:
        for _ in range(2):
            with record_function("train"):
                optimizer.zero_grad()
                network(batch).square().sum().backward()
                optimizer.step()
    path = tmp_path_factory.mktemp("torch") / "small.pt.trace.json"
    profiler.export_chrome_trace(str(path))
    return profiler, path


Row = tuple[int, float, float, int, int, int]


def theirs(rows: Any, key: Any) -> dict[Hashable, Row]:
    """Calls, self and total CPU time (us), host memory and own, FLOPs."""
    return {
        key(row): (
            row.count,
            row.self_cpu_time_total,
            row.cpu_time_total,
            row.cpu_memory_usage,
            row.self_cpu_memory_usage,
            row.flops,
        )
        for row in rows
    }


def ours(table: pl.DataFrame, key: Any) -> dict[Hashable, Row]:
    return {
        key(row): (
            row["calls"],
            row["self_us"],
            row["total_us"],
            row["memory_bytes"],
            row["self_memory_bytes"],
            int(row["flops"]),
        )
        for row in table.iter_rows(named=True)
    }


def check(got: dict[Hashable, Row], want: dict[Hashable, Row]) -> None:
    assert (set(got) - set(want), set(want) - set(got)) == (set(), set())
    for key, row in want.items():
        assert got[key] == pytest.approx(row, abs=1e-2), key


def test_rows_equal_torch_s(recorded: tuple[Any, Path]) -> None:
    profiler, path = recorded
    table = Study(open_profile(path, cache=False)).table("op", ALL)
    check(ours(table, lambda row: row["name"]), theirs(profiler.key_averages(), lambda row: row.key))


def test_rows_by_stack_equal_torch_s(recorded: tuple[Any, Path]) -> None:
    """The five innermost frames; an op of the backward pass has those of its forward op."""
    profiler, path = recorded
    table = Study(open_profile(path, cache=False)).table("op", ALL, group="stack")
    rows = profiler.key_averages(group_by_stack_n=FRAMES)
    check(ours(table, lambda row: (row["name"], row["stack"] or "")), theirs(rows, lambda row: (row.key, ";".join(row.stack[:FRAMES]))))
    backward = table.filter(pl.col("name") == "aten::mm")["stack"].to_list()
    assert any("linear.py" in str(stack) for stack in backward)


def test_stacks_that_ops_state_are_those_of_the_slices_around_them(recorded: tuple[Any, Path]) -> None:
    """With `verbose` both are in the file: what stands in `Call stack` leads to the same rows of ops."""
    profile = open_profile(recorded[1], cache=False)
    by_slices = Study(profile).table("op", ALL, group="stack")
    profile.slices = profile.slices.with_columns(kind=pl.col("kind").replace({int(Kind.PYTHON): int(Kind.OTHER)}))
    stated = Study(profile).table("op", ALL, group="stack")

    def products(table: pl.DataFrame) -> list[tuple[Any, ...]]:
        return table.filter(pl.col("name").is_in(["aten::addmm", "aten::mm"])).sort("name", "stack").select("name", "stack", "calls").rows()

    assert products(stated) == products(by_slices)
    assert len(products(stated)) > 3


def test_rows_by_module_name_the_module_that_called(recorded: tuple[Any, Path]) -> None:
    """The layer that two containers share is entered twice a step: once in each."""
    table = Study(open_profile(recorded[1], cache=False)).table("op", ALL, group="module")
    products = table.filter(pl.col("name") == "aten::addmm").sort("module_path").select("module_path", "calls").rows()
    assert [(path.split("/")[1:], calls) for path, calls in products] == [
        (["Linear_0"], 2),
        (["Sequential_1", "Linear_0"], 2),
        (["Sequential_1", "Linear_1"], 2),
    ]
