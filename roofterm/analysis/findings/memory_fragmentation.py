"""Is much of the reserved memory in pieces that cannot be used?"""

from __future__ import annotations

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.memory_state import peaks
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding
from roofterm.text.units import bytes_text, pct

LEAST_SHARE = 0.3
LEAST_BYTES = 1 << 30


@rule(
    "memory-fragmentation",
    question="Does the allocator hold much more than is in use?",
    definition="""
    When the allocator had reserved most, at least 30 % and 1 GiB of it was not allocated, and the reserve is over half of
    the device's memory. No time is at stake.
    """,
    source="PyTorch notes on CUDA memory management (expandable_segments); triage question 19",
)
def memory_fragmentation(e: Evidence) -> Finding | None:
    for peak in peaks(e):
        if not peak.reserved_bytes or not peak.capacity_bytes:
            continue
        unused = peak.reserved_bytes - peak.used_then_bytes
        if unused < LEAST_BYTES or unused < LEAST_SHARE * peak.reserved_bytes or 2 * peak.reserved_bytes < peak.capacity_bytes:
            continue
        share = 100.0 * unused / peak.reserved_bytes
        evidence = {
            "peak_reserved_bytes": peak.reserved_bytes,
            "allocated_then_bytes": peak.used_then_bytes,
            "unused_bytes": unused,
            "unused_pct": share,
            "capacity_bytes": peak.capacity_bytes,
        }
        title = f"Fragmented memory: {bytes_text(unused)} of {bytes_text(peak.reserved_bytes)} reserved ({pct(share)}) is not in use"
        advice = (
            "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PYTORCH_HIP_ALLOC_CONF), keep shapes alike from step to step, free "
            "large buffers early."
        )
        return e.finding(title, None, "", evidence, advice, view="memory", severity="low")
    return None
