"""Runs the explorer without a terminal over the made-up study, and reads its screen as text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from textual.events import Paste
from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from roofterm.tui.app import RooftermApp
from roofterm.tui.capabilities import Capabilities
from roofterm.tui.explorer import Explorer
from roofterm.tui.keymap import SCREENS
from roofterm.tui.opened import Opened, prepare
from roofterm.tui.options import Options
from tests.tui.fake_compare import baseline
from tests.tui.fake_study import FakeStudy

SIZES = ((60, 16), (80, 24), (120, 40), (200, 60))
TITLE = "llama_step.trace.json.gz"
PLAIN = Capabilities(colour="256")
COLOURLESS = Capabilities(colour="none")
ASCII = Capabilities(colour="none", glyphs="ascii")


def make_app(capabilities: Capabilities = PLAIN, options: Options | None = None, study: FakeStudy | None = None) -> RooftermApp:
    asked = options or Options()
    return RooftermApp([TITLE], asked, capabilities, opened_fake(asked, TITLE, study))


def opened_fake(options: Options, title: str, study: FakeStudy | None = None) -> Opened:
    return prepare(cast(Any, study or FakeStudy()), options, title)


@asynccontextmanager
async def explorer(
    size: tuple[int, int] = (80, 24),
    keys: str = "",
    capabilities: Capabilities = PLAIN,
    options: Options | None = None,
    study: FakeStudy | None = None,
) -> AsyncIterator[Pilot[None]]:
    """The explorer at rest, after these keys (apart by blanks)."""
    app = make_app(capabilities, options, study)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await press(pilot, keys)
        yield pilot
    assert app.fault is None


async def go_to(pilot: Pilot[None], name: str) -> None:
    """The screen of this name; that of a comparison with a made-up baseline."""
    if name == "compare":
        shown = the_explorer(pilot)
        shown.set_baseline(shown.baseline or baseline(FakeStudy()))
        await settled(pilot)
    elif name != "overview":
        await press(pilot, next(key for known, key, _ in SCREENS if known == name))


async def press(pilot: Pilot[None], keys: str) -> None:
    for key in keys.split():
        await pilot.press(key)
        await settled(pilot)


LONGEST_TYPED = 100
"""What is longer is pasted: each key takes its time."""


async def type_text(pilot: Pilot[None], text: str) -> None:
    if len(text) > LONGEST_TYPED:
        pilot.app.post_message(Paste(text))
    else:
        for char in text:
            await pilot.press("space" if char == " " else char)
    await settled(pilot)


async def settled(pilot: Pilot[None], rounds: int = 3) -> None:
    """Until every worker has answered and every message has been taken; an answer may make another round needed."""
    for _ in range(rounds):
        with suppress(WorkerCancelled):  # a newer question took its place
            await pilot.app.workers.wait_for_complete()
        await pilot.pause()


def screen_lines(pilot: Pilot[None]) -> list[str]:
    """The screen as it is, line by line."""
    strips = pilot.app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip) for strip in strips]


def screen_text(pilot: Pilot[None]) -> str:
    return "\n".join(line.rstrip() for line in screen_lines(pilot))


def state(pilot: Pilot[None]):
    return the_explorer(pilot).state


def the_explorer(pilot: Pilot[None]) -> Explorer:
    found = next(screen for screen in pilot.app.screen_stack if isinstance(screen, Explorer))
    assert isinstance(found, Explorer)
    return found


def the_page(pilot: Pilot[None]) -> Any:
    """The page shown, whatever its class."""
    return the_explorer(pilot).page


def the_app(pilot: Pilot[None]) -> RooftermApp:
    return cast(RooftermApp, pilot.app)


def status_line(pilot: Pilot[None]) -> str:
    """The line above the footer."""
    return screen_lines(pilot)[-2]
