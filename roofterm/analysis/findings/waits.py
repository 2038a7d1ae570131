"""Calls in which the host waits for a device, and what the device did meanwhile and right after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.intervals import NONE, covered
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import Kind

if TYPE_CHECKING:
    from roofterm.analysis.findings.evidence import Evidence

SHORTEST_PS = 20_000_000
"""A copying call that takes less (20 us) only hands the copy over."""

WAITS = pl.Schema(
    {
        "slice": pl.UInt32,
        "name": pl.UInt32,  # row of names
        "op": pl.UInt32,  # innermost op around the call
        "start_ps": pl.Int64,
        "end_ps": pl.Int64,
        "device": pl.UInt16,
        "busy_ps": pl.Int64,  # of the device during the call
        "refill_ps": pl.Int64,  # idle time of the device between this call and the next wait, in which the host dispatches
        "won_ps": pl.Int64,  # what is won at most if the host does not wait: the shorter of call and refill
    }
)


def waits(e: Evidence) -> pl.DataFrame:
    """Calls that wait (schema `WAITS`), one row a call and device, in order of device and start.

    A call waits if it synchronises, or copies and is still under way when the copy starts. Without the wait the host would
    be ahead by the call's length, so the idle time after it, until the next wait, is won up to that length.
    """
    study, slices = e.study, e.profile.slices
    copies = study.work.filter(pl.col("kind") == int(Kind.COPY)).drop_nulls("launch").select("slice", "launch", "start_ps")
    calls = copies["launch"].to_numpy().astype(np.int64)
    still_in_call = study.start_ps[calls] + study.dur_ps[calls] >= copies["start_ps"].to_numpy()
    blocking = calls[still_in_call & (study.dur_ps[calls] >= SHORTEST_PS)]
    synchronising = np.flatnonzero(study.kind == int(Kind.SYNC))
    rows = occurring(np.concatenate((blocking, synchronising)))
    rows = rows[e.host_rows[rows]]
    source = e.profile.tracks["source"].to_numpy()[slices["track"].to_numpy()[rows]]
    parts = []
    for device, line in e.lines.items():
        mine = rows[source == e.profile.devices["source"][device]]
        mine = mine[np.argsort(study.start_ps[mine], kind="stable")]
        if mine.size == 0:
            continue
        start = study.start_ps[mine]
        end = start + study.dur_ps[mine]
        following = np.concatenate((start[1:], [max(int(line.busy.end[-1]), int(end[-1]))])) if line.busy.end.size else end
        dispatch = e.host_wait.get(Cause.DISPATCH, {}).get(device, NONE)
        refill = covered(dispatch, start, np.maximum(following, end))
        parts.append(
            pl.DataFrame(
                {
                    "slice": mine,
                    "name": slices["name"].to_numpy()[mine],
                    "op": _ops_around(e, mine),
                    "start_ps": start,
                    "end_ps": end,
                    "device": np.full(mine.size, device),
                    "busy_ps": covered(line.busy, start, end),
                    "refill_ps": refill,
                    "won_ps": np.minimum(end - start, refill),
                },
                schema_overrides=dict(WAITS),
            )
        )
    return pl.concat(parts) if parts else pl.DataFrame(schema=WAITS)


def _ops_around(e: Evidence, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pl.Series:
    from roofterm_parsers.linking import NONE as NO_OP
    from roofterm_parsers.linking import innermost_op

    found = innermost_op(e.profile.slices, rows)
    return pl.Series(np.where(found == NO_OP, 0, found)).cast(pl.UInt32).set(pl.Series(found == NO_OP), None)
