"""Events added up by instruction, device and step: what XProf's op metrics are made of, in a frame of few rows."""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm_parsers.profile import Profile

_STATED = ("time_scale", "dma_stall_ps", "flops", "model_flops", "bytes")


def event_sums(profile: Profile, events: pl.DataFrame, step: pl.Series | None = None) -> pl.DataFrame:
    """Sums of `device_events` by step (0 without `step`, one number for each event), device, op.

    occurrences, time_ps, self_ps, normalized_ps (time at the nominal clock), stall_ps (waiting for DMA), and what the events
    state of their own costs: event_flops, event_model_flops, event_bytes (0 where none states any).
    """
    keys = ["step", "device", "op"]
    events = events.with_columns(step if step is not None else pl.lit(0, pl.Int64).alias("step"))
    sums = (
        events.lazy()
        .group_by(keys)
        .agg(pl.len().cast(pl.Int64).alias("occurrences"), pl.col("dur_ps").sum().alias("time_ps"), pl.col("self_ps").sum())
        .collect()
    )
    found: pl.DataFrame = (
        sums.join(_stated_sums(profile, events.select("slice", "dur_ps", *keys), keys), on=keys, how="left")
        .with_columns(
            pl.col("scaled_ps", "event_flops", "event_model_flops", "event_bytes").fill_null(0.0), pl.col("stall_ps").fill_null(0)
        )
        .with_columns(normalized_ps=pl.col("time_ps") + pl.col("scaled_ps"))
        .drop("scaled_ps")
    )
    return found


def _stated_sums(profile: Profile, events: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Sums over the events that say more than their time; `scaled_ps` is what their clock adds to it."""
    stated = profile.hlo_events.filter(pl.any_horizontal(pl.col(*_STATED).is_not_null()))
    row_of = np.full(profile.slices.height, -1, np.int32)
    row_of[events["slice"].to_numpy()] = np.arange(events.height, dtype=np.int32)
    row = row_of[stated["slice"].to_numpy()]
    known = pl.Series(row >= 0)
    told = events.drop("slice")[row[row >= 0]].hstack(stated.filter(known).select(_STATED))
    found: pl.DataFrame = told.group_by(keys).agg(
        (pl.col("dur_ps") * (pl.col("time_scale").fill_null(1.0) - 1.0)).sum().alias("scaled_ps"),
        pl.col("dma_stall_ps").sum().alias("stall_ps"),
        pl.col("flops").sum().alias("event_flops"),
        pl.col("model_flops").sum().alias("event_model_flops"),
        pl.col("bytes").sum().alias("event_bytes"),
    )
    return found
