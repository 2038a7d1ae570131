"""XProf's op profile as a tree over the Ops screen."""

from __future__ import annotations

from pathlib import Path

from roofterm.analysis.study import Study
from roofterm.tui.app import RooftermApp
from roofterm.tui.opened import prepare
from roofterm.tui.options import Options
from roofterm.tui.screens.op_profile import OpProfileScreen
from roofterm_parsers import open_profile
from tests.tui.harness import explorer, press, screen_lines, screen_text, settled, state, status_line

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def app_of(name: str) -> RooftermApp:
    study = Study(open_profile(str(SAMPLES / name), cache=False))
    return RooftermApp([name], opened=prepare(study, Options(), name))


async def test_nodes_open_and_close_and_an_instruction_is_chosen():
    app = app_of("decoder_tpu_synthetic.xplane.pb")
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "3 t")
        await settled(pilot, 5)
        assert isinstance(app.screen, OpProfileScreen)
        closed = [line for line in screen_lines(pilot) if "▸" in line]
        assert closed
        await press(pilot, "j l")
        opened = next(line for line in screen_lines(pilot) if "▾" in line and line.startswith(">"))
        assert opened
        await press(pilot, "j enter")
        assert state(pilot).by == "hlo"
        chosen = state(pilot).selection.name
        assert any(line.startswith(f">{chosen[:12]}") for line in screen_lines(pilot))


async def test_other_groupings_and_the_way_back():
    app = app_of("decoder_tpu_synthetic.xplane.pb")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "3 t")
        await settled(pilot, 5)
        assert "Op profile by category" in screen_text(pilot)
        await press(pilot, "v")
        await settled(pilot, 5)
        assert "Op profile by program" in screen_text(pilot)
        await press(pilot, "j h h V escape")
        assert state(pilot).screen == "ops"
        assert not isinstance(app.screen, OpProfileScreen)


async def test_without_a_compiled_program_it_is_said():
    async with explorer((80, 24), "3 t") as pilot:
        assert "no compiled program" in status_line(pilot)


async def test_on_a_cpu_there_is_nothing_to_show():
    app = app_of("mlp_jax_cpu.xplane.pb")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "3 t")
        await settled(pilot, 5)
        assert "no compiled program" in screen_text(pilot)
