"""What can be chosen to limit a profile, against a count of the file's own events."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from roofterm.analysis.filters import parse
from roofterm.analysis.limit_values import category_values, limiter_of, limiter_values, phase_values, rank_values, stream_values
from roofterm.analysis.row_filter import row_predicate
from roofterm.analysis.scope import STEADY
from roofterm.analysis.study import Study
from roofterm.report.roofline_table import roofline_frame
from roofterm_parsers import open_profile

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
ONE = SAMPLES / "transformer_h100_synthetic.pt.trace.json.gz"
TWO = SAMPLES / "transformer_h100_2ranks_synthetic"
WORK = ("kernel", "gpu_memcpy", "gpu_memset")


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(open_profile(ONE, cache=False))


def events(path: Path) -> list[dict]:
    return [e for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if e.get("cat") in WORK]


def test_streams_are_those_of_the_work_with_its_count_and_length(study):
    pieces: dict[str, int] = defaultdict(int)
    lengths: dict[str, float] = defaultdict(float)
    for event in events(ONE):
        pieces[str(event["args"]["stream"])] += 1
        lengths[str(event["args"]["stream"])] += event["dur"]
    found = stream_values(study)
    assert {value.value: value.pieces for value in found} == dict(pieces)
    assert {value.value: value.time_us for value in found} == pytest.approx(dict(lengths), abs=1e-3)


def test_ranks_are_a_choice_only_among_several(study):
    assert rank_values(study) == []
    found = rank_values(Study(open_profile(TWO, cache=False)))
    assert {value.value: value.pieces for value in found} == {
        str(rank): len(events(path)) for rank, path in enumerate(sorted(TWO.glob("*.json.gz")))
    }


def test_categories_and_phases_share_out_all_work(study):
    assert sum(value.pieces for value in category_values(study)) == len(events(ONE))
    phases = phase_values(study)
    assert {"forward", "backward"} <= {value.value for value in phases}
    assert sum(value.pieces for value in phases) <= len(events(ONE))


def test_each_limiter_counts_the_rows_that_its_filter_leaves(study):
    frame = roofline_frame(study.roofline(STEADY).ops)
    for value in limiter_values(study):
        rows = frame.filter(row_predicate(parse(f"bound:{value.value}"), frame.schema))
        assert (value.value, value.pieces) == (value.value, rows.height)
        assert value.time_us == pytest.approx(rows["time_us"].sum())


@pytest.mark.parametrize(
    ("limiter", "value"),
    [
        ("hbm", "memory"),
        ("l2", "memory"),
        ("nvlink", "network"),
        ("pcie", "network"),
        ("compute", "compute"),
        ("latency", "latency"),
        (None, "unknown"),
    ],
)
def test_every_level_of_memory_and_every_link_is_one_value(limiter, value):
    assert limiter_of(limiter) == value
