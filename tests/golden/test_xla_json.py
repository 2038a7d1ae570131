"""The JSON that JAX and XProf make of an XPlane file gives the table of ops and kernels that the file itself gives, and their times."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from roofterm.analysis.study import Study
from roofterm_parsers.opening import open_profile
from tests.golden.xprof_oracle import TRACES, rows_of, tables_of
from tests.reference import reference

TIMES = ("total_us", "self_us")


def study(trace: str, ending: str) -> Study:
    return Study(open_profile(reference(f"traces/xplane/{trace}.{ending}"), cache=False))


def rows(table: pl.DataFrame, by: list[str]) -> list[dict[str, Any]]:
    summed = table.group_by(by).agg(pl.col("calls").sum(), pl.col(*TIMES).sum())
    return summed.sort(by, nulls_last=True).to_dicts()


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("by", ["hlo", "kernel"])
def test_ops_and_times_are_those_of_the_xplane_file(trace: str, by: str) -> None:
    """Programs of one name on a GPU are one in the JSON, which lacks their ids: there instructions are held by name."""
    keys = ["name", "program"] if by == "hlo" else ["name"]
    want, got = (rows(study(trace, ending).table(by), keys) for ending in ("xplane.pb", "trace.json.gz"))
    assert [[row[key] for key in (*keys, "calls")] for row in got] == [[row[key] for key in (*keys, "calls")] for row in want]
    assert [[row[time] for time in TIMES] for row in got] == [pytest.approx([row[time] for time in TIMES], rel=1e-9) for row in want]


@pytest.mark.parametrize("ending", ["xplane.pb", "trace.json.gz"])
@pytest.mark.parametrize("trace", ["tpu_v6e_inference", "tpu_v6e_pallas_matmul"])
def test_a_tpus_instructions_take_what_xprof_says(trace: str, ending: str) -> None:
    """By the device's own clock, which differs from the times in the timeline by a few percent for single ops."""
    want = {row["hlo_op_name"]: row for row in rows_of(tables_of(f"oracle/xprof/{trace}", "hlo_stats")[0])}
    got = {row["name"]: row for row in study(trace, ending).table("hlo").iter_rows(named=True)}
    assert got.keys() == want.keys()
    for name, row in want.items():
        assert got[name]["calls"] == row["occurrences"]
        assert (got[name]["total_us"], got[name]["self_us"]) == pytest.approx((row["total_time"], row["total_self_time"]), rel=1e-9)


def test_it_says_what_the_json_lacks_and_which_file_beside_it_has_that() -> None:
    told = {warning.code: warning.message for warning in study("tpu_v6e_inference", "trace.json.gz").profile.warnings}
    assert "tpu_v6e_inference.xplane.pb beside it holds the same profile, with costs and peaks that the JSON lacks" in told["sibling"]
