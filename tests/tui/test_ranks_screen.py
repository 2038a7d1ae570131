"""Ranks: the late one named, the strip of steps, and limits to a rank and its step."""

from __future__ import annotations

import numpy as np

from roofterm.tui.widgets.heat_strip import heat_levels
from tests.tui.fake_study import FakeStudy
from tests.tui.harness import ASCII, explorer, press, screen_lines, screen_text, state, status_line, the_explorer, type_text


async def test_the_late_rank_and_its_cost_come_first():
    async with explorer((80, 24), "7") as pilot:
        assert "rank 2 is late" in screen_lines(pilot)[2]
        row = next(line for line in screen_lines(pilot) if line.startswith(">rank 2  "))  # the cursor begins there
        assert row.split()[2] == "late"
        assert "97.00 us" in row
        assert "900.0 us" in row


async def test_enter_limits_every_screen_to_the_rank_and_again_to_none():
    async with explorer((80, 24), "7 enter") as pilot:
        assert state(pilot).filter == "rank:2"
        await press(pilot, "5")
        assert "filter rank:2" in status_line(pilot)
        await press(pilot, "7 enter")
        assert state(pilot).filter == ""


async def test_a_range_of_ranks_leaves_their_rows_and_one_rank_all():
    async with explorer((80, 24), "7") as pilot:
        await press(pilot, "slash")
        await type_text(pilot, "rank:1-2")
        await press(pilot, "enter")
        assert "2 of 4 ranks" in screen_text(pilot)
        await press(pilot, "escape slash")
        await type_text(pilot, "rank:3")
        await press(pilot, "enter")
        assert "4 ranks" in screen_text(pilot)
        assert any(line.startswith(">rank 3") for line in screen_lines(pilot))


async def test_a_cell_of_the_strip_is_a_rank_and_a_step():
    """Below the four ranks lies the strip; the cursor starts on its first line and step 0."""
    async with explorer((80, 24), "7 G j j j right right enter") as pilot:
        assert state(pilot).filter == "rank:2"
        assert state(pilot).step == "2"
        await press(pilot, "escape")
        assert (state(pilot).filter, state(pilot).step) == ("", None)


async def test_the_strip_reads_the_cell_under_its_cursor():
    """Rank 2 kept the others waiting 90 + 50 us in step 5."""
    async with explorer((80, 24), "7 G j j j right right right right right") as pilot:
        assert "rank 2 #5: 140.0 us" in screen_text(pilot)


async def test_the_strip_shows_another_figure():
    async with explorer((80, 24), "7 x") as pilot:
        assert "idle" in screen_text(pilot)
        await press(pilot, "x x x")
        assert "compute" in screen_text(pilot)


async def test_groups_tell_unequal_calls_and_bandwidth():
    async with explorer((120, 40), "7 v") as pilot:
        text = screen_text(pilot)
        assert "12 to 14" in text
        assert "361.0 GB/s" in text
        assert "unequal calls in group dp" in text or "dp" in text
        await press(pilot, "enter escape v")
        assert "kept wait" in screen_text(pilot)


async def test_one_rank_alone_has_no_such_screen_and_the_key_says_why():
    async with explorer((80, 24), "7", study=FakeStudy(ranks=1)) as pilot:
        assert state(pilot).screen == "overview"
        assert "no Ranks here: one rank alone" in status_line(pilot)
        assert "7 Ranks" not in screen_lines(pilot)[1]


async def test_without_steps_there_is_no_strip():
    async with explorer((80, 24), "7 G j x enter", study=FakeStudy(steps=0)) as pilot:
        assert "rank 3" in screen_text(pilot)
        assert not the_explorer(pilot).page.query_one("#heat-panel").display


async def test_ascii_strip_is_told_by_characters():
    async with explorer((80, 24), "7", ASCII) as pilot:
        row = next(line for line in screen_lines(pilot) if line.startswith(" rank 2 ") and "#" in line)
        assert set(row.split()[2]) <= set(".-+*#")


def test_levels_go_from_the_smallest_to_the_largest():
    levels = heat_levels(np.array([[0.0, 25.0, 50.0], [75.0, 100.0, np.nan]]), 4)
    assert levels.tolist() == [[0, 1, 2], [3, 3, -1]]


def test_what_hardly_differs_is_one_level():
    assert heat_levels(np.array([[100.0, 101.0, np.nan]]), 5).tolist() == [[0, 0, -1]]
    assert heat_levels(np.full((1, 2), np.nan), 5).tolist() == [[-1, -1]]
