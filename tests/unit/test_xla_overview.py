"""What XProf's overview and input pipeline say, in the report and among the findings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roofterm.analysis.scope import STEADY
from roofterm.analysis.study import Study
from roofterm.cli.main import main
from roofterm.report.xla_text import xla_lines
from roofterm.results import XlaOverview
from roofterm_parsers.profile import Source
from roofterm_parsers.xplane.reader import read
from tests.build import Build
from tests.xspace import Plane, space, tpu_plane

MS = 1_000_000_000


def study(*planes: Plane) -> Study:
    return Study(read(space(*planes), Source("t.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False))


def overview(*planes: Plane) -> XlaOverview:
    found = study(*planes).xla_overview()
    assert found is not None
    return found


def lines(*planes: Plane) -> list[str]:
    return [f"{label}: {text}" for label, text in xla_lines(overview(*planes))]


def fed_cores() -> list[Plane]:
    """Two cores with a step of 100 ms: infeed for 10 and 30 ms, then a fusion of 60 ms."""
    cores = []
    for number, infeed in enumerate((10, 30)):
        core = tpu_plane(number)
        feed = core.op("%infeed = f32[]", display="infeed", hlo_category="infeed", program_id=1, symbol_id=1)
        work = core.op("%fusion = f32[]", display="fusion", hlo_category="loop fusion", program_id=1, symbol_id=2)
        core.line("Steps", [core.event("0", 0, 100 * MS)], id=1)
        core.line("XLA Ops", [core.event(feed, 0, infeed * MS), core.event(work, infeed * MS, 60 * MS)], id=3)
        cores.append(core)
    return cores


def test_infeed_is_the_mean_of_the_cores() -> None:
    found = overview(*fed_cores())
    assert (found.hardware, found.cores) == ("TPU", 2)
    assert (found.infeed_us, found.outfeed_us, found.host_transfer_us) == (20_000, 0, 0)
    # The whole span of the cores is 200 ms, of which ops take 70 and 90.
    assert found.device_idle_pct == pytest.approx(20)


def test_a_tpus_verdict_rests_on_the_core_that_waits_longest() -> None:
    pipeline = overview(*fed_cores()).input_pipeline
    assert (pipeline.verdict, pipeline.steps, pipeline.step_mean_us, pipeline.step_sd_us) == ("high", 1, 100_000, None)
    assert pipeline.input_pct == pytest.approx(30)
    # The first core computes for 70 - 10 = 60 ms, the second for 90 - 30 = 60.
    assert pipeline.by_activity_us["compute"] == pytest.approx(60_000)
    assert pipeline.by_activity_us["idle"] == pytest.approx(10_000)


def test_the_report_says_use_verdict_and_steps() -> None:
    said = lines(*fed_cores())
    assert said[0].startswith("xprof: duty cycle ")
    assert "idle 20.0%, a core spends in infeed 20.00 ms" in said[0]
    assert said[1:] == [
        "input: highly input-bound: 30.0% of the steps' time waits for input",
        ": XProf counts 1 step: mean 100.0 ms; of a step compute 60.00 ms, input 30.00 ms, idle 10.00 ms",
    ]


def host_of_steps(*inside: tuple[str, int, int]) -> Plane:
    """Two steps of 100 ms on a CPU; `inside` each: name, start and length in ms."""
    plane = Plane("/host:CPU")
    events = []
    for number in range(2):
        at = number * 100
        events.append(plane.event("train", at * MS, 100 * MS, step_num=number, _r=1))
        events += [plane.event(name, (at + start) * MS, length * MS) for name, start, length in inside]
    plane.line("main", events, id=1)
    return plane


def test_the_hosts_side_of_the_input_is_said() -> None:
    said = lines(host_of_steps(("IteratorGetNext", 0, 40), ("Iterator::Batch", 0, 30), ("compute", 45, 50)))
    assert said == [
        "input: highly input-bound: 40.0% of the steps' time waits for input",
        ": XProf counts 2 steps: mean 100.0 ms +- 0 us, 100.0 ms to 100.0 ms; of a step host compute 50.00 ms, input 40.00 ms, "
        "unexplained 10.00 ms",
        ": the host's input: preprocessing 60.00 ms; most of all Iterator::Batch 60.00 ms in 2 calls",
    ]


def test_without_steps_the_verdict_is_unknown_and_the_reason_said() -> None:
    plane = Plane("/host:CPU")
    plane.line("main", [plane.event("compute", 0, MS)])
    assert lines(plane) == ["input: unknown: no step is marked in a way that XProf knows"]


def found(*planes: Plane) -> dict[str, Any]:
    return {finding.id: finding for finding in study(*planes).findings(STEADY)}


def test_ops_that_xprof_drops_tell_it_nothing() -> None:
    """Without program and symbol ids it counts none of them, and would call the cores idle."""
    core = tpu_plane()
    work = core.op("%fusion = f32[]", display="fusion", hlo_category="loop fusion")
    core.line("Steps", [core.event("0", 0, 100 * MS)], id=1)
    core.line("XLA Ops", [core.event(work, 0, 80 * MS)], id=3)
    found = overview(core)
    assert (found.device_idle_pct, found.infeed_us, found.input_pipeline.verdict) == (None, None, None)
    assert "symbol ids" in found.input_pipeline.statement


def test_what_no_event_explains_is_a_remark_and_costs_nothing() -> None:
    finding = found(host_of_steps(("compute", 0, 60)))["input-pipeline"]
    assert (finding.severity, finding.time_at_stake_us) == ("info", None)
    assert finding.title == "Perhaps input-bound, says XProf: no event explains 40.0% of its steps"
    assert finding.evidence["verdict"] == "potential"


def test_waiting_for_input_is_found_once() -> None:
    """Where the rule about the loader has found it already, the verdict adds no second claim."""
    names = found(host_of_steps(("IteratorGetNext", 0, 40), ("compute", 45, 55)))
    assert len({"input-bound", "input-pipeline"} & names.keys()) == 1


def test_a_program_that_computes_all_the_time_has_no_such_finding() -> None:
    assert "input-pipeline" not in found(host_of_steps(("compute", 0, 100)))


def test_what_the_hosts_plane_states_of_the_hardware_is_said() -> None:
    host = Plane("/host:CPU", stats={"matrix_unit_utilization_percent": 15.7, "hbm_utilization_percent": 40.0})
    host.line("main", [host.event("compute", 0, MS)])
    found = overview(*fed_cores(), host)
    assert (found.mxu_pct, found.hbm_pct) == (15.7, 40.0)


def test_a_pytorch_profile_has_no_overview_of_xprof() -> None:
    build = Build()
    build.kernel("k", 0, 10)
    assert Study(build.profile()).xla_overview() is None


def test_the_json_of_the_report_holds_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space(*fed_cores()))
    assert main(["report", str(path), "--format", "json", "--no-cache"]) == 0
    xla = json.loads(capsys.readouterr().out)["xla"]
    assert (xla["infeed_us"], xla["input_pipeline"]["verdict"], xla["mxu_pct"]) == (20_000, "high", None)


TABLE_COLUMNS = {
    "xprof-hlo-stats": "hlo_op_name",
    "xprof-framework-op-stats": "host_or_device",
    "xprof-input-steps": "infeedPercentAverage",
}


@pytest.mark.parametrize("table", TABLE_COLUMNS)
def test_xprofs_tables_are_written_with_its_columns(table: str, tmp_path: Path) -> None:
    path, out = tmp_path / "a.xplane.pb", tmp_path / "out.json"
    path.write_bytes(space(*fed_cores()))
    assert main(["export", str(path), "--table", table, "-o", str(out), "--no-cache", "-q"]) == 0
    written = json.loads(out.read_bytes())
    assert (written["schema"], written["table"], written["version"]) == ("roofterm.xprof/1", table, "2.24.2")
    assert TABLE_COLUMNS[table] in written["rows"][0]


def test_xprofs_tables_speak_of_the_whole_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space(*fed_cores()))
    assert main(["export", str(path), "--table", "xprof-hlo-stats", "--step", "0", "-o", str(tmp_path / "x.csv"), "--no-cache"]) == 2
    assert "of the whole file" in capsys.readouterr().err
