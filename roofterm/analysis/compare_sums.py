"""What two profiles are compared by: for each level the time and calls of every row, a step (and rank) each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.categories import TITLES
from roofterm.analysis.compare_names import host_key, kernel_key
from roofterm.analysis.filters import Filter, parse
from roofterm.analysis.host_steps import OUTSIDE, host_step
from roofterm.analysis.modules import NONE, work_modules
from roofterm.analysis.op_groups import input_shapes
from roofterm.analysis.phases import OTHER, PHASE_TITLES
from roofterm.analysis.row_filter import row_predicate, split_by_columns
from roofterm.analysis.scope import Scope
from roofterm.analysis.selection import Selection
from roofterm.analysis.slice_filter import slice_mask, split_for_slices
from roofterm.analysis.tables import host_op_slices

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

SUMS = pl.Schema(
    {
        "key": pl.String,  # what rows of two profiles are matched by
        "name": pl.String,  # the name in this file
        "unit": pl.UInt32,  # number of the step (and rank) among those chosen; 0 where whole files are compared
        "time_ps": pl.Int64,
        "calls": pl.Int64,
    }
)
"""One row a name and step in which it took time."""

ANSWERED = ("name", "calls", "total_us", "mean_us", "pct")
"""What a filter can ask of a row, beside what it asks of slices."""


class Level(NamedTuple):
    """A way of cutting a profile's time into rows."""

    name: str
    pieces: Callable[[Study, Selection], pl.DataFrame | None]
    """`slice, name, time_ps` and for host work `host`: a row a piece of time; None where the profile has no such rows"""
    key: Callable[[str], str] = str


class Units(NamedTuple):
    """The steps that are averaged over."""

    windows: pl.DataFrame
    """schema `steps.WINDOWS`; empty where the whole file is one"""
    steps: int


def units(study: Study, scope: Scope, per_step: bool) -> Units:
    """The chosen steps of a study, those of the scope's rank alone."""
    if not per_step:
        return Units(study.windows.clear(), 1)
    windows = study.selection(scope).windows
    if scope.rank is not None:
        ranks = pl.Series([source.rank for source in study.profile.sources], dtype=pl.Int64)
        windows = windows.filter(ranks[windows["source"]] == scope.rank)
    return Units(windows, max(windows.height, 1))


def level_sums(level: Level, study: Study, scope: Scope, chosen: Units) -> pl.DataFrame | None:
    """The sums of a level (schema `SUMS`) over the chosen steps, of the rows that the scope's filter lets through.

    None where the profile has no such rows. Raises FilterError for a wrong expression.
    """
    pieces = level.pieces(study, study.selection(Scope(step=scope.step, window_ps=scope.window_ps, rank=scope.rank)))
    if pieces is None:
        return None
    wanted = parse(scope.where)
    of_row, rest = split_by_columns(wanted, ANSWERED)
    of_slices, unknown = split_for_slices(rest)
    if of_slices:
        pieces = pieces.filter(pl.Series(slice_mask(of_slices, study)[pieces["slice"].to_numpy()], dtype=pl.Boolean))
    unit = _units_of(study, pieces, chosen)
    sums = (
        pieces.with_columns(unit=unit)
        .drop_nulls("unit")
        .group_by("name", "unit", maintain_order=True)
        .agg(pl.col("time_ps").sum(), calls=pl.len())
        .filter(pl.col("time_ps") != 0)
    )
    keys = sums.select("name").unique(maintain_order=True)
    keys = keys.with_columns(key=pl.Series([level.key(text) for text in keys["name"].to_list()], dtype=pl.String))
    sums = sums.join(keys, on="name", how="left", maintain_order="left")
    asked = Filter(wanted.text, (*of_row.terms, *unknown.terms))
    if asked:
        sums = sums.join(_passing(sums, asked), on="name", how="semi")
    return sums.select(pl.col(name).cast(kind) for name, kind in SUMS.items())


def _passing(sums: pl.DataFrame, asked: Filter) -> pl.DataFrame:
    rows = sums.group_by("name", maintain_order=True).agg(pl.col("calls").sum(), total_us=pl.col("time_ps").sum() / 1e6)
    rows = rows.with_columns(mean_us=pl.col("total_us") / pl.col("calls"), pct=100 * pl.col("total_us") / pl.col("total_us").sum())
    return rows.filter(row_predicate(asked, rows.schema))


def _units_of(study: Study, pieces: pl.DataFrame, chosen: Units) -> pl.Series:
    """The step of each piece: device work counts for the one that launched it, host work for the one in which it starts."""
    if chosen.windows.height == 0:
        return pl.zeros(pieces.height, pl.UInt32, eager=True)
    if "step" in pieces.columns:
        steps = chosen.windows["step"]
        numbers = pl.int_range(steps.len(), dtype=pl.UInt32, eager=True)
        return pieces["step"].replace_strict(steps, numbers, default=None, return_dtype=pl.UInt32)
    rows = pieces["slice"].to_numpy()
    start = study.start_ps[rows]
    source = study.profile.tracks["source"].to_numpy()[study.profile.slices["track"].to_numpy()[rows]]
    unit = host_step(start, source, chosen.windows.select("source", start_ps="host_start_ps", end_ps="host_end_ps"))
    return pl.Series(unit).replace(OUTSIDE, None).cast(pl.UInt32)


# Pieces of each level


def _of_work(part: Selection, name: pl.Series) -> pl.DataFrame:
    """Own time: where ops lie inside others (a TPU's loops), what grew is told once, where it grew."""
    return part.work.select("slice", "step", name.alias("name"), time_ps="own_ps")


def _kernels(study: Study, part: Selection) -> pl.DataFrame:
    return _of_work(part, study.profile.names["text"][study.profile.slices["name"][part.work["slice"]]])


def _categories(study: Study, part: Selection) -> pl.DataFrame:
    return _of_work(part, pl.Series(TITLES)[study.category[part.work["slice"].to_numpy()]])


def _phases(study: Study, part: Selection) -> pl.DataFrame | None:
    if not study.phase.any():
        return None
    return _of_work(part, _PHASES[study.phase[part.work["slice"].to_numpy()]])


def _modules(study: Study, part: Selection) -> pl.DataFrame | None:
    work = study.captured.hung(part.work)
    modules = work_modules(study.joined, work)
    known = modules.of_work != NONE
    if not known.any():
        return None
    paths = pl.Series([path or name for path, name in zip(modules.paths, modules.names, strict=True)], dtype=pl.String)
    return _of_work(part, paths[np.maximum(modules.of_work, 0)]).filter(pl.Series(known))


def _device_ops(study: Study, part: Selection) -> pl.DataFrame | None:
    return _profiler_ops(study, part, "self_device_ps") if study.is_torch else None


def _shaped_ops(study: Study, part: Selection) -> pl.DataFrame | None:
    if not study.is_torch or study.profile.signatures["dims"].null_count() == study.profile.signatures.height:
        return None
    events = _profiler_ops(study, part, "self_device_ps").filter(pl.col("time_ps") != 0)
    shapes = input_shapes(study.profile, events["slice"])
    return events.with_columns(name=pl.concat_str(events["name"], pl.lit(" "), shapes))


def _host_ops(study: Study, part: Selection) -> pl.DataFrame:
    if study.is_torch:
        return _profiler_ops(study, part, "self_ps")
    rows = np.flatnonzero(_inside(study, part) & host_op_slices(study.profile, study.profile.slices))
    names = study.profile.names["text"][study.profile.slices["name"][rows]]
    return pl.DataFrame({"slice": pl.Series(rows, dtype=pl.UInt32), "name": names, "time_ps": study.self_ps[rows]})


def _host_phases(study: Study, part: Selection) -> pl.DataFrame | None:
    if not study.host_phase.any():
        return None
    pieces = _host_ops(study, part)
    return pieces.with_columns(name=_PHASES[study.host_phase[pieces["slice"].to_numpy()]])


def _profiler_ops(study: Study, part: Selection, column: str) -> pl.DataFrame:
    events = study.profiler_events.select("slice", time_ps=column)
    if part.slices is not None:
        events = events.filter(pl.Series(part.slices[events["slice"].to_numpy()], dtype=pl.Boolean))
    names = study.profile.names["text"][study.profile.slices["name"][events["slice"]]]
    step = names.str.starts_with("ProfilerStep#")
    return events.with_columns(name=names.set(step, "ProfilerStep*"))


def _inside(study: Study, part: Selection) -> NDArray[np.bool_]:
    return np.ones(study.profile.slices.height, np.bool_) if part.slices is None else part.slices


_PHASES = pl.Series([title or OTHER for title in PHASE_TITLES], dtype=pl.String)

LEVELS = (
    Level("phase", _phases),
    Level("category", _categories),
    Level("module", _modules),
    Level("op", _device_ops),
    Level("op with shapes", _shaped_ops),
    Level("kernel", _kernels, kernel_key),
    Level("host phase", _host_phases),
    Level("host op", _host_ops, host_key),
)
"""From the whole to its parts; ops with their own device time (key_averages' self), host rows with their own host time."""
