"""Files whose names try to break a terminal: every screen stays straight, and no cell holds what a terminal would obey."""

from __future__ import annotations

import pytest

from roofterm.analysis.study import Study
from roofterm.text.safe import cell_width
from roofterm.tui.app import RooftermApp
from roofterm.tui.opened import prepare
from roofterm.tui.options import Options
from roofterm_parsers import open_profile
from tests.reference import reference
from tests.tui.harness import press, screen_lines, settled
from tests.tui.test_screens import CONTROL

FILES = ("text_markup_names.json", "text_ansi_names.json", "text_wide_unicode.json", "text_10kb_name.json")


@pytest.mark.parametrize("name", FILES)
async def test_names_stay_text(name):
    profile = open_profile(reference(f"nasty/{name}"), cache=False)
    app = RooftermApp([name], opened=prepare(Study(profile), Options(), name))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        for keys in ("", "3", "enter", "escape 4", "enter"):
            await press(pilot, keys)
            lines = screen_lines(pilot)
            assert {cell_width(line) for line in lines} == {120}
            assert not CONTROL.search("".join(lines))
