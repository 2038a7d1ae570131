"""Counters as a table: what was recorded, over all of it or a part."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from roofterm.analysis.scope import ALL, Scope
from roofterm.analysis.study import Study
from roofterm.cli.main import main
from roofterm.results import TABLES
from roofterm_parsers.profile import COUNTERS
from tests.build import Build

US = 1_000_000
SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def study() -> Study:
    """Two series of a device, sampled at 0, 10, 20 and 30 us, and a step from 5 to 25 us."""
    build = Build()
    build.step(1, 5, 20)
    profile = build.profile()
    rows = [(at * US, 0, "GPU 0", name, value) for name, values in (("power", (1, 3, 8, 4)), ("clock", (2, 2, 2, 6)))
            for at, value in zip((0, 10, 20, 30), values, strict=True)]  # fmt: skip
    profile.counters = pl.DataFrame(rows, schema=COUNTERS, orient="row")
    return Study(profile)


def rows(scope: Scope) -> list[tuple[object, ...]]:
    table = study().table("counter", scope)
    assert tuple(table.columns) == TABLES["counter"]
    return table.select("name", "counted_for", "calls", "value_mean", "value_min", "value_max", "value_last", "value_sum").rows()


def test_a_series_has_its_least_largest_mean_and_last_value() -> None:
    assert rows(ALL) == [("clock", "GPU 0", 4, 3, 2, 6, 6, 12), ("power", "GPU 0", 4, 4, 1, 8, 4, 16)]


@pytest.mark.parametrize("scope", [Scope(step="1"), Scope(step="all", window_ps=(5 * US, 25 * US))])
def test_of_a_part_its_samples_count(scope: Scope) -> None:
    start = study().profile.steps["start_ps"][0]
    shifted = Scope(step="all", window_ps=(start, start + 20 * US)) if scope.window_ps else scope
    assert [row[:4] for row in rows(shifted)] == [("clock", "GPU 0", 2, 2), ("power", "GPU 0", 2, 5.5)]


def test_a_filter_leaves_the_series_of_that_name() -> None:
    assert [row[0] for row in rows(Scope(step="all", where="pow"))] == ["power"]


def test_without_counters_the_command_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", str(SAMPLES / "decoder_gpu_synthetic.xplane.pb"), "--by", "counter", "--no-cache"]) == 0
    assert "no counter was recorded" in capsys.readouterr().out
