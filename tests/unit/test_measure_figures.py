"""Roofs out of samples, on hand-made samples: no clock runs here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from roofterm.hardware.measure.box import spread
from roofterm.hardware.measure.figures import bandwidths, best_gemms, links, merge_passes, noisy, slower_while_hot
from roofterm.hardware.measure.loops import _path
from roofterm.hardware.measure.node import cpus, memory_bytes


def _timed(per_s: float, spread_of: float = 0.01, first: float = 1.0, last: float = 1.0, samples: int = 9) -> dict[str, Any]:
    return {"per_s": per_s, "spread": spread_of, "first_third_s": first, "last_third_s": last, "samples": samples}


def test_spread_is_of_the_best_three_alone() -> None:
    assert spread([1.0, 9.0, 1.02, 7.0, 1.05]) == pytest.approx(0.05)
    assert spread([2.0]) == 0


def test_memory_bandwidth_is_the_best_of_copy_triad_and_read_and_never_the_write() -> None:
    details = {"bandwidth": {"copy": _timed(40e9), "triad": _timed(42e9), "read": _timed(41e9), "write": _timed(90e9)}}
    assert bandwidths(details) == {"hbm": 42e9}


def test_a_cache_is_the_plateau_below_its_size_and_not_a_launch() -> None:
    points = [
        {"working_set": 1 << 20, "per_s": 9e12, "seconds": 1e-7},  # below an eighth of the cache
        {"working_set": 8 << 20, "per_s": 8e12, "seconds": 1e-6},  # over before the next launch: 3 us apart
        {"working_set": 16 << 20, "per_s": 5.5e12, "seconds": 3e-6},
        {"working_set": 64 << 20, "per_s": 3.1e12, "seconds": 2e-5},  # beyond the cache
    ]
    details: dict[str, Any] = {
        "launch": {"spacing": {"best_s": 3e-6}},
        "bandwidth": {"copy": _timed(3e12)},
        "caches": {"llc_bytes": 50 << 20, "on_device": True, "sweep": points},
    }
    assert bandwidths(details) == {"hbm": 3e12, "l2": 5.5e12}
    details["caches"]["on_device"] = False
    assert bandwidths(details)["llc"] == 5.5e12
    # no plateau above main memory: no cache roof rather than a false one
    details["bandwidth"]["copy"] = _timed(6e12)
    assert bandwidths(details) == {"hbm": 6e12}


def test_the_best_size_of_a_dtype_counts_under_the_path_it_takes() -> None:
    details = {"gemm": {"fp64": {"1024": _timed(50e12), "4096": _timed(60e12), "path": "fp64_tensor"}, "fp8": {"error": "no"}, "int8": {}}}
    best = best_gemms(details)
    assert list(best) == ["fp64_tensor"]
    assert best["fp64_tensor"]["per_s"] == 60e12


@pytest.mark.parametrize(
    ("gfx", "capability", "hip", "kind", "fp32", "fp64"),
    [
        ("", (9, 0), False, "cuda", "fp32", "fp64_tensor"),
        ("", (8, 9), False, "cuda", "fp32", "fp64"),
        ("gfx942", (9, 4), True, "cuda", "fp32_matrix", "fp64_tensor"),
        ("gfx908", (9, 0), True, "cuda", "fp32_matrix", "fp64"),
        ("gfx1100", (11, 0), True, "cuda", "fp32", "fp64"),
        ("", None, False, "cpu", "fp32", "fp64"),
    ],
)
def test_gemm_takes_the_matrix_units_where_there_are_any(
    gfx: str, capability: tuple[int, int] | None, hip: bool, kind: str, fp32: str, fp64: str
) -> None:
    box: Any = SimpleNamespace(gfx=lambda: gfx, capability=lambda: capability, hip=hip, kind=kind)
    assert (_path(box, "fp32"), _path(box, "fp64"), _path(box, "bf16")) == (fp32, fp64, "bf16")


def test_links_are_named_by_what_can_carry_them() -> None:
    nvidia: Any = SimpleNamespace(hip=False)
    amd: Any = SimpleNamespace(hip=True)
    pcie = {"h2d_pinned": _timed(55e9), "d2h_pinned": _timed(56e9)}
    fast = {"pcie": pcie, "collectives": {"all_reduce": {"1": {"bus_per_s": 30e9}, "2": {"bus_per_s": 367e9}}}}
    assert links(fast, nvidia) == {"pcie": 56e9, "nvlink": 367e9}
    assert links(fast, amd) == {"pcie": 56e9, "xgmi": 367e9}
    slow = {"pcie": pcie, "collectives": {"all_reduce": {"1": {"bus_per_s": 22e9}}}}
    assert links(slow, nvidia) == {"pcie": 56e9, "peer": 22e9}
    assert links({}, nvidia) == {}


def test_figures_whose_best_samples_disagree_are_noisy() -> None:
    details = {
        "bandwidth": {"copy": _timed(1.0, 0.11), "read": _timed(1.0, 0.09)},
        "gemm": {"bf16": {"1024": _timed(2.0, 0.3), "2048": _timed(1.0, 0.0), "path": "bf16"}},
    }
    assert noisy(details) == ["copy: the best three samples differ by 11%", "gemm bf16: the best three samples differ by 30%"]


def test_the_better_pass_over_memory_counts_and_a_gap_is_said() -> None:
    details = {
        "bandwidth": {"copy": _timed(40e9), "read": _timed(50e9)},
        "bandwidth again": {"copy": _timed(80e9), "read": _timed(48e9)},
    }
    (said,) = merge_passes(details)
    assert "copy: 40.0 GB/s at first, 80.0 later" in said
    assert (details["bandwidth"]["copy"]["per_s"], details["bandwidth"]["read"]["per_s"]) == (80e9, 50e9)
    assert "bandwidth again" not in details


def test_a_device_that_slows_down_while_it_runs_is_noticed() -> None:
    cool = {"gemm": {"bf16": {"8192": _timed(1.0, first=1.0, last=1.05), "path": "bf16"}}}
    hot = {"gemm": {"bf16": {"8192": _timed(1.0, first=1.0, last=1.25), "path": "bf16"}}}
    few = {"gemm": {"bf16": {"8192": _timed(1.0, first=1.0, last=1.25, samples=4), "path": "bf16"}}}
    assert slower_while_hot(cool) == []
    assert slower_while_hot(few) == []  # too few to tell a trend
    assert "bf16 lost 20%" in slower_while_hot(hot)[0]  # 1 - 1/1.25


def test_the_host_is_seen_within_its_limits() -> None:
    total, available = memory_bytes()
    assert 0 < available <= total
    assert cpus()
