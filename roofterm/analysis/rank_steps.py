"""Ranks by steps: each step of each rank with its breakdown and what it waited and kept the others waiting."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from roofterm.analysis.steps import US
from roofterm.results import StepRow
from roofterm_parsers.profile import Profile

FIGURES = ("dur_us", "compute_us", "exposed_comm_us", "wait_us", "kept_waiting_us", "idle_us", "host_wait_us")
"""What can be held against the other ranks, by its name in `RANK_STEPS`."""

RANK_STEPS = pl.Schema(
    {
        "source": pl.UInt16(),  # row of Profile.sources
        "rank": pl.Int64(),
        "host": pl.String(),
        "number": pl.Int64(),  # the step's
        "name": pl.String(),
        "steady": pl.Boolean(),
        **dict.fromkeys(FIGURES, pl.Float64()),
    }
)
"""One row a rank and step, in order of rank and step; waits are null where no collective of the step could be matched."""


def rank_steps(
    profile: Profile, windows: pl.DataFrame, steps: Sequence[StepRow], calls: pl.DataFrame, matched: pl.DataFrame
) -> pl.DataFrame:
    """Frame of schema `RANK_STEPS`: times in us, waits the mean of the rank's devices.

    `windows` (schema `steps.WINDOWS`) and `steps` go row for row; `calls` and `matched` are of the schemas
    `collective_calls.CALLS` and `matching.MATCHED`. A step is a rank's whole one, so its figures are those of `StepRow`.
    """
    known = [name for name in FIGURES if name in StepRow.__struct_fields__]
    records = [
        {
            "source": row["source"],
            "rank": profile.sources[row["source"]].rank,
            "host": profile.sources[row["source"]].host,
            "number": profile.steps["number"][row["step"]],
            "step": row["step"],
            "name": step.name,
            "steady": step.steady,
            **{name: getattr(step, name) for name in known},
        }
        for row, step in zip(windows.iter_rows(named=True), steps, strict=True)
    ]
    schema = {name: kind for name, kind in RANK_STEPS.items() if name not in ("wait_us", "kept_waiting_us")}
    table = pl.DataFrame(records, schema={**schema, "step": pl.UInt32()})
    meetings = calls.select("slice", "step", "source", "device").join(matched, on="slice", how="inner")
    devices = pl.max_horizontal(pl.col("device").n_unique(), 1)
    waits = meetings.group_by("source", "step").agg(
        wait_us=pl.col("wait_ps").sum() / US / devices, kept_waiting_us=pl.col("lead_ps").sum() / US / devices
    )
    table = table.join(waits, on=["source", "step"], how="left", maintain_order="left")
    return table.select(pl.col(name).cast(kind) for name, kind in RANK_STEPS.items()).sort("rank", "source", "number", nulls_last=True)
