"""Does the device wait for communication that nothing hides?"""

from __future__ import annotations

import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.findings.evidence import Evidence, of_category
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding

LEAST_PCT = 5.0


@rule(
    "exposed-communication",
    question="How much of the communication is not hidden under compute?",
    definition="""
    Union of collectives minus union of compute within the step, per device, where the step waits for it and not for the
    host: from 5 % of it. Seen from one rank it includes waiting for the others, so the link is not blamed. With all ranks
    of a group what late-rank and unequal-collectives claim of it is taken off: claims on communication together never
    exceed exposed communication.
    """,
    source="definition of exposed_comm_us; torch-tb-profiler (communication rule, 10 %); HTA overlap; triage question 11",
    of_device=True,
)
def exposed_communication(e: Evidence) -> Finding | None:
    claims = e.communication_claims
    stake = claims.exposed_ps - claims.late_ps - claims.unequal_ps
    if e.pct(claims.exposed_ps) < LEAST_PCT or stake <= 0:
        return None
    exposed, whole = e.breakdown_ps["exposed_comm"], e.breakdown_ps["comm"]
    pieces = of_category(e.pieces, Category.COMMUNICATION)
    names = pieces.group_by("name").agg(pl.col("inside_ps").sum(), pl.len()).sort("inside_ps", "name", descending=[True, False])
    ranks = {source.rank for source in e.profile.sources}
    evidence = {
        "communication_us": e.mean_us(whole),
        "exposed_us": e.mean_us(exposed),
        "exposed_and_waited_for_us": e.mean_us(claims.exposed_ps),
        "hidden_pct": 100.0 * (whole - exposed) / whole if whole else None,
        "collectives": pieces.height / e.count,
        "longest": e.text(names["name"][0]) if names.height else None,
        "longest_us": e.mean_us(int(names["inside_ps"][0])) if names.height else None,
        "ranks_seen": len(ranks),
        "includes_waiting_for_peers": len(ranks) < 2,
    }
    title = f"Exposed communication: {e.time(exposed)} of {e.time(whole)} in collectives is under no compute"
    if stake < claims.exposed_ps / 2:
        advice = "Nearly all of it is waiting for a late rank or for unequal collectives: see those findings."
        return e.finding(title, stake, "exposed_comm", evidence, advice, view="timeline", filter="cat:communication")
    waiting = " Seen from one rank this includes waiting for the others: open all ranks to tell." if len(ranks) < 2 else ""
    advice = (
        "Start collectives earlier and overlap them: smaller buckets for DDP, prefetch for FSDP, a stream of their own; or send less "
        "(gradient accumulation, bf16 gradients, larger local batch)." + waiting
    )
    return e.finding(title, stake, "exposed_comm", evidence, advice, view="timeline", filter="cat:communication")
