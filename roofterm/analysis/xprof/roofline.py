"""XProf's roofline tool: `xprof_roofline` gives its table in its columns, order and units (op_stats_to_roofline_model.cc)."""

from __future__ import annotations

from typing import Any

import polars as pl

from roofterm.analysis.xprof.op_metrics import COSTS, OpMetrics, StepMetrics, op_metrics, step_metrics
from roofterm.analysis.xprof.peaks import GIBI, Peaks, peaks
from roofterm.analysis.xprof.source import source_cell
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.profile import Profile

VERSIONS = ("2.22.3", "2.23.1", "2.24.2")
SCHEMA = "roofterm.xprof-roofline/1"
MOST_OPS = 1000
INNER_OPS = ("call", "conditional", "while", "megacore fusion")
"""Categories whose costs include those of the ops inside, which are listed too: left out of a program's sums."""
GPU_STEPS_KEPT = 5
"""More steps than this on a GPU, and the first and the last are dropped as incomplete."""


def xprof_roofline(profile: Profile, version: str) -> dict[str, Any]:
    """XProf's roofline table of a profile as that version gives it.

    {"schema", "properties": {id: text}, "rows": [{column id: value}]}: rates in GFLOP/s and GiB/s, times in us, shares as
    fractions although its columns say percent. Raises ProfileError for a version without rules, or a profile that is no XPlane.
    """
    if version not in VERSIONS:
        raise ProfileError(f"--xprof {version}: only the rules of {', '.join(VERSIONS)} are known.")
    if not any(source.format == "xplane" for source in profile.sources):
        path = profile.sources[0].path if profile.sources else ""
        raise ProfileError(f"{path} is no XPlane file (.xplane.pb): XProf's tables need one.", path)
    numbers = tuple(int(part) for part in version.split("."))
    device = peaks(profile, numbers)
    if device.hardware == "CPU":
        return {"schema": SCHEMA, "properties": _properties(device, 0.0), "rows": []}
    metrics = op_metrics(profile, device.hardware, numbers)
    tpu = device.hardware == "TPU"
    steps = step_metrics(profile, numbers) if tpu else [StepMetrics(number, NOTHING) for number in _gpu_steps(profile)]
    scale = _divide(metrics.normalized_op_ps, metrics.op_ps)
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
        row = _record(op, device, "Total", total_ps, infeed)
        share = _divide(op["self_ps"], total_ps)
        cumulative += share
        row |= {
            "rank": float(len(rows)),
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
    row = _record(op, device, step, time_ps, infeed)
    if steps != 1:
        row["total_time"] = _divide(row["total_time"], steps)
        row["total_time_per_core"] = _divide(row["total_time"], device.cores)
    return _columns(row, device)


def _average(steps: list[StepMetrics], device: Peaks, infeed: bool) -> dict[str, Any]:
    """All complete steps together; only the total time is divided by their number."""
    if not steps:
        return _program(NOTHING, device, "Average", infeed, steps=0)
    ops = pl.concat([step.metrics.ops for step in steps])
    together = OpMetrics(ops, sum(step.metrics.total_ps for step in steps), sum(step.metrics.op_ps for step in steps), 0.0)
    return _program(together, device, "Average", infeed, steps=len(steps))


def _gpu_steps(profile: Profile) -> list[int]:
    """Steps of a GPU profile, whose records XProf leaves empty."""
    numbers = profile.steps["number"].unique().sort().to_list()
    return numbers[1:-1] if len(numbers) > GPU_STEPS_KEPT else numbers


def _record(op: dict[str, Any], device: Peaks, step: str, total_ps: int, infeed: bool) -> dict[str, Any]:
    """All columns of a record but those that depend on the rows before it."""
    time_ps, flops, accessed = op["time_ps"], op["flops"], op["bytes"]
    ns = time_ps / 1000
    hbm = op["hbm_bytes"] if op["broken_down"] else accessed
    spaces = {"hbm": hbm, **{space: op[f"{space}_bytes"] for space in ("cmem_read", "cmem_write", "vmem_read", "vmem_write")}}
    rates = {space: _divide(size, ns) / GIBI for space, size in spaces.items()}
    intensities = {space: _divide(flops, size) for space, size in spaces.items()}
    gflops = _divide(flops, ns)
    compute = _divide(gflops, device.gflops)
    memory = max(_divide(rate, peak) for rate, peak in _compared(rates, device))
    efficiency = max(compute, memory)
    time_us = time_ps / 1e6
    bound_by, bottleneck = _bound_by(compute, rates, spaces, {**intensities, "all": _divide(flops, accessed)}, device)
    return {
        "step": step,
        "rank": 0.0,
        "category": op["category"],
        "operation": op["name"],
        "occurrences": float(op["occurrences"]),
        "total_time": time_us,
        "avg_time": _divide(time_us, op["occurrences"]),
        "total_self_time": op["self_ps"] / 1e6,
        "avg_self_time": _divide(op["self_ps"] / 1e6, op["occurrences"]),
        "total_self_time_percent": 0.0,
        "cumulative_total_self_time_percent": 0.0,
        "dma_stall_percent": _divide(op["stall_ps"], time_ps),
        "measured_flop_rate": gflops,
        "model_flop_rate": _divide(op["model_flops"], ns),
        "measured_memory_bw": _divide(accessed, ns) / GIBI,
        **{f"{space}_bw": rate for space, rate in rates.items()},
        "operational_intensity": _divide(flops, accessed),
        **{f"{space}_operational_intensity": value for space, value in intensities.items()},
        "bottleneck_operational_intensity": bottleneck,
        "bound_by": bound_by,
        "total_time_per_core": _divide(time_us, device.cores),
        "total_time_in_percentage": _divide(time_ps, total_ps),
        "optimal_flop_rate": _divide(gflops, efficiency),
        "roofline_efficiency": efficiency,
        "compute_efficiency": compute,
        "max_mem_bw_utilization": memory,
        "include_infeed_outfeed": infeed,
        "hlo_module_id": "0",
        "source_info": "",
    }


def _compared(rates: dict[str, float], device: Peaks) -> list[tuple[float, float]]:
    """Rates with their peaks (GiB/s) that count towards the memory utilisation."""
    shown = _shown_peaks(device)
    pairs = [(rates["hbm"], shown["hbm"])]
    if device.has_cmem:
        pairs += [(rates["cmem_read"], shown["cmem_read"]), (rates["cmem_write"], shown["cmem_write"])]
    if device.merged_vmem or device.hardware == "GPU":
        pairs += [(rates["vmem_read"], shown["vmem_read"]), (rates["vmem_write"], shown["vmem_write"])]
    return pairs


def _bound_by(
    compute: float, rates: dict[str, float], spaces: dict[str, float], intensity: dict[str, float], device: Peaks
) -> tuple[str, float]:
    """The resource with the highest utilisation, the earlier one on a tie, and the intensity over it."""
    candidates = [("Compute", compute, intensity["all"]), ("HBM", _divide(rates["hbm"], device.hbm / GIBI), intensity["hbm"])]
    if device.hardware == "TPU":
        for label, space, peak in (
            ("CMEM Read", "cmem_read", device.cmem_read),
            ("CMEM Write", "cmem_write", device.cmem_write),
            ("VMEM Read", "vmem_read", device.vmem_read),
            ("VMEM Write", "vmem_write", device.vmem_write),
        ):
            if spaces[space] and peak:
                candidates.append((label, _divide(rates[space], peak / GIBI), intensity[space]))
    elif device.sram_write:
        candidates.append(("Shm/L1", _divide(rates["hbm"], device.sram_write / GIBI), intensity["hbm"]))
    best, bound_by, bottleneck = 0.0, "Unknown", 0.0
    for label, utilisation, value in candidates:
        if utilisation > best:
            best, bound_by, bottleneck = utilisation, label, value
    return bound_by, bottleneck


def _shown_peaks(device: Peaks) -> dict[str, float]:
    """Peaks of the table's head, GiB/s: CMEM's or else merged VMEM's, and a GPU's shared memory as VMEM."""
    peaks_gb = dict.fromkeys(("cmem_read", "cmem_write", "vmem_read", "vmem_write"), 0.0)
    if device.hardware == "GPU":
        peaks_gb |= {"vmem_read": device.sram_read, "vmem_write": device.sram_write}
    elif device.has_cmem:
        peaks_gb |= {"cmem_read": device.cmem_read, "cmem_write": device.cmem_write}
    elif device.merged_vmem:
        peaks_gb |= {"vmem_read": device.vmem_read, "vmem_write": device.vmem_write}
    return {"hbm": device.hbm / GIBI, **{space: peak / GIBI for space, peak in peaks_gb.items()}}


def _properties(device: Peaks, scale: float) -> dict[str, str]:
    shown = _shown_peaks(device)
    ridges = {f"{space}_ridge_point": _divide(device.gflops, peak * GIBI) for space, peak in shown.items()}
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


def _divide(a: float, b: float) -> float:
    """XProf's SafeDivide: 0 where there is nothing to divide by."""
    return 0.0 if abs(b) < 1e-10 else a / b


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
