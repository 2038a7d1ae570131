"""What XProf's overview page and input pipeline analysis say of an XPlane profile, as one record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import polars as pl

from roofterm.analysis.xprof.host_ops import host_ops
from roofterm.analysis.xprof.input_pipeline import HOST_TRANSFERS, xprof_input_pipeline
from roofterm.analysis.xprof.op_metrics import OpMetrics, op_metrics, tpu_metrics
from roofterm.analysis.xprof.overview import xprof_overview
from roofterm.analysis.xprof.peaks import VERSIONS, peaks, version_numbers
from roofterm.results import InputOp, InputPipeline, XlaOverview
from roofterm.text.units import pct
from roofterm_parsers.profile import Profile

VERSION = VERSIONS[-1]

MS = 1000.0
"""microseconds in a millisecond"""

US = 1e6
"""picoseconds in a microsecond"""

_ACTIVITIES = {
    "deviceComputeTimeMs": "device_compute",
    "deviceToDeviceTimeMs": "device_to_device",
    "deviceCollectivesTimeMs": "device_collectives",
    "hostComputeTimeMs": "host_compute",
    "kernelLaunchTimeMs": "kernel_launch",
    "compileTimeMs": "compile",
    "infeedTimeMs": "input",
    "outfeedTimeMs": "output",
    "otherTimeMs": "other",
    "tcComputeTimeMs": "compute",
    "scv0ComputeTimeMs": "sparsecore_v0",
    "tcInfeedTimeMs": "input",
    "tcOutfeedTimeMs": "output",
    "tcIdleTimeMs": "idle",
    "hostTransferTimeMs": "host_transfer",
}
"""Columns of XProf's steps, and what they are called here"""


def xla_overview(profile: Profile) -> XlaOverview:
    """Of a profile with an XPlane file."""
    version = version_numbers(VERSION)
    hardware = peaks(profile, version).hardware
    host, steps = host_ops(profile), None
    if hardware == "TPU":
        metrics, steps = tpu_metrics(profile, version, ops_of_steps=False)
    else:
        metrics = op_metrics(profile, hardware, version)
    shares = xprof_overview(profile, VERSION, host, metrics)
    counted = metrics.ops.height > 0  # without program and symbol ids XProf drops every op
    found = xprof_input_pipeline(profile, VERSION, host, steps)
    cores = profile.devices.filter(pl.col("kind") == hardware.lower()).height
    stated = profile.sources[0].metadata.get("planes", {}).get("/host:CPU", {})

    def share(name: str) -> float | None:
        return shares.get(f"{name}_percent")

    def waited(*categories: str) -> float | None:
        return _waited_us(metrics, cores, categories) if hardware == "TPU" and counted else None

    bits = (share("device_compute_16bit"), share("device_compute_32bit"))
    return XlaOverview(
        version=VERSION,
        hardware=hardware,
        cores=cores,
        duty_cycle_pct=share("device_duty_cycle"),
        device_idle_pct=share("device_idle_time") if counted else None,
        host_idle_pct=share("host_idle_time"),
        infeed_us=waited("infeed"),
        outfeed_us=waited("outfeed"),
        host_transfer_us=waited(*HOST_TRANSFERS),
        device_op_pct=share("device_tf_op") if counted else None,
        host_op_pct=share("host_tf_op") if counted else None,
        compute_16bit_pct=bits[0] if any(bits) else None,
        compute_32bit_pct=bits[1] if any(bits) else None,
        mxu_pct=stated.get("matrix_unit_utilization_percent"),
        hbm_pct=stated.get("hbm_utilization_percent"),
        input_pipeline=_input_pipeline(found if counted or hardware != "TPU" else {**found, "steps": [], "verdict": None}, counted),
    )


def _waited_us(metrics: OpMetrics, cores: int, categories: Sequence[str]) -> float:
    """Self time of ops of these categories, mean of a core."""
    own_ps = int(metrics.ops.filter(pl.col("category").is_in(categories))["self_ps"].sum())
    return own_ps / max(cores, 1) / US


def _input_pipeline(found: dict[str, Any], counted: bool) -> InputPipeline:
    steps = found["steps"]
    times = [step["stepTimeMs"] * MS for step in steps]
    known = bool(steps)
    tpu = found["hardware"] == "TPU"
    return InputPipeline(
        verdict=found["verdict"],
        statement=statement(found, counted),
        steps=len(steps),
        step_mean_us=fmean(times) if known else None,
        step_sd_us=stdev(times) if len(times) > 1 else None,
        step_min_us=min(times) if known else None,
        step_max_us=max(times) if known else None,
        input_pct=found["input_pct"] if known else None,
        output_pct=found["output_pct"] if known else None,
        other_pct=found["idle_pct" if tpu else "other_pct"] if known else None,
        by_activity_us=_activities(steps),
        host_input_us={
            name.removesuffix("_us").replace("unclassified_nonequeue", "unclassified"): us for name, us in found["host"].items()
        },
        ops=[
            InputOp(
                name=row["opName"],
                category=row["category"],
                calls=int(row["count"]),
                total_us=row["timeInMs"] * MS,
                self_us=row["selfTimeInMs"] * MS,
                pct=100 * row["selfTimeInPercent"],
            )
            for row in found["ops"]
        ],
    )


def _activities(steps: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean of a step for each activity that has a column, us."""
    return {name: fmean(step[column] for step in steps) * MS for column, name in _ACTIVITIES.items() if steps and column in steps[0]}


def statement(found: Mapping[str, Any], counted: bool = True) -> str:
    """The verdict as a sentence. `counted`: XProf counts any op of the devices."""
    if found["hardware"] == "TPU" and not counted:
        return "unknown: XProf counts none of the ops, which state no program and symbol ids"
    waiting = f"{pct(found['input_pct'])} of the steps' time waits for input"
    if found["verdict"] is None:
        return "unknown: no step is marked in a way that XProf knows"
    if found["verdict"] == "potential":
        return f"perhaps input-bound: no event explains {pct(found['other_pct'])} of the steps' time (input, Python, or both)"
    words = {"high": "highly input-bound", "moderate": "moderately input-bound", "none": "not input-bound"}
    return f"{words[found['verdict']]}: {waiting}"
