"""Compare: a baseline asked for, its changes level by level, and its columns in the other tables."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from roofterm.analysis.compare import compare
from roofterm.analysis.study import Study
from roofterm.tui.app import RooftermApp
from roofterm.tui.opened import prepare
from roofterm.tui.options import Options
from roofterm_parsers import open_profile
from tests.tui.harness import (
    explorer,
    go_to,
    press,
    screen_lines,
    screen_text,
    settled,
    state,
    status_line,
    the_explorer,
    the_page,
    type_text,
)

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
RANK0 = SAMPLES / "transformer_h100_2ranks_synthetic" / "rank0.pt.trace.json.gz"
RANK1 = SAMPLES / "transformer_h100_2ranks_synthetic" / "rank1.pt.trace.json.gz"


async def test_without_a_baseline_there_is_no_tab_and_the_key_asks_for_one():
    async with explorer((80, 24)) as pilot:
        assert "Comp" not in screen_lines(pilot)[1]
        await press(pilot, "B")
        assert "Compare with a baseline" in screen_text(pilot)
        await press(pilot, "escape")
        assert state(pilot).screen == "overview"


async def test_a_baseline_that_is_no_profile_is_refused_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "no.json").write_text("[1, 2")
    async with explorer((80, 24), "B") as pilot:
        await type_text(pilot, "no.json")
        await press(pilot, "enter")
        await settled(pilot, 6)
        assert "no.json" in status_line(pilot)
        assert the_explorer(pilot).baseline is None


async def test_levels_and_what_each_tells():
    async with explorer((120, 40)) as pilot:
        await go_to(pilot, "compare")
        text = screen_text(pilot)
        assert "step: 1.000 ms -> 1.200 ms" in text
        assert "~ spread" in text
        assert "mfu_pct" not in text  # unknown on both sides
        await press(pilot, "v")
        assert "gemm" in screen_text(pilot)
        await press(pilot, "v")
        text = screen_text(pilot)
        assert "1 unchanged left out" in text
        assert "gone" in text
        assert "new" in text
        assert "+192.0 us" in text


async def test_a_filter_holds_here_too():
    async with explorer((80, 24)) as pilot:
        await go_to(pilot, "compare")
        await press(pilot, "v v slash n c c l enter")
        assert "1 of 3 changes" in screen_text(pilot)


async def test_tables_get_columns_of_the_change_until_it_is_closed():
    """Of the made-up comparison the GEMM takes 384 us a step in the baseline and 576 now."""
    async with explorer((120, 40)) as pilot:
        await go_to(pilot, "compare")
        await press(pilot, "3")
        row = next(line for line in screen_lines(pilot) if "nvjet_tst_128x256" in line[:40])
        assert "+192.0 us" in row
        assert "+50.0%" in row
        await press(pilot, "5")  # steps against the mean of 1,000 us: step 5 lasts 1,240
        assert "+240.0 us" in next(line for line in screen_lines(pilot) if "ProfilerStep#5" in line)
        await press(pilot, "1")
        assert "compare  step: 1.000 ms" in screen_text(pilot)
        await press(pilot, "2")
        assert the_page(pilot).plot._base is not None
        await go_to(pilot, "compare")
        await press(pilot, "X")
        assert state(pilot).screen == "overview"
        await press(pilot, "3")
        assert "+192.0 us" not in screen_text(pilot)
        await press(pilot, "2")
        assert the_page(pilot).plot._base is None


async def test_a_kernel_chosen_here_is_chosen_in_ops():
    async with explorer((80, 24)) as pilot:
        await go_to(pilot, "compare")
        await press(pilot, "v v 3")
        assert state(pilot).by == "kernel"
        assert any(line.startswith(">nvjet_tst_128x256") for line in screen_lines(pilot))


@pytest.fixture(scope="module")
def studies() -> tuple[Study, Study]:
    return Study(open_profile(str(RANK0), cache=False)), Study(open_profile(str(RANK1), cache=False))


async def test_what_is_shown_is_what_the_command_tells(studies):
    """The changes of kernels, in Compare and in Ops, are those of `compare.CHANGES`."""
    base, new = studies
    told = compare(base, new).changes.filter((pl.col("level") == "kernel") & ~pl.col("status").cast(pl.String).is_in(["same", "unknown"]))
    assert told.height > 5
    app = RooftermApp([str(RANK1)], opened=prepare(new, Options(), RANK1.name))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "B")
        await type_text(pilot, str(RANK0))
        await press(pilot, "enter")
        await settled(pilot, 8)
        shown = the_explorer(pilot)
        assert shown.baseline is not None
        await press(pilot, "v")
        while state(pilot).views["compare"] != "kernel":
            await press(pilot, "v")
        frame = the_page(pilot).table.frame
        assert frame is not None
        assert frame["change"].to_list() == told["change"].to_list()
        await press(pilot, "3")
        ops = the_page(pilot).table.frame
        assert ops is not None
        first = told.row(0, named=True)
        assert ops.filter(pl.col("name") == first["new_name"])["change"][0] == first["change"]
