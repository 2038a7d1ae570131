"""XProf's statistics of framework ops on device and host (op_stats_to_tf_stats.cc, xplane_to_op_metrics_db.cc)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from roofterm.analysis.xprof.framework_names import UNKNOWN, framework_op_of
from roofterm.analysis.xprof.host_ops import HostOps, host_ops
from roofterm.analysis.xprof.kernel_stats import xprof_kernel_stats
from roofterm.analysis.xprof.op_metrics import OpMetrics, op_metrics
from roofterm.analysis.xprof.peaks import Peaks, peaks, version_numbers
from roofterm.analysis.xprof.record import divide, record
from roofterm.analysis.xprof.source import framework_op
from roofterm_parsers.profile import Profile

MOST_OPS = 500
"""of the device, and as many of the host"""
IDLE = "IDLE"


@dataclass(slots=True)
class FrameworkTotals:
    name: str
    type: str
    occurrences: int = 0
    time_ps: int = 0
    self_ps: int = 0
    flops: float = 0.0
    model_flops: float = 0.0
    bytes: float = 0.0


def xprof_framework_op_stats(profile: Profile, version: str, *, idle: bool = True) -> list[dict[str, Any]]:
    """Rows by column id: the device's ops with the most self time, then the host's; `*_percent` are fractions.

    `idle` chooses between XProf's two tables: whether the idle time has a row and is part of what shares are of.
    """
    numbers = version_numbers(version)
    device = peaks(profile, numbers)
    metrics = op_metrics(profile, device.hardware, numbers)
    host = host_ops(profile)
    matrix = _matrix_shares(profile, version) if device.hardware == "GPU" else None
    device_ops = framework_ops(metrics) if device.hardware != "CPU" else []
    rows = _rows("Device", device_ops, metrics.idle_ps, metrics.op_ps, device, idle, device.hardware != "CPU")
    rows += _rows("Host", _host_ops(host), host.idle_ps, host.op_ps, device, idle, host.threads > 0, first=len(rows))
    if matrix is not None:
        for row in rows:
            row["gpu_tensorcore_utilization"] = matrix.get(row["operation"], 0.0) if row["host_or_device"] == "Device" else 0.0
    return rows


def _rows(
    side: str, ops: list[FrameworkTotals], idle_ps: int, op_ps: int, device: Peaks, idle: bool, shown: bool, first: int = 0
) -> list[dict[str, Any]]:
    if shown:
        ops = [*ops, FrameworkTotals(IDLE, IDLE, 0, idle_ps, idle_ps)]
    total_ps = op_ps + idle_ps if idle else op_ps
    rows: list[dict[str, Any]] = []
    cumulative = 0.0
    top = sorted(ops, key=lambda op: (-op.self_ps, op.name))[:MOST_OPS]  # the idle time is one of them, shown or not
    for rank, op in enumerate([op for op in top if idle or op.type != IDLE], first + 1):
        share = divide(op.self_ps, total_ps)
        cumulative += share
        rows.append(_row(side, op, device, rank, share, cumulative))
    return rows


def _row(side: str, op: FrameworkTotals, device: Peaks, rank: int, share: float, cumulative: float) -> dict[str, Any]:
    costs = dict.fromkeys(("hbm_bytes", "cmem_read_bytes", "cmem_write_bytes", "vmem_read_bytes", "vmem_write_bytes"), 0.0)
    facts = {
        "name": op.name,
        "category": op.type,
        "occurrences": op.occurrences,
        "time_ps": op.time_ps,
        "self_ps": op.self_ps,
        "stall_ps": 0,
        "flops": op.flops,
        "model_flops": op.model_flops,
        "bytes": op.bytes,
        "broken_down": False,
        **costs,
    }
    found = record(facts, device, "Total", op.time_ps, True)
    on_device = side == "Device"
    return {
        "rank": float(rank),
        "host_or_device": side,
        "type": op.type,
        "operation": op.name,
        **{column: found[column] for column in ("occurrences", "total_time", "avg_time", "total_self_time", "avg_self_time")},
        "device_total_self_time_percent": share if on_device else 0.0,
        "device_cumulative_total_self_time_percent": cumulative if on_device else 0.0,
        "host_total_self_time_percent": 0.0 if on_device else share,
        "Host_cumulative_total_self_time_percent": 0.0 if on_device else cumulative,
        **{column: found[column] for column in ("measured_flop_rate", "model_flop_rate", "measured_memory_bw", "operational_intensity")},
        "bound_by": found["bound_by"],
        "eager": "Function",
    }


def framework_ops(metrics: OpMetrics) -> list[FrameworkTotals]:
    """Instructions grouped by the framework op that they come from; one without is an op of its own name."""
    found: dict[str, FrameworkTotals] = {}
    for op in metrics.ops.sort("self_ps", descending=True).iter_rows(named=True):
        provenance = framework_op(op["framework_op"])
        name, kind = op["name"], UNKNOWN
        if provenance:
            name, kind, _ = framework_op_of(provenance)
        one = found.setdefault(name, FrameworkTotals(name, kind or "Unknown"))
        one.occurrences = max(one.occurrences, op["occurrences"])
        one.time_ps += op["time_ps"]
        one.self_ps += op["self_ps"]
        one.flops += op["flops"]
        one.model_flops += op["model_flops"]
        one.bytes += op["bytes"]
    return list(found.values())


def _host_ops(host: HostOps) -> list[FrameworkTotals]:
    return [FrameworkTotals(*row) for row in host.ops.select("name", "type", "occurrences", "time_ps", "self_ps").iter_rows()]


def _matrix_shares(profile: Profile, version: str) -> dict[str, float]:
    """Framework op to the share of its kernels' time that used tensor or matrix cores."""
    kernels = pl.DataFrame(
        [
            (row["op_name"].removesuffix(":"), row["total_duration_us"], row["is_kernel_using_tensor_core"])
            for row in xprof_kernel_stats(profile, version)
        ],
        schema={"op": pl.String, "us": pl.Float64, "matrix": pl.Boolean},
        orient="row",
    )
    shares = kernels.group_by("op").agg(((pl.col("us") * pl.col("matrix")).sum() / pl.col("us").sum()).fill_nan(0.0))
    return dict(shares.iter_rows())
