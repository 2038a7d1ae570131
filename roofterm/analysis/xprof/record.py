"""One record of XProf's op tables: times, rates, intensities, what binds it and how near it comes to its roof.

Formulas: its op_metrics_to_record.h and op_stats_to_roofline_model.cc (reference: Formulas per record). An op's whole time is
what costs are divided by, since costs include those of the ops inside.
"""

from __future__ import annotations

from typing import Any

from roofterm.analysis.xprof.peaks import GIBI, Peaks


def record(op: dict[str, Any], device: Peaks, step: str, total_ps: int, infeed: bool) -> dict[str, Any]:
    """All columns of a record but those that depend on the rows before it."""
    time_ps, flops, accessed = op["time_ps"], op["flops"], op["bytes"]
    ns = time_ps / 1000
    hbm = op["hbm_bytes"] if op["broken_down"] else accessed
    spaces = {"hbm": hbm, **{space: op[f"{space}_bytes"] for space in ("cmem_read", "cmem_write", "vmem_read", "vmem_write")}}
    rates = {space: divide(size, ns) / GIBI for space, size in spaces.items()}
    intensities = {space: divide(flops, size) for space, size in spaces.items()}
    gflops = divide(flops, ns)
    compute = divide(gflops, device.gflops)
    memory = max(divide(rate, peak) for rate, peak in _compared(rates, device))
    efficiency = max(compute, memory)
    time_us = time_ps / 1e6
    bound_by, bottleneck = _bound_by(compute, rates, spaces, {**intensities, "all": divide(flops, accessed)}, device)
    return {
        "step": step,
        "rank": 0.0,
        "category": op["category"],
        "operation": op["name"],
        "occurrences": float(op["occurrences"]),
        "total_time": time_us,
        "avg_time": divide(time_us, op["occurrences"]),
        "total_self_time": op["self_ps"] / 1e6,
        "avg_self_time": divide(op["self_ps"] / 1e6, op["occurrences"]),
        "total_self_time_percent": 0.0,
        "cumulative_total_self_time_percent": 0.0,
        "dma_stall_percent": divide(op["stall_ps"], time_ps),
        "measured_flop_rate": gflops,
        "model_flop_rate": divide(op["model_flops"], ns),
        "measured_memory_bw": divide(accessed, ns) / GIBI,
        **{f"{space}_bw": rate for space, rate in rates.items()},
        "operational_intensity": divide(flops, accessed),
        **{f"{space}_operational_intensity": value for space, value in intensities.items()},
        "bottleneck_operational_intensity": bottleneck,
        "bound_by": bound_by,
        "total_time_per_core": divide(time_us, device.cores),
        "total_time_in_percentage": divide(time_ps, total_ps),
        "optimal_flop_rate": divide(gflops, efficiency),
        "roofline_efficiency": efficiency,
        "compute_efficiency": compute,
        "max_mem_bw_utilization": memory,
        "include_infeed_outfeed": infeed,
        "hlo_module_id": "0",
        "source_info": "",
    }


def _compared(rates: dict[str, float], device: Peaks) -> list[tuple[float, float]]:
    """Rates with their peaks (GiB/s) that count towards the memory utilisation."""
    shown = shown_peaks(device)
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
    candidates = [("Compute", compute, intensity["all"]), ("HBM", divide(rates["hbm"], device.hbm / GIBI), intensity["hbm"])]
    if device.hardware == "TPU":
        for label, space, peak in (
            ("CMEM Read", "cmem_read", device.cmem_read),
            ("CMEM Write", "cmem_write", device.cmem_write),
            ("VMEM Read", "vmem_read", device.vmem_read),
            ("VMEM Write", "vmem_write", device.vmem_write),
        ):
            if spaces[space] and peak:
                candidates.append((label, divide(rates[space], peak / GIBI), intensity[space]))
    elif device.sram_write:
        candidates.append(("Shm/L1", divide(rates["hbm"], device.sram_write / GIBI), intensity["hbm"]))
    best, bound_by, bottleneck = 0.0, "Unknown", 0.0
    for label, utilisation, value in candidates:
        if utilisation > best:
            best, bound_by, bottleneck = utilisation, label, value
    return bound_by, bottleneck


def shown_peaks(device: Peaks) -> dict[str, float]:
    """Peaks of the table's head, GiB/s: CMEM's or else merged VMEM's, and a GPU's shared memory as VMEM."""
    peaks_gb = dict.fromkeys(("cmem_read", "cmem_write", "vmem_read", "vmem_write"), 0.0)
    if device.hardware == "GPU":
        peaks_gb |= {"vmem_read": device.sram_read, "vmem_write": device.sram_write}
    elif device.has_cmem:
        peaks_gb |= {"cmem_read": device.cmem_read, "cmem_write": device.cmem_write}
    elif device.merged_vmem:
        peaks_gb |= {"vmem_read": device.vmem_read, "vmem_write": device.vmem_write}
    return {"hbm": device.hbm / GIBI, **{space: peak / GIBI for space, peak in peaks_gb.items()}}


def divide(a: float, b: float) -> float:
    """XProf's SafeDivide: 0 where there is nothing to divide by."""
    return 0.0 if abs(b) < 1e-10 else a / b
