"""Does checking the guards of compiled code cost much?"""

from __future__ import annotations

from roofterm.analysis.findings.compiled_regions import idle_within, merged, upkeep
from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding

LEAST_PCT = 2.0


@rule(
    "guard-cost",
    question="What does it cost to find the right compiled graph?",
    definition="""
    Device idle time while the host looks up compiled code, checks its guards or prepares its inputs (TorchDynamo Cache
    Lookup, Pregraph bytecode, AOTDispatcher Runtime Wrapper Prologue). From 2 % of the step.
    """,
    source="torch.profiler guide (runtime architecture of torch.compile)",
    host_bound=True,
)
def guard_cost(e: Evidence) -> Finding | None:
    rows = upkeep(e)
    stake = idle_within(e, merged(e, rows))
    if rows.size == 0 or e.pct(stake) < LEAST_PCT:
        return None
    evidence = {"lookups": rows.size / e.count, "lookups_us": e.mean_us(merged(e, rows).length), "idle_meanwhile_us": e.mean_us(stake)}
    title = f"Guards: {rows.size / e.count:,.0f} look-ups of compiled code while the device idles"
    advice = (
        "Compile larger regions, keep fewer dynamic attributes on modules, and skip guards that cannot fail "
        "(torch.compiler.set_stance, guard_filter_fn)."
    )
    return e.finding(title, stake, "idle", evidence, advice, view="timeline", filter='name:"TorchDynamo Cache Lookup"')
