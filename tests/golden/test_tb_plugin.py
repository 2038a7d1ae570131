"""torch-tb-profiler 0.4.3's own figures on the same traces.

Steps, roles and operators are to be trusted for traces of 2021: later categories are unknown to it. GPU metrics and the
kernel table hold for the others too, over the range of steps that it found there.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import polars as pl
import pytest

from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm.analysis.tb_plugin import GPU_METRICS, STEP_ROLES, gpu_metrics, kernel_table, step_roles
from roofterm_parsers import open_profile
from roofterm_parsers.profile import Kind
from tests.reference import reference

TRACES_2021 = {
    "kineto_v100_resnet50_2021_workers0": ".pt.trace.json.gz",
    "kineto_v100_resnet50_2021_workers4": ".pt.trace.json.gz",
    "kineto_gpu_metrics_input": ".json.gz",
}
LATER = {
    "hta_a100_2gpu_resnet_nccl_meta": ".json.gz",
    "hta_a100_rank3of8_train": ".json.gz",
    "hta_v100_resnet_ns_absolute_ts": ".pt.trace.json.gz",
    "param_2080ti_resnet": ".json.gz",
    "tracelens_h100_bert_small": ".json.gz",
    "tracelens_h100_qwen05b_chat": ".json.gz",
    "tracelens_h100_timesformer": ".json.gz",
    "tracelens_mi300x_owlv2": ".json.gz",
    "tracelens_mi300x_qwen05b_chat": ".json.gz",
    "tracelens_mi300x_resnet_act_ckpt_rank0of8": ".json.gz",
}
ON_CPU = ("transformer_train_all_flags", "transformer_train_lean")
"""Traces of today without a device, in traces/torch_cpu: what the plugin says of the host holds."""
NO_RANGE = "hta_inference_rank1_old_schema"
"""No operator is known to the plugin there, so that it has no range of steps: its kernel table alone holds."""
SUFFIX = TRACES_2021 | LATER
US = 1_000_000
ROUNDING = {"hta_v100_resnet_ns_absolute_ts": 1e-4}
"""Nanoseconds since 1970: the plugin's doubles resolve 0.25 us there, and 4,350 kernels round with them. Elsewhere 2e-5."""


@cache
def study(name: str) -> Study:
    if name in ON_CPU:
        return Study(open_profile(reference(f"traces/torch_cpu/{name}.pt.trace.json.gz")))
    return Study(open_profile(reference(f"traces/torch/{name}{SUFFIX.get(name, '.json.gz')}")))


@cache
def oracle(name: str) -> dict[str, Any]:
    results: dict[str, Any] = json.loads(reference(f"oracle/tb_plugin/{name}.json").read_text())["results"]
    return results


def test_every_answer_of_the_plugin_is_held_against():
    assert {path.stem for path in reference("oracle/tb_plugin").glob("*.json")} == {*SUFFIX, *ON_CPU, NO_RANGE}


@pytest.mark.parametrize("name", TRACES_2021)
def test_time_of_steps_by_role(name: str):
    mine = study(name)
    roles = step_roles(mine.profile, mine.work, mine.windows)
    columns = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu_exec", "other", "total")
    want = [tuple(round(us * US) for us in cost.values()) for cost in oracle(name)["steps_costs"]]
    assert roles.schema == STEP_ROLES
    assert roles.select(f"{role}_ps" for role in columns).rows() == want
    names = mine.profile.steps["name"].gather(roles["step"])
    assert [text.removeprefix("ProfilerStep#") for text in names] == oracle(name)["steps_names"]


@pytest.mark.parametrize("name", TRACES_2021)
def test_roofterm_gives_kernels_what_the_plugin_gives_them(name: str):
    """No collectives there: both take kernels first, and copies where no kernel runs."""
    rows = [row for row in study(name).steps() if row.complete]
    got = [(row.compute_us, row.exposed_copy_us) for row in rows]
    assert got == [(cost["Kernel"], cost["Memcpy"] + cost["Memset"]) for cost in oracle(name)["steps_costs"]]


@pytest.mark.parametrize("name", TRACES_2021)
def test_operators_have_its_calls_and_times(name: str):
    """The columns of `ops --by op`: of host and device the total with all that its children ran and launched, and self without."""
    table = {row["name"]: row for row in study(name).table("op", ALL).iter_rows(named=True)}
    theirs = ("calls", "host_total", "host_self", "device_total", "device_self")
    ours = ("calls", "total_us", "self_us", "device_us", "self_device_us")
    want = {row["name"]: tuple(row[key] for key in theirs) for row in oracle(name)["operators"]}
    assert len(want) > 40
    assert {op: tuple(table[op][key] for key in ours) for op in want} == want


@pytest.mark.parametrize("name", ON_CPU)
def test_operators_of_the_host_alone_have_its_calls_and_times(name: str):
    table = {row["name"]: row for row in study(name).table("op", ALL).iter_rows(named=True)}
    for theirs in oracle(name)["operators"]:
        mine = table[theirs["name"]]
        assert mine["calls"] == theirs["calls"]
        assert (mine["total_us"], mine["self_us"]) == pytest.approx((theirs["host_total"], theirs["host_self"]), abs=0.1)


@pytest.mark.parametrize("name", ON_CPU)
def test_time_of_steps_of_the_host_alone_by_role(name: str):
    mine = study(name)
    roles = step_roles(mine.profile, mine.work, mine.windows)
    assert roles.height == len(oracle(name)["steps_costs"])
    for row, cost in zip(roles.iter_rows(named=True), oracle(name)["steps_costs"], strict=True):
        got = [row[f"{role}_ps"] / US for role in ("kernel", "runtime", "dataloader", "cpu_exec", "other", "total")]
        want = [cost[role] for role in ("Kernel", "Runtime", "DataLoader", "CpuOp", "Other", "Total")]
        assert got == pytest.approx(want, abs=0.1)  # the plugin adds up doubles of microseconds


@pytest.mark.parametrize("name", SUFFIX)
def test_gpu_metrics(name: str):
    mine = study(name)
    found = gpu_metrics(mine.profile, mine.work, *step_range(name))
    assert found.schema == GPU_METRICS
    rows = {str(mine.profile.devices["id"][row["device"]]): row for row in found.iter_rows(named=True)}
    assert set(rows) == set(oracle(name)["gpu"])
    for device, want in oracle(name)["gpu"].items():
        assert near(name, rows[device]["utilization"], want["utilization"])
        assert near(name, rows[device]["est_sm_efficiency"], want["est_sm_efficiency"])
        if name != "kineto_gpu_metrics_input":  # before May 2021 the argument was called theoretical: unknown to the plugin
            assert near(name, rows[device]["est_achieved_occupancy_pct"], want["est_achieved_occupancy"])


@pytest.mark.parametrize("name", TRACES_2021)
def test_sm_efficiency_of_steps_is_its_figure_for_each_step(name: str):
    """Nothing runs between the steps: their efficiencies times their lengths, over the whole range, are the plugin's."""
    rows = [row for row in study(name).steps() if row.complete]
    length = rows[-1].start_us + rows[-1].dur_us - rows[0].start_us
    mean = sum((row.sm_efficiency_pct or 0) * row.dur_us for row in rows) / length
    assert mean == pytest.approx(100 * oracle(name)["gpu"]["0"]["est_sm_efficiency"], rel=1e-6)


@pytest.mark.parametrize("name", [*SUFFIX, NO_RANGE])
def test_kernel_table(name: str):
    mine = study(name)
    table = kernel_table(mine.profile, mine.work)
    want = {row["name"]: row for row in oracle(name)["kernels"]}
    assert set(table["name"]) == set(want)
    for row in table.iter_rows(named=True):
        theirs = want[row["name"]]
        assert (row["count"], row["tc_used"]) == (theirs["count"], theirs["tc_used"])
        assert row["sum_us"] == pytest.approx(theirs["sum"], rel=1e-6, abs=1e-3)
        assert (row["min_us"], row["max_us"]) == (pytest.approx(theirs["min"], abs=1e-3), pytest.approx(theirs["max"], abs=1e-3))
        assert near(name, row["blocks_per_sm"], theirs["blocks_per_sm"] or 0)
        if name != "kineto_gpu_metrics_input":
            assert near(name, row["occupancy_pct"], theirs["occupancy"] or 0)


def test_roofterm_estimates_what_the_plugin_has_no_figure_for():
    """ROCm states neither blocks per CU nor an occupancy: no SM efficiency there; the grids give one."""
    name = "tracelens_mi300x_owlv2"
    assert oracle(name)["gpu"]["2"]["est_sm_efficiency"] is None
    (step,) = study(name).steps()
    busy, efficiency = step.compute_busy_pct, step.sm_efficiency_pct
    assert busy is not None
    assert efficiency is not None
    assert 0 < efficiency <= busy


def step_range(name: str) -> tuple[int, int]:
    """The range of steps that the plugin found: its windows in 2021, later the annotations of host and device as they come."""
    mine = study(name)
    if name in TRACES_2021:
        kept = mine.windows.filter(pl.col("complete"))
        return kept["start_ps"][0], kept["end_ps"][-1]
    profile = mine.profile
    cats = profile.names["cat"].gather(profile.slices["name"]).str.to_lowercase()
    texts = profile.names["text"].gather(profile.slices["name"])
    end = profile.slices["start_ps"] + profile.slices["dur_ps"]
    slices = profile.slices.with_columns(cat=cats, text=texts, end_ps=end)
    marks = slices.filter(pl.col("text").str.starts_with("ProfilerStep#")).sort("start_ps", maintain_order=True)
    if marks.height:
        return marks["start_ps"][0], marks["end_ps"][-1]
    ops = slices.filter((pl.col("cat") == "cpu_op") & (pl.col("kind") != int(Kind.STEP)))
    return ops["start_ps"].min(), ops["end_ps"].max()  # type: ignore[return-value]


def near(name: str, got: float | None, want: float | None) -> bool:
    """Both unknown, or equal but for the plugin's arithmetic in doubles of microseconds."""
    return got is want if got is None or want is None else got == pytest.approx(want, rel=ROUNDING.get(name, 2e-5), abs=1e-9)
