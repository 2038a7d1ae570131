"""The details of a slice: what the tables hold at once, all arguments of its event once they are read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofterm.analysis.study import Study
from roofterm.tui.app import RooftermApp
from roofterm.tui.opened import prepare
from roofterm.tui.options import Options
from roofterm_parsers import open_profile
from tests.tui.harness import press, screen_text, settled
from tests.unit.test_recorded import trace


@pytest.mark.parametrize("gone", [False, True])
async def test_the_details_of_a_slice_end_in_what_its_file_holds(tmp_path: Path, gone: bool) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(trace())
    profile = open_profile(path, cache=False)
    app = RooftermApp([str(path)], opened=prepare(Study(profile), Options(), path.name))
    async with app.run_test(size=(100, 50)) as pilot:
        await settled(pilot)
        await press(pilot, "4 slash o d d enter")
        if gone:
            path.unlink()
        await press(pilot, "enter")
        shown = screen_text(pilot)
        assert "In the file" in shown
        assert ("kept nowhere" in shown, '[1, {"a": "b"}]' in shown) == (not gone, not gone)
        assert ("cannot be read again" in shown) == gone
        await press(pilot, "escape")
        assert "In the file" not in screen_text(pilot)
    assert app.fault is None
