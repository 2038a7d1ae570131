"""Does the host wait for the device where it could run ahead?"""

from __future__ import annotations

import polars as pl

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding

LEAST_PCT = 2.0


@rule(
    "blocking-syncs",
    question="Who blocks the host, and what did the device do meanwhile?",
    definition="""
    Calls that wait for the device (synchronising calls, .item(), copies that return only when they are done) empty its
    queue; then it is idle until the host has launched again. At stake is, for each wait, the idle time after it until the
    next wait while the host dispatches, at most the length of the wait: by so much the host would have been ahead. What
    flushes the profiler's buffers at the end of a window has nothing after it and claims nothing. Silent below 2 %.
    """,
    source="torch.profiler guide (synchronisation); triage question 8",
    host_bound=True,
)
def blocking_syncs(e: Evidence) -> Finding | None:
    stake = e.won_by_waits_ps
    if (e.thin and not e.replays_graphs) or e.lacks_work or e.pct(stake) < LEAST_PCT:
        return None
    rows = e.waits.filter(pl.col("won_ps") > 0)
    length = pl.col("end_ps") - pl.col("start_ps")
    caller = e.caller(int(rows.sort("won_ps", descending=True)["slice"][0]))
    named = rows.with_columns(by=pl.coalesce(e.profile.slices["name"][rows["op"]], "name"))
    worst = named.group_by("name", "by").agg(pl.len(), pl.col("won_ps").sum(), length.sum().alias("dur")).sort("won_ps", descending=True)
    top = worst.row(0, named=True)
    blocked = int((rows["end_ps"] - rows["start_ps"]).sum())
    evidence = {
        "waits": rows.height / e.count,
        "blocked_us": e.mean_us(blocked),
        "device_busy_meanwhile_us": e.mean_us(int(rows["busy_ps"].sum())),
        "idle_after_us": e.mean_us(int(rows["refill_ps"].sum())),
        "worst_call": e.text(top["name"]),
        "worst_op": e.text(top["by"]),
        "worst_calls": top["len"] / e.count,
        "worst_blocked_us": e.mean_us(int(top["dur"])),
        "called_from": caller,
    }
    call, op = e.text(top["name"]), e.text(top["by"])
    what = f"{op} ({call})" if op != call else call
    title = f"Blocking waits: the host waits {e.time(blocked)} for the device, which then idles"
    advice = (
        f"Take {what}{f' in {caller}' if caller else ''} out of the step, or make it asynchronous: keep the value on the device, log "
        "every n-th "
        "step, copy to pinned memory with non_blocking=True and wait for an event later."
    )
    return e.finding(title, stake, "idle", evidence, advice, view="timeline", filter=f'name:"{call}"')
