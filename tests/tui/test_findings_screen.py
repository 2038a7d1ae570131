"""Findings: the list, the evidence below it, and the way from a finding to the view that shows it."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm.results import Finding
from roofterm.tui.finding_target import target_of
from roofterm.tui.screens.findings import finding_details
from tests.tui.fake_study import FakeStudy
from tests.tui.harness import explorer, press, screen_lines, screen_text, settled, state, the_page


def finding(**fields) -> Finding:
    known: dict[str, Any] = {
        "id": "late-rank",
        "severity": "high",
        "title": "Late rank",
        "time_at_stake_us": 120.0,
        "share_of_step_pct": 6.0,
        "evidence": {"wait_us_by_rank": {"0": 98.5, "1": None}, "matched_collectives": 1284, "share_pct": 12.5, "kept_bytes": 2048},
        "advice": "Compare rank 1 with the others.",
        "where": {"view": "timeline", "filter": "cat:communication"},
    }
    return Finding(**(known | fields))


def test_evidence_is_told_in_its_units():
    """98.5 us, unknown, 12.5 percent, 2 KiB and a count, each by the suffix of its name."""
    facts = {fact.label: fact.value for fact in finding_details(finding()).facts}
    assert facts["wait time by rank"] == "0: 98.50 us, 1: --"
    assert facts["matched collectives"] == "1,284"
    assert facts["share share"] == "12.5%"
    assert facts["kept size"] == "2.000 KiB"
    assert facts["seen in"] == "timeline cat:communication"


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


async def test_the_evidence_below_follows_the_cursor():
    async with explorer((80, 24), "6 j j") as pilot:
        await pilot.pause(0.2)
        await settled(pilot)
        below = "\n".join(screen_lines(pilot)[6:])
        assert "the host waits for the device" in below
        assert "12.50 us, 1.2% of the step" in below  # 1.25 of a step


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
