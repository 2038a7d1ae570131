"""Blocks that fit on a unit, waves and tail, by hand; Kineto's own estimate against the files that hold it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from roofterm.analysis.occupancy import OCCUPANCY, kineto_occupancy, occupancies
from roofterm_parsers.profile import Profile
from tests.build import Build


def launched(grid: int, threads: int, device: dict[str, Any] | None = None, **facts: Any) -> Profile:
    """One kernel of a one-dimensional launch, on an H100 or another `device`."""
    build = Build()
    shape: dict[str, Any] = {"grid_x": grid, "grid_y": 1, "grid_z": 1, "block_x": threads, "block_y": 1, "block_z": 1}
    build.kernel("k", 0, 10, **shape, **facts)
    profile = build.profile()
    if device is not None:
        profile.devices = profile.devices.with_columns(
            **{name: pl.lit(value, profile.devices.schema[name]) for name, value in device.items()}
        )
    return profile


def found(profile: Profile) -> dict[str, Any]:
    frame = occupancies(profile)
    assert frame.schema == OCCUPANCY
    return frame.row(0, named=True)


def test_threads_limit_a_light_kernel():
    """256 threads are 8 warps; 64 warps of an H100's unit hold 8 such blocks. 264 blocks: 2 a unit, a quarter of one wave."""
    row = found(launched(264, 256, registers=16, shared_bytes=0))
    assert (row["resident_blocks"], row["limited_by"]) == (8, "threads")
    assert (row["blocks_per_unit"], row["waves"], row["tail_pct"]) == (2, 0.25, 75)
    assert row["occupancy_pct"] == 100 * 2 * 256 / 2048
    assert row["estimated"] is True


def test_registers_limit_a_heavy_kernel():
    """168 registers x 32 lanes = 5,376, in steps of 256: a partition of 16,384 holds 3 warps, the unit 12, in blocks of 4 warps 3."""
    row = found(launched(132 * 3 * 2 + 132, 128, registers=168, shared_bytes=0))
    assert (row["resident_blocks"], row["limited_by"]) == (3, "registers")
    # 7 blocks a unit in waves of 3: two full waves and a third of one.
    assert row["waves"] == pytest.approx(7 / 3)
    assert row["tail_pct"] == pytest.approx(100 * (3 - 7 / 3) / 3)
    assert row["occupancy_pct"] == 100 * 3 * 128 / 2048


def test_shared_memory_limits_with_what_the_system_reserves():
    """82,240 bytes and 1,024 reserved are 83,264, a multiple of 128: two fit in 228 KiB."""
    row = found(launched(1000, 128, registers=32, shared_bytes=82240))
    assert (row["resident_blocks"], row["limited_by"]) == (2, "shared memory")


def test_blocks_limit_tiny_blocks():
    """One warp a block: 64 would fit by threads, 32 by the count of blocks."""
    row = found(launched(132 * 64, 32, registers=16, shared_bytes=0))
    assert (row["resident_blocks"], row["limited_by"], row["waves"], row["tail_pct"]) == (32, "blocks", 2, 0)


def test_an_amd_unit_counts_in_wavefronts_of_64():
    """MI300X: 2,048 threads a unit, so 8 blocks of 256; 64 KiB of local memory hold two blocks of 32,000 bytes."""
    device = {"units": 304, "capability": "9.4", "warp_size": 64, "threads_per_unit": 2048, "shared_bytes_per_unit": 65536}
    row = found(launched(304 * 8, 256, device))
    assert (row["resident_blocks"], row["waves"], row["occupancy_pct"], row["estimated"]) == (8, 1, 100, True)
    assert found(launched(304, 256, device, shared_bytes=32000))["resident_blocks"] == 2


def test_what_the_file_states_counts():
    row = found(launched(264, 256, registers=16, shared_bytes=0, occupancy_pct=30.0, blocks_per_unit=2.5))
    assert (row["occupancy_pct"], row["blocks_per_unit"], row["estimated"]) == (30, 2.5, False)


def test_zero_for_a_kernel_of_much_shared_memory_is_no_measurement():
    """Kineto's formula gives up above 48 KiB a block and says 0; two blocks of 128 threads do fit: 12.5 %."""
    profile = launched(1000, 128, registers=32, shared_bytes=82240, occupancy_pct=0.0)
    assert kineto_occupancy(profile).to_list() == [0]
    row = found(profile)
    assert (row["occupancy_pct"], row["estimated"]) == (12.5, True)


def test_zero_for_a_small_grid_is_kept():
    row = found(launched(1, 32, registers=16, shared_bytes=0, occupancy_pct=0.0))
    assert (row["occupancy_pct"], row["estimated"]) == (0, False)


@pytest.mark.parametrize(
    "device",
    [{"capability": None}, {"units": None}, {"capability": "99.0"}],
    ids=["no capability", "no units", "unknown capability"],
)
def test_unknown_device_gives_no_figure(device: dict[str, Any]):
    row = found(launched(264, 256, device, registers=16, shared_bytes=0))
    assert (row["waves"], row["tail_pct"], row["occupancy_pct"], row["estimated"]) == (None, None, None, False)


def test_a_kernel_without_a_grid_gives_no_figure():
    build = Build()
    build.kernel("k", 0, 10)
    row = found(build.profile())
    assert [row[name] for name in OCCUPANCY if name != "slice"] == [None] * 6 + [False]


def test_no_kernels_give_an_empty_frame():
    assert occupancies(Build().profile()).schema == OCCUPANCY
