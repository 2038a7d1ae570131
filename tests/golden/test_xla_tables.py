"""`ops --by launch` and `--by framework` against XProf's kernel stats and framework op stats (reference data: oracle/xprof)."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl
import pytest

from roofterm.analysis.framework_table import NOT_OPS
from roofterm.analysis.study import Study
from roofterm.analysis.work_tables import NO_INSTRUCTION
from tests.golden.xprof_oracle import FOLDER, TRACES, profile_of, rows_of, tables_of

every_trace = pytest.mark.parametrize("trace", TRACES)
US_PER_CALL = 1e-3
"""XProf cuts each length to a nanosecond."""
MOST_OPS = 500
"""XProf's table holds no more of a side."""


@cache
def study_of(trace: str) -> Study:
    return Study(profile_of(trace))


@every_trace
def test_launches_are_xprofs_kernel_stats(trace: str) -> None:
    """Name, registers, grid, block, framework op, occurrences, and total, average, least and longest time."""
    want: dict[tuple[Any, ...], list[tuple[float, ...]]] = {}
    for row in rows_of(tables_of(f"{FOLDER['2.24.2']}/{trace}", "kernel_stats")[0]):
        key = (row["kernel_name"], row["grid_dim"], row["block_dim"], row["registers_per_thread"], row["op_name"])
        times = [row[f"{part}_duration_us"] for part in ("total", "avg", "min", "max")]
        want.setdefault(key, []).append((row["occurrences"], *times, row["occupancy_pct"]))
    got: dict[tuple[Any, ...], list[tuple[float, ...]]] = {}
    for row in study_of(trace).table("launch").iter_rows(named=True):
        key = (row["name"], row["grid"], row["block"], row["registers"] or 0, row["tf_op"] or "")
        times = [row[f"{part}_us"] for part in ("total", "mean", "min", "max")]
        got.setdefault(key, []).append((row["calls"], *times, row["occupancy_pct"] or 0.0))
    assert got.keys() == want.keys()
    for key, rows in want.items():
        for mine, theirs in zip(sorted(got[key]), sorted(rows), strict=True):
            assert mine == pytest.approx(theirs, rel=1e-6, abs=US_PER_CALL * theirs[0])


@every_trace
def test_framework_ops_are_xprofs(trace: str) -> None:
    """Op, type, device or host, occurrences, total, self and average time.

    roofterm has rows that XProf leaves out: work of no instruction, and what XProf's 500 ops of a side cut off. XProf counts what
    allocators call `dummy` or `(null)` as an op.
    """
    table = study_of(trace).table("framework")
    got = {
        (row["side"], row["name"]): (row["op_type"], row["calls"], row["total_us"], row["self_us"], row["mean_us"])
        for row in table.iter_rows(named=True)
    }
    want = {
        (row["host_or_device"].lower(), row["operation"]): (
            row["type"],
            *(row[column] for column in ("occurrences", "total_time", "total_self_time", "avg_time")),
        )
        for row in rows_of(tables_of(f"{FOLDER['2.24.2']}/{trace}", "framework_op_stats")[1])
        if row["operation"] not in NOT_OPS
    }
    for key, (kind, *numbers) in want.items():
        assert got[key][0] == kind
        assert got[key][1:] == pytest.approx(tuple(numbers), rel=1e-9)
    beyond = {key for key in got.keys() - want.keys() if key[1] != NO_INSTRUCTION}
    if trace != "gpu_v100x8_tf_multiworker":
        assert not beyond
        return
    # Without HLO XProf shows nothing of the devices; of the host's ops those with less self time than its last are left out.
    least = min(numbers[2] for (side, _), (_, *numbers) in want.items() if side == "host")
    assert all(side == "device" or got[side, name][3] <= least for side, name in beyond)
    assert sum(side == "host" for side, _ in want) == MOST_OPS - 1  # IDLE, which this table leaves out, is one of them


@every_trace
def test_shares_of_framework_ops_add_up_on_each_side(trace: str) -> None:
    for (_,), side in study_of(trace).table("framework").group_by(["side"]):
        if side["self_us"].sum() > 0:
            assert side["pct"].sum() == pytest.approx(100)
            assert (side["self_us"].diff().drop_nulls() <= 0).all()
    assert study_of(trace).table("framework").filter(pl.col("side") == "device")["self_us"].sum() == pytest.approx(
        study_of(trace).table("kernel")["self_us"].sum()
    )


@every_trace
def test_instructions_are_xprofs(trace: str) -> None:
    """Name, category, occurrences, total, self and average time, and shares of what ran; without HLO XProf shows nothing."""
    want: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for row in rows_of(tables_of(f"{FOLDER['2.24.2']}/{trace}", "hlo_stats")[0]):
        times = (row["total_time"], row["total_self_time"], row["avg_time"])
        want.setdefault((row["hlo_op_name"], row["category"]), []).append((row["occurrences"], *times, row["total_self_time_percent"]))
    got: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    table = study_of(trace).table("hlo")
    for row in table.filter(pl.col("hlo_category").is_not_null()).iter_rows(named=True):
        got.setdefault((row["name"], row["hlo_category"]), []).append(
            (row["calls"], row["total_us"], row["self_us"], row["mean_us"], row["pct"])
        )
    assert got.keys() == want.keys()
    shown = sum(row[-1] for rows in want.values() for row in rows)  # XProf's shares are of the devices' time, idle time too
    for key, rows in want.items():
        for mine, theirs in zip(sorted(got[key]), sorted(rows), strict=True):
            assert mine[:-1] == pytest.approx(theirs[:-1], rel=1e-6)
            assert mine[-1] == pytest.approx(100 * theirs[-1] / shown, rel=1e-6)
