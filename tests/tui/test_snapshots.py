"""Pictures of every screen in colour, at four sizes: a change of looks must be wanted.

All also stand as text, at the same sizes, without colour and in ASCII.
After a wanted change: `pytest tests/tui/test_snapshots.py --snapshot-update`, and look at every picture that changed.
"""

from __future__ import annotations

import pytest

from tests.tui.harness import ASCII, COLOURLESS, SIZES, explorer, go_to, make_app, press, screen_text, settled

SCREENS = {
    "overview": ("overview", ""),
    "roofline": ("roofline", "n"),
    "ops": ("ops", "j"),
    "timeline": ("timeline", "+ j right"),
    "steps": ("steps", "j"),
    "device": ("device", "j"),
    "help": ("ops", "?"),
    "findings": ("findings", "j"),
    "ranks": ("ranks", "k"),
    "memory": ("memory", "k"),
    "compare": ("compare", "v v"),
}
"""By the name of the picture: the screen and the keys pressed there."""

ALONE = ("findings", "ranks", "memory", "compare", "help")
"""Those that are asked for as the first; the others follow one another, as in use."""
LOOKS = {"no colour": COLOURLESS, "ascii": ASCII}


def size_name(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


async def arrive(pilot, name: str) -> None:
    screen, keys = SCREENS[name]
    await go_to(pilot, screen)
    await press(pilot, keys)
    await pilot.pause(0.2)  # the details beside follow the cursor after a rest
    await settled(pilot)


@pytest.mark.parametrize("size", SIZES, ids=size_name)
@pytest.mark.parametrize("name", SCREENS)
def test_screen_looks_as_before(snap_compare, name, size):
    async def shown(pilot) -> None:
        await settled(pilot)
        await arrive(pilot, name)

    assert snap_compare(make_app(), run_before=shown, terminal_size=size)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("size", SIZES, ids=size_name)
@pytest.mark.parametrize("name", ALONE)
async def test_screen_reads_as_before(snapshot, name, size, look):
    async with explorer(size, "", LOOKS[look]) as pilot:
        await arrive(pilot, name)
        assert screen_text(pilot) == snapshot


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("size", SIZES, ids=size_name)
async def test_screens_one_after_the_other_read_as_before(snapshot, size, look):
    async with explorer(size, "", LOOKS[look]) as pilot:
        for name in SCREENS:
            if name not in ALONE:
                await arrive(pilot, name)
                assert screen_text(pilot) == snapshot(name=name)
