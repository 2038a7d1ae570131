"""XProf's input pipeline analysis: where steps spend their time, and whether they wait for input.

Rules: op_stats_to_input_pipeline_analysis.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from roofterm.analysis.xprof.host_ops import HostOps, host_ops
from roofterm.analysis.xprof.input_ops import input_breakdown, input_ops
from roofterm.analysis.xprof.op_metrics import StepMetrics, tpu_metrics
from roofterm.analysis.xprof.peaks import peaks, version_numbers
from roofterm.analysis.xprof.record import divide
from roofterm.analysis.xprof.step_breakdown import Activity, StepTime, input_waits, step_times
from roofterm_parsers.profile import Profile

HIGH_PCT, MODERATE_PCT, POTENTIAL_PCT = 20.0, 5.0, 3.0
TO_DEVICE = "hostToDeviceTimeMs"
"""of a step's infeed the part in which the host sends: no column of XProf's table, but what its breakdown of the host rests on"""
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
_TPU_PARTS = ("tcComputeTimeMs", "scv0ComputeTimeMs", "scv0InfeedTimeMs", "tcInfeedTimeMs", "tcOutfeedTimeMs", "tcIdleTimeMs")
_SCV0_INFEED, _SCV0_OUTFEED = "sparsecorev0 infeed", "sparsecorev0 outfeed"
_FED = ("infeed", _SCV0_INFEED)
HOST_TRANSFERS = ("host send", "host send-done", "host recv", "host recv-done")


def xprof_input_pipeline(
    profile: Profile, version: str, host: HostOps | None = None, tpu_steps: list[StepMetrics] | None = None
) -> dict[str, Any]:
    """`{hardware, steps, input_pct, output_pct, other_pct, idle_pct, verdict, ops, host}`.

    steps: one row each, `stepnum`, `stepTimeMs` and what it was spent on (ms); for TPUs over the cores.
    verdict: "high", "moderate" (20 % and 5 % of the steps' time for input), "potential" (3 % that no event explains), "none",
    or None where no step is known. ops and host: the host's input ops and its input time (`input_ops`); `host` gives what is known
    of its ops, `tpu_steps` of a TPU's steps.
    """
    numbers = version_numbers(version)
    hardware = peaks(profile, numbers).hardware
    if hardware == "TPU":
        steps = _tpu_steps(profile, tpu_metrics(profile, numbers, ops_of_steps=False)[1] if tpu_steps is None else tpu_steps)
        waiting, sending, other, idle = "tcInfeedTimeMs", "tcOutfeedTimeMs", "", "tcIdleTimeMs"
    else:
        steps = [_row(step) for step in step_times(profile, hardware, numbers)]
        waiting, sending, other, idle = "infeedTimeMs", "outfeedTimeMs", "otherTimeMs", ""
    whole = sum(step["stepTimeMs"] for step in steps)

    def share(column: str) -> float:
        return 100 * divide(sum(step[column] for step in steps), whole) if column else 0.0

    host = host_ops(profile) if host is None else host
    ops = input_ops(host)
    to_device = divide(host.enqueue_ps, host.enqueue_span_ps) if host.enqueue_span_ps else _to_device(steps) if hardware != "TPU" else 0.0
    return {
        "hardware": hardware,
        "steps": steps,
        "input_pct": share(waiting),
        "output_pct": share(sending),
        "other_pct": share(other),
        "idle_pct": share(idle),
        "verdict": _verdict(share(waiting), share(other)) if steps else None,
        "ops": ops,
        "host": input_breakdown(ops, to_device),
    }


def _to_device(steps: list[dict[str, Any]]) -> float:
    """Share of the steps in which the host sends to the device."""
    return divide(sum(step[TO_DEVICE] for step in steps), sum(step["stepTimeMs"] for step in steps))


def _verdict(input_pct: float, other_pct: float) -> str:
    if input_pct >= HIGH_PCT:
        return "high"
    if input_pct >= MODERATE_PCT:
        return "moderate"
    return "potential" if other_pct >= POTENTIAL_PCT else "none"


def _row(step: StepTime) -> dict[str, Any]:
    times = {column: sum(step.by_activity.get(kind, 0) for kind in kinds) / _MS for column, kinds in _COLUMNS.items()}
    to_device = step.by_activity.get(Activity.HOST_TO_DEVICE, 0) / _MS
    return {"stepnum": step.name, **times, TO_DEVICE: to_device, "stepTimeMs": step.dur_ps / _MS}


def _tpu_steps(profile: Profile, steps: list[StepMetrics]) -> list[dict[str, Any]]:
    """A step computes as long as the core that computes least; infeed and transfers are the longest of a core, outfeed the mean.

    Where the program has no infeed, the host's waits for input in the step of the same number are taken out of the idle time.
    """
    fed = any(category in core for step in steps for core in step.by_core for category in _FED)
    waits = {} if fed else input_waits(profile)
    rows = []
    for step in steps:
        cores = [_Core.of(core, step.dur_ps) for core in step.by_core]
        row = _across(cores, step.dur_ps)
        if waits.get(step.number):
            share = min(divide(waits[step.number] / _MS, row["tcIdleTimeMs"]), 1.0)
            row = _across([core.fed(share) for core in cores], step.dur_ps)
        length = sum(row[column] for column in _TPU_PARTS)
        rows.append({"stepnum": str(step.number), **row, "stepTimeMs": length})
    return rows


@dataclass(frozen=True, slots=True)
class _Core:
    """What a core waits for in a step, ps."""

    infeed: int
    outfeed: int
    transfers: int
    scv0: int
    """for a SparseCore of the first kind: what its infeed takes beyond its outfeed, since both make the same conversion"""
    idle: int

    @classmethod
    def of(cls, self_ps: dict[str, int], dur_ps: int) -> _Core:
        transfers = sum(self_ps.get(category, 0) for category in HOST_TRANSFERS)
        scv0 = max(self_ps.get(_SCV0_INFEED, 0) - self_ps.get(_SCV0_OUTFEED, 0), 0)
        return cls(self_ps.get("infeed", 0), self_ps.get("outfeed", 0), transfers, scv0, dur_ps - sum(self_ps.values()))

    def compute(self, dur_ps: int) -> int:
        """What is left of the step. Ops at its edge may take longer than it: then nothing is, unless waits make up for them."""
        waits = self.infeed + self.outfeed + self.transfers + self.scv0 + self.idle
        return dur_ps - waits if 0 <= waits <= dur_ps else 0

    def fed(self, share: float) -> _Core:
        """With a share of its idle time counted as waiting for input."""
        moved = int(max(self.idle, 0) * share)
        return replace(self, infeed=self.infeed + moved, idle=self.idle - moved)


def _across(cores: list[_Core], dur_ps: int) -> dict[str, float]:
    compute = min(core.compute(dur_ps) for core in cores) / _MS
    infeed = max(core.infeed for core in cores) / _MS
    outfeed = sum(core.outfeed for core in cores) / len(cores) / _MS
    scv0 = max(core.scv0 for core in cores) / _MS
    percents = [100 * divide(core.infeed, dur_ps) for core in cores]
    return {
        "tcComputeTimeMs": compute,
        "scv0ComputeTimeMs": scv0,
        "scv0InfeedTimeMs": 0.0,  # of the wait for a SparseCore no profile tells how much is its own infeed
        "tcInfeedTimeMs": infeed,
        "tcOutfeedTimeMs": outfeed,
        "tcIdleTimeMs": max(dur_ps / _MS - compute - scv0 - infeed - outfeed, 0.0),
        "hostTransferTimeMs": max(core.transfers for core in cores) / _MS,
        "infeedPercentAverage": sum(percents) / len(percents),
        "infeedPercentMin": min(percents),
        "infeedPercentMax": max(percents),
    }
