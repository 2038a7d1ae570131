"""The tables of XProf from the same files, against what XProf itself gave (reference data: oracle/xprof)."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from roofterm.analysis.xprof.instruction_costs import COSTS
from roofterm.analysis.xprof.op_metrics import TIMES, OpMetrics, StepMetrics
from roofterm.analysis.xprof.peaks import Peaks
from roofterm.analysis.xprof.roofline import roofline_rows, xprof_roofline
from tests.golden.xprof_oracle import FOLDER, TRACES, differing, profile_of, rows_of, tables_of

GOLDEN = "oracle/xprof_upstream_golden/tpu_training"
GIBI = 1.073741824


@pytest.mark.parametrize("version", FOLDER)
@pytest.mark.parametrize("trace", TRACES)
def test_the_roofline_is_xprofs_cell_by_cell(trace: str, version: str) -> None:
    table = tables_of(f"{FOLDER[version]}/{trace}", "roofline_model")[0]
    got = xprof_roofline(profile_of(trace), version)
    assert {name: float(value) if _is_number(value) else value for name, value in table["p"].items()} == {
        name: pytest.approx(float(value), rel=1e-5) if _is_number(value) else value for name, value in got["properties"].items()
    }
    ids = [column["id"] for column in table["cols"]]
    assert all(list(row) == ids for row in got["rows"])
    # Ops of equal self time and name have no order of their own: rows are held against those of the same op.
    want, rows = sorted(rows_of(table), key=_key), sorted(got["rows"], key=_key)
    assert differing(want, rows, set(ids) - ORDERLESS) == []


ORDERLESS = {"rank", "cumulative_total_self_time_percent"}


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[column]) for column in ("include_infeed_outfeed", "step", "operation", "hlo_module_id"))


def _is_number(value: str) -> bool:
    return value.replace(".", "", 1).replace("e+", "", 1).isdecimal()


def test_the_golden_tables_program_and_ranks_follow_from_its_ops() -> None:
    """Program = sums of the innermost ops over the whole time; shares, ranks, bottlenecks from each op alone."""
    table = tables_of(GOLDEN, "roofline_model")[0]
    golden = [row for row in rows_of(table) if row["include_infeed_outfeed"]]
    total = golden[0]
    ops = [row for row in golden if row["step"] == "Total" and row["operation"] != "Program"]
    metrics = OpMetrics(ops_frame(ops), picoseconds(total["total_time"]), 0, 0.0)
    got = roofline_rows(metrics, [], golden_device())[: len(ops) + 1]
    judged = set(total) - {"source_info"}
    assert differing(ops, got[1:], judged) == []
    # Which ops had a breakdown by memory the table does not say, and the program's HBM bytes are those of these.
    assert differing([total], got[:1], judged - {"hbm_bw", "hbm_operational_intensity", "max_mem_bw_utilization"}) == []


def test_the_golden_average_is_all_steps_together() -> None:
    golden = [row for row in rows_of(tables_of(GOLDEN, "roofline_model")[0]) if row["include_infeed_outfeed"]]
    numbered = [row for row in golden if row["step"].isdecimal()]
    steps = [StepMetrics(int(row["step"]), OpMetrics(ops_frame([row]), picoseconds(row["total_time"]), 0, 0.0)) for row in numbered]
    nothing = OpMetrics(ops_frame([]), 0, 0, 0.0)
    got = roofline_rows(nothing, steps, golden_device())[1 : len(steps) + 2]
    want = [row for row in golden if row["step"] == "Average" or row["step"].isdecimal()]
    assert differing(want, got, set(want[0]) - {"source_info"}) == []


def golden_device() -> Peaks:
    """A TPU v5p's core, by the table's head."""
    head = tables_of(GOLDEN, "roofline_model")[0]["p"]
    total = rows_of(tables_of(GOLDEN, "roofline_model")[0])[0]
    compute = total["measured_flop_rate"] / total["compute_efficiency"]
    hbm = total["hbm_bw"] / total["max_mem_bw_utilization"] * GIBI
    assert compute == pytest.approx(float(head["peak_flop_rate"]), rel=1e-5)
    assert hbm / GIBI == pytest.approx(float(head["peak_hbm_bw"]), rel=1e-5)
    return Peaks("TPU", head["device_type"], 8, compute, hbm)


def picoseconds(us: float) -> int:
    return round(us * 1e6)


def ops_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Op metrics with the sums that the table's rates came from."""

    def size(row: dict[str, Any], rate: str) -> float:
        return float(row[rate] * GIBI * row["total_time"] * 1e3)

    records = [
        {
            "module": int(row["hlo_module_id"]),
            "name": row["operation"],
            "category": row["category"],
            "occurrences": int(row["occurrences"]),
            "time_ps": picoseconds(row["total_time"]),
            "self_ps": picoseconds(row["total_self_time"]),
            "normalized_ps": 0.0,
            "stall_ps": round(row["dma_stall_percent"] * row["total_time"] * 1e6),
            "flops": row["measured_flop_rate"] * row["total_time"] * 1e3,
            "model_flops": row["model_flop_rate"] * row["total_time"] * 1e3,
            "bytes": size(row, "measured_memory_bw"),
            "hbm_bytes": size(row, "hbm_bw"),
            **{f"{space}_bytes": size(row, f"{space}_bw") for space in ("cmem_read", "cmem_write", "vmem_read", "vmem_write")},
            "broken_down": row["hbm_bw"] != row["measured_memory_bw"],
            "source": None,
            "source_stack": None,
        }
        for row in rows
    ]
    whole = dict.fromkeys(("occurrences", "time_ps", "self_ps", "stall_ps"), pl.Int64)
    schema = {
        "module": pl.UInt64,
        "name": pl.String,
        "category": pl.String,
        **{name: whole.get(name, pl.Float64) for name in TIMES},
        **dict.fromkeys(COSTS, pl.Float64),
        "broken_down": pl.Boolean,
        "source": pl.String,
        "source_stack": pl.String,
    }
    return pl.DataFrame(records, schema=schema)
