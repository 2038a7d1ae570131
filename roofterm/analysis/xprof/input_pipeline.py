"""XProf's input pipeline analysis: where steps spend their time, and whether they wait for input.

Rules: op_stats_to_input_pipeline_analysis.cc.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from roofterm.analysis.xprof.op_metrics import step_metrics
from roofterm.analysis.xprof.peaks import peaks, version_numbers
from roofterm.analysis.xprof.record import divide
from roofterm.analysis.xprof.step_breakdown import Activity, StepTime, step_times
from roofterm_parsers.profile import Profile

HIGH_PCT, MODERATE_PCT, POTENTIAL_PCT = 20.0, 5.0, 3.0
_MS = 1e9
"""picoseconds in a millisecond"""
_COLUMNS = {
    "deviceComputeTimeMs": (Activity.DEVICE_COMPUTE_16, Activity.DEVICE_COMPUTE_32),
    "deviceToDeviceTimeMs": (Activity.DEVICE_TO_DEVICE,),
    "deviceCollectivesTimeMs": (Activity.DEVICE_COLLECTIVES,),
    "hostComputeTimeMs": (Activity.HOST_COMPUTE,),
    "kernelLaunchTimeMs": (),
    "infeedTimeMs": (Activity.HOST_WAIT_INPUT, Activity.HOST_TO_DEVICE),
    "outfeedTimeMs": (Activity.DEVICE_TO_HOST,),
    "compileTimeMs": (),
    "otherTimeMs": (Activity.OTHER,),
}
_INFEED, _OUTFEED = ("infeed",), ("outfeed",)
_TRANSFERS = ("send", "send-done", "recv", "recv-done", "host send", "host send-done", "host recv", "host recv-done")


def xprof_input_pipeline(profile: Profile, version: str) -> dict[str, Any]:
    """`{hardware, steps, input_pct, other_pct, verdict}`.

    steps: one row each, `stepnum`, `stepTimeMs` and what it was spent on (ms); for TPUs the mean of the cores.
    verdict: "high", "moderate" (20 % and 5 % of the steps' time for input), "potential" (3 % that no event explains), "none",
    or None where no step is known.
    """
    numbers = version_numbers(version)
    hardware = peaks(profile, numbers).hardware
    if hardware == "TPU":
        steps = _tpu_steps(profile, numbers)
        waiting, other = "tcInfeedTimeMs", ""
    else:
        steps = [_row(step) for step in step_times(profile, hardware, numbers)]
        waiting, other = "infeedTimeMs", "otherTimeMs"
    whole = sum(step["stepTimeMs"] for step in steps)
    input_pct = 100 * divide(sum(step[waiting] for step in steps), whole)
    other_pct = 100 * divide(sum(step[other] for step in steps), whole) if other else 0.0
    verdict = _verdict(input_pct, other_pct) if steps else None
    return {"hardware": hardware, "steps": steps, "input_pct": input_pct, "other_pct": other_pct, "verdict": verdict}


def _verdict(input_pct: float, other_pct: float) -> str:
    if input_pct >= HIGH_PCT:
        return "high"
    if input_pct >= MODERATE_PCT:
        return "moderate"
    return "potential" if other_pct >= POTENTIAL_PCT else "none"


def _row(step: StepTime) -> dict[str, Any]:
    times = {column: sum(step.by_activity.get(kind, 0) for kind in kinds) / _MS for column, kinds in _COLUMNS.items()}
    return {"stepnum": step.name, **times, "stepTimeMs": step.dur_ps / _MS}


def _tpu_steps(profile: Profile, version: tuple[int, ...]) -> list[dict[str, Any]]:
    rows = []
    for step in step_metrics(profile, version):
        ops = step.metrics.ops
        cores = max(step.cores, 1)

        def spent(categories: tuple[str, ...], ops: pl.DataFrame = ops, cores: int = cores) -> float:
            return float(ops.filter(pl.col("category").is_in(categories))["self_ps"].sum()) / cores / _MS

        infeed, outfeed, transfers = spent(_INFEED), spent(_OUTFEED), spent(_TRANSFERS)
        whole = step.metrics.total_ps / cores / _MS
        rows.append(
            {
                "stepnum": str(step.number),
                "tcComputeTimeMs": step.metrics.op_ps / cores / _MS - infeed - outfeed - transfers,
                "tcInfeedTimeMs": infeed,
                "tcOutfeedTimeMs": outfeed,
                "tcIdleTimeMs": step.metrics.idle_ps / cores / _MS,
                "hostTransferTimeMs": transfers,
                "stepTimeMs": whole,
            }
        )
    return rows
