"""Is the device's memory nearly full?"""

from __future__ import annotations

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.memory_state import Peak, peaks
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding
from roofterm.text.units import bytes_text, pct

NEAR = 0.9


@rule(
    "memory-near-limit",
    question="Is memory the limit?",
    definition="""
    The most that the allocator reserved (or, where that is not recorded, allocated) is over 90 % of the device's memory, or
    the profile holds out-of-memory marks. No time is at stake: near the limit the allocator frees and asks again.
    """,
    source="torch-tb-profiler (memory rule, 90 %); triage question 19",
)
def memory_near_limit(e: Evidence) -> Finding | None:
    full = [peak for peak in peaks(e) if peak.out_of_memory or (peak.capacity_bytes and _held(peak) > NEAR * peak.capacity_bytes)]
    if not full:
        return None
    worst = max(full, key=lambda peak: (peak.out_of_memory, _held(peak) / (peak.capacity_bytes or _held(peak) or 1)))
    share = 100.0 * _held(worst) / worst.capacity_bytes if worst.capacity_bytes else None
    evidence = {
        "peak_allocated_bytes": worst.used_bytes,
        "peak_reserved_bytes": worst.reserved_bytes,
        "capacity_bytes": worst.capacity_bytes,
        "peak_pct": share,
        "out_of_memory_marks": worst.out_of_memory,
    }
    oom = f", {worst.out_of_memory} allocations failed" if worst.out_of_memory else ""
    title = f"Memory near the limit: {bytes_text(_held(worst))} of {bytes_text(worst.capacity_bytes)} ({pct(share)}){oom}"
    advice = (
        "Leave room: a smaller batch, activation checkpointing, sharded optimizer states, 8-bit states; less cached by "
        "expandable_segments:True."
    )
    severity = "high" if worst.out_of_memory else "medium"
    return e.finding(title, None, "", evidence, advice, view="memory", severity=severity)


def _held(peak: Peak) -> int:
    return int(peak.reserved_bytes or peak.used_bytes)
