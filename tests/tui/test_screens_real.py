"""The screens over real traces: every one is reached and left, stays straight, and shows the figures that the commands give."""

from __future__ import annotations

import pytest

from roofterm.analysis.clocks import aligned_study
from roofterm.analysis.study import Study
from roofterm.report.rank_table import rank_table
from roofterm.text.safe import cell_width
from roofterm.tui.app import RooftermApp
from roofterm.tui.opened import prepare
from roofterm.tui.options import Options
from roofterm_parsers import open_profile
from tests.reference import reference
from tests.tui.harness import press, screen_lines, screen_text, settled, the_page
from tests.tui.test_screens import CONTROL

TRACES = (
    "traces/torch/param_v100_dlrm_8ranks",  # eight ranks
    "traces/torch/kineto_v100_resnet50_2021_workers0.pt.trace.json.gz",  # memory without totals
    "traces/torch/hta_cpu_only_gloo_rank34.pt.trace.json.gz",  # no device
    "traces/xplane/tpu_v6e_inference.xplane.pb",  # HLO, no steps
)
KEYS = "6 j enter backspace d escape 7 v x G j right enter escape 8 v v n k left enter backspace 3 v v v v v v v t l j escape 2 1"


def study_of(name: str) -> Study:
    return aligned_study(Study(open_profile(reference(name), cache=False)))


@pytest.mark.parametrize("name", TRACES)
async def test_every_screen_and_view(name):
    app = RooftermApp([name], opened=prepare(study_of(name), Options(), name))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        for key in KEYS.split():
            await pilot.press(key)
            await settled(pilot, 1)
            lines = screen_lines(pilot)
            assert {cell_width(line) for line in lines} == {80}
            assert not CONTROL.search("".join(lines))
    assert app.fault is None


async def test_ranks_are_those_of_the_command():
    study = study_of(TRACES[0])
    app = RooftermApp([TRACES[0]], opened=prepare(study, Options(), TRACES[0]))
    async with app.run_test(size=(200, 60)) as pilot:
        await settled(pilot)
        await press(pilot, "7")
        told = rank_table(study.ranks())
        assert the_page(pilot).table.frame.select(told.columns).equals(told)
        late = [row.rank for row in study.ranks() if row.late]
        assert f"rank {late[0]} is late" in screen_text(pilot)
