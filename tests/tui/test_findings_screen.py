"""Findings: the list, the evidence below it, and the way from a finding to the view that shows it."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm.report.evidence import evidence_of
from roofterm.results import Finding
from roofterm.tui.finding_target import target_of
from roofterm.tui.screens.findings import finding_details
from tests.tui.fake_study import FakeStudy
from tests.tui.harness import explorer, press, screen_lines, screen_text, state, the_page


def finding(**fields) -> Finding:
    known: dict[str, Any] = {
        "id": "late-rank",
        "severity": "high",
        "title": "Late rank",
        "time_at_stake_us": 120.0,
        "share_of_step_pct": 6.0,
        "evidence": {"wait_us_by_rank": {"0": 98.5, "1": None}, "matched_collectives": 1284, "hidden_pct": 12.5, "kept_bytes": 2048},
        "advice": "Compare rank 1 with the others.",
        "where": {"view": "timeline", "filter": "cat:communication"},
    }
    return Finding(**(known | fields))


def test_evidence_is_told_in_its_units():
    """98.5 us, unknown, 12.5 percent, 2 KiB and a count, each by the suffix of its name."""
    facts = {fact.label: fact.value for fact in finding_details(finding()).facts}
    assert facts["wait time by rank"] == "0: 98.50 us, 1: --"
    assert facts["matched collectives"] == "1,284"
    assert facts["hidden share"] == "12.5%"
    assert facts["kept size"] == "2.000 KiB"
    assert facts["seen in"] == "timeline cat:communication"


@pytest.mark.parametrize(
    ("name", "value", "label", "text"),
    [
        ("kernels_under_10_us", 1319.4, "kernels under 10 us", "1,319"),  # a count: the unit belongs to the 10
        ("under_10_us_pct", 79.171, "under 10 us share", "79.2%"),
        ("worst_bytes_per_s", 2**31, "worst rate", "2.000 GiB/s"),
        ("device_time_saved_us", 1500.0, "device time saved", "1.500 ms"),
        ("worst_occupancy_pct", 75.0, "worst occupancy", "75.0%"),
        ("exposed_us_by_rank", {"0": 2.5}, "exposed time by rank", "0: 2.500 us"),
    ],
)
def test_a_unit_is_read_from_the_end_of_a_name(name, value, label, text):
    assert [(one.label, one.text) for one in evidence_of({name: value})] == [(label, text)]


def test_the_rule_is_told_with_its_source():
    facts = {fact.label: fact.value for fact in finding_details(finding()).facts}
    assert facts["asks"] == "Do the ranks wait for one of them?"
    assert facts["judges"].endswith("]")


@pytest.mark.parametrize(
    ("where", "screen", "by"),
    [
        ({"view": "ops", "filter": "cat:gemm"}, "ops", "kernel"),
        ({"view": "ops", "filter": "", "by": "op"}, "ops", "op"),
        ({"view": "timeline", "filter": "x"}, "timeline", None),
    ],
)
def test_where_a_finding_leads(where, screen, by):
    target = target_of(finding(where=where), "kernel")
    assert (target.screen, target.by, target.filter) == (screen, by, where["filter"])


async def test_enter_opens_the_evidence_and_backspace_returns_to_the_finding():
    async with explorer((80, 24), "6 j enter") as pilot:
        assert state(pilot).screen == "ops"
        assert state(pilot).filter == "cat:elementwise"
        await press(pilot, "backspace")
        assert state(pilot).screen == "findings"
        assert any(line.startswith(">1,912 kernels shorter") for line in screen_lines(pilot))


async def test_what_to_do_and_where_it_is_seen_stands_below_each_finding():
    async with explorer((80, 24), "6") as pilot:
        lines = screen_lines(pilot)
        titles = [at for at, line in enumerate(lines) if any(word in line for word in ("high", "medium", "low "))]
        assert len(titles) == 3
        for title, following in zip(titles, [*titles[1:], len(lines)], strict=True):
            below = "\n".join(lines[title + 1 : following])
            assert " to do " in below
            assert " seen in " in below


async def test_moving_to_the_next_finding_draws_two_lines():
    async with explorer((80, 24), "6") as pilot:
        before = screen_lines(pilot)[:-2]
        await press(pilot, "j")
        after = screen_lines(pilot)[:-2]
        changed = [at for at, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
        assert [after[at][0] for at in changed] == [" ", ">"]


async def test_a_filter_of_ops_hides_no_finding_and_it_is_said():
    async with explorer((80, 24), "3 c 6") as pilot:
        assert "not asked here: cat:" in screen_text(pilot)
        assert "3 findings" in screen_text(pilot)


async def test_without_findings_it_is_said():
    class Sound(FakeStudy):
        def findings(self, scope=None):
            return []

    async with explorer((80, 24), "6 enter", study=Sound()) as pilot:
        assert "nothing is found here" in screen_text(pilot)
        assert "Is the profile whole" in screen_text(pilot)
        await press(pilot, "d")
        assert "Nothing found that would be worth the time" in screen_text(pilot)


async def test_enter_on_a_doubt_about_the_whole_file_tells_it_in_full():
    class Doubtful(FakeStudy):
        def findings(self, scope=None):
            return [Finding("profile-unusable", "medium", "work is missing", None, None, {}, "record again", {"view": "overview"})]

    async with explorer((80, 24), "6 enter", study=Doubtful()) as pilot:
        assert "Is the profile whole" in screen_text(pilot)
        await press(pilot, "escape 1")
        assert "to be read with care" in screen_text(pilot)


async def test_findings_sort_by_what_is_at_stake_and_back():
    async with explorer((80, 24), "6 r") as pilot:
        assert screen_lines(pilot)[3].lstrip(">").strip().startswith("the host waits")
        await press(pilot, "r")
        assert screen_lines(pilot)[3].lstrip(">").strip().startswith("all-reduce runs")


async def test_what_was_asked_and_found_nothing_is_told():
    """That input is no matter is an answer to a question too."""
    async with explorer((80, 24), "6 d G") as pilot:
        assert "Asked too, and nothing found" in "\n".join(fact.label for fact in the_page(pilot).details().facts)
        told = {fact.label for fact in the_page(pilot).details().facts}
        assert "input-bound" in told
