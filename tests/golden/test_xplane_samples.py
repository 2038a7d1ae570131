"""The project's own XPlane samples: roofterm's figures against those of who made them (`NAME.expected.json` beside each)."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm.analysis.xprof.hlo_stats import xprof_hlo_stats
from roofterm.analysis.xprof.input_pipeline import xprof_input_pipeline
from roofterm_parsers import open_profile

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
TPU, GPU, CPU = "decoder_tpu_synthetic", "decoder_gpu_synthetic", "mlp_jax_cpu"
XPROF = "2.24.2"


@cache
def study(name: str) -> Study:
    return Study(open_profile(SAMPLES / f"{name}.xplane.pb"))


def expected(name: str) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads((SAMPLES / f"{name}.expected.json").read_text())
    return figures


@pytest.mark.parametrize("name", [TPU, GPU])
def test_steps_are_those_that_were_played(name: str) -> None:
    steps = study(name).profile.steps.select("name", "dur_ps").rows(named=True)
    assert [(step["name"], step["dur_ps"] / 1e6) for step in steps] == [(step["name"], step["dur_us"]) for step in expected(name)["steps"]]


def test_tpu_ops_have_the_times_and_costs_that_were_played() -> None:
    ops = {row.name: row for row in study(TPU).roofline(ALL).ops}
    times = {row["hlo_op_name"]: row for row in xprof_hlo_stats(study(TPU).profile, XPROF)}
    for name, want in expected(TPU)["ops"].items():
        row = times[name]
        assert (row["category"], row["occurrences"]) == (want["category"], want["calls"]), name
        assert (row["total_time"], row["total_self_time"]) == pytest.approx((want["total_us"], want["self_us"])), name
        if want["flops"]:
            assert ops[name].flops == want["flops"], name
        if want["hbm_bytes"]:
            assert ops[name].bytes["hbm"] == want["hbm_bytes"], name


def test_gpu_instructions_have_the_kernels_times_and_costs_that_were_played() -> None:
    profile = study(GPU).profile
    named = profile.hlo_ops.with_row_index("op").select("op", "name", "flops", "bytes")
    kernels = profile.kernels.select("slice").join(profile.hlo, on="slice").join(named, on="op")
    lengths = kernels.with_columns(dur_ps=profile.slices["dur_ps"].gather(kernels["slice"]))
    totals = lengths.group_by("name").agg(pl.len(), pl.col("dur_ps").sum(), pl.col("flops", "bytes").first())
    got = {row["name"]: row for row in totals.iter_rows(named=True)}
    for name, want in expected(GPU)["ops"].items():
        assert (got[name]["len"], got[name]["dur_ps"] / 1e6) == (want["kernels"], want["device_us"]), name
        assert (got[name]["flops"], got[name]["bytes"]) == (want["flops"] / want["executions"], want["bytes"] / want["executions"]), name
    assert set(got) == set(expected(GPU)["ops"])


def test_gpu_copies_and_launches_are_those_that_were_played() -> None:
    profile, want = study(GPU).profile, expected(GPU)["copies"]
    device_ps = int(profile.slices["dur_ps"].gather(profile.copies["slice"]).sum())
    assert (profile.copies.height, profile.copies["bytes"].sum(), device_ps / 1e6) == (want["count"], want["bytes"], want["device_us"])
    assert profile.links["launch"].null_count() == 0


def test_late_batches_show_in_the_steps() -> None:
    """The TPU's infeed of the fourth step is 6 ms late; XProf calls a program that waits 5 to 20 % of its time so."""
    found = xprof_input_pipeline(study(TPU).profile, XPROF)
    waits = [step["tcInfeedTimeMs"] for step in found["steps"]]
    assert (max(waits), waits.index(max(waits)), found["verdict"]) == (pytest.approx(6.18), 3, "moderate")


def test_jax_steps_are_what_xprof_makes_of_them() -> None:
    want = expected(CPU)["steps"]
    got = xprof_input_pipeline(study(CPU).profile, XPROF)["steps"]
    assert [{column: step[column] for column in want[0]} for step in got] == [pytest.approx(step) for step in want]


def test_jax_events_are_those_of_xprofs_trace_viewer() -> None:
    profile = study(CPU).profile
    events = pl.DataFrame({"name": profile.names["text"].gather(profile.slices["name"]), "us": profile.slices["dur_ps"] / 1e6})
    totals = events.group_by("name").agg(pl.len(), pl.col("us").sum())
    got = {name: [count, us] for name, count, us in totals.iter_rows()}
    # XProf makes regions of a thread pool's marks, which have no length, and shows a step under its name and number.
    own = {"ThreadpoolListener::Region"}
    steps = {name: figures for name, figures in expected(CPU)["events"].items() if name.startswith("train ")}
    want = {name: pytest.approx(figures, abs=1e-3) for name, figures in expected(CPU)["events"].items() if name not in own | set(steps)}
    assert {name: got[name] for name in want} == want
    assert got["train"] == pytest.approx([sum(figures[i] for figures in steps.values()) for i in (0, 1)])
    assert {name for name in got if not name.startswith("ThreadpoolListener::")} == set(want) | {"train"}


@pytest.mark.parametrize(("script", "name"), [("make_xplane_tpu.py", TPU), ("make_xplane_gpu.py", GPU)])
def test_scripts_write_the_same_samples_again(tmp_path: Path, script: str, name: str) -> None:
    subprocess.run([sys.executable, SAMPLES / script, tmp_path], check=True)
    for file in (f"{name}.xplane.pb", f"{name}.expected.json"):
        assert (tmp_path / file).read_bytes() == (SAMPLES / file).read_bytes()


@pytest.mark.parametrize("name", [TPU, GPU])
def test_synthetic_samples_say_so(name: str) -> None:
    assert study(name).profile.sources[0].metadata["synthetic"].startswith("not recorded")


def test_samples_stay_small() -> None:
    assert sum(path.stat().st_size for path in SAMPLES.glob("*.xplane.pb")) < 200_000
