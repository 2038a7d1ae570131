"""`ops --by iteration`: iterations by phase, batch and context, with their time, breakdown and rates."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from roofterm.analysis.batches import DECODE, MIXED
from roofterm.analysis.levels import summed, with_shares
from roofterm.analysis.steps import US
from roofterm.results import TABLES, StepRow

PARTS = ("compute_us", "exposed_comm_us", "exposed_copy_us", "idle_us", "host_wait_us", "kernel_gap_us", "launched_device_us")
"""Figures of a step that a row gives as means over its iterations."""

_TYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    "name": pl.String,
    "category": pl.String,
    "dtype": pl.String,
    "bound_by": pl.String,
    "limiter": pl.String,
    "limit": pl.String,
    "phase": pl.String,
    "calls": pl.Int64,
    "sequences": pl.Int64,
}


def iteration_table(
    facts: pl.DataFrame, windows: pl.DataFrame, rows: Sequence[StepRow], items: pl.DataFrame, chosen: Sequence[bool] | None = None
) -> pl.DataFrame:
    """Columns of `results.TABLES["iteration"]`, most total time first.

    `facts`: columns of `iterations.ITERATIONS` from `phase` on; `windows`: schema `steps.WINDOWS`; `rows`: the step rows; all
    three row for row. `items`: schema `costed.ITEMS` with bounds, `step` counting these rows. `chosen`: which iterations are
    shown; the times between tokens are taken from all of them.

    `tokens_per_s`: new tokens, of prompts and generated, over the iterations' time. `inter_token_*`: from the end of one
    iteration that generates to the end of the next one of the same source, whatever ran between; the first has none.
    """
    if not rows:
        return _columns(pl.DataFrame(schema={"name": pl.String, "total_us": pl.Float64}))
    frame = pl.DataFrame(
        [{name: getattr(row, name) for name in ("name", "dur_us", "host_dur_us", "mbu_pct", "launches", *PARTS)} for row in rows],
        schema={"name": pl.String, "dur_us": pl.Float64, "host_dur_us": pl.Float64, "mbu_pct": pl.Float64, "launches": pl.Int64}
        | dict.fromkeys(PARTS, pl.Float64),
    )
    frame = pl.concat([frame, facts], how="horizontal").with_row_index("step")
    frame = frame.with_columns(
        inter_token_us=_inter_token_us(windows, frame["phase"]),
        tokens=pl.sum_horizontal("prompt_tokens", "generated_tokens", ignore_nulls=False),
        group=_titles(frame),
    )
    if chosen is not None:
        frame = frame.filter(pl.Series(chosen, dtype=pl.Boolean))
    table = frame.group_by("group", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("calls"),
        pl.col("phase", "sequences").first(),
        pl.col("prompt_tokens", "generated_tokens", "context_tokens", "causal_pairs", "mbu_pct", "launches", *PARTS).mean(),
        total_us=pl.col("dur_us").sum(),
        mean_us=pl.col("dur_us").mean(),
        min_us=pl.col("dur_us").min(),
        max_us=pl.col("dur_us").max(),
        p50_us=pl.col("dur_us").quantile(0.5, "linear"),
        p99_us=pl.col("dur_us").quantile(0.99, "linear"),
        host_us=pl.col("host_dur_us").sum(),
        tokens=pl.when(pl.col("tokens").is_not_null().all()).then(pl.col("tokens").sum()),
        inter_token_p50_us=pl.col("inter_token_us").quantile(0.5, "linear"),
        inter_token_p99_us=pl.col("inter_token_us").quantile(0.99, "linear"),
    )
    table = table.with_columns(
        self_us=pl.col("total_us"),
        device_us=pl.col("launched_device_us") * pl.col("calls"),
        pct=100 * pl.col("total_us") / pl.col("total_us").sum(),
        tokens_per_s=pl.when(pl.col("total_us") > 0).then(pl.col("tokens") / pl.col("total_us") * US),
        category=pl.lit("iteration"),
    )
    table = table.join(_worked(items, frame.select("step", "group")), on="group", how="left", maintain_order="left")
    return _columns(table.rename({"group": "name"}))


def _titles(frame: pl.DataFrame) -> pl.Series:
    """What an iteration is called with its likes: phase, batch, and the power of two that its context per sequence lies under."""
    texts = [
        _title(*row)
        for row in frame.select("name", "phase", "sequences", "prompt_tokens", "generated_tokens", "context_tokens").iter_rows()
    ]
    return pl.Series(texts, dtype=pl.String)


def _title(name: str, phase: str | None, sequences: int | None, prompt: int | None, generated: int | None, context: int | None) -> str:
    if phase is None:
        return re.sub(r"\d+", "#", re.sub(r" #\d+$", "", name))
    parts = [phase]
    if sequences is not None:
        parts.append(f"{sequences:,} sequence{'s' if sequences != 1 else ''}")
    if phase != DECODE and prompt is not None:
        parts.append(f"up to {_power(prompt):,} prompt tokens")
    if sequences and context is not None:
        parts.append(f"context up to {_power(-(-context // sequences)):,}")
    if sequences and generated and phase == DECODE and generated > sequences:
        parts.append(f"{generated / sequences:.3g} tokens each")
    return ", ".join(parts)


def _power(count: int) -> int:
    """The least power of two that is not below `count`."""
    return 1 << max(count - 1, 0).bit_length()


def _inter_token_us(windows: pl.DataFrame, phase: pl.Series) -> pl.Series:
    """Time from the end of the generating iteration before, in us; null for one that generates nothing, and for the first."""
    order = windows.with_row_index("row").with_columns(phase=phase)
    generating = order.filter(pl.col("phase").is_in([DECODE, MIXED])).sort("source", "end_ps", maintain_order=True)
    since = generating.with_columns(since=pl.col("end_ps").diff().over("source")).select("row", "since")
    times = order.select("row").join(since, on="row", how="left", maintain_order="left")["since"]
    return pl.Series("inter_token_us", times.cast(pl.Float64).to_numpy() / US).fill_nan(None)


def _worked(items: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """FLOPs, bytes, what bounds the work and its share of the roof, by group: of the work that has figures."""
    mine = items.join(groups, on="step", how="inner")
    if mine.height == 0:
        return pl.DataFrame(
            schema={"group": pl.String, "flops": pl.Float64, "bytes": pl.Float64}
            | {"bound_by": pl.String, "pct_of_roof": pl.Float64, "limiter": pl.String, "limit": pl.String}
        )
    known = mine.filter(pl.col("bound_s").is_not_null())
    rows = with_shares(summed(known, ["group"]))
    return rows.with_columns(bytes="hbm_bytes").select("group", "flops", "bytes", "bound_by", "pct_of_roof", "limiter", "limit")


def _columns(table: pl.DataFrame) -> pl.DataFrame:
    names = TABLES["iteration"]
    missing = [pl.lit(None, _TYPES.get(name, pl.Float64)).alias(name) for name in names if name not in table.columns]
    return table.with_columns(*missing).select(names).sort(["total_us", "name"], descending=[True, False], maintain_order=True)
