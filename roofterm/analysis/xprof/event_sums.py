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
    told = profile.hlo_events
    columns = [name for name in _STATED if told[name].null_count() < told.height]
    row_of = np.full(profile.slices.height, -1, np.int32)
    row_of[events["slice"].to_numpy()] = np.arange(events.height, dtype=np.int32)
    row = row_of[told["slice"].to_numpy()]
    says = [told[name].is_not_null().to_numpy() for name in columns]
    kept = np.logical_and(np.logical_or.reduce(says), row >= 0) if says else np.zeros(told.height, np.bool_)
    stated = told.select("slice", *columns) if kept.all() else told.select("slice", *columns).filter(pl.Series(kept))
    sums = {
        "scaled_ps": (pl.col("dur_ps") * (pl.col("time_scale").fill_null(1.0) - 1.0)).sum(),
        "stall_ps": pl.col("dma_stall_ps").sum(),
        "event_flops": pl.col("flops").sum(),
        "event_model_flops": pl.col("model_flops").sum(),
        "event_bytes": pl.col("bytes").sum(),
    }
    known = {
        name: total if stat in columns else pl.lit(0 if stat == "dma_stall_ps" else 0.0)
        for (name, total), stat in zip(sums.items(), _STATED, strict=True)
    }
    found: pl.DataFrame = events.select("dur_ps", *keys)[row[kept]].hstack(stated.drop("slice")).group_by(keys).agg(**known)
    return found
