"""XProf's tables of ops and kernels, and its op profile, against what XProf itself gave (reference data: oracle/xprof)."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm.analysis.xla_overview import xla_overview
from roofterm.analysis.xprof.framework_op_stats import xprof_framework_op_stats
from roofterm.analysis.xprof.hlo_stats import xprof_hlo_stats
from roofterm.analysis.xprof.input_pipeline import xprof_input_pipeline
from roofterm.analysis.xprof.kernel_stats import xprof_kernel_stats
from roofterm.analysis.xprof.op_profile import Grouping, xprof_op_profile
from roofterm.analysis.xprof.overview import xprof_overview
from roofterm_parsers.profile import Source
from roofterm_parsers.xplane.reader import read
from tests.golden.xprof_oracle import FOLDER, TRACES, differing, profile_of, rows_of, tables_of
from tests.xspace import space, tpu_plane

Rows = list[dict[str, Any]]
RUNNING = {"rank", "cumulative_total_self_time_percent"}
"""Rows of equal time have no order of their own, and these columns follow the order."""

both_versions = pytest.mark.parametrize("version", FOLDER)
every_trace = pytest.mark.parametrize("trace", TRACES)


@both_versions
@every_trace
def test_hlo_stats(trace: str, version: str) -> None:
    want = rows_of(tables_of(f"{FOLDER[version]}/{trace}", "hlo_stats")[0])
    assert unequal(want, xprof_hlo_stats(profile_of(trace), version), by=("hlo_op_name", "program_id")) == []


KERNEL = ("kernel_name", "grid_dim", "block_dim", "registers_per_thread", "op_name", "occurrences", "total_duration_us")


@both_versions
@every_trace
def test_kernel_stats(trace: str, version: str) -> None:
    want = rows_of(tables_of(f"{FOLDER[version]}/{trace}", "kernel_stats")[0])
    assert unequal(want, xprof_kernel_stats(profile_of(trace), version), by=KERNEL) == []


@both_versions
@every_trace
@pytest.mark.parametrize("idle", [True, False])
def test_framework_op_stats(trace: str, version: str, idle: bool) -> None:
    want = rows_of(tables_of(f"{FOLDER[version]}/{trace}", "framework_op_stats")[0 if idle else 1])
    got = xprof_framework_op_stats(profile_of(trace), version, idle=idle)
    assert unequal(want, got, by=("host_or_device", "operation")) == []


@every_trace
@pytest.mark.parametrize("idle", [True, False])
@pytest.mark.parametrize(
    ("tool", "group", "table"),
    [
        ("op_profile", "program", "byProgram"),
        ("op_profile.category", "category", "byCategory"),
        ("op_profile.provenance", "provenance", "byProvenance"),
    ],
)
def test_op_profile(trace: str, tool: str, group: Grouping, table: str, idle: bool) -> None:
    want = tables_of(f"{FOLDER['2.24.2']}/{trace}", tool)[0][table if idle else f"{table}ExcludeIdle"]
    expected = sorted(nodes(want), key=_order)
    got = sorted(nodes(xprof_op_profile(profile_of(trace), "2.24.2", group, idle=idle)), key=_order)
    assert [path for path, _, _ in got] == [path for path, _, _ in expected]
    assert [children for _, _, children in got] == [children for _, _, children in expected]
    assert [metrics for _, metrics, _ in got] == [pytest.approx(metrics, rel=1e-6, abs=1e-12) for _, metrics, _ in expected]


@both_versions
@every_trace
def test_input_pipeline(trace: str, version: str) -> None:
    tables = tables_of(f"{FOLDER[version]}/{trace}", "input_pipeline_analyzer")
    [table] = [one for one in tables if one.get("cols") and one["cols"][0]["id"] == "stepnum"]
    want, got = rows_of(table), xprof_input_pipeline(profile_of(trace), version)
    assert differing(want, got["steps"], {column for row in want for column in row} - {"tooltip"}) == []
    words = {"high": "HIGHLY", "moderate": "MODERATELY", "potential": "POTENTIALLY", "none": "NOT", None: "No step time"}
    conclusion = table["p"]["input_conclusion"]
    assert words[got["verdict"]] in conclusion
    if got["verdict"] == "potential":
        assert f"{got['other_pct']:.1f}%" in conclusion


@both_versions
@every_trace
def test_what_the_host_does_for_the_input(trace: str, version: str) -> None:
    tables = tables_of(f"{FOLDER[version]}/{trace}", "input_pipeline_analyzer")
    [table] = [one for one in tables if one.get("cols") and one["cols"][0]["id"] == "opName"]
    want, got = rows_of(table), xprof_input_pipeline(profile_of(trace), version)
    assert differing(want, got["ops"], {column["id"] for column in table["cols"]}) == []
    assert {name: f"{us:.3f}" for name, us in got["host"].items()} == table["p"]


@every_trace
def test_the_overview_says_steps_and_shares_as_xprof_does(trace: str) -> None:
    """What the report and the explorer show: step time with its spread, what a mean step consists of, the verdict."""
    found = xla_overview(profile_of(trace))
    assert found is not None
    pipeline = found.input_pipeline
    tables = tables_of(f"{FOLDER['2.24.2']}/{trace}", "overview_page")
    [known] = [one["p"] for one in tables if one.get("cols") and one["cols"][0]["id"] == "stepnum"]
    [environment] = [one["p"] for one in tables if one.get("cols") and one["cols"][0]["id"] == "host_id"]
    assert found.hardware == ("TPU" if "TPU" in environment["device_type"] else "CPU" if environment["device_type"] == "CPU" else "GPU")
    assert found.cores == int(environment["device_core_count"])
    digits = 2 if found.hardware == "TPU" else 1
    for name, us in (("average", pipeline.step_mean_us), ("minimum", pipeline.step_min_us), ("maximum", pipeline.step_max_us)):
        assert f"{(us or 0) / 1e3:.{digits}f}" == known[f"steptime_ms_{name}"]
    assert f"{(pipeline.step_sd_us or 0) / 1e3:.{digits}f}" == known["steptime_ms_standard_deviation"]
    if found.hardware != "TPU":
        parts = {
            "device_compute": "device_compute",
            "host_compute": "host_compute",
            "input": "infeed",
            "output": "outfeed",
            "other": "other",
        }
        for mine, theirs in parts.items():
            assert f"{pipeline.by_activity_us.get(mine, 0) / 1e3:.1f}" == known[f"{theirs}_time_ms_avg"]


def test_the_columns_of_a_tpus_step_are_xprofs() -> None:
    """But for the tooltip, and with the step's time, which XProf's table leaves to it."""
    core = tpu_plane()
    work = core.op("%fusion = f32[]", display="fusion", hlo_category="loop fusion", program_id=1, symbol_id=1)
    core.line("Steps", [core.event("0", 0, 10)], id=1)
    core.line("XLA Ops", [core.event(work, 0, 10)], id=3)
    profile = read(space(core), Source("t.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False)
    [step] = xprof_input_pipeline(profile, "2.24.2")["steps"]
    [table] = [one for one in tables_of("oracle/xprof_upstream_golden/tpu_training", "input_pipeline_analyzer")
               if one["cols"][0]["id"] == "stepnum"]  # fmt: skip
    assert set(step) - {"stepTimeMs"} == {column["id"] for column in table["cols"]} - {"tooltip"}
    for row in rows_of(table):
        parts = [row[f"{part}TimeMs"] for part in ("tcCompute", "scv0Compute", "scv0Infeed", "tcInfeed", "tcOutfeed", "tcIdle")]
        assert f"Step time = {sum(parts):.3f} ms" in row["tooltip"]


@both_versions
@every_trace
def test_overview(trace: str, version: str) -> None:
    known = tables_of(f"{FOLDER[version]}/{trace}", "overview_page")[0]["p"]
    got = xprof_overview(profile_of(trace), version)
    assert {name: f"{value:.1f}%" for name, value in got.items()} == {name: known[name] for name in got}


def unequal(want: Rows, got: Rows, by: tuple[str, ...]) -> list[str]:
    def key(row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[column]) for column in by)

    columns = {column for row in want for column in row} - RUNNING
    return differing(sorted(want, key=key), sorted(got, key=key), columns)


Node = tuple[tuple[str, ...], dict[str, float], int]


def nodes(tree: dict[str, Any], above: tuple[str, ...] = ()) -> list[Node]:
    """Each node as its path with the program's id, its metrics, how many children it has."""
    path = (*above, tree["name"])
    metrics = {
        f"{name} {i}": float(number)
        for name, value in tree["metrics"].items()
        for i, number in enumerate(value if isinstance(value, list) else [value])
    }
    found: list[Node] = [((*path, tree.get("xla", {}).get("programId", "")), metrics, tree["numChildren"])]
    for child in tree.get("children", []):
        found += nodes(child, path)
    return found


def _order(node: Node) -> tuple[tuple[str, ...], float]:
    path, metrics, _ = node
    return path, metrics["rawTime 0"]
