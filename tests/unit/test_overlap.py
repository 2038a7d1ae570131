"""What hiding communication costs, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm.analysis.overlap import HIDING, slowdown
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from tests.build import Build

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def hiding_of(build: Build) -> list[dict[str, Any]]:
    frame = Study(build.profile()).hiding(ALL)
    assert frame.schema == HIDING
    return frame.rows(named=True)


def kernels(build: Build, lengths: list[float], start: float, device: int = 0, **facts: Any) -> None:
    """Kernels one after the other, a microsecond between them."""
    for length in lengths:
        build.kernel("gemm", start, length, device=device, **facts)
        start += length + 1


def test_the_same_kernel_under_a_collective_against_alone():
    """Alone 10, 10, 10; under an all-reduce 12 and 13: 1.25 times as long, 5 us dearer."""
    build = Build()
    kernels(build, [10, 10, 10], start=0)
    build.kernel(NCCL, 100, 50, stream=20)
    kernels(build, [12, 13], start=110)
    (row,) = hiding_of(build)
    assert (row["calls_alone"], row["calls_overlapped"]) == (3, 2)
    assert (row["mean_alone_us"], row["mean_overlapped_us"], row["ratio"], row["cost_us"]) == (10, 12.5, 1.25, 5)
    assert slowdown(Study(build.profile()).hiding(ALL)) == 1.25


def test_a_kernel_that_a_collective_covers_for_a_little_is_neither():
    """The second of 40 us lies under 10 us of the collective: a quarter, so it says nothing."""
    build = Build()
    kernels(build, [40, 40, 40], start=0)
    build.kernel(NCCL, 150, 60, stream=20)
    kernels(build, [40, 44], start=120)
    (row,) = hiding_of(build)
    assert (row["calls_alone"], row["calls_overlapped"], row["mean_overlapped_us"]) == (3, 1, 44)


def test_shapes_are_kept_apart_where_the_grid_is_the_same():
    """A persistent kernel has one grid for all sizes: without the shapes the long one would seem slowed down fourfold."""
    build = Build()
    short = build.host("aten::mm", 0, 1, dims="[[64,64],[64,64]]", types='["float","float"]')
    long = build.host("aten::mm", 2, 1, dims="[[256,256],[256,256]]", types='["float","float"]')
    grid = {"grid_x": 132, "grid_y": 1, "grid_z": 1, "block_x": 384, "block_y": 1, "block_z": 1}
    kernels(build, [10, 10, 10], start=10, op=short, **grid)
    build.kernel(NCCL, 100, 60, stream=20)
    kernels(build, [40], start=105, op=long, **grid)
    assert hiding_of(build) == []


def test_each_device_is_compared_with_itself():
    """Device 1 is twice as slow and alone has overlap: 22 against its own 20, not against the mean of both."""
    build = Build()
    kernels(build, [10, 10, 10], start=0, device=0)
    kernels(build, [20, 20, 20], start=0, device=1)
    build.kernel(NCCL, 100, 50, stream=20, device=1)
    kernels(build, [22], start=105, device=1)
    (row,) = hiding_of(build)
    assert (row["mean_alone_us"], row["mean_overlapped_us"], row["ratio"]) == (20, 22, pytest.approx(1.1))


def test_too_few_calls_alone_say_nothing():
    build = Build()
    kernels(build, [10, 10], start=0)
    build.kernel(NCCL, 100, 50, stream=20)
    kernels(build, [12], start=110)
    assert hiding_of(build) == []


def test_without_communication_there_is_nothing_to_compare():
    build = Build()
    kernels(build, [10, 10, 10], start=0)
    assert hiding_of(build) == []
    assert slowdown(Study(build.profile()).hiding(ALL)) is None
