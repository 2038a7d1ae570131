"""Is it known which device this is, and is it a whole one?"""

from __future__ import annotations

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding


@rule(
    "device-unknown-or-partition",
    question="Whose roofs are these?",
    definition="""
    The device that worked is in no entry of the hardware table, so that it has no roof; or it is a part of its model (MIG
    slice, CPX partition, fewer units), whose roofs are scaled. No time is at stake.
    """,
    source="triage question 2; hardware table",
)
def device_unknown_or_partition(e: Evidence) -> Finding | None:
    device = e.study.device
    if device is None or (device.model is not None and device.partition is None):
        return None
    if device.model is None:
        called = f"is called {device.name!r}" if device.name else "has no name in the profile"
        title = f"Unknown device: it {called}, so it has no roof"
        advice = "Name it with --device, give its peaks with --peak and --bandwidth, or measure them where it runs (roofterm measure)."
    else:
        title = f"A part of a device: {device.model}, {device.partition}; its roofs are scaled"
        advice = "Compare with other profiles of the same partition only; measure its roofs (roofterm measure) to be sure of them."
    evidence = {
        "name": device.name,
        "model": device.model,
        "partition": device.partition,
        "units": device.units,
        "memory_bytes": device.memory_bytes,
    }
    return e.finding(title, None, "", evidence, advice, view="device", severity="info")
