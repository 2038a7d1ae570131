"""Device work of XLA programs: waiting for a copy is no compute, a loop's own time is what is left of it, kernels by their launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from roofterm.analysis.compare import compare
from roofterm.analysis.scope import Scope
from roofterm.analysis.study import Study
from roofterm.report.ops_columns import table_columns
from roofterm.results import TABLES
from roofterm_parsers.profile import Source
from roofterm_parsers.xplane.reader import read
from tests.build import Build
from tests.xspace import Plane, Ref, space, tpu_plane

US = 1_000_000


def study(*planes: Plane) -> Study:
    return Study(read(space(*planes), Source("t.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False))


def core(*ops: tuple[str, str, int, int]) -> Plane:
    """A core that runs ops: name, category, start and length in us."""
    plane = tpu_plane()
    events = []
    for number, (name, category, start, length) in enumerate(ops):
        facts: dict[str, Any] = {"program_id": 1, "symbol_id": number + 1, "tf_op": Ref(f"jit(f)/{category}:")}
        op = plane.op(f"%{name} = f32[8] {name}()", display=name, hlo_category=category, **facts)
        plane_event = plane.event(op, start * US, length * US)
        events.append(plane_event)
    plane.line("XLA Ops", events)
    return plane


def test_waiting_for_a_copy_is_a_copy_and_no_compute() -> None:
    made = study(core(("copy-start.1", "copy-start", 0, 1), ("fusion.1", "loop fusion", 1, 19), ("copy-done.1", "copy-done", 20, 80)))
    [line] = made.device_lines.values()
    window = np.array([0]), np.array([100 * US])
    parts = {name: int(length[0]) // US for name, length in line.breakdowns(*window).items()}
    # Busy all the time: 19 us of compute, 81 us of a copy under which nothing else runs.
    assert (parts["compute"], parts["exposed_copy"], parts["idle"]) == (19, 81, 0)
    assert made.summary().compute_busy_pct == pytest.approx(19)
    assert made.summary().gpu_busy_pct == pytest.approx(100)


def test_waiting_for_an_asynchronous_collective_is_communication() -> None:
    made = study(core(("all-gather-done.1", "async-done", 0, 30), ("slice-done.1", "async-done", 30, 20), ("copy.1", "copy", 50, 10)))
    [line] = made.device_lines.values()
    parts = {name: int(length[0]) // US for name, length in line.breakdowns(np.array([0]), np.array([60 * US])).items()}
    # A copy that the core makes itself is its work, as a copying kernel is a GPU's.
    assert (parts["exposed_comm"], parts["exposed_copy"], parts["compute"]) == (30, 20, 10)


LOOP = (("while.1", "while", 0, 100), ("fusion.1", "loop fusion", 10, 60), ("fusion.2", "loop fusion", 75, 20))


@pytest.mark.parametrize("by", ["kernel", "hlo"])
def test_a_loop_has_only_its_own_time(by: str) -> None:
    table = study(core(*LOOP)).table(by)
    # 100 us of a loop, of which 80 are those of the fusions inside.
    assert table.select("name", "total_us", "self_us", "pct").rows() == [
        ("fusion.1", 60, 60, 60),
        ("fusion.2", 20, 20, 20),
        ("while.1", 100, 20, 20),
    ]
    assert [column.name for column in table_columns(by, table) if column.name in ("self_us", "total_us")] == ["self_us", "total_us"]


def test_categories_share_out_own_time() -> None:
    table = study(core(*LOOP)).table("category")
    assert table.select("name", "self_us", "pct").rows() == [("fused_elementwise", 80, 80), ("control", 20, 20)]


def test_a_framework_op_ran_as_often_as_the_instruction_of_it_that_ran_most() -> None:
    plane = tpu_plane()
    facts: dict[str, Any] = {"program_id": 1, "hlo_category": "loop fusion", "tf_op": Ref("jit(f)/add:")}
    first, second = (plane.op(f"%{name} = f32[8]", display=name, symbol_id=at, **facts) for at, name in ((1, "fusion.1"), (2, "fusion.2")))
    plane.line("XLA Ops", [plane.event(op, at * US, 5 * US) for op, at in ((first, 0), (second, 10), (first, 20))])
    host = Plane("/host:CPU")
    host.line("thread", [host.event("a:A", 0, 40 * US), host.event("b:B", 10 * US, 10 * US)])
    table = study(plane, host).table("framework")
    assert tuple(table.columns) == TABLES["framework"]
    assert table.select("side", "name", "op_type", "calls", "total_us", "self_us", "mean_us", "pct").rows() == [
        ("device", "jit(f)/add", "add", 2, 15, 15, 7.5, 100),
        ("host", "a", "A", 1, 40, 30, 40, 75),
        ("host", "b", "B", 1, 10, 10, 10, 25),
    ]


def test_framework_ops_of_a_window_are_those_that_run_in_it() -> None:
    plane = core(("fusion.1", "loop fusion", 0, 10), ("fusion.2", "convolution", 50, 10))
    host = Plane("/host:CPU")
    host.line("thread", [host.event("a:A", 0, 20 * US), host.event("b:B", 45 * US, 10 * US)])
    table = study(plane, host).table("framework", Scope(step="all", window_ps=(40 * US, 60 * US)))
    assert table.select("side", "name", "total_us").rows() == [("device", "jit(f)/convolution", 10), ("host", "b", 10)]


def test_a_profile_without_xla_has_no_framework_ops() -> None:
    build = Build()
    build.kernel("k", 0, 10)
    table = Study(build.profile()).table("framework")
    assert table.height == 0
    assert tuple(table.columns) == TABLES["framework"]


def test_launches_of_pytorch_tell_kernels_apart_by_grid_and_op() -> None:
    build = Build()
    one: dict[str, Any] = {"grid_x": 1, "grid_y": 1, "grid_z": 1, "block_x": 64, "block_y": 1, "block_z": 1}
    mm, add = build.host("aten::mm", 0, 50), build.host("aten::add", 60, 50)
    build.kernel("k", 100, 10, launch=build.call(5, 2), op=mm, **one, registers=32)
    build.kernel("k", 120, 20, launch=build.call(65, 2), op=add, **one, registers=32)
    build.kernel("k", 150, 40, launch=build.call(70, 2), op=add, **one | {"grid_x": 8}, registers=32)
    build.kernel("k", 200, 5, launch=build.call(80, 2), op=add)
    table = Study(build.profile()).table("launch")
    assert tuple(table.columns) == TABLES["launch"]
    # The fourth states no launch.
    assert table.select("grid", "tf_op", "calls", "total_us", "registers").rows() == [
        ("8,1,1", "aten::add", 1, 40, 32),
        ("1,1,1", "aten::add", 1, 20, 32),
        ("1,1,1", "aten::mm", 1, 10, 32),
    ]
    assert table["pct"].sum() == pytest.approx(100)
    assert table.schema["calls"] == pl.Int64


def test_waiting_for_a_copy_from_the_hosts_memory_is_found() -> None:
    plane = tpu_plane()
    text = "%copy-done.1 = f32[8]{0} copy-done((f32[8]{0}, f32[8]{0:S(5)}, u32[]) %copy-start.1)"
    done = plane.op(text, display="copy-done.1", hlo_category="copy-done", program_id=1, symbol_id=1, bytes_accessed=4096)
    work = plane.op("%fusion.1 = f32[8]", display="fusion.1", hlo_category="loop fusion", program_id=1, symbol_id=2)
    plane.line(
        "XLA Ops", [plane.event(op, at * US, 10 * US) for start in range(0, 200, 20) for op, at in ((done, start), (work, start + 10))]
    )
    [found] = [finding for finding in study(plane).findings() if finding.id == "async-copies"]
    # Ten waits of 10 us in 200 us, in which nothing else runs.
    assert found.time_at_stake_us == 100
    assert found.share_of_step_pct == pytest.approx(50)
    assert (found.evidence["waits"], found.evidence["for_host_memory_us"], found.evidence["worst"]) == (10, 100, "copy-done.1")
    assert found.title == "Waiting for copies to or from the host's memory: 10 x copy-done.1 of 4.000 KiB"
    assert "pinned_host" in found.advice


def test_no_wait_for_copies_no_finding() -> None:
    names = {finding.id for finding in study(core(*((f"fusion.{i}", "loop fusion", i * 10, 10) for i in range(12)))).findings()}
    assert "async-copies" not in names


def test_a_gap_is_told_by_the_python_thread_where_the_launching_line_is_silent() -> None:
    """An XPlane file of a GPU has the calls that launch on a line of their own, and Python on another."""
    gpu = Plane("/device:GPU:0", id=2)
    launches = [gpu.event("k", at * US, 10 * US, correlation_id=number, hlo_op=Ref("fusion.1")) for number, at in ((1, 0), (2, 90))]
    gpu.line("Stream #1(Kernel)", launches)
    host = Plane("/host:CPU", id=1)
    host.line("python3", [host.event("$loop.py:5 step", 0, 100 * US), host.event("$data.py:7 load", 15 * US, 65 * US)], id=1)
    calls = [host.event("cuLaunchKernel", at * US, US, correlation_id=number) for number, at in ((1, 0), (2, 85))]
    host.line("Host Threads/7", calls, id=7)
    table = study(gpu, host).table("gap")
    # The device idles from 10 to 90 us: from 15 on Python loads data, on a thread that launches nothing.
    assert table.select("name", "total_us", "category").row(0) == ("$data.py:7 load", 80, "host_wait")


def test_what_grew_inside_a_loop_is_told_once() -> None:
    base, longer = (core(("while.1", "while", 0, 20 + grown), ("fusion.1", "loop fusion", 10, grown)) for grown in (60, 90))
    changes = compare(study(base), study(longer)).changes
    kernels = {row["name"]: row["change"] for row in changes.filter(pl.col("level") == "kernel").iter_rows(named=True)}
    assert kernels["fusion.1"] == 30
    assert kernels.get("while.1", 0) == 0
