"""Every screen at every size, in colour, without colour and in ASCII: it is whole, straight and says what it should."""

from __future__ import annotations

import re

import pytest

from roofterm.text.safe import cell_width
from roofterm.tui.keymap import SCREENS
from tests.tui.harness import ASCII, COLOURLESS, PLAIN, SIZES, explorer, go_to, press, screen_lines, screen_text, settled, state

NAMES = [name for name, _, _ in SCREENS]
LOOKS = {"colour": PLAIN, "no colour": COLOURLESS, "ascii": ASCII}
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

MUST_SHOW = {
    "overview": ("health", "whole", "device", "H100", "step", "p50", "busy"),
    "roofline": ("FLOPs known for", "1k"),
    "ops": ("kernel", "total", "nvjet", "% roof"),
    "timeline": ("busy %", "ProfilerStep#0"),
    "steps": ("ProfilerStep#5", "slowest", "incomplete"),
    "device": ("bf16", "989.4 TFLOP/s", "H100"),
    "findings": ("all-reduce runs while", "61.00 us", "6.1%", "3 findings"),
    "ranks": ("rank 2 is late", "97.00 us", "rank 3", "late"),
    "memory": ("device 0", "60.00 GiB", "aten::mm", "at peak"),
    "compare": ("yesterday [bold].json", "step_us", "+200.0 us", "+20.0%"),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("name", NAMES)
async def test_screen_is_whole(name, size, look):
    async with explorer(size, "", LOOKS[look]) as pilot:
        await go_to(pilot, name)
        await pilot.pause(0.1)  # details below follow after a rest
        lines = screen_lines(pilot)
        assert len(lines) == size[1]
        assert {cell_width(line) for line in lines} == {size[0]}
        text = "\n".join(lines)
        assert not CONTROL.search(text.replace("\n", ""))
        missing = [word for word in MUST_SHOW[name] if word not in text]
        assert missing == []
        if look == "ascii":
            assert sorted({char for char in text if not char.isascii()} - set("中文宽字")) == []


async def test_overview_at_80x24_has_its_lines_in_order():
    async with explorer((80, 24)) as pilot:
        body = screen_lines(pilot)[2:22]
        labels = [line[1:10].strip() for line in body[:12]]
        assert labels == ["health", "device", "step", "busy", "", "", "launches", "waits", "comm", "fix first", "", ""]
        assert body[4].strip().startswith("█")
        assert "compute" in body[5]
        assert body[12].split()[0] == "kernel"
        assert [line.split()[0][:8] for line in body[13:16]] == ["nvjet_ts", "flash_fw", "ncclDevK"]
        assert body[19].split()[0] == "warnings"


async def test_the_top_finding_is_in_sight_at_60x16():
    async with explorer((60, 16)) as pilot:
        body = screen_lines(pilot)[2:14]
        assert [line[1:10].strip() for line in body[:7]] == ["health", "device", "step", "busy", "", "", "fix first"]
        assert "61.00 us" in body[6]
        assert body[7].split()[0] == "kernel"
        assert body[11].split()[0] == "warnings"


async def test_overview_says_who_waits_and_whose_the_roofs_are():
    """Of the study: input 12 us (1.2%), launches 4.2%, 81 us in syncs; one kernel in ten under 10 us."""
    async with explorer((80, 24)) as pilot:
        text = screen_text(pilot)
        assert re.search(r"waits +for input 12\.00 us \(1\.2%\) · for launches 4\.2% · in syncs 81\.00 us", text)
        assert re.search(r"launches +[\d,]+ a step · mean kernel 88\.20 us · 10\.0% < 10 us · compute-bound", text)
        assert re.search(r"device +2x H100 80GB HBM3 · \w+ roofs bf16 989\.4 TFLOP/s", text)


async def test_overview_shows_the_steady_steps_figures():
    """Steady steps 1 to 6 of the study last 1002, 1004, 1006, 1008, 1240 and 1012 us."""
    async with explorer((200, 60)) as pilot:
        text = screen_text(pilot)
        assert "p50 1.007 ms" in text  # the mean of 1006 and 1008
        assert "slowest #5 1.240 ms" in text
        assert "6 of 8 steady" in text


async def test_enter_on_a_line_opens_its_evidence_and_backspace_returns():
    async with explorer((80, 24), "j enter") as pilot:
        assert "[9 Device]" in screen_text(pilot)
        await press(pilot, "backspace")
        assert "[1 Overview]" in screen_text(pilot)
        assert screen_lines(pilot)[3].startswith(">device")


async def test_finding_leads_to_its_filtered_table():
    async with explorer((80, 24), "j j j j j j j j enter") as pilot:
        text = screen_text(pilot)
        assert "[3 Ops]" in text
        assert "cat:communication" in text
        assert "1 of 13 kernels" in text


async def test_cursor_goes_on_from_the_lines_into_the_table_and_back():
    async with explorer((80, 24), "G j j") as pilot:
        assert screen_lines(pilot)[16].startswith(">flash_fwd_kernel")
        await press(pilot, "k k")
        assert not any(line.startswith(">flash") for line in screen_lines(pilot))
        assert screen_lines(pilot)[13].startswith(">")


async def test_health_line_opens_the_warnings():
    async with explorer((80, 24), "enter") as pilot:
        text = screen_text(pilot)
        assert "Health of this profile" in text
        assert "3 kernels have no launch" in text
        await press(pilot, "escape")
        assert "[1 Overview]" in screen_text(pilot)


async def test_selected_kernel_travels_to_roofline_and_timeline():
    async with explorer((120, 40), "3 j") as pilot:
        await press(pilot, "2")
        assert "[a] " in screen_text(pilot)
        await press(pilot, "4")
        assert any("Flash_fwd_kernel_traits" in line for line in screen_lines(pilot)[-18:])


async def test_a_screen_only_looked_at_leaves_the_selection_alone():
    async with explorer((120, 40), "3 j 2 3") as pilot:
        assert "13 kernels" in screen_text(pilot)
        await press(pilot, "2 n 3")
        assert any(line.startswith("│>triton_poi") for line in screen_lines(pilot)), "the point after attention, by time"


async def test_roofline_points_are_walked_by_time():
    """Times of the study's points: 2304 us for the first GEMM, 1328 us for attention, 624 us for the fused kernel."""
    async with explorer((120, 40), "2") as pilot:
        assert "[g] nvjet" in screen_text(pilot)
        await press(pilot, "n")
        assert "[a] " in screen_text(pilot)
        await press(pilot, "N")
        assert "[g] nvjet" in screen_text(pilot)


async def test_roofline_shows_program_rows_and_the_table():
    async with explorer((80, 24), "2 p") as pilot:
        assert "rows of the program" in screen_text(pilot)
        await press(pilot, "p t")
        text = screen_text(pilot)
        assert "FLOP/B" in text
        assert text.count("nvjet") == 2


async def test_step_limits_every_screen_until_escape():
    async with explorer((80, 24), "5 j j enter") as pilot:
        await press(pilot, "3")
        assert "step 2" in screen_text(pilot)
        await press(pilot, "escape")
        assert "whole file" in screen_text(pilot)


async def test_steps_screen_is_absent_without_steps():
    from tests.tui.fake_study import FakeStudy

    async with explorer((80, 24), "5", study=FakeStudy(steps=0)) as pilot:
        text = screen_text(pilot)
        assert "5 Steps" not in text
        assert "the profile marks no steps" in text
        assert "no steps are marked in this profile" in text


async def test_host_only_profile_shows_host_ops_and_no_roofline():
    from tests.tui.fake_study import FakeStudy

    async with explorer((80, 24), "2", study=FakeStudy(host_only=True)) as pilot:
        text = screen_text(pilot)
        assert "no Roofline here: no device worked in this profile" in text
        assert "2 Roofline" not in text
        assert "aten::linear" in text
        await press(pilot, "3")
        assert "7 host ops" in screen_text(pilot)


async def test_window_marked_in_the_timeline_limits_the_others():
    async with explorer((80, 24), "4 + + < right right right >") as pilot:
        await press(pilot, "3")
        assert re.search(r"window \d", screen_text(pilot))


async def test_details_say_every_figure_and_its_meaning():
    async with explorer((80, 24), "3 enter") as pilot:
        text = screen_text(pilot)
        assert "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT" in text
        assert "2.304 ms" in text
        assert re.search(r"launched by +aten::mm", text)  # where it comes from is asked first
        assert "132,1,1" in text
        await press(pilot, "pagedown")
        assert "What they mean" in screen_text(pilot)


async def test_too_small_says_so_and_recovers():
    async with explorer((50, 12)) as pilot:
        assert "needs 60x16, has 50x12" in screen_text(pilot)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "health" in screen_text(pilot)


async def test_details_stand_beside_as_soon_as_there_is_room():
    async with explorer((80, 24), "3") as pilot:
        await pilot.resize_terminal(140, 40)
        await pilot.pause(0.1)
        await settled(pilot)
        assert re.search(r"launched by +aten::mm", screen_text(pilot))


async def test_markup_escapes_and_bidi_stay_text_and_lines_stay_straight():
    async with explorer((120, 40), "3 G enter") as pilot:
        text = screen_text(pilot)
        assert "[bold]with markup[/bold]" in text
        assert r"\x1b[31mescape" in text
        assert r"\u202eand bidi" in text
        assert {cell_width(line) for line in screen_lines(pilot)} == {120}


async def test_looking_at_the_roofline_chooses_nothing():
    """The first row may have no place among the roofs; going on to Ops shows kernels as before."""
    async with explorer((80, 24), "2 3") as pilot:
        assert state(pilot).by == "kernel"
        assert state(pilot).selection is None
