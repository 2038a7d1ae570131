"""Files whose names try to break a terminal: every screen stays straight, and no cell holds what a terminal would obey."""

from __future__ import annotations

import pytest

from roofterm.analysis.study import Study
from roofterm.text.safe import cell_width
from roofterm.tui.app import RooftermApp
from roofterm.tui.baseline import matched
from roofterm.tui.opened import prepare
from roofterm.tui.options import Options
from roofterm_parsers import open_profile
from tests.reference import reference
from tests.tui.harness import press, screen_lines, settled, the_explorer
from tests.tui.test_screens import CONTROL

FILES = ("text_markup_names.json", "text_ansi_names.json", "text_wide_unicode.json", "text_10kb_name.json")


def straight(pilot, width: int) -> None:
    lines = screen_lines(pilot)
    assert {cell_width(line) for line in lines} == {width}
    assert not CONTROL.search("".join(lines))


@pytest.mark.parametrize("name", FILES)
async def test_names_stay_text(name):
    profile = open_profile(reference(f"nasty/{name}"), cache=False)
    app = RooftermApp([name], opened=prepare(Study(profile), Options(), name))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        for keys in ("", "3", "enter", "escape v", "escape 4", "enter", "escape 6", "d", "escape 7 8"):
            await press(pilot, keys)
            straight(pilot, 120)


@pytest.mark.parametrize("name", FILES)
async def test_names_stay_text_against_a_baseline(name):
    """Against another nasty file, so that all rows of both are new or gone."""
    other = FILES[FILES.index(name) - 1]
    study, base = (Study(open_profile(reference(f"nasty/{one}"), cache=False)) for one in (name, other))
    app = RooftermApp([name], opened=prepare(study, Options(), f"\x1b[31m{name}\u202e"))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        the_explorer(pilot).set_baseline(matched(study, base, f"[bold]{other}\x1b[0m 中文"))
        await settled(pilot)
        for keys in ("", "v", "v", "v", "v", "enter", "escape 3", "v", "1", "6", "5"):
            await press(pilot, keys)
            straight(pilot, 80)
