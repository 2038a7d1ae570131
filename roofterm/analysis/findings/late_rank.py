"""Is one rank late, so that the others wait for it in their collectives?"""

from __future__ import annotations

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding


@rule(
    "late-rank",
    question="Do the ranks wait for one of them?",
    definition="""
    With two or more ranks open, collectives are matched by group and sequence or order; from its arrival until the last one's
    a rank waits. At stake is that waiting where it is exposed and the step waits for it, as the mean of a rank's step, from
    3 % of it. The late rank is the one that alone keeps the others waiting longest.
    """,
    source="definition of wait and transfer; TraceLens (skew), HTA (stragglers); triage question 12",
    of_device=True,
)
def late_rank(e: Evidence) -> Finding | None:
    claims = e.communication_claims
    if claims.late_ps == 0:
        return None
    ranks = {str(row.rank if row.rank is not None else row.host or at): row for at, row in enumerate(e.study.ranks())}
    late = max(ranks, key=lambda one: (ranks[one].kept_waiting_us or 0.0, one))
    evidence = {
        "late_rank": late,
        "wait_us_by_rank": {one: row.wait_us for one, row in ranks.items()},
        "kept_waiting_us_by_rank": {one: row.kept_waiting_us for one, row in ranks.items()},
        "last_pct": ranks[late].last_pct,
        "matched_collectives": claims.matched,
        "waiting_exposed_us": e.mean_us(claims.late_ps),
    }
    title = f"Late rank: the others wait for rank {late} in their collectives"
    advice = (
        f"Compare rank {late} with the others before each collective: more or longer input, uneven shards (embedding tables, "
        "experts), a slower host or a throttled device."
    )
    return e.finding(
        title,
        claims.late_ps,
        "exposed_comm",
        evidence,
        advice,
        view="ranks",
        filter=f"rank:{late}" if late.isdigit() else "",
    )
