"""Do all steps take the same time?"""

from __future__ import annotations

from statistics import median

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.findings.step_lengths import settled_rows
from roofterm.results import Finding, StepRow
from roofterm.text.units import figures

LEAST_STEPS = 3
SLOW_FACTOR = 1.15
LEAST_PCT = 3.0

_PARTS = {
    "compute_us": "compute",
    "exposed_comm_us": "exposed communication",
    "exposed_copy_us": "exposed copies",
    "host_wait_us": "waiting for the host",
    "kernel_gap_us": "kernel gaps",
}


@rule(
    "uneven-steps",
    question="Is a step as long as the next, and what grows in the slow ones?",
    definition="""
    Of at least three complete steps of a rank, without those that compile or warm up, the slowest takes more than 1.15
    medians and the mean more than 3 % over the median. At stake is what the steps take beyond the median, as the mean of a
    step. The part of the breakdown that grew most is named.
    """,
    source="triage question 3; definitions of dur_us and steady",
)
def uneven_steps(e: Evidence) -> Finding | None:
    by_rank = [rows for rows in settled_rows(e) if len(rows) >= LEAST_STEPS]
    if not by_rank:
        return None
    excess = total = 0.0
    for rows in by_rank:
        middle = median(row.dur_us for row in rows)
        excess += sum(max(0.0, row.dur_us - middle) for row in rows)
        total += sum(row.dur_us for row in rows)
    steps = sum(len(rows) for rows in by_rank)
    rows = max(by_rank, key=lambda rows: max(row.dur_us for row in rows) / median(row.dur_us for row in rows))
    middle = median(row.dur_us for row in rows)
    slowest = max(rows, key=lambda row: row.dur_us)
    if slowest.dur_us <= SLOW_FACTOR * middle or 100 * excess / total < LEAST_PCT:
        return None
    grown = _grown(rows, slowest)
    evidence = {
        "steps": steps,
        "median_us": middle,
        "slowest": slowest.name,
        "slowest_us": slowest.dur_us,
        "slowest_rank": slowest.rank,
        "shortest_us": min(row.dur_us for row in rows),
        "grew_most": grown[0],
        "grew_by_us": grown[1],
    }
    why = f", mostly {grown[0]}" if grown[0] is not None else ""
    title = f"Uneven steps: {slowest.name} takes {figures(slowest.dur_us / middle)} times the median{why}"
    advice = (
        f"Look at what {slowest.name} does that the others do not: checkpoints, logging, evaluation, a longer batch, garbage "
        "collection, or "
        "other jobs on the node."
    )
    found = e.finding(title, None, "idle", evidence, advice, view="steps", filter="")
    found.time_at_stake_us = excess / steps
    found.share_of_step_pct = 100 * excess / total
    found.evidence |= {"claims_on": "idle" if grown[0] in ("waiting for the host", "kernel gaps") else "step", "per": "step"}
    return found


def _grown(rows: list[StepRow], slowest: StepRow) -> tuple[str | None, float | None]:
    """The part of the slowest step that is longest over its median, and by how much (us)."""
    found: tuple[str | None, float | None] = (None, None)
    for key, title in _PARTS.items():
        values = [getattr(row, key) for row in rows]
        mine = getattr(slowest, key)
        if mine is None or any(value is None for value in values):
            continue
        more = mine - median(values)
        if found[1] is None or more > found[1]:
            found = (title, more)
    return found
