"""Work added up before it is costed gives the figures of every item costed on its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from roofterm.analysis.bounded import Bounded
from roofterm.analysis.distinct import alike
from roofterm.analysis.levels import TALLIED
from roofterm.analysis.roofline import level_records, roofline
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from roofterm_parsers.profile import Profile, Source
from roofterm_parsers.xplane.reader import read
from tests.reference import reference
from tests.xspace import Plane, space, tpu_plane

SAMPLES = Path(__file__).parents[2] / "samples"
US = 1_000_000


def opened(plane: Plane) -> Profile:
    return read(space(plane), Source("t.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False)


def rows(study: Study, found: Bounded, top: int = 0) -> Any:
    made = roofline(study.profile, found, study.work, study.device, study.windows, ALL, top)
    categories = level_records(study.profile, found, study.facts, study.device, "category", top)
    return msgspec.to_builtins([made.coverage, made.program, made.steps, made.ops, categories])


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key, one in value.items() for leaf in (key, *flat(one))]
    return [leaf for one in value for leaf in flat(one)] if isinstance(value, list) else [value]


def agree(study: Study) -> None:
    """Both ways give the same rows; floats but for rounding, which differs between n times a figure and n figures added."""
    whole = study.bounded(ALL)
    assert TALLIED in whole.tallies.columns
    for got, want in zip(flat(rows(study, whole)), flat(rows(study, Bounded(whole.make))), strict=True):
        assert got == (pytest.approx(want, rel=1e-12) if isinstance(want, float) else want)


def test_a_sample_of_a_tpu_with_steps() -> None:
    agree(Study(open_profile(str(SAMPLES / "decoder_tpu_synthetic.xplane.pb"), cache=False)))


@pytest.mark.parametrize("name", ["tpu_v6e_inference", "tpu_v6e_pallas_matmul"])
def test_real_profiles_of_a_tpu(name: str) -> None:
    agree(Study(open_profile(str(reference(f"traces/xplane/{name}.xplane.pb")), cache=False)))


def core() -> Plane:
    """Two fusions of 46 MB and 1 kB, which run for 30, 60 and 50 us and for nothing; 46 MB take 46 us at the plane's 1000 GB/s."""
    plane = tpu_plane()
    large = plane.op("%a = f32[8]", display="a", hlo_category="loop fusion", program_id=1, symbol_id=1, bytes_accessed=46_000_000)
    small = plane.op("%b = f32[8]", display="b", hlo_category="loop fusion", program_id=1, symbol_id=2, bytes_accessed=1000)
    spans = [(large, 0, 30), (large, 100, 60), (small, 170, 0), (large, 200, 50)]
    plane.line("XLA Ops", [plane.event(op, at * US, dur * US) for op, at, dur in spans])
    return plane


def test_calls_over_their_roof_are_counted_one_by_one() -> None:
    study = Study(opened(core()))
    large, small = study.bounded(ALL).tallies.sort("text").iter_rows(named=True)
    assert (large["calls"], large["above"], large["time_ps"]) == (3, 1, 140 * US)
    assert large["worst_pct"] == pytest.approx(100 * 46 / 30)
    assert (large["hbm_bytes"], large["largest_bytes"]) == (3 * 46_000_000, 46_000_000)
    assert (small["calls"], small["above"], small["worst_pct"]) == (1, 1, None)  # it took no time at all
    agree(study)


def test_an_instruction_of_two_kernels_is_left_to_its_items() -> None:
    """Two kernels of one instruction may be one execution."""
    plane = Plane("/device:GPU:0")
    plane.line("Stream #1", [plane.event(name, at * US, US, hlo_op="dot.1", hlo_module="m", program_id=1) for at, name in enumerate("kq")])
    study = Study(opened(plane))
    assert study.profile.hlo.height == 2
    assert TALLIED not in study.bounded(ALL).tallies.columns


def test_rows_alike_are_found_whatever_the_codes() -> None:
    rng = np.random.default_rng(5)
    columns = [(rng.integers(0, count, 3000), count) for count in (4, 70_000, 3, 900)]
    columns[1] = (columns[1][0] % 5 * 14_000, 70_000)  # few of the many there could be
    found = alike(*columns)
    assert found is not None
    distinct, first, back = np.unique(np.stack([codes for codes, _ in columns], axis=1), axis=0, return_index=True, return_inverse=True)
    assert sorted(first.tolist()) == found.first.tolist()
    assert found.first[found.of_row].tolist() == first[back.reshape(-1)].tolist()
    assert found.first.size == len(distinct)


def test_too_many_combinations_are_no_table() -> None:
    codes = np.arange(10)
    assert alike((codes, 1 << 20), (codes, 1 << 20)) is not None  # few of them occur
    assert alike((codes, 1 << 40)) is None
