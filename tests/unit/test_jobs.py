"""Jobs of several ranks, made with a known fault: the straggler is named, the lost rank, the clock that is off, what was planted."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from benchmarks.make_job import ALL_REDUCE, KERNELS, LAYERS, TRANSFER_NS, Plan, play, write
from roofterm.analysis.clocks import aligned_study
from roofterm.analysis.compare import Comparison, compare
from roofterm.analysis.study import Study
from roofterm.cli.main import main
from roofterm_parsers import open_profile

JOBS = 20


def study(plan: Plan, folder: Path) -> Study:
    return aligned_study(Study(open_profile([str(path) for path in write(plan, folder)], cache=False)))


@pytest.mark.parametrize("seed", range(JOBS))
def test_the_straggler_is_named_first_and_a_healthy_job_names_nobody(seed: int, tmp_path: Path):
    """Kernels 8 % to 20 % longer on one of three to five ranks; in the healthy twin they only vary by 1 %."""
    random = Random(seed)
    ranks = random.randint(3, 5)
    straggler, slower = random.randrange(ranks), random.uniform(0.08, 0.20)
    slow = study(Plan(ranks=ranks, steps=3, seed=seed, straggler=straggler, slower=slower), tmp_path / "slow")
    late = sorted((row for row in slow.ranks() if row.late), key=lambda row: -(row.kept_waiting_us or 0))
    assert [row.rank for row in late] == [straggler]
    findings = [finding for finding in slow.findings() if finding.id == "late-rank"]
    assert [finding.evidence["late_rank"] for finding in findings] == [str(straggler)]
    healthy = study(Plan(ranks=ranks, steps=3, seed=seed), tmp_path / "healthy")
    assert [row.rank for row in healthy.ranks() if row.late] == []
    assert [finding.id for finding in healthy.findings() if finding.id in ("late-rank", "unequal-collectives")] == []


def test_waits_and_transfers_are_those_that_were_played(tmp_path: Path):
    """An all-reduce takes 120 us once all have come; how long each waited follows from the arrivals of the simulation."""
    plan = Plan(ranks=3, steps=3, seed=5, straggler=1)
    found = study(plan, tmp_path)
    arrivals = [[event["ts"] for event in rank.events if event["name"] == ALL_REDUCE] for rank in play(plan)]
    waits = [sum(max(at) - at[rank] for at in zip(*arrivals, strict=True)) / 3 for rank in range(3)]
    rows = found.ranks()
    assert [row.wait_us for row in rows] == pytest.approx(waits, abs=1e-3)
    assert [row.transfer_us for row in rows] == pytest.approx([LAYERS * TRANSFER_NS / 1000] * 3, rel=0.01)
    calls = found.collective_calls.join(found.matched_calls, on="slice")
    assert calls.height == found.collective_calls.height == 3 * 3 * LAYERS
    # What is left of a call beyond waiting and transfer is no more than the ranks' ends lie apart.
    left = (calls["end_ps"] - calls["start_ps"] - calls["wait_ps"] - calls["transfer_ps"]).abs()
    assert (left <= calls["end_spread_ps"]).all()


@pytest.mark.parametrize("skew_ns", [1_500_000, -40_000, 3_600_000_000_000])
def test_a_clock_that_is_off_is_found_by_the_collectives(skew_ns: int, tmp_path: Path):
    """Rank 2's clock is ahead by 1.5 ms, behind by 40 us, ahead by an hour: nothing else changes."""
    true = study(Plan(ranks=3, steps=3, seed=2), tmp_path / "true")
    off = study(Plan(ranks=3, steps=3, seed=2, skew_ns={2: skew_ns}), tmp_path / "off")
    assert true.clocks is not None
    assert off.clocks is not None
    assert (true.clocks.told_by, true.clocks.moved_us) == ("wall clock", {})
    assert off.clocks.told_by == "collectives"
    (moved,) = off.clocks.moved_us.values()
    assert moved == pytest.approx(-skew_ns / 1000, abs=1.0)
    assert off.clocks.residual_us == pytest.approx(true.clocks.residual_us, abs=1.0)
    assert [row.wait_us for row in off.ranks()] == pytest.approx([row.wait_us for row in true.ranks()], abs=10.0)
    off.profile.check()


def test_clocks_without_a_wall_clock_are_told_by_collectives_alone(tmp_path: Path):
    """Rank 1 was recorded one step later: each file starts at its own zero, and only the all-reduces tell how far they lie apart."""
    plan = Plan(ranks=2, steps=4, seed=3)
    paths = write(plan, tmp_path)
    first_end = max(event["ts"] + event["dur"] for event in play(plan)[1].events if event["name"] == "ProfilerStep#3")
    late = changed(paths[1], lambda line: float(json.loads(line)["ts"]) >= first_end)
    files = [changed(paths[0], lambda _: True), late]
    found = aligned_study(Study(open_profile([str(path) for path in files], cache=False)))
    assert found.clocks is not None
    assert found.clocks.told_by == "collectives"
    (moved,) = found.clocks.moved_us.values()
    starts = [
        min(event["ts"] for event in rank.events if event["ts"] >= least) for rank, least in zip(play(plan), (0, first_end), strict=True)
    ]
    assert moved == pytest.approx(starts[1] - starts[0], abs=1.0)
    assert found.matched_calls.height == 2 * 3 * LAYERS


def changed(path: Path, kept: Callable[[str], bool]) -> Path:
    """A trace with those of its events and without its wall-clock time, written beside it."""
    head, _, events = gzip.decompress(path.read_bytes()).decode().partition('"traceEvents": [\n')
    lines = [line for line in events.removesuffix("\n]}\n").split(",\n") if kept(line)]
    out = path.with_name(path.name.removesuffix(".gz"))
    out.write_text(head.replace('"baseTimeNanoseconds"', '"otherTime"') + '"traceEvents": [\n' + ",\n".join(lines) + "\n]}\n")
    return out


def test_a_lost_rank_and_a_damaged_one_are_named(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]):
    paths = write(Plan(ranks=5, steps=3, lost=1), tmp_path)
    paths[2].write_bytes(b"\x1f\x8b not a trace any more")
    assert main(["ranks", str(tmp_path), "--format", "json", "--no-cache", "-q"]) == 0
    answer = json.loads(capsysbinary.readouterr().out)
    assert [row["rank"] for row in answer["rows"]] == [0, 2, 4]
    assert "2 of the job's 5 ranks are not here: 1, 3" in answer["notes"]
    assert any("rank3.pt.trace.json.gz" in note and "left out" in note for note in answer["notes"])
    (group,) = answer["groups"]
    assert (group["name"], group["role"], group["ranks"], group["seen"], group["size"]) == (
        "default_pg", "world", [0, 1, 2, 3, 4], 3, 5,
    )  # fmt: skip


def test_unequal_calls_are_named(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]):
    """One rank made an all-reduce less in the last step."""
    paths = write(Plan(ranks=2, steps=3), tmp_path)
    last = max(event["ts"] for event in play(Plan(ranks=2, steps=3))[1].events if event["name"] == ALL_REDUCE)
    changed(paths[1], lambda line: ALL_REDUCE not in line or json.loads(line)["ts"] < last)
    paths[1].unlink()
    assert main(["ranks", str(tmp_path), "--no-cache", "-q"]) == 0
    text = " ".join(capsysbinary.readouterr().out.decode().split())
    assert f"unequal calls in group default_pg: its ranks made {3 * LAYERS - 1} to {3 * LAYERS}" in text
    assert "could not be matched over the ranks" in text


# Pairs


def pair(base: Plan, new: Plan, folder: Path) -> Comparison:
    return compare(study(base, folder / "base"), study(new, folder / "new"))


def told(found: Comparison, *statuses: str) -> list[tuple[str, str]]:
    """Level and name of the rows with one of these statuses."""
    return [(row["level"], row["name"]) for row in found.changes.iter_rows(named=True) if row["status"] in statuses]


@pytest.mark.parametrize("seed", range(JOBS))
def test_a_planted_change_of_three_percent_is_found_and_noise_is_not(seed: int, tmp_path: Path):
    """One kernel takes 3 % longer or less; every kernel of every step varies by 1 %, differently in each run."""
    random = Random(100 + seed)
    kernel = random.choice(list(KERNELS))
    factor = random.choice((1.03, 0.97))
    base = Plan(ranks=1, steps=6, seed=seed)
    found = pair(base, Plan(ranks=1, steps=6, seed=1000 + seed, planted={kernel: factor}), tmp_path / "planted")
    assert [name for level, name in told(found, "changed", "added", "removed") if level == "kernel"] == [kernel]
    (row,) = found.changes.filter(name=kernel, level="kernel").iter_rows(named=True)
    assert row["change_pct"] == pytest.approx(100 * (factor - 1), abs=1.0)
    twin = pair(base, Plan(ranks=1, steps=6, seed=2000 + seed), tmp_path / "noise")
    assert told(twin, "changed", "added", "removed") == []


def test_a_profile_against_itself_shows_nothing(tmp_path: Path):
    plan = Plan(ranks=2, steps=4)
    found = pair(plan, plan, tmp_path)
    assert set(found.changes["status"]) == {"same", "unknown"}
