"""Is one rank late, so that the others wait for it in their collectives?"""

from __future__ import annotations

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding


@rule(
    "late-rank",
    question="Do the ranks wait for one of them?",
    definition="""
    With two or more ranks open, collectives are matched by name, group and order. The shortest of the matched calls is the
    transfer; what a rank's call takes beyond it is waiting for the last to arrive. At stake is that waiting where it is
    exposed, as the mean of a rank's step, from 3 % of it. The late rank is the one that waits least.
    """,
    source="definition of wait and transfer; TraceLens (skew), HTA (stragglers); triage question 12",
)
def late_rank(e: Evidence) -> Finding | None:
    claims = e.communication_claims
    if claims.late_ps == 0:
        return None
    rank = {row: source.rank if source.rank is not None else row for row, source in enumerate(e.profile.sources)}
    waits = {rank[row]: wait / 1e6 for row, wait in sorted(claims.waits_ps.items())}
    late = min(waits, key=lambda one: waits[one])
    evidence = {
        "late_rank": late,
        "wait_us_by_rank": {str(one): wait for one, wait in waits.items()},
        "matched_collectives": claims.matched,
        "waiting_exposed_us": e.mean_us(claims.late_ps),
    }
    title = f"Late rank: the others wait for rank {late} in their collectives"
    advice = (
        f"Compare rank {late} with the others before each collective: more or longer input, uneven shards (embedding tables, experts), "
        "a slower "
        "host or a throttled device."
    )
    return e.finding(title, claims.late_ps, "exposed_comm", evidence, advice, view="timeline", filter=f"cat:communication rank:{late}")
