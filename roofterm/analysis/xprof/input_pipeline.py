"""XProf's input pipeline analysis: where steps spend their time, and whether they wait for input.

Rules: op_stats_to_input_pipeline_analysis.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from roofterm.analysis.xprof.op_metrics import tpu_metrics
from roofterm.analysis.xprof.peaks import peaks, version_numbers
from roofterm.analysis.xprof.record import divide
from roofterm.analysis.xprof.step_breakdown import Activity, StepTime, input_waits, step_times
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
_HOST_TRANSFERS = ("host send", "host send-done", "host recv", "host recv-done")


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
    """A step computes as long as the core that computes least; infeed and transfers are the longest of a core, outfeed the mean.

    Where the program has no infeed, the host's waits for input in the step of the same number are taken out of the idle time.
    """
    _, steps = tpu_metrics(profile, version)
    fed = any("infeed" in core for step in steps for core in step.by_core)
    waits = {} if fed else input_waits(profile)
    rows = []
    for step in steps:
        cores = [_Core.of(core, step.dur_ps) for core in step.by_core]
        row = _across(cores, step.dur_ps)
        if waits.get(step.number):
            share = min(divide(waits[step.number] / _MS, row["tcIdleTimeMs"]), 1.0)
            row = _across([core.fed(share) for core in cores], step.dur_ps)
        rows.append({"stepnum": str(step.number), **row, "stepTimeMs": step.dur_ps / _MS})
    return rows


@dataclass(frozen=True, slots=True)
class _Core:
    """What a core waits for in a step, ps."""

    infeed: int
    outfeed: int
    transfers: int
    idle: int

    @classmethod
    def of(cls, self_ps: dict[str, int], dur_ps: int) -> _Core:
        transfers = sum(self_ps.get(category, 0) for category in _HOST_TRANSFERS)
        return cls(self_ps.get("infeed", 0), self_ps.get("outfeed", 0), transfers, dur_ps - sum(self_ps.values()))

    def compute(self, dur_ps: int) -> int:
        """What is left of the step. Ops at its edge may take longer than it: then nothing is, unless waits make up for them."""
        waits = self.infeed + self.outfeed + self.transfers + self.idle
        return dur_ps - waits if 0 <= waits <= dur_ps else 0

    def fed(self, share: float) -> _Core:
        """With a share of its idle time counted as waiting for input."""
        moved = int(max(self.idle, 0) * share)
        return _Core(self.infeed + moved, self.outfeed, self.transfers, self.idle - moved)


def _across(cores: list[_Core], dur_ps: int) -> dict[str, float]:
    compute = min(core.compute(dur_ps) for core in cores) / _MS
    infeed = max(core.infeed for core in cores) / _MS
    outfeed = sum(core.outfeed for core in cores) / len(cores) / _MS
    return {
        "tcComputeTimeMs": compute,
        "tcInfeedTimeMs": infeed,
        "tcOutfeedTimeMs": outfeed,
        "tcIdleTimeMs": max(dur_ps / _MS - compute - infeed - outfeed, 0.0),
        "hostTransferTimeMs": max(core.transfers for core in cores) / _MS,
    }
