"""Sentences below the table of steps, on figures made by hand."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.phase_table import BREAKDOWN
from roofterm.analysis.study import Study
from roofterm.report.step_notes import step_notes
from roofterm.results import HtaRank, OtherTools, PluginDevice, PluginStep
from tests.build import Build

NO_PHASES = pl.DataFrame(schema=BREAKDOWN)


def test_phases_are_means_of_a_step_and_say_what_ran_alone():
    rows = [(0, "forward", 10.0, 10.0, 3, 20.0), (0, "communication", 30.0, 5.0, 1, 0.0), (1, "forward", 20.0, 20.0, 3, 40.0)]
    # Over two steps: forward (10 + 20) / 2 on the device and (20 + 40) / 2 on the host, communication 30 / 2, of it alone 5 / 2.
    assert step_notes(pl.DataFrame(rows, schema=BREAKDOWN, orient="row"), None) == [
        "by phase, a step on the device: forward 15.00 us, communication 15.00 us (2.500 us alone)",
        "on the host, all threads: forward 30.00 us",
    ]


def test_steps_without_phases_say_nothing_of_them():
    rows = [(0, "other", 10.0, 10.0, 3, 20.0)]
    assert step_notes(pl.DataFrame(rows, schema=BREAKDOWN, orient="row"), None) == []
    assert step_notes(NO_PHASES, OtherTools([], [], [])) == []


def test_other_tools_are_named_and_many_ranks_are_cut():
    step = PluginStep("1", 60.0, 5.0, 0.0, 0.0, 10.0, 0.0, 20.0, 5.0, 100.0)
    ranks = [HtaRank(rank, 200.0, 50.0, 100.0, 50.0, None if rank else 25.0, {"host_wait": 40.0, "other": 10.0}) for rank in range(5)]
    assert step_notes(NO_PHASES, OtherTools([step], [PluginDevice(0, 60.0, None, 12.0)], ranks)) == [
        "torch-tb-profiler's step breakdown, mean of 1 step: kernel 60.00 us, memcpy 5.000 us, runtime 10.00 us, CPU exec 20.00 us, "
        "other 5.000 us",
        "torch-tb-profiler's summary of GPU 0: utilization 60.0%, est. achieved occupancy 12.0%",
        "HTA's temporal breakdown, rank 0, without the last of several steps: idle 25.0%, compute 50.0%, non-compute 25.0%; "
        "idle of its streams: host wait 40.00 us, other 10.00 us; overlap 25.0%",
        *(
            f"HTA's temporal breakdown, rank {rank}, without the last of several steps: idle 25.0%, compute 50.0%, non-compute 25.0%; "
            "idle of its streams: host wait 40.00 us, other 10.00 us"
            for rank in (1, 2)
        ),
        "and of 2 more ranks (--format json)",
    ]


def test_a_profile_of_another_kind_has_no_such_figures():
    build = Build(format="xplane")
    build.kernel("fusion.1", 0, 10)
    assert Study(build.profile()).other_tools() is None


def test_nothing_at_all_makes_no_fault():
    tools = Study(Build().profile()).other_tools()
    assert tools == OtherTools([], [], [])
