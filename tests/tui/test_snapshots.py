"""Pictures of the screens that are most looked at, at three sizes: a change of looks must be wanted.

After a wanted change: `pytest tests/tui/test_snapshots.py --snapshot-update`, and look at every picture that changed.
"""

from __future__ import annotations

import pytest

from tests.tui.harness import make_app, press, settled

SCREENS = {"overview": "", "roofline": "2 n", "ops": "3 j", "timeline": "4 + j right", "help": "3 ?"}
SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("name", SCREENS)
def test_screen_looks_as_before(snap_compare, name, size):
    async def shown(pilot) -> None:
        await settled(pilot)
        await press(pilot, SCREENS[name])
        await pilot.pause(0.2)  # the details beside follow the cursor after a rest
        await settled(pilot)

    assert snap_compare(make_app(), run_before=shown, terminal_size=size)
