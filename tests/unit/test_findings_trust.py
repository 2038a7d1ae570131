"""Findings about how far a profile is to be trusted: whole or cut, times, device, memory."""

from __future__ import annotations

import polars as pl
import pytest

from roofterm_parsers.profile import Profile, Warning
from tests.build import Build
from tests.unit.made_steps import GEMM, ahead, findings, healthy, launched

GIB = 1 << 30


def test_launches_without_any_kernel_make_a_profile_unusable():
    build = Build()
    for row in range(20):
        build.call(row * 10, 5)
    found = findings(build.profile())["profile-unusable"]
    assert (found.severity, found.time_at_stake_us) == ("high", None)
    assert found.evidence["launches_without_kernel"] == 20


def test_launches_that_a_graph_captured_are_told_apart():
    build = Build()
    build.kernel(GEMM, 8, 5, launch=build.call(0, 5))
    for row in range(1, 40):
        build.call(row * 10, 5)
    build.call(400, 50, "cudaStreamEndCapture")
    found = findings(build.profile())["profile-unusable"]
    assert found.severity == "info"
    assert "captured" in found.title


def test_a_tenth_of_the_launches_without_kernel_is_a_doubt():
    def lost(missing: int) -> Profile:
        build = Build()
        for row in range(100):
            call = build.call(row * 10, 5)
            if row >= missing:
                build.kernel(GEMM, row * 10 + 5, 9, launch=call)
        return build.profile()

    assert findings(lost(15))["profile-unusable"].evidence["launches_without_kernel"] == 15
    assert "profile-unusable" not in findings(lost(5))


def tail(gap: float) -> Profile:
    """A kernel, then `gap` us in which the device seems idle though everything has been launched, then 10 ms of kernels."""
    build = Build()
    build.kernel(GEMM, 10, 50, launch=build.call(0, 5))
    for row in range(100):
        build.kernel(GEMM, 60 + gap + row * 100, 100, launch=build.call(20 + row, 1))
    return build.profile()


def test_idle_time_long_after_the_launch_is_missing_work():
    found = findings(tail(5000))
    # 5,000 us less the 21 us until the launch has ended... which lies under the first kernel: all of the gap.
    assert found["profile-unusable"].evidence["unrecorded_us"] == pytest.approx(5000)
    assert found["profile-unusable"].evidence["unrecorded_pct"] == pytest.approx(100 * 5000 / (50 + 5000 + 10_000))
    assert "many-small-kernels" not in found
    assert "profile-unusable" not in findings(tail(300))


def test_a_cut_file_is_named():
    profile = healthy().profile()
    profile.warnings = [Warning("cut", "made by hand: the file is cut")]
    assert findings(profile)["profile-unusable"].evidence["warnings"] == ["made by hand: the file is cut"]
    assert "profile-unusable" not in findings(healthy().profile())


def test_kernels_that_cover_later_ones_of_their_stream_are_implausible():
    def covering(dur: float) -> Profile:
        build = Build()
        for row in range(40):
            launched(build, GEMM, 9 * row, 10 + 100 * row, dur if row == 3 else 100)
        return build.profile()

    found = findings(covering(1000.0))["implausible-durations"]
    # It ends 900 us after the next one has begun.
    assert found.evidence["doubtful_us"] == pytest.approx(900)
    assert found.evidence["kernels"] == 1
    assert "implausible-durations" not in findings(covering(150.0))


def test_an_unknown_device_and_a_part_of_one_are_remarks():
    found = findings(ahead([(GEMM, "aten::mm", 300.0)] * 20, build=Build(device_name="Acme Accelerator X1")))
    assert found["device-unknown-or-partition"].severity == "info"
    assert "'Acme Accelerator X1'" in found["device-unknown-or-partition"].title
    mig = findings(ahead([(GEMM, "aten::mm", 300.0)] * 20, build=Build(device_name="NVIDIA A100-SXM4-40GB MIG 1g.5gb")))
    assert mig["device-unknown-or-partition"].evidence["partition"] == "MIG 1g.5gb"
    assert "device-unknown-or-partition" not in findings(ahead([(GEMM, "aten::mm", 300.0)] * 20))


def with_memory(allocated: int, reserved: int, out_of_memory: bool = False) -> Profile:
    build = healthy()
    build.memory(100, allocated, allocated)
    profile = build.profile()
    profile.memory = profile.memory.with_columns(reserved_bytes=pl.lit(reserved, pl.Int64), out_of_memory=pl.lit(out_of_memory))
    if out_of_memory:
        profile.memory = pl.concat([profile.memory.with_columns(out_of_memory=pl.lit(False)), profile.memory])
    return profile


def test_memory_near_the_limit():
    # The made H100 has 85,018,279,936 bytes (79.2 GiB).
    found = findings(with_memory(70 * GIB, 75 * GIB))["memory-near-limit"]
    assert found.evidence["peak_pct"] == pytest.approx(100 * 75 * GIB / 85018279936)
    assert found.severity == "medium"
    assert findings(with_memory(40 * GIB, 50 * GIB, out_of_memory=True))["memory-near-limit"].severity == "high"
    assert "memory-near-limit" not in findings(with_memory(40 * GIB, 50 * GIB))


def test_memory_fragmentation():
    found = findings(with_memory(30 * GIB, 60 * GIB))["memory-fragmentation"]
    assert found.evidence["unused_pct"] == pytest.approx(50)
    assert "memory-fragmentation" not in findings(with_memory(55 * GIB, 60 * GIB))
    assert "memory-fragmentation" not in findings(with_memory(4 * GIB, 8 * GIB))  # there is plenty of memory left
