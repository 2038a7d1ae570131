"""The work that hardware counters saw, where recorded (`cuda_profiler_range`, XPlane counters): program rows "Total (HW)".

FLOPs are those of the threads' own instructions, adds + multiplies + 2 fused multiply-adds of each type (Nsight Compute's
roofline metrics; NERSC, roofline-on-nvidia-gpus). Products on tensor cores are other instructions and are not among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.work import busy
from roofterm.results import DeviceInfo, RooflineRow
from roofterm_parsers.profile import Profile

STEP = "Total (HW)"
NOT_COUNTED = "tensor cores not counted"
_REPLAYED = "time: that of the counted ranges, which hold replays and are spread evenly by the profiler: no rate"

_INSTRUCTION = re.compile(r"(sm|smsp)__sass_thread_inst_executed_op_([dfh])(add|mul|fma)_pred_on\.sum")
_FLOPS = {"add": 1, "mul": 1, "fma": 2}
_DTYPES = {"d": "fp64", "f": "fp32", "h": "fp16"}
_ROOFS = {"fp64": "fp64", "fp32": "fp32", "fp16": "fp16_vector"}
_ALL_BYTES, _READ_BYTES, _WRITTEN_BYTES = "dram__bytes.sum", "dram__bytes_read.sum", "dram__bytes_write.sum"


def counted_flops(totals: Mapping[str, float]) -> dict[str, float]:
    """FLOPs by type (fp64, fp32, fp16) from the totals of counters by name; a type with no counter is absent.

    Counters of SM partitions (smsp__) and of whole SMs (sm__) are the same instructions: where both stand, the first.
    """
    found: dict[str, dict[str, float]] = {}
    for name, value in totals.items():
        match = _INSTRUCTION.fullmatch(name)
        if match is not None:
            of_unit = found.setdefault(match[1], {})
            dtype = _DTYPES[match[2]]
            of_unit[dtype] = of_unit.get(dtype, 0.0) + _FLOPS[match[3]] * value
    return {**found.get("sm", {}), **found.get("smsp", {})}


def counted_bytes(totals: Mapping[str, float]) -> float | None:
    """Bytes that moved to and from device memory; None where no counter says."""
    if _ALL_BYTES in totals:
        return totals[_ALL_BYTES]
    if _READ_BYTES in totals and _WRITTEN_BYTES in totals:
        return totals[_READ_BYTES] + totals[_WRITTEN_BYTES]
    return None


def counter_rows(
    profile: Profile, work: pl.DataFrame, device: DeviceInfo | None, chosen: NDArray[np.bool_] | None = None
) -> list[RooflineRow]:
    """One program row for each type of arithmetic that was counted and ran; none where nothing was counted.

    `work`: schema `work.WORK`, whose busy time the rates are over; `chosen`: which slices belong to the part that is shown,
    None: all.
    """
    counted = profile.counted if chosen is None else profile.counted.filter(pl.Series(chosen[profile.counted["slice"].to_numpy()]))
    if counted.height == 0:
        return []
    ranges = counted["slice"].unique()
    totals = {str(name): float(value) for name, value in counted.group_by("counter").agg(pl.col("value").sum()).iter_rows()}
    moved = counted_bytes(totals)
    length_ps = int(profile.slices["dur_ps"][ranges].sum())
    busy_ps = sum(busy(group).length for _, group in work.group_by("device"))
    rows = [(dtype, flops) for dtype, flops in counted_flops(totals).items() if flops]
    return [
        _row(dtype, flops, moved, ranges.len(), busy_ps or None, length_ps, device)
        for dtype, flops in sorted(rows, key=lambda row: -row[1])
    ]


def _row(
    dtype: str, flops: float, moved: float | None, ranges: int, busy_ps: int | None, length_ps: int, device: DeviceInfo | None
) -> RooflineRow:
    seconds = None if busy_ps is None else busy_ps / 1e12
    peak = device.peaks.get(_ROOFS[dtype]) if device is not None else None
    bandwidth = device.bandwidths.get("hbm") if device is not None else None
    needs = {"compute": flops / peak if peak else None, "hbm": moved / bandwidth if moved is not None and bandwidth else None}
    known = {resource: need for resource, need in needs.items() if need is not None}
    bound_s = max(known.values(), default=None)

    def share(need: float | None) -> float | None:
        return None if need is None or seconds is None else 100 * need / seconds

    return RooflineRow(
        level="program",
        step=STEP,
        name=f"{dtype}, {NOT_COUNTED}",
        category=None,
        calls=ranges,
        time_us=(length_ps if busy_ps is None else busy_ps) / 1e6,
        time_per_unit_us=None,
        flops=flops,
        model_flops=None,
        bytes={} if moved is None else {"hbm": moved},
        flops_per_s=None if seconds is None else flops / seconds,
        bytes_per_s={} if moved is None or seconds is None else {"hbm": moved / seconds},
        intensity={"hbm": flops / moved} if moved else {},
        bytes_by_role=None,
        bound_by=max(known, key=lambda resource: known[resource]) if known and seconds is not None else None,
        limiter=None,
        pct_of_peak_flops=share(needs["compute"]),
        pct_of_peak_bw=share(needs["hbm"]),
        pct_of_roof=share(bound_s),
        time_bound_us=None if bound_s is None else bound_s * 1e6,
        headroom_us=None if bound_s is None or seconds is None else (seconds - bound_s) * 1e6,
        dtype=dtype,
        flops_from="trace",
        bytes_from="none" if moved is None else "trace",
        flags=[NOT_COUNTED, *([_REPLAYED] if busy_ps is None else [])],
    )
