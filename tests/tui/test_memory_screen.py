"""Memory: the curve with its peak and a failed allocation, by op, and the jumps from it."""

from __future__ import annotations

from tests.tui.fake_memory import GIB
from tests.tui.fake_study import FakeStudy
from tests.tui.harness import ASCII, explorer, press, screen_lines, screen_text, state, status_line, the_page


def curve(pilot):
    return the_page(pilot).curve


async def test_the_peak_and_the_failure_are_marked_above_the_curve():
    """The device's peak lies at 5.5 of 7.6 ms, the failure at 7.6: in cells of 68 to 72 % and at the end."""
    async with explorer((80, 24), "8", ASCII) as pilot:
        lines = screen_lines(pilot)
        assert "peak 60.00 GiB, 80.0% of 80.00 GiB, 1 failed" in lines[2]
        marks = lines[3]
        cells = 80 - 12
        assert abs(marks.index("v") - 10 - cells * 5.5 / 7.6) <= 1
        assert marks.rstrip().endswith("X")
        assert lines[4].startswith("60.00 GiB")


async def test_the_cursor_reads_the_curve():
    """Up from the first row is the curve; its cursor stands on the peak. Ten cells are 1.1 ms: at 4.4 ms 20 GiB were held."""
    async with explorer((80, 24), "8 k") as pilot:
        assert curve(pilot).reading().bytes == 60 * GIB
        assert "60.00 GiB at 5.5 ms" in screen_text(pilot)
        for _ in range(10):
            await pilot.press("left")
        assert curve(pilot).reading().bytes == 20 * GIB
        await press(pilot, "w")
        assert curve(pilot).reading().bytes == 60 * GIB


async def test_enter_on_the_peak_goes_to_the_op_and_the_step():
    async with explorer((80, 24), "8 k enter") as pilot:
        assert state(pilot).screen == "ops"
        assert state(pilot).by == "op"
        assert state(pilot).step == "5"
        assert state(pilot).selection.name == "aten::mm"
        assert any(line.startswith(">aten::mm") for line in screen_lines(pilot))


async def test_enter_on_an_op_goes_to_it_and_backspace_returns():
    async with explorer((80, 24), "8 enter") as pilot:
        assert (state(pilot).screen, state(pilot).by) == ("ops", "op")
        await press(pilot, "backspace")
        assert state(pilot).screen == "memory"


async def test_what_no_op_allocated_leads_nowhere():
    async with explorer((80, 24), "8 j j enter") as pilot:
        assert "no op was running" in status_line(pilot)


async def test_steps_and_allocators_and_calls_to_the_driver():
    async with explorer((80, 24), "8 v") as pilot:
        assert "80.0%" in screen_text(pilot)
        await press(pilot, "j enter")
        assert "host [bold]" in screen_lines(pilot)[2]
        await press(pilot, "j v")
        assert "ProfilerStep#7" in screen_text(pilot)
        await press(pilot, "v")
        assert "cudaMalloc" in screen_text(pilot)
        assert "8.400 ms" in screen_text(pilot)


async def test_what_lives_at_the_peak_adds_up_to_it():
    """Up to the peak of 60 GiB in turn 5 six blocks of 1 GiB each, three of them in aten::mm: 54 GiB were there before."""
    async with explorer((120, 40), "8 V") as pilot:
        text = screen_text(pilot)
        assert "(before the recording)" in text
        assert "54.00 GiB" in text
        assert text.count("3.000 GiB") >= 2
        await press(pilot, "g enter")
        assert "no op was running" in status_line(pilot)


async def test_a_step_of_the_table_limits_every_screen():
    async with explorer((80, 24), "8 v v j enter") as pilot:
        assert state(pilot).step == "1"
        view = curve(pilot)
        assert view.start_ps >= 10**9
        assert view.span_ps <= 10**9


async def test_zoom_goes_around_the_cursor_and_back():
    async with explorer((80, 24), "8 k") as pilot:
        whole = curve(pilot).span_ps
        await press(pilot, "+ +")
        assert curve(pilot).span_ps == whole // 4
        assert curve(pilot).reading().bytes == 60 * GIB
        await press(pilot, "0")
        assert curve(pilot).span_ps == whole


async def test_the_rank_that_is_asked_for_has_its_own_allocator():
    """Both allocators are rank 0's: rank 1 has none, so that its row goes and the curve stays."""
    async with explorer((80, 24), "8 v slash r a n k colon 1 enter") as pilot:
        assert "0 of 2 allocators" in screen_text(pilot)
        assert "rank 0 device 0" in screen_lines(pilot)[2]


async def test_a_filter_leaves_the_ops_of_that_name():
    async with explorer((80, 24), "8") as pilot:
        await press(pilot, "slash a d d enter")
        assert "1 of 4 ops" in screen_text(pilot)


async def test_without_memory_the_key_says_how_to_record_it():
    class Bare(FakeStudy):
        def __init__(self) -> None:
            super().__init__()
            self.profile.memory = self.profile.memory.clear()

    async with explorer((80, 24), "8", study=Bare()) as pilot:
        assert "none was recorded; profile_memory=True records it" in status_line(pilot)
        assert "8 Memory" not in screen_lines(pilot)[1]
