"""Steps and ranks of a scope: which rows it leaves, of which steps the means are, and what it cannot name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.make_job import ALL_REDUCE, Plan, play, write
from roofterm.analysis.clocks import aligned_study
from roofterm.analysis.scope import Scope, ScopeError
from roofterm.analysis.study import Study
from roofterm.cli.main import main
from roofterm.report.result_tables import result_table
from roofterm_parsers import open_profile

RANKS, STEPS = 3, 4


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(ranks=RANKS, steps=STEPS, seed=7, straggler=2)


@pytest.fixture(scope="module")
def folder(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("job")
    write(plan, made)
    return made


@pytest.fixture(scope="module")
def job(folder: Path) -> Study:
    return aligned_study(Study(open_profile([str(path) for path in sorted(folder.iterdir())], cache=False)))


def numbers(job: Study) -> list[int]:
    return sorted(set(job.profile.steps["number"].to_list()))


def test_ranks_speak_of_the_steps_asked_for(job: Study, plan: Plan) -> None:
    """The wait of a rank in the third step alone, by the arrivals of the simulation."""
    arrivals = [[event["ts"] for event in rank.events if event["name"] == ALL_REDUCE] for rank in play(plan)]
    calls = len(arrivals[0]) // STEPS
    meetings = [[at[call] for at in arrivals] for call in range(2 * calls, 3 * calls)]
    third = job.ranks(Scope(step=str(numbers(job)[2])))
    assert [row.steps for row in third] == [1] * RANKS
    assert [row.wait_us for row in third] == pytest.approx([sum(max(at) - at[rank] for at in meetings) for rank in range(RANKS)], abs=1e-3)
    assert [row.steps for row in job.ranks(Scope(step="all"))] == [STEPS] * RANKS
    groups = job.rank_groups(Scope(step=str(numbers(job)[2])))
    assert [group.calls for group in groups] == [calls]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, RANKS * STEPS),
        ({"step": "{0}"}, RANKS),
        ({"step": "{1}-{2}"}, 2 * RANKS),
        ({"rank": 1}, STEPS),
        ({"where": "step:{3} rank:0|rank:2"}, 2),
        ({"where": "time>1s"}, 0),
    ],
)
def test_steps_are_those_asked_for(job: Study, options: dict[str, object], left: int) -> None:
    options = {name: value.format(*numbers(job)) if isinstance(value, str) else value for name, value in options.items()}
    table, _ = result_table(job, "steps", Scope(**{"step": "all", **options}))  # type: ignore[arg-type]
    assert table.height == left
    assert "step" not in table.columns


def test_a_window_takes_the_steps_that_it_meets_whole(job: Study) -> None:
    first = job.windows.filter(job.windows["source"] == 0).sort("start_ps").row(0, named=True)
    inside = (first["start_ps"] + 1, first["start_ps"] + 2)
    table, _ = result_table(job, "steps", Scope(step="all", window_ps=inside, rank=0))
    assert table["dur_us"].to_list() == [(first["end_ps"] - first["start_ps"]) / 1e6]


def test_ranks_are_those_asked_for(job: Study) -> None:
    assert result_table(job, "ranks", Scope(rank=1))[0]["rank"].to_list() == [1]
    assert result_table(job, "ranks", Scope(where="rank:2|rank:0"))[0]["rank"].to_list() == [0, 2]
    assert result_table(job, "ranks", Scope(where="rank1"))[0]["rank"].to_list() == [1]
    with pytest.raises(ScopeError, match="no such rank"):
        result_table(job, "ranks", Scope(rank=9))


@pytest.mark.parametrize("command", ["steps", "ranks"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--step", "x"], "--step x: write steady, all, a number or A-B"),
        (["--step", "999"], "no such step"),
        (["--rank", "9"], "no such rank"),
        (["--where", "cat:gemm"], "this table has no cat (at character 1)"),
        (["--top", "-1"], "'-1' is no number of rows"),
        (["--window", "5..1"], "--window 5..1"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(
    command: str, options: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(folder), "-q", "--no-cache", *options]) == 2
    assert said in capsys.readouterr().err


def test_the_command_leaves_out_what_was_not_asked_for(folder: Path, job: Study, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["steps", str(folder), "-q", "--no-cache", "--format", "json", "--step", str(numbers(job)[1]), "--rank", "2"]) == 0
    rows = json.loads(capsysbinary.readouterr().out)["rows"]
    assert [(row["rank"], row["name"].endswith(f"#{numbers(job)[1]}")) for row in rows] == [(2, True)]
