"""XProf's roofline tool: `xprof_roofline` gives its table in its columns, order and units (op_stats_to_roofline_model.cc)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from roofterm.analysis.xprof.instruction_costs import COSTS
from roofterm.analysis.xprof.op_metrics import NOTHING, OpMetrics, StepMetrics, op_metrics, tpu_metrics
from roofterm.analysis.xprof.peaks import GIBI, Peaks, peaks, version_numbers
from roofterm.analysis.xprof.record import divide, record, shown_peaks
from roofterm.analysis.xprof.source import source_cell
from roofterm.analysis.xprof.step_breakdown import step_times
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.profile import Profile

SCHEMA = "roofterm.xprof-roofline/1"
MOST_OPS = 1000
IDLE = "IDLE"
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
    if device.hardware == "TPU":
        metrics, steps = tpu_metrics(profile, numbers)
    else:  # XProf leaves the records of a GPU's steps empty
        metrics = op_metrics(profile, device.hardware, numbers)
        steps = [StepMetrics(int(step.name), NOTHING) for step in step_times(profile, "GPU", numbers)]
    scale = divide(metrics.normalized_op_ps, metrics.op_ps)
    return {"schema": SCHEMA, "properties": _properties(device, scale), "rows": roofline_rows(metrics, steps, device)}


def roofline_rows(metrics: OpMetrics, steps: list[StepMetrics], device: Peaks) -> list[dict[str, Any]]:
    """The table's rows: all with infeed and outfeed counted, then all without."""
    rows: list[dict[str, Any]] = []
    for infeed in (True, False):
        (program,) = _programs([metrics], infeed)
        by_step = _programs([step.metrics for step in steps], infeed)
        rows.append(_record(program, device, "Total", infeed))
        rows += _ops(metrics, device, infeed)
        if device.hardware == "TPU":
            rows.append(_average(by_step, device, infeed))
        rows += [_record(sums, device, str(step.number), infeed) for step, sums in zip(steps, by_step, strict=True)]
    return rows


def _ops(metrics: OpMetrics, device: Peaks, infeed: bool) -> list[dict[str, Any]]:
    """The ops of the whole profile, those with the most self time first."""
    rows: list[dict[str, Any]] = []
    ops = metrics.ops.with_columns(left_out=_infeed())
    total_ps = metrics.total_ps - (0 if infeed else int(ops.filter("left_out")["time_ps"].sum()))
    cumulative = 0.0
    top = ops.sort(["self_ps", "name"], descending=[True, False], maintain_order=True).head(MOST_OPS - _idle_counts(metrics))
    for op in top.filter(pl.col("occurrences") > 0).iter_rows(named=True):
        if op["left_out"] and not infeed:
            continue
        row = record(op, device, "Total", total_ps, infeed)
        share = divide(op["self_ps"], total_ps)
        cumulative += share
        row |= {
            "rank": float(len(rows) + 1),
            "category": op["category"] or "unknown",
            "total_self_time_percent": share,
            "cumulative_total_self_time_percent": cumulative,
            "hlo_module_id": str(op["module"]),
            "source_info": source_cell(op["source"], op["source_stack"]),
        }
        rows.append(_columns(row, device))
    return rows


def _idle_counts(metrics: OpMetrics) -> int:
    """1 if the idle time, an op like others to XProf until its row is left out, is among the `MOST_OPS` with the most self time."""
    before = (pl.col("self_ps") > metrics.idle_ps) | ((pl.col("self_ps") == metrics.idle_ps) & (pl.col("name") < IDLE))
    return int(metrics.ops.filter(before).height < MOST_OPS)


def _infeed() -> pl.Expr:
    return pl.col("category").str.contains("infeed|outfeed")


def _programs(parts: Sequence[OpMetrics], infeed: bool) -> list[dict[str, Any]]:
    """Of each part the costs of its innermost ops over its whole time, idle included: what `record` makes a row of."""
    found: list[dict[str, Any]] = [{**_PROGRAM, **dict.fromkeys(COSTS, 0.0), "time_ps": part.total_ps} for part in parts]
    if not parts:
        return found
    of_part = np.repeat(np.arange(len(parts), dtype=np.uint32), [part.ops.height for part in parts])
    ops = pl.concat([part.ops for part in parts]).select("category", "time_ps", "broken_down", *COSTS).with_columns(part=of_part)
    fed = pl.lit(False) if infeed else _infeed()
    innermost = ops.filter(~pl.col("category").is_in(INNER_OPS))
    fed_ps = pl.col("time_ps").filter(fed).sum().alias("fed_ps")
    sums = innermost.group_by("part").agg(
        fed_ps,
        pl.col("broken_down").filter(~fed).any(),
        pl.col(*_TOTAL_COSTS).filter(~fed).sum(),
        pl.col(*_MEMORY_COSTS).filter(~fed & pl.col("broken_down")).sum(),
    )
    for row in sums.iter_rows(named=True):
        found[row["part"]] |= {**row, "time_ps": found[row["part"]]["time_ps"] - row["fed_ps"]}
    return found


_PROGRAM = {"name": "Program", "category": "Program", "occurrences": 1, "self_ps": 0, "stall_ps": 0, "broken_down": False}
_MEMORY_COSTS = tuple(cost for cost in COSTS if cost == "hbm_bytes" or cost.endswith(("read_bytes", "write_bytes")))
_TOTAL_COSTS = tuple(cost for cost in COSTS if cost not in _MEMORY_COSTS)


def _record(sums: dict[str, Any], device: Peaks, step: str, infeed: bool, steps: int = 1) -> dict[str, Any]:
    """A program's row; `steps`: of how many its total time is the mean."""
    row = record(sums, device, step, sums["time_ps"], infeed)
    if steps != 1:
        row["total_time"] = divide(row["total_time"], steps)
        row["total_time_per_core"] = divide(row["total_time"], device.cores)
    return _columns(row, device)


def _average(steps: Sequence[dict[str, Any]], device: Peaks, infeed: bool) -> dict[str, Any]:
    """All complete steps together; only the total time is divided by their number."""
    together = {name: sum(step[name] for step in steps) for name in ("time_ps", *COSTS)}
    broken_down = any(step["broken_down"] for step in steps)
    return _record({**_PROGRAM, **together, "broken_down": broken_down}, device, "Average", infeed, len(steps))


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
