"""The project's own samples: roofterm's figures against those of who made them (`NAME.expected.json` beside each)."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
TWO_RANKS = SAMPLES / "transformer_h100_2ranks_synthetic"
RECORDED = ["transformer_cpu", "transformer_cpu_stacks"]
SYNTHETIC = ["transformer_h100_synthetic", "transformer_h100_2ranks_synthetic/rank0", "transformer_h100_2ranks_synthetic/rank1"]
NANOSECOND_US = 0.0005
"""half a nanosecond: the traces hold whole ones, so a figure that is off by one shows"""


@cache
def study(name: str) -> Study:
    path = SAMPLES / name
    return Study(open_profile(path if path.is_dir() else SAMPLES / f"{name}.pt.trace.json.gz"))


def expected_of(folder: Path, name: str) -> Path:
    """The figures of a profile in a folder stand beside the folder, which holds profiles alone."""
    return folder / f"{name.replace('/', '.')}.expected.json"


def expected(name: str) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(expected_of(SAMPLES, name).read_text())
    return figures


def us(value: Any) -> Any:
    return pytest.approx(value, abs=NANOSECOND_US)


def fits(want: dict[str, Any], got: Any) -> dict[str, Any]:
    """The figures of `got` that `want` does not allow, each beside what was wanted."""
    found = {key: getattr(got, key) for key in want}
    return {key: (found[key], value) for key, value in want.items() if found[key] != (us(value) if "_us" in key else value)}


@pytest.mark.parametrize("name", SYNTHETIC)
def test_summary_is_what_was_played(name):
    assert fits(expected(name)["summary"], study(name).summary()) == {}


@pytest.mark.parametrize("name", SYNTHETIC)
def test_steps_are_broken_down_as_they_were_played(name):
    rows = study(name).steps()
    want = expected(name)["steps"]
    assert [row.name for row in rows] == [row["name"] for row in want]
    assert [fits(row, got) for row, got in zip(want, rows, strict=True)] == [{}] * len(want)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_ops_have_the_calls_flops_and_device_time_that_were_played(name):
    table = {row["name"]: row for row in study(name).table("op", ALL).iter_rows(named=True)}
    for op, want in expected(name)["ops"].items():
        got = table[op]
        assert (got["calls"], got["flops"] or 0, got["device_us"]) == (want["calls"], want["flops"], us(want["device_us"])), op


@pytest.mark.parametrize("name", SYNTHETIC)
def test_roofline_counts_the_work_of_each_product(name):
    """2 m n k FLOPs and 2 (m k + k n + m n) bytes of bf16; the rows of a shape, which differ by strides, taken together."""
    got: dict[str, dict[str, float]] = {}
    for row in study(name).roofline(ALL).ops:
        if row.name == "aten::mm" and row.flops:
            totals = got.setdefault(row.shapes or "", {"calls": 0, "flops": 0, "bytes": 0, "kernel_us": 0})
            for key, value in {"calls": row.calls, "flops": row.flops, "bytes": row.bytes["hbm"], "kernel_us": row.time_us}.items():
                totals[key] += value
    want = {json.dumps(row.pop("dims"), separators=(",", ":")): us(row) for row in expected(name)["products"]}
    assert got == want


@pytest.mark.parametrize("name", SYNTHETIC)
def test_roofline_counts_visible_pairs_of_attention(name):
    """4 FLOPs a pair and element of a head forward, ten backward; with Sq = Sk = n causal attention has n (n + 1) / 2 pairs."""
    rows = study(name).roofline(ALL).ops
    for op, role in (("aten::_flash_attention_forward", "attention forward"), ("aten::_flash_attention_backward", "attention backward")):
        want = expected(name)["work"][role]
        of_op = [row for row in rows if row.name == op]
        assert (sum(row.calls for row in of_op), sum(row.flops or 0 for row in of_op)) == (want["calls"], want["flops"])


@pytest.mark.parametrize("name", RECORDED)
def test_op_table_is_the_profilers_own(name):
    """Calls, memory and FLOPs exactly; times to 1 us, since the profiler adds them in floating point."""
    table = study(name).table("op", ALL)
    got = {
        row["name"]: (
            row["calls"],
            pytest.approx(row["self_us"], abs=1),
            pytest.approx(row["total_us"], abs=1),
            row["flops"] or 0,
            row["memory_bytes"],
            row["self_memory_bytes"],
        )
        for row in table.iter_rows(named=True)
    }
    want = {
        row["key"]: (
            row["count"],
            row["self_cpu_time_total_us"],
            row["cpu_time_total_us"],
            row["flops"],
            row["cpu_memory_usage"],
            row["self_cpu_memory_usage"],
        )
        for row in expected(name)["rows"]
    }
    assert got == want


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_steps_have_the_length_that_the_profiler_gives(name):
    summary = study(name).summary()
    assert summary.step_us == us(expected(name)["step_us"])
    assert summary.self_cpu_us == pytest.approx(expected(name)["self_cpu_us"], abs=1)
    assert (summary.kernels, summary.devices) == (0, 0)


def test_stacks_give_negative_self_times_as_the_profiler_has_them():
    rows = expected("transformer_cpu_stacks")["rows"]
    negative = {row["key"] for row in rows if row["self_cpu_time_total_us"] < -1}
    table = study("transformer_cpu_stacks").table("op", ALL)
    assert negative
    assert set(table.filter(table["self_us"] < -1)["name"]) == negative


def test_two_ranks_keep_their_kernels_apart():
    want = json.loads(expected_of(SAMPLES, f"{TWO_RANKS.name}/ranks").read_text())["summary"]
    assert fits(want, study(TWO_RANKS.name).summary()) == {}


@pytest.fixture(scope="module")
def made_again(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    subprocess.run([sys.executable, SAMPLES / "make_transformer_h100.py", folder], check=True)
    return folder


@pytest.mark.parametrize("name", SYNTHETIC)
def test_script_writes_the_same_sample_again(made_again, name):
    """Compared inflated, since another zlib may deflate the same bytes otherwise."""
    trace = f"{name}.pt.trace.json.gz"
    assert gzip.decompress((made_again / trace).read_bytes()) == gzip.decompress((SAMPLES / trace).read_bytes())
    assert expected_of(made_again, name).read_bytes() == expected_of(SAMPLES, name).read_bytes()


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic_samples_say_so(name):
    assert "synthetic" in name
    assert study(name).profile.sources[0].metadata["synthetic"].startswith("not recorded")


def test_samples_stay_small():
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*.json*")) < 3_000_000
