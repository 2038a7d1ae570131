"""Ranks by steps on a played job: who kept whom waiting in each step, and sums that are those of the ranks."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from benchmarks.make_job import ALL_REDUCE, Plan, play, write
from roofterm.analysis.clocks import aligned_study
from roofterm.analysis.rank_steps import FIGURES, RANK_STEPS
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile

RANKS, STEPS = 3, 3


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(ranks=RANKS, steps=STEPS, seed=5, straggler=1)


@pytest.fixture(scope="module")
def job(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder: Path = tmp_path_factory.mktemp("job")
    return aligned_study(Study(open_profile([str(path) for path in write(plan, folder)], cache=False)))


def test_one_row_a_rank_and_step_in_order(job: Study) -> None:
    table = job.rank_steps()
    assert table.schema == RANK_STEPS
    assert table["rank"].to_list() == [rank for rank in range(RANKS) for _ in range(STEPS)]
    assert table["number"].to_list() == sorted(set(table["number"].to_list())) * RANKS


def test_waits_of_each_step_are_those_that_were_played(job: Study, plan: Plan) -> None:
    """A rank waits from its arrival until the last one's; where it is last, its lead is what it came after the one before it."""
    played = play(plan)
    arrivals = [[event["ts"] for event in rank.events if event["name"] == ALL_REDUCE] for rank in played]
    calls = len(arrivals[0]) // STEPS
    table = job.rank_steps()
    for rank in range(RANKS):
        mine = table.filter(pl.col("rank") == rank)
        for step in range(STEPS):
            meetings = [[at[call] for at in arrivals] for call in range(step * calls, (step + 1) * calls)]
            waits = sum(max(at) - at[rank] for at in meetings)
            lead = sum(max(at) - sorted(at)[-2] for at in meetings if at[rank] == max(at))
            assert mine["wait_us"][step] == pytest.approx(waits, abs=1e-3)
            assert mine["kept_waiting_us"][step] == pytest.approx(lead, abs=1e-3)


def test_a_ranks_steps_add_up_to_its_row(job: Study) -> None:
    """The row's figures are means over the steady steps."""
    steady = job.rank_steps().filter("steady").group_by("rank", maintain_order=True).agg(pl.col(*FIGURES).mean())
    for row, mean in zip(job.ranks(), steady.iter_rows(named=True), strict=True):
        assert mean["dur_us"] == pytest.approx(row.step_us)
        assert mean["compute_us"] == pytest.approx(row.compute_us)
        assert mean["kept_waiting_us"] == pytest.approx(row.kept_waiting_us)
        assert mean["host_wait_us"] == pytest.approx(row.host_wait_us)


def test_without_steps_there_is_no_row() -> None:
    from tests.build import Build

    build = Build()
    build.kernel("gemm", 0, 10)
    assert Study(build.profile()).rank_steps().schema == RANK_STEPS
    assert Study(build.profile()).rank_steps().height == 0
