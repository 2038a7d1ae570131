"""What changed between two profiles: figures of the step, and the rows of each level, a step each where both have steps.

A change is judged by the steps' own spread (`spread.py`); rows are matched by names made alike (`compare_names.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from roofterm.analysis.compare_sums import LEVELS, Level, Units, level_sums, units
from roofterm.analysis.digest import digest
from roofterm.analysis.scope import STEADY, Scope
from roofterm.analysis.spread import chance_spread
from roofterm.hardware.table import load_table
from roofterm.results import StepRow

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

CHANGES = pl.Schema(
    {
        "level": pl.Enum(("step", *(level.name for level in LEVELS))),
        "name": pl.String(),
        "base": pl.Float64(),  # in `unit`; null: unknown, or not there
        "new": pl.Float64(),
        "change": pl.Float64(),
        "change_pct": pl.Float64(),  # of base
        "spread": pl.Float64(),  # in `unit`: what the steps' own spread may account for; null: not known
        "unit": pl.String(),  # us, pct, bytes or count
        "base_calls": pl.Float64(),
        "new_calls": pl.Float64(),
        "base_mean_us": pl.Float64(),
        "new_mean_us": pl.Float64(),
        "base_bound_by": pl.String(),  # limiter of the row, of kernels that of the name with most time
        "new_bound_by": pl.String(),
        "base_name": pl.String(),  # name in the file, of several that are one row the one with most time
        "new_name": pl.String(),
        "status": pl.Enum(("changed", "within spread", "differs", "same", "added", "removed", "unknown")),
    }
)
"""One row a figure of the step, and one a row of each level: the largest change beyond the spread first.

`differs`: not the same, and no spread to judge it by (one step on either side, a figure of the whole file).
"""

STEP_TIMES = (
    "dur_us", "compute_us", "exposed_comm_us", "exposed_copy_us", "idle_us", "host_wait_us", "kernel_gap_us", "comm_us", "copy_us",
    "launched_device_us", "host_dur_us",
)  # fmt: skip
STEP_SHARES = (
    "busy_pct", "compute_busy_pct", "tensor_core_pct", "sm_efficiency_pct", "host_busy_pct", "mfu_pct", "hfu_pct", "mbu_pct",
)  # fmt: skip
WHOLE_FILE = ("span_us", "kernel_us", "memcpy_us", "gpu_busy_us", "sync_us", "peak_mem_bytes", "kernels")
"""Facts of the summary that are compared as they are: of the whole file, not of a step."""

BOUND_TABLES = {"category": "category", "kernel": "kernel", "op": "op"}
"""Levels whose rows have a limiter, and the table that tells it."""


class Comparison(NamedTuple):
    changes: pl.DataFrame
    """schema `CHANGES`"""
    facts: dict[str, tuple[float | None, float | None]]
    """figures by name, of base and of new: what a condition may speak of"""
    per_step: bool
    """times of rows are those of one step (and rank); else of the whole files"""
    base_text: str
    """what is spoken of, such as "4 steady steps" """
    new_text: str
    base_steps_us: tuple[float, float] | None
    """shortest and longest of the steps spoken of; None without steps"""
    new_steps_us: tuple[float, float] | None
    base_device: str | None
    new_device: str | None
    """models, or the names in the files"""
    two_vendors: bool
    """their kernels and runtime calls have no names in common"""


def compare(base: Study, new: Study, scope: Scope = STEADY) -> Comparison:
    """Compare two studies: the scope's steps against each other, a step and rank each; whole files where either has no steps.

    The scope's filter chooses rows of the levels. Raises FilterError for a wrong expression, ScopeError for a step or rank
    that is not there.
    """
    per_step = scope.step != "all" and base.windows.height > 0 and new.windows.height > 0
    part = scope if per_step else Scope(step="all", where=scope.where, window_ps=scope.window_ps, rank=scope.rank)
    sides = tuple((study, units(study, part, per_step)) for study in (base, new))
    facts = {name: (of_base, of_new) for (name, of_base), of_new in zip(figures(base).items(), figures(new).values(), strict=True)}
    rows_of = [_step_rows(study, chosen) for study, chosen in sides]
    parts = [_facts_frame(facts, *rows_of)]
    parts += [rows for level in LEVELS if (rows := _level(level, sides, part, per_step)) is not None]
    devices = [study.device for study in (base, new)]
    entries = [load_table().by_id(device.model or "") for device in devices if device is not None]
    vendors = {entry.vendor for entry in entries if entry is not None}
    whole = Scope(step=part.step, window_ps=part.window_ps, rank=part.rank)
    return Comparison(
        changes=pl.concat(parts),
        facts=facts,
        per_step=per_step,
        base_text=base.selection(whole).text,
        new_text=new.selection(whole).text,
        base_steps_us=_range(rows_of[0]),
        new_steps_us=_range(rows_of[1]),
        base_device=_device_name(base),
        new_device=_device_name(new),
        two_vendors=len(vendors) > 1,
    )


def figures(study: Study) -> dict[str, float | None]:
    """Figures of a study by name: means over the steady steps (`step_us` is their length), and facts of the whole file."""
    rows = _step_rows(study, units(study, STEADY, study.windows.height > 0))
    spread = digest(study.steps())
    summary = study.summary()
    found: dict[str, float | None] = {"step_us": _mean(rows, "dur_us"), "step_p50_us": spread.p50_us, "step_p99_us": spread.p99_us}
    found |= {name: _mean(rows, name) for name in STEP_TIMES[1:]}
    found |= {name: _share(rows, name) for name in STEP_SHARES}
    found["launches"] = _mean(rows, "launches")
    return found | {name: getattr(summary, name) for name in WHOLE_FILE}


def _device_name(study: Study) -> str | None:
    return None if study.device is None else study.device.model or study.device.name


def _range(rows: list[StepRow]) -> tuple[float, float] | None:
    lengths = [row.dur_us for row in rows]
    return (min(lengths), max(lengths)) if lengths else None


def unit_of(name: str) -> str:
    """Unit of a figure by how its name ends."""
    return next((unit for unit in ("us", "pct", "bytes") if name.endswith(f"_{unit}")), "count")


def _step_rows(study: Study, chosen: Units) -> list[StepRow]:
    steps = set(chosen.windows["step"].to_list())
    return [row for row, step in zip(study.steps(), study.windows["step"], strict=True) if step in steps]


def _facts_frame(facts: dict[str, tuple[float | None, float | None]], base: list[StepRow], new: list[StepRow]) -> pl.DataFrame:
    frame = pl.DataFrame(
        [
            {"level": "step", "name": name, "base": of_base, "new": of_new, "unit": unit_of(name)}
            for name, (of_base, of_new) in facts.items()
        ],
        schema={name: CHANGES[name] for name in ("level", "name", "base", "new", "unit")},
    )
    spread = [_fact_spread(name, base, new) for name in facts]
    return _finished(frame.with_columns(spread=pl.Series(spread, dtype=pl.Float64).fill_nan(None)))


def _fact_spread(name: str, base: list[StepRow], new: list[StepRow]) -> float | None:
    """What the spread of a figure's values, a step each, may account for; None for figures that steps do not have."""
    column = "dur_us" if name == "step_us" else name
    if column not in (*STEP_TIMES, *STEP_SHARES, "launches"):
        return None
    values = [[getattr(row, column) for row in rows if getattr(row, column) is not None] for rows in (base, new)]
    if not all(values):
        return None
    of_base, of_new = (np.array(side, np.float64)[:, None] for side in values)
    return float(chance_spread(of_base, of_new, len(STEP_TIMES) + len(STEP_SHARES))[0])


def _level(level: Level, sides: Sequence[tuple[Study, Units]], scope: Scope, per_step: bool) -> pl.DataFrame | None:
    """A level's rows: time and calls of each key on both sides, a step where `per_step`; None where neither side has any."""
    found = [level_sums(level, study, scope, chosen) for study, chosen in sides]
    sums = [of_side for of_side in found if of_side is not None]
    if len(sums) < len(sides):
        return None
    keyed = [_side(of_side, chosen.steps, side) for of_side, (_, chosen), side in zip(sums, sides, ("base", "new"), strict=True)]
    rows = keyed[0].join(keyed[1], on="key", how="full", coalesce=True, maintain_order="left_right")
    if level.name in BOUND_TABLES:
        for (study, _), side in zip(sides, ("base", "new"), strict=True):
            table = study.table(BOUND_TABLES[level.name], Scope(step=scope.step, window_ps=scope.window_ps, rank=scope.rank))
            limits = _limiters(table, side)
            rows = rows.join(limits, on=f"{side}_name", how="left", maintain_order="left")
    if per_step:
        dense = [_by_step(of_side, rows["key"], chosen.steps) for of_side, (_, chosen) in zip(sums, sides, strict=True)]
        rows = rows.with_columns(spread=pl.Series(chance_spread(dense[0], dense[1], rows.height) / 1e6, dtype=pl.Float64).fill_nan(None))
    one_name = pl.coalesce("base_name", "new_name")
    alone = (pl.col("base_names").fill_null(1) == 1) & (pl.col("new_names").fill_null(1) == 1)
    same_name = alone & (one_name == pl.coalesce("new_name", "base_name"))
    rows = rows.with_columns(level=pl.lit(level.name), unit=pl.lit("us"), name=pl.when(same_name).then(one_name).otherwise("key"))
    return _finished(rows).sort(
        pl.col("status").is_in(["within spread", "same"]),
        pl.col("change").abs(),
        "name",
        descending=[False, True, False],
        maintain_order=True,
    )


def _limiters(table: pl.DataFrame, side: str) -> pl.DataFrame:
    return table.unique("name", keep="first", maintain_order=True).select(
        pl.col("name").alias(f"{side}_name"), pl.col("bound_by").alias(f"{side}_bound_by")
    )


def _side(sums: pl.DataFrame, count: int, side: str) -> pl.DataFrame:
    """One row a key: time and calls of a step, the name with most time and how many names there are."""
    names = sums.group_by("key", "name", maintain_order=True).agg(pl.col("time_ps", "calls").sum())
    rows = (
        names.sort("time_ps", descending=True, maintain_order=True)
        .group_by("key", maintain_order=True)
        .agg(
            (pl.col("time_ps").sum() / 1e6 / count).alias(side),
            (pl.col("calls").sum() / count).alias(f"{side}_calls"),
            pl.col("name").first().alias(f"{side}_name"),
            pl.len().alias(f"{side}_names"),
        )
    )
    return rows.with_columns((pl.col(side) / pl.col(f"{side}_calls")).alias(f"{side}_mean_us"))


def _by_step(sums: pl.DataFrame, keys: pl.Series, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Times in ps: a row a step, a column a key; 0 where a step has none of it."""
    dense = np.zeros((count, keys.len()))
    columns = pl.DataFrame({"key": keys}).with_row_index("column")
    placed = sums.join(columns, on="key", how="left", maintain_order="left")
    np.add.at(dense, (placed["unit"].to_numpy(), placed["column"].to_numpy()), placed["time_ps"].to_numpy())
    return dense


def _finished(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows with their change and what it is worth; what is only on one side of a level changed from or to nothing."""
    figure = pl.col("level") == "step"
    unknown = figure & (pl.col("base").is_null() | pl.col("new").is_null())
    change = pl.when(~unknown).then(pl.col("new").fill_null(0) - pl.col("base").fill_null(0))
    frame = frame.with_columns(pl.lit(None, kind).alias(name) for name, kind in CHANGES.items() if name not in frame.columns)
    frame = frame.with_columns(change=change)
    status = (
        pl.when(unknown)
        .then(pl.lit("unknown"))
        .when(pl.col("base").is_null())
        .then(pl.lit("added"))
        .when(pl.col("new").is_null())
        .then(pl.lit("removed"))
        .when((pl.col("change") == 0) & (pl.col("base_calls").eq_missing(pl.col("new_calls"))))
        .then(pl.lit("same"))
        .when(pl.col("spread").is_null())
        .then(pl.lit("differs"))
        .when(pl.col("change").abs() > pl.col("spread"))
        .then(pl.lit("changed"))
        .otherwise(pl.lit("within spread"))
    )
    share = pl.when((pl.col("base") != 0) & ~unknown).then(100 * pl.col("change") / pl.col("base").abs())
    frame = frame.with_columns(change_pct=share, status=status)
    return frame.select(pl.col(name).cast(kind) for name, kind in CHANGES.items())


def _mean(rows: list[StepRow], name: str) -> float | None:
    known = [value for row in rows if (value := getattr(row, name)) is not None]
    return math.fsum(known) / len(known) if known else None


def _share(rows: list[StepRow], name: str) -> float | None:
    """A share over several steps, weighted by their lengths."""
    known = [(value, row.dur_us) for row in rows if (value := getattr(row, name)) is not None]
    length = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / length if length else None
