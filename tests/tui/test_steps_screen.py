"""Steps: the slowest is marked once, ranks are told apart, and the step under the cursor is told by parts and phases."""

from __future__ import annotations

import msgspec
import pytest

from roofterm.results import PhaseTime
from roofterm.tui.frames import steps_frame
from roofterm.tui.themes import palette
from roofterm.tui.widgets.glyphs import Look
from roofterm.tui.widgets.step_panel import step_lines
from tests.tui.fake_study import step_row
from tests.tui.harness import explorer, screen_lines, screen_text, settled


def texts(lines) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def test_of_several_ranks_one_step_is_the_slowest():
    rows = [msgspec.structs.replace(step_row(5), rank=rank, dur_us=dur) for rank, dur in ((0, 1000.0), (1, 1300.0), (2, 1100.0))]
    frame = steps_frame(rows, rows[0].name)
    assert frame["mark"].to_list() == ["", "slowest", ""]
    assert steps_frame(rows[:1], rows[0].name)["mark"].to_list() == [""]  # alone it is the fastest, too


def test_phases_of_a_step_are_held_against_its_length():
    """A step of 1,000 us whose device works 750 of them: forward 250 is a quarter, idle the last one."""
    row = msgspec.structs.replace(
        step_row(1), dur_us=1000.0, compute_us=750.0, exposed_comm_us=0.0, exposed_copy_us=0.0, idle_us=250.0, host_wait_us=250.0,
        kernel_gap_us=0.0,
    )  # fmt: skip
    phases = [PhaseTime("forward", 250.0, 200.0, 3.0, 40.0), PhaseTime("backward", 550.0, 500.0, 4.0, 60.0)]
    lines = texts(step_lines(row, phases, 40, palette("dark"), Look()))
    assert lines[0] == "█" * 30 + "░" * 10
    assert lines[1] == "█ compute 75.0%  ░ host wait 25.0%"
    assert [line.split() for line in lines[4:]] == [
        ["forward", "250.0", "us", "25.0%", "200.0", "us", "40.00", "us", "3"],
        ["backward", "550.0", "us", "55.0%", "500.0", "us", "60.00", "us", "4"],
        ["no", "device", "work", "250.0", "us", "25.0%"],
    ]


def test_a_step_without_a_device_is_told_by_the_host():
    row = msgspec.structs.replace(step_row(1), compute_us=None, idle_us=None)
    lines = texts(
        step_lines(
            row, [PhaseTime("forward", 0.0, 0.0, 0.0, 30.0), PhaseTime("backward", 0.0, 0.0, 0.0, 10.0)], 40, palette("dark"), Look()
        )
    )
    assert lines[0] == "█" * 30 + "▓" * 10
    assert lines[1] == "█ forward 75.0%  ▓ backward 25.0%"
    assert lines[4].split() == ["forward", "30.00", "us", "75.0%"]


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=["80x24", "200x60"])
async def test_the_step_under_the_cursor_is_told_below(size):
    async with explorer(size, "5 j") as pilot:
        await pilot.pause(0.1)
        await settled(pilot)
        text = screen_text(pilot)
        assert "Where this step goes" in text
        for phase in ("forward", "backward", "optimizer", "no device work"):
            assert phase in text


async def test_at_60x16_the_bar_stays_and_the_steps_with_it():
    async with explorer((60, 16), "5") as pilot:
        await pilot.pause(0.1)
        await settled(pilot)
        lines = screen_lines(pilot)
        assert lines[12].strip().startswith("█")
        assert "compute" in lines[13]
        assert "ProfilerStep#7" in lines[10]
