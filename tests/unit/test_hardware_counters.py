"""Work that hardware counters saw: FLOPs of the threads' instructions, bytes of the memory, and the rows made of them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from roofterm.analysis.hardware_counters import NOT_COUNTED, STEP, counted_bytes, counted_flops, counter_rows
from roofterm.analysis.study import Study
from roofterm.results import DeviceInfo
from roofterm_parsers import open_profile
from roofterm_parsers.profile import COUNTED, Kind, Profile, Source
from roofterm_parsers.xplane.reader import read
from tests.build import Build
from tests.reference import reference
from tests.xspace import Plane, space

US = 1_000_000


def sass(op: str, unit: str = "smsp") -> str:
    return f"{unit}__sass_thread_inst_executed_op_{op}_pred_on.sum"


def device() -> DeviceInfo:
    return DeviceInfo(
        id=0, name="made", model=None, kind="gpu", units=1, memory_bytes=None, peaks={"fp32": 10e12}, bandwidths={"hbm": 1e12},
        roofs_from="vendor", ridge={}, notes=[],
    )  # fmt: skip


def counted(kernel_us: float | None, **counters: float) -> Profile:
    build = Build()
    build.kernel("counted kernel", 0, 50, kind=Kind.COUNTED, stream=0)
    if kernel_us is not None:
        build.kernel("kernel", 100, kernel_us)
    profile = build.profile()
    slice_id = int(np.flatnonzero(profile.slices["kind"].to_numpy() == Kind.COUNTED)[0])
    profile.counted = pl.DataFrame([(slice_id, name, value) for name, value in counters.items()], schema=COUNTED, orient="row")
    return profile


def test_flops_are_adds_multiplies_and_twice_the_fused() -> None:
    totals = {sass("fadd"): 10.0, sass("fmul"): 20.0, sass("ffma"): 300.0, sass("dfma"): 7.0, sass("hadd"): 0.0, "l2__bytes": 1.0}
    assert counted_flops(totals) == {"fp32": 10 + 20 + 2 * 300, "fp64": 14, "fp16": 0}


def test_the_same_instructions_of_two_units_count_once() -> None:
    assert counted_flops({sass("ffma"): 5.0, sass("ffma", "sm"): 5.0, sass("dadd", "sm"): 3.0}) == {"fp32": 10, "fp64": 3}


def test_bytes_of_memory_are_the_sum_or_its_two_parts() -> None:
    assert counted_bytes({"dram__bytes.sum": 9.0, "dram__bytes_read.sum": 1.0}) == 9
    assert counted_bytes({"dram__bytes_read.sum": 4.0, "dram__bytes_write.sum": 2.0}) == 6
    assert counted_bytes({"dram__bytes_read.sum": 4.0}) is None


def test_a_row_holds_the_counted_work_against_the_busy_time() -> None:
    # 200 MFLOP in 100 us: 2 TFLOP/s of 10; 40 MB in 100 us: 400 GB/s of 1,000
    profile = counted(100, **{sass("ffma"): 100e6, "dram__bytes.sum": 40e6})
    study = Study(profile)
    (row,) = counter_rows(profile, study.work, device())
    assert (row.level, row.step, row.name, row.dtype, row.calls) == ("program", STEP, "fp32, tensor cores not counted", "fp32", 1)
    assert (row.flops, row.bytes, row.time_us) == (200e6, {"hbm": 40e6}, 100)
    assert row.flops_per_s == pytest.approx(2e12)
    assert row.pct_of_peak_flops == pytest.approx(20)
    assert row.pct_of_peak_bw == pytest.approx(40)
    assert row.bound_by == "hbm"
    assert row.pct_of_roof == pytest.approx(40)
    assert row.headroom_us == pytest.approx(60)
    assert row.intensity == {"hbm": 5.0}
    assert row.flags == [NOT_COUNTED]


def test_without_kernels_there_is_no_rate() -> None:
    profile = counted(None, **{sass("ffma"): 100e6})
    profile.links = profile.links.clear()
    (row,) = counter_rows(profile, Study(profile).work.clear(), device())
    assert (row.flops_per_s, row.pct_of_roof, row.bound_by, row.headroom_us) == (None, None, None, None)
    assert row.time_us == 50
    assert row.time_bound_us == pytest.approx(20)  # 200 MFLOP at 10 TFLOP/s
    assert any("no rate" in flag for flag in row.flags)


def test_slices_outside_of_the_chosen_part_do_not_count() -> None:
    profile = counted(10, **{sass("ffma"): 1.0})
    assert counter_rows(profile, Study(profile).work, None, np.zeros(profile.slices.height, np.bool_)) == []


def test_a_profile_of_counters_alone() -> None:
    profile = open_profile(str(reference("traces/torch/hta_a100_cupti_profiler_range.json.gz")), cache=False)
    rows = {row.dtype: row for row in counter_rows(profile, Study(profile).work, None)}
    # fadd + fmul + 2 ffma over its 77 ranges
    assert rows["fp32"].flops == 964_651_656 + 430_063_616 + 2 * 39_142_369_720 == 79_679_454_712
    assert rows["fp16"].flops == 2 * 275_791_872
    assert set(rows) == {"fp32", "fp16"}  # no double was executed
    assert rows["fp32"].calls == 77
    assert NOT_COUNTED in rows["fp32"].flags


def test_counters_of_an_xplane_files_kernel_are_a_program_row() -> None:
    """A kernel of 100 us, whose counters stand on a line of its name: 2 x 100 M fused operations in 100 us are 2 TFLOP/s."""
    gpu = Plane("/device:GPU:0")
    gpu.line("Stream #1(Kernel)", [gpu.event("k", 0, 100 * US)])
    counters = {sass("ffma"): 100_000_000, "dram__bytes.sum": 40_000_000}
    gpu.line("k", [gpu.event(name, 0, 100 * US, counter_value=value) for name, value in counters.items()], id=9)
    profile = read(space(gpu), Source("t.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False)
    [row] = [row for row in Study(profile).roofline().program if row.step == STEP]
    assert (row.dtype, row.calls, row.flops, row.bytes, row.time_us) == ("fp32", 1, 200e6, {"hbm": 40e6}, 100)
    assert row.flops_per_s == pytest.approx(2e12)
