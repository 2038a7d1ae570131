"""Tensor-core share, estimated SM efficiency and host busy share of steps, by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from roofterm.analysis.step_use import USE, step_use
from roofterm.analysis.steps import step_windows
from roofterm.analysis.work import device_work
from roofterm_parsers.nesting import self_times
from roofterm_parsers.profile import Kind
from tests.build import Build


def use_of(
    build: Build, tensor: tuple[str, ...] = (), blocks: dict[str, float | None] | None = None, untold: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """`tensor`: names of kernels on tensor cores, `untold`: of those that may be; `blocks`: blocks per unit by kernel name."""
    profile = build.profile()
    own = self_times(profile.slices["parent"].to_numpy(), profile.slices["start_ps"].to_numpy(), profile.slices["dur_ps"].to_numpy())
    work = device_work(profile, own, pl.DataFrame(schema={"slice": pl.UInt32, "work_class": pl.UInt8}))
    names = profile.names["text"].gather(profile.slices["name"].gather(work["slice"])).to_list()
    flags = work.select("slice", tensor_core=pl.Series([None if name in untold else name in tensor for name in names], dtype=pl.Boolean))
    sizes = work.select("slice", blocks_per_unit=pl.Series([(blocks or {}).get(name) for name in names], dtype=pl.Float64))
    frame = step_use(profile, work, step_windows(profile, work), flags, sizes)
    assert frame.schema == USE
    return frame.rows(named=True)


def test_tensor_core_share_is_of_kernel_time():
    """30 us of GEMM and 10 us of add: three quarters. Copies are no kernels."""
    build = Build()
    build.step(1, 0, 100)
    build.kernel("gemm", 10, 30, launch=build.call(1, 2))
    build.kernel("add", 40, 10, launch=build.call(4, 2))
    build.kernel("Memcpy DtoH", 50, 20, kind=Kind.COPY, launch=build.call(7, 2))
    assert use_of(build, tensor=("gemm",))[0]["tensor_core_pct"] == 75


@pytest.mark.parametrize(("length", "share"), [(2, 75.0), (4, None)])
def test_the_share_is_unknown_where_over_a_twentieth_of_kernel_time_may_be_either(length: int, share: float | None):
    """Of 40 us of kernels 2 us (5 %) or 4 us (10 %) do not tell their unit."""
    build = Build()
    build.step(1, 0, 100)
    build.kernel("gemm", 10, 30, launch=build.call(1, 2))
    build.kernel("odd", 40, length, launch=build.call(4, 2))
    build.kernel("add", 50, 10 - length, launch=build.call(7, 2))
    assert use_of(build, tensor=("gemm",), untold=("odd",))[0]["tensor_core_pct"] == share


def test_sm_efficiency_adds_running_kernels_up_to_one_block_a_unit():
    """Window of 100 us: 20 us at 0.25, then 10 us of both (0.25 + 0.5), then 10 us at 0.5, then 20 us at 3 blocks, which is full."""
    build = Build()
    build.step(1, 0, 100)
    build.kernel("quarter", 10, 30, stream=7, launch=build.call(1, 2))
    build.kernel("half", 30, 20, stream=8, launch=build.call(4, 2))
    build.kernel("full", 60, 20, stream=7, launch=build.call(7, 2))
    row = use_of(build, blocks={"quarter": 0.25, "half": 0.5, "full": 3.0})[0]
    assert row["sm_efficiency_pct"] == pytest.approx(20 * 0.25 + 10 * 0.75 + 10 * 0.5 + 20)


def test_a_kernel_over_the_end_of_a_step_counts_in_both():
    """Steps end with their device work: step 1 until 60 us. Step 2 launches nothing that runs before 60 us."""
    build = Build()
    build.step(1, 0, 50)
    build.step(2, 50, 50)
    build.kernel("gemm", 20, 40, launch=build.call(1, 2))
    build.kernel("add", 60, 20, launch=build.call(51, 2))
    first, second = use_of(build, tensor=("gemm",), blocks={"gemm": 1.0, "add": 0.5})
    assert first["sm_efficiency_pct"] == pytest.approx(100 * 40 / 60)
    assert (first["tensor_core_pct"], second["tensor_core_pct"]) == (100, 0)
    assert second["sm_efficiency_pct"] == pytest.approx(100 * 20 * 0.5 / 40)


def test_efficiency_is_unknown_where_grids_are():
    build = Build()
    build.step(1, 0, 100)
    build.kernel("replayed", 10, 30, launch=build.call(1, 2))
    build.kernel("add", 50, 10, launch=build.call(4, 2))
    assert use_of(build, blocks={"replayed": None, "add": 1.0})[0]["sm_efficiency_pct"] is None


def test_host_is_busy_in_ops_and_calls_but_not_while_it_waits():
    """Ops from 10 to 40 with a wait from 20 to 35, on another thread a call from 38 to 50: 10 + 5 + 10 of 100 us."""
    build = Build()
    build.step(1, 0, 100)
    build.host("aten::item", 10, 30)
    build.host("cudaStreamSynchronize", 20, 15, kind=Kind.SYNC)
    build.host("## forward ##", 0, 100, kind=Kind.ANNOTATION)
    build.call(38, 12, thread=2)
    assert use_of(build)[0] == {"tensor_core_pct": None, "sm_efficiency_pct": None, "host_busy_pct": 25}


def test_devices_of_one_host_give_their_mean():
    build = Build()
    build.step(1, 0, 100)
    build.kernel("gemm", 0, 100, device=0, launch=build.call(1, 2))
    build.kernel("gemm", 0, 50, device=1, launch=build.call(4, 2))
    assert use_of(build, blocks={"gemm": 1.0})[0]["sm_efficiency_pct"] == pytest.approx(75)


def test_a_profile_without_steps_has_no_rows():
    build = Build()
    build.kernel("gemm", 0, 10)
    assert use_of(build) == []
