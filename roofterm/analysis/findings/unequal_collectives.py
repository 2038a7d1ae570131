"""Do equal collectives take unequal times?"""

from __future__ import annotations

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding
from roofterm.text.units import figures


@rule(
    "unequal-collectives",
    question="Does the same collective of the same size take different times?",
    definition="""
    Of at least three calls of one collective, size and group on a rank, some take twice the median: waiting for peers or a
    shared link. At stake is what calls take beyond the median where it is exposed and not claimed by late-rank, from 2 % of
    the step. Silent where the sizes are not recorded.
    """,
    source="reference definition of exposed communication; HTA (straggler detection)",
    of_device=True,
)
def unequal_collectives(e: Evidence) -> Finding | None:
    claims = e.communication_claims
    if claims.unequal_ps == 0:
        return None
    worst = claims.unequal.row(0, named=True)
    evidence = {
        "collective": e.text(worst["name"]),
        "calls": worst["calls"],
        "median_us": worst["median_ps"] / 1e6,
        "longest_us": worst["max_ps"] / 1e6,
        "beyond_median_exposed_us": e.mean_us(claims.unequal_ps),
    }
    times = figures(worst["max_ps"] / worst["median_ps"]) if worst["median_ps"] else "many"
    title = f"Unequal collectives: {e.short(worst['name'])} of one size takes up to {times} times its median"
    advice = "Open all ranks to see who arrives late; if all arrive together, look for other jobs on the same links."
    return e.finding(title, claims.unequal_ps, "exposed_comm", evidence, advice, view="timeline", filter="cat:communication")
