"""What changed between two profiles: by step, category, kernel and op, each a step where both have steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from roofterm.analysis.digest import digest, steps_counted
from roofterm.analysis.scope import Scope
from roofterm.results import StepRow

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

CHANGES = pl.Schema(
    {
        "level": pl.Enum(("step", "category", "kernel", "op", "host op")),
        "name": pl.String(),
        "base": pl.Float64(),  # in `unit`; null: unknown, or not there
        "new": pl.Float64(),
        "change": pl.Float64(),
        "change_pct": pl.Float64(),  # of base
        "unit": pl.String(),  # us, pct, bytes or count
        "base_calls": pl.Float64(),
        "new_calls": pl.Float64(),
        "base_mean_us": pl.Float64(),
        "new_mean_us": pl.Float64(),
        "status": pl.Enum(("changed", "same", "added", "removed", "unknown")),
    }
)
"""One row a figure of the step, and one a category, kernel or op; the largest change of each level first."""

STEP_TIMES = (
    "dur_us", "compute_us", "exposed_comm_us", "exposed_copy_us", "idle_us", "host_wait_us", "kernel_gap_us", "comm_us", "copy_us",
    "launched_device_us", "host_dur_us",
)  # fmt: skip
STEP_SHARES = (
    "busy_pct", "compute_busy_pct", "tensor_core_pct", "sm_efficiency_pct", "host_busy_pct", "mfu_pct", "hfu_pct", "mbu_pct",
)  # fmt: skip
WHOLE_FILE = ("span_us", "kernel_us", "memcpy_us", "gpu_busy_us", "sync_us", "peak_mem_bytes", "kernels")
"""Facts of the summary that are compared as they are: of the whole file, not of a step."""


class Comparison(NamedTuple):
    changes: pl.DataFrame
    """schema `CHANGES`"""
    facts: dict[str, tuple[float | None, float | None]]
    """figures by name, of base and of new: what a condition may speak of"""
    per_step: bool
    """times of categories, kernels and ops are those of one step (and rank); else of the whole files"""
    base_text: str
    """what is spoken of, such as "4 steady steps" """
    new_text: str


def compare(base: Study, new: Study, where: str = "") -> Comparison:
    """Compare two studies. Steady steps against steady steps, a step and rank each; whole files where either has no steps.

    `where` chooses rows of categories, kernels and ops. Raises FilterError for a wrong expression.
    """
    per_step = base.windows.height > 0 and new.windows.height > 0
    scope = Scope(step="steady" if per_step else "all", where=where)
    facts = {name: (of_base, of_new) for (name, of_base), of_new in zip(figures(base).items(), figures(new).values(), strict=True)}
    parts = [_facts_frame(facts)]
    for level, by, column in (
        ("category", "category", "total_us"),
        ("kernel", "kernel", "total_us"),
        ("op", "op", "self_device_us"),
        ("host op", "op", "self_us"),
    ):
        parts.append(_tables(base, new, level, by, column, scope, per_step))
    return Comparison(pl.concat(parts), facts, per_step, base.selection(scope).text, new.selection(scope).text)


def figures(study: Study) -> dict[str, float | None]:
    """Figures of a study by name: means over the steady steps (`step_us` is their length), and facts of the whole file."""
    rows, _ = steps_counted(study.steps())
    spread = digest(study.steps())
    summary = study.summary()
    found: dict[str, float | None] = {"step_us": _mean(rows, "dur_us"), "step_p50_us": spread.p50_us, "step_p99_us": spread.p99_us}
    found |= {name: _mean(rows, name) for name in STEP_TIMES[1:]}
    found |= {name: _share(rows, name) for name in STEP_SHARES}
    found["launches"] = _mean(rows, "launches")
    return found | {name: getattr(summary, name) for name in WHOLE_FILE}


def unit_of(name: str) -> str:
    """Unit of a figure by how its name ends."""
    return next((unit for unit in ("us", "pct", "bytes") if name.endswith(f"_{unit}")), "count")


def _facts_frame(facts: dict[str, tuple[float | None, float | None]]) -> pl.DataFrame:
    frame = pl.DataFrame(
        [{"level": "step", "name": name, "base": base, "new": new, "unit": unit_of(name)} for name, (base, new) in facts.items()],
        schema={name: CHANGES[name] for name in ("level", "name", "base", "new", "unit")},
    )
    known = pl.col("base").is_not_null() & pl.col("new").is_not_null()
    status = pl.when(~known).then(pl.lit("unknown")).when(pl.col("base") == pl.col("new")).then(pl.lit("same")).otherwise(pl.lit("changed"))
    return _with_changes(frame.with_columns(status=status))


def _tables(base: Study, new: Study, level: str, by: str, column: str, scope: Scope, per_step: bool) -> pl.DataFrame:
    """A level's rows: time in `column` and calls of each name on both sides, a step (and rank) where `per_step`."""
    sides = []
    for side, study in (("base", base), ("new", new)):
        count = study.selection(scope).windows.height if per_step else 1
        table = study.table(by, scope).group_by("name", maintain_order=True).agg(pl.col(column, "calls").sum())
        table = table.filter(pl.col(column) != 0)
        sides.append(table.select("name", (pl.col(column) / count).alias(side), (pl.col("calls") / count).alias(f"{side}_calls")))
    joined = sides[0].join(sides[1], on="name", how="full", coalesce=True)
    status = (
        pl.when(pl.col("base").is_null())
        .then(pl.lit("added"))
        .when(pl.col("new").is_null())
        .then(pl.lit("removed"))
        .when((pl.col("base") == pl.col("new")) & (pl.col("base_calls") == pl.col("new_calls")))
        .then(pl.lit("same"))
        .otherwise(pl.lit("changed"))
    )
    joined = joined.with_columns(
        level=pl.lit(level),
        unit=pl.lit("us"),
        status=status,
        base_mean_us=pl.col("base") / pl.col("base_calls"),
        new_mean_us=pl.col("new") / pl.col("new_calls"),
    )
    return _with_changes(joined).sort([pl.col("change").abs(), "name"], descending=[True, False], maintain_order=True)


def _with_changes(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows with their change; what is only on one side changed from or to nothing."""
    there = pl.col("status") != "unknown"
    change = pl.when(there).then(pl.col("new").fill_null(0) - pl.col("base").fill_null(0))
    frame = frame.with_columns(change=change)
    frame = frame.with_columns(change_pct=pl.when((pl.col("base") != 0) & there).then(100 * pl.col("change") / pl.col("base").abs()))
    missing = [pl.lit(None, kind).alias(name) for name, kind in CHANGES.items() if name not in frame.columns]
    return frame.with_columns(*missing).select(pl.col(name).cast(kind) for name, kind in CHANGES.items())


def _mean(rows: list[StepRow], name: str) -> float | None:
    known = [value for row in rows if (value := getattr(row, name)) is not None]
    return sum(known) / len(known) if known else None


def _share(rows: list[StepRow], name: str) -> float | None:
    """A share over several steps, weighted by their lengths."""
    known = [(value, row.dur_us) for row in rows if (value := getattr(row, name)) is not None]
    length = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / length if length else None
