"""XProf's roofline tool: `xprof_roofline` gives its table in its columns, order and units (op_stats_to_roofline_model.cc)."""

from __future__ import annotations

from typing import Any

import polars as pl

from roofterm.analysis.xprof.op_metrics import COSTS, OpMetrics, StepMetrics, op_metrics, step_metrics
from roofterm.analysis.xprof.peaks import GIBI, Peaks, peaks, version_numbers
from roofterm.analysis.xprof.record import divide, record, shown_peaks
from roofterm.analysis.xprof.source import source_cell
from roofterm.analysis.xprof.step_breakdown import step_times
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.profile import Profile

SCHEMA = "roofterm.xprof-roofline/1"
MOST_OPS = 1000
INNER_OPS = ("call", "conditional", "while", "megacore fusion")
"""Categories whose costs include those of the ops inside, which are listed too: left out of a program's sums."""


def xprof_roofline(profile: Profile, version: str) -> dict[str, Any]:
    """XProf's roofline table of a profile as that version gives it.

    {"schema", "properties": {id: text}, "rows": [{column id: value}]}: rates in GFLOP/s and GiB/s, times in us, shares as
    fractions although its columns say percent. Raises ProfileError for a version without rules, or a profile that is no XPlane.
    """
    numbers = version_numbers(version)
    if not any(source.format == "xplane" for source in profile.sources):
        path = profile.sources[0].path if profile.sources else ""
        raise ProfileError(f"{path} is no XPlane file (.xplane.pb): XProf's tables need one.", path)
    device = peaks(profile, numbers)
    if device.hardware == "CPU":
        return {"schema": SCHEMA, "properties": _properties(device, 0.0), "rows": []}
    metrics = op_metrics(profile, device.hardware, numbers)
    if device.hardware == "TPU":
        steps = step_metrics(profile, numbers)
    else:  # XProf leaves the records of a GPU's steps empty
        steps = [StepMetrics(int(step.name), NOTHING) for step in step_times(profile, "GPU", numbers)]
    scale = divide(metrics.normalized_op_ps, metrics.op_ps)
    return {"schema": SCHEMA, "properties": _properties(device, scale), "rows": roofline_rows(metrics, steps, device)}


def roofline_rows(metrics: OpMetrics, steps: list[StepMetrics], device: Peaks) -> list[dict[str, Any]]:
    """The table's rows: all with infeed and outfeed counted, then all without."""
    rows: list[dict[str, Any]] = []
    for infeed in (True, False):
        rows += _rows(metrics, device, infeed)
        if device.hardware == "TPU":
            rows.append(_average(steps, device, infeed))
        rows += [_program(step.metrics, device, str(step.number), infeed) for step in steps]
    return rows


def _rows(metrics: OpMetrics, device: Peaks, infeed: bool) -> list[dict[str, Any]]:
    """The program over the whole profile, then its ops, those with the most self time first."""
    rows = [_program(metrics, device, "Total", infeed)]
    ops = metrics.ops.with_columns(left_out=_infeed())
    total_ps = metrics.total_ps - (0 if infeed else int(ops.filter("left_out")["time_ps"].sum()))
    cumulative = 0.0
    top = ops.sort(["self_ps", "name"], descending=[True, False], maintain_order=True).head(MOST_OPS)
    for op in top.filter(pl.col("occurrences") > 0).iter_rows(named=True):
        if op["left_out"] and not infeed:
            continue
        row = record(op, device, "Total", total_ps, infeed)
        share = divide(op["self_ps"], total_ps)
        cumulative += share
        row |= {
            "rank": float(len(rows)),
            "category": op["category"] or "unknown",
            "total_self_time_percent": share,
            "cumulative_total_self_time_percent": cumulative,
            "hlo_module_id": str(op["module"]),
            "source_info": source_cell(op["source"], op["source_stack"]),
        }
        rows.append(_columns(row, device))
    return rows


def _infeed() -> pl.Expr:
    return pl.col("category").str.contains("infeed|outfeed")


def _program(metrics: OpMetrics, device: Peaks, step: str, infeed: bool, steps: int = 1) -> dict[str, Any]:
    """A program's record: costs of its innermost ops over its whole time, idle included."""
    innermost = metrics.ops.filter(~pl.col("category").is_in(INNER_OPS))
    counted = innermost if infeed else innermost.filter(~_infeed())
    fed_ps = int(innermost["time_ps"].sum()) - int(counted["time_ps"].sum())
    time_ps = metrics.total_ps - fed_ps
    broken = counted.filter("broken_down")
    sums = {
        cost: float((broken if cost.endswith(("read_bytes", "write_bytes")) or cost == "hbm_bytes" else counted)[cost].sum())
        for cost in COSTS
    }
    op = {
        "name": "Program",
        "category": "Program",
        "occurrences": 1,
        "time_ps": time_ps,
        "self_ps": 0,
        "stall_ps": 0,
        "broken_down": broken.height > 0,
        **sums,
    }
    row = record(op, device, step, time_ps, infeed)
    if steps != 1:
        row["total_time"] = divide(row["total_time"], steps)
        row["total_time_per_core"] = divide(row["total_time"], device.cores)
    return _columns(row, device)


def _average(steps: list[StepMetrics], device: Peaks, infeed: bool) -> dict[str, Any]:
    """All complete steps together; only the total time is divided by their number."""
    if not steps:
        return _program(NOTHING, device, "Average", infeed, steps=0)
    ops = pl.concat([step.metrics.ops for step in steps])
    together = OpMetrics(ops, sum(step.metrics.total_ps for step in steps), sum(step.metrics.op_ps for step in steps), 0.0)
    return _program(together, device, "Average", infeed, steps=len(steps))


def _properties(device: Peaks, scale: float) -> dict[str, str]:
    shown = shown_peaks(device)
    ridges = {f"{space}_ridge_point": divide(device.gflops, peak * GIBI) for space, peak in shown.items()}
    numbers = {
        "megacore": float(device.megacore),
        "has_cmem": float(device.has_cmem),
        "has_merged_vmem": float(device.merged_vmem),
        "peak_flop_rate": device.gflops,
        **{f"peak_{space}_bw": peak for space, peak in shown.items()},
        **ridges,
        "time_scale_multiplier": scale,
    }
    if device.hardware == "GPU":
        kept = ("peak_flop_rate", "peak_hbm_bw", "peak_vmem_write_bw", "hbm_ridge_point", "vmem_write_ridge_point")
        numbers = {name: numbers[name] for name in kept}
    return {"device_type": device.device_type, **{name: f"{value:.6g}" for name, value in numbers.items()}}


_NOT_ON_GPU = frozenset({"dma_stall_percent"}) | {
    f"{space}_{column}" for space in ("cmem_read", "cmem_write", "vmem_read") for column in ("bw", "operational_intensity")
}


def _columns(row: dict[str, Any], device: Peaks) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _NOT_ON_GPU} if device.hardware == "GPU" else row


NOTHING = OpMetrics(
    pl.DataFrame(
        schema={
            "category": pl.String,
            "time_ps": pl.Int64,
            "broken_down": pl.Boolean,
            **dict.fromkeys(COSTS, pl.Float64),
        }
    ),
    0,
    0,
    0.0,
)
"""No op and no time."""
