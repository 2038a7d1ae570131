"""Does the window hold steps that only warm up?"""

from __future__ import annotations

from statistics import median

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.findings.step_lengths import warm_up, working_rows
from roofterm.analysis.steps import US
from roofterm.results import Finding
from roofterm.text.units import duration_us


@rule(
    "warm-up-in-window",
    question="Does the window begin before the job has settled?",
    definition="""
    The first steps, each longer than 1.5 medians of those that follow (at least two), without compilation inside. They are
    left out of the steady steps. At stake is, once, what they take beyond the median of the rest.
    """,
    source="torch.profiler guide (cold-start overhead); definition of steady",
)
def warm_up_in_window(e: Evidence) -> Finding | None:
    excess = total = 0.0
    steps, name, longest = 0, "", 0.0
    for rows in working_rows(e):
        count = warm_up(rows)
        if count == 0:
            continue
        rest = median(row.dur_us for row in rows[count:])
        excess += sum(row.dur_us - rest for row in rows[:count])
        total += sum(row.dur_us for row in rows[:count])
        steps = max(steps, count)
        if rows[0].dur_us > longest:
            name, longest, settled = rows[0].name, rows[0].dur_us, rest
    if steps == 0:
        return None
    evidence = {"warm_up_steps": steps, "first": name, "first_us": longest, "settled_median_us": settled}
    title = f"Warm-up inside the window: {name} takes {duration_us(longest)}, later steps {duration_us(settled)}"
    advice = "Let the profiler wait longer: schedule(wait=..., warmup=...) with a few steps more before the active ones."
    return e.finding_once(title, round(excess * US), round(total * US), evidence, advice, view="steps")
