"""What `steps` says under other tools' names is what those tools say, beside roofterm's own where the two differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from roofterm.analysis.study import Study
from roofterm.cli.main import main
from roofterm_parsers import open_profile
from tests.reference import reference

NAME = "kineto_v100_resnet50_2021_workers0"
TRACE = f"traces/torch/{NAME}.pt.trace.json.gz"


def answers(tool: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(reference(f"oracle/{tool}/{name}.json").read_text())["results"]
    return found


def test_torch_tb_profiler_s_steps_and_devices():
    tools = Study(open_profile(reference(TRACE))).other_tools()
    assert tools is not None
    theirs = answers("tb_plugin", NAME)
    roles = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu_exec", "other", "total")
    got = [tuple(getattr(step, f"{role}_us") for role in roles) for step in tools.torch_tb_profiler_steps]
    assert got == [tuple(cost.values()) for cost in theirs["steps_costs"]]
    (device,) = tools.torch_tb_profiler_devices
    want = theirs["gpu"]["0"]
    assert device.utilization_pct == pytest.approx(100 * want["utilization"])
    assert device.est_sm_efficiency_pct == pytest.approx(100 * want["est_sm_efficiency"], rel=2e-5)
    assert device.est_achieved_occupancy_pct == pytest.approx(want["est_achieved_occupancy"], rel=2e-5)


def test_hta_s_ranks():
    """Eight ranks of DLRM: temporal breakdown, overlap, and idle time by cause over streams."""
    study = Study(open_profile(reference("traces/torch/param_v100_dlrm_8ranks")))
    tools = study.other_tools()
    assert tools is not None
    assert (tools.torch_tb_profiler_steps, tools.torch_tb_profiler_devices) == ([], [])
    theirs = answers("hta_ns", "param_v100_dlrm_8ranks")
    mine = {one.rank: one for one in tools.hta}
    for row in theirs["temporal_breakdown"]:
        one = mine[row["rank"]]
        got = (one.idle_us, one.compute_us, one.non_compute_us, one.kernel_us)
        assert got == pytest.approx(tuple(row[f"{part}_time(us)"] for part in ("idle", "compute", "non_compute", "kernel")), abs=2e-3)
    for row in theirs["comm_comp_overlap"]:
        assert mine[row["rank"]].overlap_pct == pytest.approx(row["comp_comm_overlap_pctg"], abs=0.006)
    for rank, one in mine.items():
        want: dict[str, float] = {}
        for row in theirs["idle_time_breakdown"][0]:
            if row["rank"] == rank:
                want[row["idle_category"]] = want.get(row["idle_category"], 0.0) + row["idle_time"]
        assert one.idle_by_cause_us == pytest.approx(want, abs=0.05)


def test_steps_prints_both_breakdowns_with_their_names(capsysbinary: pytest.CaptureFixture[bytes]):
    """roofterm gives idle time 77.0 ms of 177.6; the plugin gives most of the same time to the host's roles, and HTA drops step 10."""
    assert main(["steps", str(reference(TRACE)), "--no-cache"]) == 0
    text = " ".join(capsysbinary.readouterr().out.decode().split())
    assert "torch-tb-profiler's step breakdown, mean of 6 steps: kernel 98.59 ms, memcpy 1.915 ms, memset 89.00 us" in text
    assert "DataLoader 59.26 ms" in text
    assert "utilization 55.5%, est. SM efficiency 54.7%, est. achieved occupancy 49.1%" in text
    hta = answers("hta_ns", NAME)["temporal_breakdown"][0]
    assert f"without the last of several steps: idle {hta['idle_time(us)'] / hta['kernel_time(us)']:.1%}" in text
    assert main(["steps", str(reference(TRACE)), "--no-cache", "--format", "json"]) == 0
    told = json.loads(capsysbinary.readouterr().out)
    assert len(told["other_tools"]["torch_tb_profiler_steps"]) == len(told["rows"]) == 6
    assert {row["phase"] for row in told["phases"]} == {"other", "forward", "backward", "optimizer", "dataloader"}
