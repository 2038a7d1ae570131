"""The filter as a user meets it: typed below, tried while typing, held everywhere, pointed at when wrong."""

from __future__ import annotations

import asyncio

import pytest
from textual.events import Key

from roofterm.tui.keymap import long_key
from roofterm.tui.state import changed
from roofterm.tui.widgets.filter_bar import FilterBar
from roofterm.tui.widgets.table import VirtualTable
from tests.tui.harness import explorer, make_app, press, screen_lines, screen_text, settled, state, status_line, the_explorer, type_text


async def typed(pilot, text: str) -> None:
    await press(pilot, "slash")
    await type_text(pilot, text)


async def test_a_key_before_the_first_page_is_no_text():
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("3")
        await settled(pilot, 8)
        assert state(pilot).screen == "ops"
        assert app.screen.query_one(FilterBar).input.value == ""


async def test_enter_keeps_the_filter_on_every_screen():
    async with explorer((80, 24), "3") as pilot:
        await typed(pilot, "nvjet")
        await press(pilot, "enter")
        assert "2 of 13 kernels" in status_line(pilot)
        assert "filter nvjet" in status_line(pilot)
        for key in ["2", "4", "1"]:
            await press(pilot, key)
            assert "filter nvjet" in status_line(pilot)
        await press(pilot, "3")
        assert sum("nvjet" in line for line in screen_lines(pilot)[2:22]) == 2


async def test_what_is_typed_is_tried_before_enter():
    async with explorer((80, 24), "3") as pilot:
        await typed(pilot, "flash")
        await _until(pilot, lambda: "1 of 13 kernels" in status_line(pilot))
        await press(pilot, "escape")
        assert "13 kernels" in status_line(pilot)
        assert state(pilot).filter == ""
        assert not pilot.app.screen.query_one(FilterBar).has_class("-open")


async def test_a_wrong_filter_points_at_its_place_and_keeps_the_last_good_one():
    async with explorer((80, 24), "3") as pilot:
        await typed(pilot, "nvjet")
        await press(pilot, "enter slash")
        await type_text(pilot, " dur>10x")
        await press(pilot, "enter")
        status, typed_line = screen_lines(pilot)[-2:]
        assert "is not a time" in status
        assert typed_line[status.index("▼")] == "x"
        assert state(pilot).filter == "nvjet dur>10"  # what stood there before the x
        await press(pilot, "escape")
        assert "2 of 13 kernels" in status_line(pilot)


async def test_escape_clears_and_backspace_brings_it_back():
    async with explorer((80, 24), "3") as pilot:
        await typed(pilot, "cat:gemm")
        await press(pilot, "enter escape")
        assert state(pilot).filter == ""
        await press(pilot, "backspace")
        assert state(pilot).filter == "cat:gemm"


async def test_category_and_bound_keys_write_the_filter():
    async with explorer((80, 24), "3 c") as pilot:
        assert state(pilot).filter == "cat:gemm"  # most time first
        assert "2 of 13 kernels" in status_line(pilot)
        await press(pilot, "escape b")
        assert state(pilot).filter == "bound:compute"


async def test_what_a_table_cannot_answer_is_said():
    async with explorer((80, 24), "3") as pilot:
        await typed(pilot, "headroom>1us")
        await press(pilot, "enter")
        assert "not asked here: headroom>1us" in screen_text(pilot)
        await press(pilot, "2")
        assert "not asked" not in screen_text(pilot)


async def test_nothing_left_says_how_to_see_all():
    async with explorer((80, 24), "3") as pilot:
        await typed(pilot, "nosuchkernel")
        await press(pilot, "enter")
        assert "no kernels pass the filter; esc shows all" in screen_text(pilot)
        await press(pilot, "enter")
        assert "nothing is selected here" in status_line(pilot)


async def test_timeline_hides_what_does_not_pass():
    """The study's timeline has 8 steps with 10 ops each: 80 slices are called aten::mm."""
    async with explorer((80, 24), "4") as pilot:
        await typed(pilot, "name:aten::mm")
        await press(pilot, "enter")
        assert "80 of 256 slices" in screen_text(pilot)


@pytest.mark.parametrize("text", ["[bold]", "/(/", '"', "a||b", "!", "中文"])
async def test_any_typing_is_harmless(text):
    async with explorer((80, 24), "3") as pilot:
        await press(pilot, "slash")
        pilot.app.screen.query_one(FilterBar).input.value = text
        await settled(pilot)
        await press(pilot, "enter escape escape")
        assert pilot.app.is_running


async def test_tab_completes_fields_values_and_words_and_shows_what_else_there_is():
    async with explorer((80, 24), "3") as pilot:
        await typed(pilot, "ca")
        await press(pilot, "tab")
        assert "cat:  calls>" in status_line(pilot)
        bar = pilot.app.screen.query_one(FilterBar)
        assert bar.input.value == "cat:"
        await press(pilot, "tab")
        assert bar.input.value == "calls>"
        await press(pilot, "shift+tab")
        await type_text(pilot, "ge")
        await press(pilot, "tab")
        assert bar.input.value == "cat:gemm"
        await type_text(pilot, " fla")
        await press(pilot, "tab")
        assert bar.input.value == "cat:gemm flash_fwd_kernel"
        await press(pilot, "enter")
        assert state(pilot).filter == "cat:gemm flash_fwd_kernel"


async def test_tab_in_an_empty_line_lists_the_fields_and_then_takes_one_after_the_other():
    async with explorer((120, 40), "3 slash tab") as pilot:
        assert "name:  op:  module:" in status_line(pilot)
        bar = pilot.app.screen.query_one(FilterBar)
        assert bar.input.value == ""
        await press(pilot, "tab tab")
        assert bar.input.value == "op:"
        await press(pilot, "escape")
        assert state(pilot).filter == ""


async def test_newest_filter_wins():
    async with explorer((80, 24), "3") as pilot:
        shown = the_explorer(pilot)
        for text in ("a", "flash", "nvjet"):
            shown.change(changed(state(pilot), filter=text))
        await settled(pilot)
        assert shown.page.query_one(VirtualTable).rows() == 2
        assert state(pilot).filter == "nvjet"


def bunch(pilot, text: str) -> None:
    """Keys that arrive together, before any of them is answered."""
    for char in text:
        pilot.app.post_message(Key({"\r": "enter", "\x15": "ctrl+u"}.get(char) or long_key(char), char))


async def _until(pilot, holds) -> None:
    for _ in range(100):
        await settled(pilot)
        if holds():
            return
        await asyncio.sleep(0.02)
    pytest.fail("it never came to hold")


async def test_a_whole_filter_typed_at_once_is_a_filter():
    """Over a slow line keys come in bunches: none may reach a page before the line that they are meant for."""
    async with explorer((80, 24), "3") as pilot:
        bunch(pilot, "/cat:gemm\rjj")
        await settled(pilot, 6)
        assert state(pilot).filter == "cat:gemm"
        assert not pilot.app.screen.query_one(FilterBar).has_class("-open")


async def test_keys_typed_ahead_reach_the_page_that_they_were_typed_for():
    async with explorer((80, 24)) as pilot:
        bunch(pilot, "3jjm")
        await settled(pilot, 6)
        assert the_explorer(pilot).page.place() == 2
        assert [mark.view.screen for mark in the_explorer(pilot).marks] == ["ops"]


async def test_what_is_typed_before_a_prompt_is_ready_is_not_lost(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with explorer((80, 24), "3") as pilot:
        bunch(pilot, "e\x15x.csv\r")
        await settled(pilot, 8)
        assert (tmp_path / "x.csv").exists()
