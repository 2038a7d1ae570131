"""Gaps of a device on traces small enough to count by hand."""

from __future__ import annotations

import polars as pl
import pytest

from roofterm.analysis.gaps import gap_table
from roofterm.analysis.scope import ALL, STEADY, Scope
from roofterm.analysis.study import Study
from roofterm.results import TABLES
from roofterm_parsers.profile import Kind, Profile
from tests.build import Build


def rows(profile: Profile, scope: Scope = ALL) -> list[dict[str, object]]:
    return gap_table(Study(profile), scope).sort("start_us").to_dicts()


def test_a_gap_is_cut_where_the_next_launch_has_ended():
    """Kernels at 10..30 and 80..90; the second's call lasts from 60 to 70: 40 us of host wait, 10 us of kernel gap."""
    build = Build()
    build.kernel("first", 10, 20, launch=build.call(0, 5))
    build.kernel("second", 80, 10, launch=build.call(60, 10))
    (before, gap) = rows(build.profile())
    assert (before["start_us"], before["total_us"], before["before"], before["after"]) == (0, 10, None, "first")
    assert (gap["start_us"], gap["total_us"], gap["host_wait_us"], gap["kernel_gap_us"]) == (30, 50, 40, 10)
    assert (gap["before"], gap["after"], gap["category"], gap["thread"]) == ("first", "second", "host_wait", "thread 1")


def test_the_work_before_a_gap_is_what_ended_last():
    build = Build()
    launch = build.call(0, 1)
    build.kernel("long", 5, 95, stream=7, launch=launch)
    build.kernel("short", 50, 10, stream=8, launch=launch)
    build.kernel("next", 120, 10, stream=8, launch=launch)
    gap = rows(build.profile())[-1]
    assert (gap["before"], gap["after"], gap["total_us"]) == ("long", "next", 20)
    assert (gap["category"], gap["kernel_gap_us"]) == ("kernel_gap", 20)


def test_what_the_host_did_is_the_innermost_slice_over_half_of_the_gap_on_the_launching_thread():
    build = Build()
    build.kernel("first", 0, 10, launch=build.call(0, 5))
    build.host("load_checkpoint", 10, 100, Kind.ANNOTATION)
    build.host("torch/serialization.py(1): load", 20, 80, Kind.PYTHON)
    build.host("aten::copy_", 25, 20)  # a quarter of the wait: not what the host did
    build.host("something else", 10, 100, Kind.ANNOTATION, thread=2)
    build.kernel("second", 120, 10, launch=build.call(110, 6))
    gap = rows(build.profile())[-1]
    assert (gap["name"], gap["host_kind"]) == ("torch/serialization.py(1): load", "python")


def test_the_tail_of_a_step_is_unexplained_but_says_what_the_main_thread_did():
    build = Build()
    build.step(0, 0, 100)
    build.kernel("k", 10, 20, launch=build.call(2, 6))
    build.host("postprocess", 35, 60, Kind.ANNOTATION)
    gap = rows(build.profile(), STEADY)[-1]
    assert (gap["start_us"], gap["total_us"], gap["category"], gap["name"]) == (30, 70, "unexplained", "postprocess")
    assert (gap["host_wait_us"], gap["after"], gap["step"]) == (None, None, "ProfilerStep#0")


def test_a_gap_before_work_without_a_launch_is_unexplained():
    build = Build()
    build.kernel("k", 0, 10, launch=build.call(0, 1))
    build.kernel("orphan", 30, 10)
    gap = rows(build.profile())[-1]
    assert (gap["category"], gap["host_wait_us"], gap["kernel_gap_us"]) == ("unexplained", None, None)


@pytest.mark.parametrize(("gap_us", "category"), [(500, "kernel_gap"), (1500, "unexplained")])
def test_a_kernel_that_waits_a_millisecond_on_an_idle_device_is_unexplained(gap_us: float, category: str):
    build = Build()
    launch = build.call(0, 1)
    build.kernel("k", 2, 10, launch=launch)
    build.kernel("later", 12 + gap_us, 10, launch=launch)
    assert rows(build.profile())[-1]["category"] == category


def test_each_device_has_its_own_gaps():
    build = Build()
    launch = build.call(0, 1)
    for device in (0, 1):
        build.kernel("k", 2, 10, device=device, launch=launch)
        build.kernel("k", 20 + 10 * device, 10, device=device, launch=launch)
    table = gap_table(Study(build.profile()), ALL).filter(pl.col("before").is_not_null() & pl.col("after").is_not_null())
    assert dict(table.select("device", "total_us").iter_rows()) == {0: 8, 1: 18}


def test_gaps_of_the_steady_steps_add_up_to_their_idle_time():
    build = Build()
    for number in range(3):
        start = number * 1000.0
        build.step(number, start, 1000)
        for row in range(6):
            build.kernel("k", start + 40 + 150 * row, 90, launch=build.call(start + 20 + 150 * row, 7))
    study = Study(build.profile())
    table = gap_table(study, STEADY)
    steps = [row for row in study.steps() if row.steady]
    for column, figure in (("total_us", "idle_us"), ("host_wait_us", "host_wait_us"), ("kernel_gap_us", "kernel_gap_us")):
        assert table[column].sum() == pytest.approx(sum(getattr(row, figure) for row in steps))
    assert table["pct"].sum() == pytest.approx(100)


def test_the_longest_gap_comes_first_and_the_columns_are_those_of_the_contract():
    build = Build()
    launch = build.call(0, 1)
    for start in (5, 20, 60, 70):
        build.kernel("k", start, 5, launch=launch)
    table = gap_table(Study(build.profile()), ALL)
    assert tuple(table.columns) == TABLES["gap"]
    assert table["total_us"].to_list() == sorted(table["total_us"].to_list(), reverse=True)


def test_a_host_alone_has_no_gaps():
    build = Build()
    build.host("aten::mm", 0, 10)
    assert gap_table(Study(build.profile()), ALL).height == 0
    assert gap_table(Study(Build().profile()), ALL).height == 0


def test_without_a_gap_the_columns_keep_their_types():
    build = Build()
    build.host("aten::mm", 0, 10)
    table = Study(build.profile()).table("gap")
    assert table.height == 0
    assert table.schema["name"] == pl.String
    assert pl.Null not in table.dtypes


def test_a_filter_of_no_gap_leaves_none() -> None:
    """A profile of a host alone has the columns' types too, so that a filter may compare their numbers."""
    build = Build()
    build.host("aten::mm", 0, 10)
    study = Study(build.profile())
    busy = Build()
    busy.kernel("a", 0, 10, launch=busy.call(0, 1))
    busy.kernel("b", 50, 10, launch=busy.call(40, 1))
    some = Study(busy.profile())
    assert some.table("gap").height == 1
    assert study.table("gap").schema == some.table("gap").schema
    assert study.table("gap", Scope(step="all", where="calls>5 time>1% start>10us|time>1ms")).height == 0
