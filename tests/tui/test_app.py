"""The program around the screens: first frame before reading, progress, stopping, refusing, faults, copying, themes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from select import select
from threading import Event
from typing import Any

import pytest
from textual.filter import Monochrome, NoColor

from roofterm.tui import app as program
from roofterm.tui.app import INTERRUPTED, REFUSED, RooftermApp
from roofterm.tui.capabilities import Capabilities, probe
from roofterm.tui.desk import Desk
from roofterm.tui.explorer import Explorer
from roofterm.tui.keyboard import WakingEvent
from roofterm.tui.opened import title_of
from roofterm.tui.options import Options
from roofterm.tui.screens.loading import LoadingScreen, progress_text
from roofterm.tui.screens.ops import OpsPage
from roofterm_parsers.errors import Interrupted, ProfileError
from roofterm_parsers.opening import Progress
from tests.tui.harness import explorer, opened_fake, press, screen_lines, screen_text, settled, the_app

MIB = 1 << 20


def progress(done: int, total: int, phase: Any = "reading", files: int = 1) -> Progress:
    return Progress(path="x", bytes_done=done, bytes_total=total, phase=phase, files_done=0, files_total=files)


class Opening:
    """Stands in for opening a profile: reports, then waits until it is let go or stopped."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.go = Event()
        self.begun = Event()
        self.fault = fault

    def __call__(self, paths, options, report, cancelled):
        report(progress(25 * MIB, 100 * MIB))
        self.begun.set()
        while not self.go.wait(0.01):
            if cancelled():
                raise Interrupted("stopped")
        if self.fault:
            raise self.fault
        return opened_fake(options, title_of(paths))


@pytest.fixture
def opening(monkeypatch) -> Opening:
    stand_in = Opening()
    monkeypatch.setattr(program, "open_study", stand_in)
    return stand_in


async def waited_for(event: Event) -> None:
    await asyncio.to_thread(event.wait, 5)


async def test_first_frame_and_progress_stand_while_reading(opening):
    app = RooftermApp(["/data/big.trace.json.gz"])
    async with app.run_test(size=(80, 24)) as pilot:
        await waited_for(opening.begun)
        assert isinstance(app.screen, LoadingScreen)
        app.screen._poll()
        await pilot.pause()
        text = screen_text(pilot)
        assert "opening big.trace.json.gz" in text
        assert "25%" in text
        assert "25.00 MiB of 100.0 MiB" in text
        assert "esc stops" in text
        opening.go.set()
        for _ in range(200):
            await settled(pilot)
            if isinstance(app.screen, Explorer):
                break
        await settled(pilot)
        assert "[1 Overview]" in screen_text(pilot)


@pytest.mark.parametrize("key", ["escape", "q", "ctrl+c"])
async def test_reading_is_stopped_cleanly(opening, key):
    app = RooftermApp(["x"])
    async with app.run_test(size=(80, 24)) as pilot:
        await waited_for(opening.begun)
        await pilot.press(key)
        for _ in range(200):
            await pilot.pause(0.01)
            if not app.is_running:
                break
    assert app.return_code == INTERRUPTED
    assert app.problem is None


async def test_reading_that_does_not_hear_is_left_at_once(monkeypatch):
    """In the midst of one long operation a thread asks nobody whether to go on."""
    begun, go_on = Event(), Event()

    def deaf(paths, options, report, cancelled):
        begun.set()
        go_on.wait(5)
        raise Interrupted("at last")

    monkeypatch.setattr(program, "open_study", deaf)
    app = RooftermApp(["x"])
    async with app.run_test(size=(80, 24)) as pilot:
        await waited_for(begun)
        await pilot.press("escape")
        for _ in range(200):
            await pilot.pause(0.01)
            if not app.is_running:
                break
        assert not app.is_running
    assert app.return_code == INTERRUPTED
    go_on.set()


async def test_another_profile_that_is_not_read_to_the_end_leaves_the_one_shown(opening):
    app = RooftermApp(["x"], opened=opened_fake(Options(), "x"))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        app.open_other("y")
        await waited_for(opening.begun)
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, Explorer)
        assert "stopped" in screen_text(pilot)
        assert app.paths == ["x"]


async def test_the_profile_shown_answers_while_another_is_left_that_does_not_hear(monkeypatch):
    begun, go_on = Event(), Event()

    def deaf(paths, options, report, cancelled):
        begun.set()
        go_on.wait(30)
        raise Interrupted("at last")

    monkeypatch.setattr(program, "open_study", deaf)
    app = RooftermApp(["x"], opened=opened_fake(Options(), "x"))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        app.open_other("y")
        await waited_for(begun)
        await pilot.press("escape")
        assert await asyncio.wait_for(app.desk.ask(lambda: "answered"), 20) == "answered"
        assert not go_on.is_set()
        go_on.set()


async def test_a_profile_that_is_left_before_its_kept_figures_are_there_shows_none(monkeypatch, opening):
    begun, go_on = Event(), Event()

    def late(key):
        begun.set()
        go_on.wait(30)
        return object()  # nothing looks at it

    monkeypatch.setattr("roofterm.tui.kept_figures.read_figures", late)
    app = RooftermApp(["x"], opened=opened_fake(Options(), "x"))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        app.open_other("y")
        await waited_for(begun)
        await pilot.press("escape")
        go_on.set()
        await settled(pilot)
        assert app.is_running
        assert isinstance(app.screen, Explorer)
        assert not opening.begun.is_set()


def test_the_end_of_the_program_wakes_whoever_waits_for_a_key():
    ends = WakingEvent()
    assert select([ends], [], [], 0)[0] == []
    ends.set()
    assert select([ends], [], [], 0)[0] == [ends]
    ends.clear()
    assert select([ends], [], [], 0)[0] == []


async def test_a_bad_file_is_refused_with_one_line(opening):
    opening.fault = ProfileError("x.json: is not a profile\x1b[31m; give a trace")
    opening.go.set()
    app = RooftermApp(["x.json"])
    async with app.run_test(size=(80, 24)) as pilot:
        for _ in range(200):
            await pilot.pause(0.01)
            if not app.is_running:
                break
    assert app.return_code == REFUSED
    assert app.problem == r"x.json: is not a profile\x1b[31m; give a trace"


async def test_a_fault_ends_the_program_with_one_line_and_a_log(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def broken(self) -> None:
        raise ZeroDivisionError("by the tests")

    monkeypatch.setattr(OpsPage, "action_reverse", broken)
    app = RooftermApp(["x"], opened=opened_fake(Options(), "x"))

    async def reverse() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await settled(pilot)
            await press(pilot, "3")
            await pilot.press("r")
            await pilot.pause()

    with pytest.raises(ZeroDivisionError):
        await reverse()
    assert app.return_code == 1
    log = tmp_path / "roofterm" / "fault.log"
    assert app.problem == f"internal fault: ZeroDivisionError: by the tests ({log} tells where)"
    assert "test_app.py" in log.read_text()
    assert app._exit_renderables == []  # nothing for Textual to print


@pytest.mark.parametrize(
    ("done", "total", "elapsed_s", "share", "text"),
    [
        # 50 MiB in 2 s is 25 MiB/s; the other 50 MiB take 2 s
        (50 * MIB, 100 * MIB, 2.0, 0.5, "50.00 MiB of 100.0 MiB  25.00 MiB/s  2.000 s left  reading"),
        (0, 100 * MIB, 0.0, 0.0, "0 B of 100.0 MiB  reading"),
        (5 * MIB, 0, 1.0, None, "5.000 MiB  5.000 MiB/s  reading"),
        (120 * MIB, 100 * MIB, 1.0, 1.0, "120.0 MiB of 100.0 MiB  120.0 MiB/s  reading"),
    ],
)
def test_progress_in_words(done, total, elapsed_s, share, text):
    assert progress_text(progress(done, total), elapsed_s) == (share, text)


def test_progress_counts_files():
    assert progress_text(progress(0, 10, "linking", 8), 0.0)[1].endswith("linking  file 1 of 8")


@pytest.mark.parametrize(
    ("paths", "title"),
    [(["/a/b/trace.json.gz"], "trace.json.gz"), (["runs/"], "runs"), (["-"], "standard input"), (["a", "b", "c"], "a and 2 more")],
)
def test_titles(paths, title):
    assert title_of(paths) == title


async def test_copying_inside_tmux_also_writes_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    async with explorer((80, 24), "3 y", capabilities=Capabilities(tmux=True)) as pilot:
        assert pilot.app.clipboard == "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT"
        assert (tmp_path / "roofterm" / "copied.txt").read_text() == "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT\n"


async def test_copying_elsewhere_writes_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    async with explorer((80, 24), "3 y") as pilot:
        assert "copied" in screen_text(pilot)
        assert list(tmp_path.iterdir()) == []


async def test_themes_go_round_and_every_screen_follows():
    async with explorer((80, 24), "2 4 1") as pilot:
        seen = []
        for _ in range(5):
            await press(pilot, "T 2 4 3")
            seen.append(pilot.app.theme)
        assert seen == ["light", "contrast", "colorblind", "ansi", "dark"]


async def test_nothing_moves_by_itself_and_the_mouse_is_the_terminals():
    async with explorer() as pilot:
        assert pilot.app.animation_level == "none"
        assert the_app(pilot).capabilities.mouse is False


async def test_without_colours_only_attributes_are_sent():
    from tests.tui.harness import COLOURLESS

    async with explorer((80, 24), "3", capabilities=COLOURLESS) as pilot:
        kept = [f for f in pilot.app._filters if f.enabled]
        strips = [list(f.apply(list(strip), pilot.app.screen.styles.background)) for f in kept[-1:] for strip in _strips(pilot)]
        styles = {segment.style for strip in strips for segment in strip if segment.style}
        assert {str(colour) for style in styles for colour in (style.color, style.bgcolor) if colour and not colour.is_default} == set()
        assert any(style.reverse for style in styles)


@pytest.mark.parametrize(("value", "colour"), [("", True), ("1", False), ("0", False)])
def test_no_color_counts_where_it_is_not_empty(monkeypatch, value, colour):
    """no-color.org: "when present and not an empty string (regardless of its value)"."""
    monkeypatch.setenv("NO_COLOR", value)
    monkeypatch.setenv("TERM", "xterm-256color")
    found = probe()
    app = RooftermApp(["x"], capabilities=found)
    assert (found.colour != "none", app.look.colour, not app.no_color) == (colour, colour, colour)
    left_out = [type(kept) for kept in app._filters if isinstance(kept, (Monochrome, NoColor))]
    assert left_out == ([] if colour else [NoColor])


def _strips(pilot):
    return pilot.app.screen._compositor.render_strips()


async def test_desk_answers_in_order_and_skips_what_is_no_longer_wanted():
    desk, gate, asked = Desk(), Event(), []
    first = asyncio.create_task(desk.ask(lambda: gate.wait(5)))
    await asyncio.sleep(0)
    stale = asyncio.create_task(desk.ask(lambda: asked.append("stale")))
    await asyncio.sleep(0)
    stale.cancel()
    newest = asyncio.create_task(desk.ask(lambda: asked.append("newest")))
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(first, newest)
    desk.close()
    assert asked == ["newest"]


async def test_desk_hands_a_fault_to_the_asker_and_goes_on():
    desk = Desk()
    with pytest.raises(ZeroDivisionError):
        await desk.ask(lambda: 1 // 0)
    with pytest.raises(RuntimeError, match="found nothing"):
        await asyncio.wait_for(desk.ask(lambda: next(iter(()))), 5)
    assert await desk.ask(lambda: 7) == 7
    desk.close()


def test_the_first_frame_needs_no_frames_library():
    code = (
        "import sys; sys.path[:0] = ['.', 'parsers']; import roofterm.tui.app;"
        "print(sorted({'polars', 'numpy', 'plotext', 'torch', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_where_the_mouse_is_on_tabs_rows_and_the_wheel_answer():
    async with explorer((80, 24)) as pilot:
        await pilot.click("#tabs", offset=(screen_lines(pilot)[1].index("3 Ops") + 1, 0))
        await settled(pilot)
        assert "[3 Ops]" in screen_text(pilot)
        await pilot.click("#ops-table", offset=(10, 3))  # the header is line 0
        await settled(pilot)
        assert screen_lines(pilot)[6].startswith(">nccl")
