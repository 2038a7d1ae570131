"""Pictures of the screens that are most looked at, at three sizes: a change of looks must be wanted.

The screens of findings, ranks, memory and comparisons also stand as text: at four sizes, without colour and in ASCII.
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
    "help": ("ops", "?"),
    "findings": ("findings", "j"),
    "ranks": ("ranks", "k"),
    "memory": ("memory", "k"),
    "compare": ("compare", "v v"),
}
"""By the name of the picture: the screen and the keys pressed there."""

PICTURED = [(80, 24), (120, 40), (200, 60)]
AS_TEXT = ("findings", "ranks", "memory", "compare")
LOOKS = {"no colour": COLOURLESS, "ascii": ASCII}


def size_name(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


async def arrive(pilot, name: str) -> None:
    screen, keys = SCREENS[name]
    await go_to(pilot, screen)
    await press(pilot, keys)
    await pilot.pause(0.2)  # the details beside follow the cursor after a rest
    await settled(pilot)


@pytest.mark.parametrize("size", PICTURED, ids=size_name)
@pytest.mark.parametrize("name", SCREENS)
def test_screen_looks_as_before(snap_compare, name, size):
    async def shown(pilot) -> None:
        await settled(pilot)
        await arrive(pilot, name)

    assert snap_compare(make_app(), run_before=shown, terminal_size=size)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("size", SIZES, ids=size_name)
@pytest.mark.parametrize("name", AS_TEXT)
async def test_screen_reads_as_before(snapshot, name, size, look):
    async with explorer(size, "", LOOKS[look]) as pilot:
        await arrive(pilot, name)
        assert screen_text(pilot) == snapshot
