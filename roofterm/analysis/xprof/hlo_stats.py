"""XProf's HLO statistics: one row for each instruction that ran (op_stats_to_hlo_stats.cc). SparseCore children are left out."""

from __future__ import annotations

from typing import Any

from roofterm.analysis.xprof.op_metrics import op_metrics
from roofterm.analysis.xprof.peaks import Peaks, peaks, version_numbers
from roofterm.analysis.xprof.record import divide, record
from roofterm.analysis.xprof.source import framework_op, source_cell
from roofterm_parsers.profile import Profile

_RATES = ("measured_memory_bw", "hbm_bw", "cmem_read_bw", "cmem_write_bw", "operational_intensity", "bound_by")


def xprof_hlo_stats(profile: Profile, version: str) -> list[dict[str, Any]]:
    """Rows by column id, most self time first: times in us, `*_percent` of the devices' time, but dma_stall_percent a fraction."""
    numbers = version_numbers(version)
    device = peaks(profile, numbers)
    metrics = op_metrics(profile, device.hardware, numbers)
    rows: list[dict[str, Any]] = []
    cumulative = 0.0
    ordered = metrics.ops.sort(["self_ps", "name"], descending=[True, False], maintain_order=True)
    for op in ordered.iter_rows(named=True):
        share = divide(op["self_ps"], metrics.total_ps)
        cumulative += share
        rows.append(_row(op, device, len(rows) + 1, share, cumulative, metrics.total_ps))
    return rows


def _row(op: dict[str, Any], device: Peaks, rank: int, share: float, cumulative: float, total_ps: int) -> dict[str, Any]:
    found = record(op, device, "Total", total_ps, True)
    text = op["text"] or op["name"]
    framework = framework_op(op["framework_op"])
    return {
        "rank": float(rank),
        "program_id": str(op["module"]),
        "category": op["category"],
        "hlo_op_name": text.split(" = ", 1)[0].removeprefix("%"),
        "hlo_op_expression": text,
        "tf_op_name": framework,
        **{column: found[column] for column in ("occurrences", "total_time", "avg_time", "total_self_time", "avg_self_time")},
        "total_self_time_percent": share * 100,
        "cumulative_total_self_time_percent": cumulative * 100,
        "dma_stall_percent": found["dma_stall_percent"],
        "model_flop_rate": found["model_flop_rate"],
        "normalized_flop_rate": found["measured_flop_rate"],
        **{column: found[column] for column in _RATES},
        "hlo_rematerialization": _yes(".remat" in text.split("=", 1)[0] or "rematted_computation" in framework),
        "outside_compilation": _yes("_xla_outside_compilation" in framework or "_xla_outside_compilation" in text),
        "autotuned": _yes(bool(op["autotuned"])),
        "source_info": source_cell(op["source"], op["source_stack"]),
        "core_type": "TensorCore" if device.hardware == "TPU" else "",
        "parent_op_name": "",
        "vdd_energy": 0.0,
    }


def _yes(value: bool) -> str:
    return "Yes" if value else "No"
