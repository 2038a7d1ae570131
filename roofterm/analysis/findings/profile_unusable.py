"""Can the profile be trusted: is it whole, on the right process, with the device's work in it?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.findings.severity import LEVELS
from roofterm.results import Finding
from roofterm.text.units import count
from roofterm_parsers.profile import HOST_CALL_KINDS

LEAST_LAUNCHES = 10
LOST_PCT = 10.0
MISSING_PCT = 10.0
CUT = ("cut", "truncated", "no-kernels", "xplane-error", "implausible-clock")

LAUNCH = r"^(cuda|hip|cu)\w*Launch(Cooperative)?Kernel|^hip(Ext)?(Module)?LaunchKernel|^urEnqueueKernelLaunch"
CAPTURE = r"^(cuda|hip)(StreamBeginCapture|StreamEndCapture|GraphInstantiate)"


class Fault(NamedTuple):
    severity: str
    text: str
    advice: str


@rule(
    "profile-unusable",
    question="Is the profile whole, and does it hold the device's work?",
    definition="""
    The profile holds launches but no device work; or launches that are captured into a graph and not run; or a tenth of the
    launches has no kernel; or the device is idle for a tenth of the time although its next kernel had been launched more
    than 1 ms before (the work that ran then is missing); or the file is cut; or no step is complete. No time is at stake:
    figures of the parts that are missing cannot be had.
    """,
    source="triage question 1; reference list of malformed traces",
)
def profile_unusable(e: Evidence) -> Finding | None:
    launches, missing = _launches(e)
    work = e.study.work.height
    captured = _captured(e)
    lost = e.unrecorded_ps
    lost_pct = 100.0 * lost / e.whole_ps if e.whole_ps else 0.0
    cut = [warning.message for warning in e.profile.warnings if warning.code in CUT and warning.code != "no-kernels"]
    faults = []
    if launches >= LEAST_LAUNCHES and captured and missing >= launches / 2:
        faults.append(Fault("info", f"{count(launches)} launches were captured into a graph and not run", _CAPTURED))
    elif launches >= LEAST_LAUNCHES and work == 0:
        faults.append(Fault("high", f"{count(launches)} launches but no kernel: the profiler recorded no device work", _NO_WORK))
    elif launches >= LEAST_LAUNCHES and 100 * missing >= MISSING_PCT * launches:
        faults.append(Fault("medium", f"{count(missing)} of {count(launches)} launches have no kernel in the file", _LOST))
    if lost_pct >= LOST_PCT:
        told = f"for {e.time(lost)} the device seems idle though work was launched: it is not in the file"
        faults.append(Fault("medium", told, _LOST))
    if cut:
        faults.append(Fault("medium", "the file is cut or damaged", _CUT))
    if e.study.windows.height and not e.study.windows["complete"].any():
        faults.append(Fault("medium", "no step is complete", _NO_STEP))
    if not faults:
        return None
    worst = min(faults, key=lambda fault: LEVELS.index(fault.severity))
    evidence = {
        "faults": [fault.text for fault in faults],
        "launches": launches,
        "launches_without_kernel": missing,
        "device_work": work,
        "unrecorded_us": e.mean_us(lost),
        "unrecorded_pct": lost_pct,
        "warnings": cut,
    }
    title = f"Profile to be read with care: {'; '.join(fault.text for fault in faults)}"
    return e.finding(title, None, "", evidence, worst.advice, view="overview", severity=worst.severity)


def _launches(e: Evidence) -> tuple[int, int]:
    """Calls that launch kernels, and how many of them have no work in the file."""
    names = e.profile.names["text"].str.contains(LAUNCH).to_numpy()
    call = np.isin(e.study.kind, [int(kind) for kind in HOST_CALL_KINDS])
    rows = np.flatnonzero(call & names[e.profile.slices["name"].to_numpy()]) if names.any() else np.zeros(0, np.int64)
    linked = np.zeros(call.size, np.bool_)
    linked[e.study.work["launch"].drop_nulls().to_numpy()] = True
    return rows.size, int((~linked[rows]).sum())


def _captured(e: Evidence) -> bool:
    names = e.profile.names["text"].str.contains(CAPTURE)
    return bool(e.profile.slices["name"].is_in(names.arg_true().implode()).any()) if names.any() else False


_NO_WORK = (
    "Record again with ProfilerActivity.CUDA, check that CUPTI or roctracer may be used (driver permissions, no other profiler "
    "attached), and "
    "give the profiler a warm-up step."
)
_CAPTURED = "This is the capture of a graph: open a profile of its replays for device times, with this one beside it for ops and shapes."
_LOST = (
    "Record again with a warm-up step before the active ones and a synchronisation before the window, so that no earlier work runs "
    "into it; "
    "raise the profiler's buffer limit if events were dropped."
)
_CUT = "Let the writer finish, or copy the file again; what lies before the cut is shown."
_NO_STEP = "Record at least one whole step: call prof.step() after each and let the last one finish."
