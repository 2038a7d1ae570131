"""Steps, their breakdown and busy time against what torch-tb-profiler 0.4.3 and HTA 0.5.0 say of the same traces."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from roofterm.analysis.intervals import union
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from roofterm_parsers.profile import Kind
from tests.reference import reference

# torch-tb-profiler's own steps and roles are to be trusted for traces of 2021 only: later categories are unknown to it.
TB_2021 = ("kineto_v100_resnet50_2021_workers0", "kineto_v100_resnet50_2021_workers4")


@pytest.mark.parametrize("name", TB_2021)
def test_steps_and_kernel_time_equal_torch_tb_profiler(name: str):
    oracle = json.loads(reference(f"oracle/tb_plugin/{name}.json").read_text())["results"]
    study = Study(open_profile(reference(f"traces/torch/{name}.pt.trace.json.gz"), cache=False))
    steps = study.steps()
    assert [s.name.removeprefix("ProfilerStep#") for s in steps] == oracle["steps_names"]
    assert [s.dur_us for s in steps] == [cost["Total"] for cost in oracle["steps_costs"]]
    assert [s.compute_us for s in steps] == [cost["Kernel"] for cost in oracle["steps_costs"]]
    assert [s.exposed_copy_us for s in steps] == [cost["Memcpy"] + cost["Memset"] for cost in oracle["steps_costs"]]


@pytest.mark.parametrize("name", TB_2021)
def test_gpu_utilisation_equals_torch_tb_profiler(name: str):
    """Its GPU utilisation: union of kernels in [first step's start, last step's end] over that range; steps touch, so ours is the sum."""
    oracle = json.loads(reference(f"oracle/tb_plugin/{name}.json").read_text())["results"]
    steps = Study(open_profile(reference(f"traces/torch/{name}.pt.trace.json.gz"), cache=False)).steps()
    assert all(a.start_us + a.dur_us <= b.start_us for a, b in pairwise(steps))
    length = steps[-1].start_us + steps[-1].dur_us - steps[0].start_us
    busy = sum(s.compute_us or 0 for s in steps)
    assert busy / length == pytest.approx(oracle["gpu"]["0"]["utilization"], rel=1e-3)


@pytest.mark.parametrize(
    "name", ["tracelens_h100_qwen05b_chat", "tracelens_h100_timesformer", "tracelens_mi300x_qwen05b_chat", "param_2080ti_resnet"]
)
def test_compute_and_idle_equal_hta(name: str):
    """HTA without rounding, on traces where it drops no step (it drops the last of two or more).

    Its kernel time is last end less first start of all device events; compute the union of kernels that are neither
    collectives nor copies; idle what no device event covers.
    """
    (want,) = json.loads(reference(f"oracle/hta_ns/{name}.json").read_text())["results"]["temporal_breakdown"]
    study = Study(open_profile(reference(f"traces/torch/{name}.json.gz"), cache=False))
    work = study.work
    start, end = work["start_ps"].to_numpy(), work["end_ps"].to_numpy()
    span = int(end.max() - start.min())
    assert span / 1e6 == pytest.approx(want["kernel_time(us)"], abs=2e-3)
    assert (span - union(start, end).length) / 1e6 == pytest.approx(want["idle_time(us)"], abs=2e-3)
    kernels = (work["kind"] == Kind.KERNEL).to_numpy()
    assert union(start[kernels], end[kernels]).length / 1e6 == pytest.approx(want["compute_time(us)"], abs=2e-3)


def test_a_host_that_runs_ahead_has_steps_as_long_as_the_device_needs():
    """The checkpointing trace: host steps of 16.8, 16.0 and 15.9 ms, device steps of 18.98, 18.98 and 18.55 ms."""
    steps = Study(open_profile(reference("traces/torch/tracelens_mi300x_resnet_act_ckpt_rank0of8.json.gz"), cache=False)).steps()
    assert [round(s.dur_us / 1000, 2) for s in steps] == [18.98, 18.98, 18.55]
    assert [round(s.host_dur_us / 1000, 2) for s in steps] == [16.80, 15.95, 15.89]
    for step in steps:
        parts = (step.compute_us, step.exposed_comm_us, step.exposed_copy_us, step.idle_us)
        assert sum(p for p in parts if p is not None) == pytest.approx(step.dur_us, abs=1e-6)
