"""All slices as one flat table for other tools: one row a slice, every code told as text or number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.categories import TITLES
from roofterm.analysis.filters import FilterError, parse
from roofterm.analysis.host_steps import OUTSIDE, host_step
from roofterm.analysis.scope import Scope
from roofterm.analysis.slice_filter import slice_mask, split_for_slices
from roofterm_parsers.profile import ROOT, Kind, Profile

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

SLICES = pl.Schema(
    {
        "id": pl.UInt32(),
        "parent": pl.UInt32(),  # id of the slice around it on its thread or stream; null: none
        "depth": pl.UInt16(),
        "start_us": pl.Float64(),  # from the profile's zero
        "dur_us": pl.Float64(),
        "self_us": pl.Float64(),
        "name": pl.String(),
        "cat": pl.String(),  # the file's own word
        "kind": pl.String(),
        "category": pl.String(),
        "dtype": pl.String(),
        "tensor_core": pl.Boolean(),
        "rank": pl.Int64(),
        "host": pl.String(),
        "process": pl.String(),
        "thread": pl.String(),
        "thread_name": pl.String(),
        "device": pl.Int64(),  # the file's number
        "stream": pl.Int64(),
        "step": pl.Int64(),  # number of the step that it counts for
        "correlation": pl.Int64(),
        "launch": pl.UInt32(),  # id of the call that launched it
        "op": pl.String(),  # that it was launched for
        "bytes": pl.Int64(),  # of a copy or memset
        "grid": pl.String(),
        "block": pl.String(),
        "shapes": pl.String(),  # of an op, JSON as recorded
    }
)
"""One row a slice, in order of id."""


def chosen_slices(study: Study, scope: Scope) -> NDArray[np.bool_]:
    """Which slices a scope and its filter name. Raises FilterError for an expression that single slices do not answer, ScopeError."""
    part = Scope(step=scope.step, window_ps=scope.window_ps, rank=scope.rank)
    inside = study.selection(part).slices
    chosen = np.ones(study.profile.slices.height, np.bool_) if inside is None else inside.copy()
    wanted, rest = split_for_slices(parse(scope.where))
    if rest:
        term = rest.terms[0]
        raise FilterError(f"single slices have no {term.atoms[0].field}", term.at)
    return chosen & slice_mask(wanted, study) if wanted else chosen


def slice_table(study: Study, chosen: NDArray[np.bool_]) -> pl.DataFrame:
    """The chosen slices as a frame of schema `SLICES`."""
    profile = study.profile
    rows = np.flatnonzero(chosen)
    slices = profile.slices[rows]
    names, tracks = profile.names[slices["name"]], profile.tracks[slices["track"]]
    sources = pl.DataFrame([(s.rank, s.host) for s in profile.sources], schema={"rank": pl.Int64, "host": pl.String}, orient="row")
    frame = pl.DataFrame({"id": pl.Series(rows, dtype=pl.UInt32)}).with_columns(
        parent=slices["parent"].replace(ROOT, None),
        depth=slices["depth"],
        start_us=pl.Series(study.start_ps[rows] / 1e6),
        dur_us=pl.Series(study.dur_ps[rows] / 1e6),
        self_us=pl.Series(study.self_ps[rows] / 1e6),
        name=names["text"],
        cat=names["cat"],
        kind=slices["kind"].replace_strict({int(k): k.name.lower() for k in Kind}, return_dtype=pl.String),
        category=pl.Series(TITLES, dtype=pl.String)[study.category[rows]],
        rank=sources["rank"][tracks["source"]],
        host=sources["host"][tracks["source"]],
        process=tracks["process"],
        thread=tracks["thread"],
        thread_name=tracks["thread_name"],
        device=profile.devices["id"][tracks["device"]],
        stream=tracks["stream"],
        step=_step_numbers(study)[rows],
    )
    for side in (
        study.facts.select("slice", "tensor_core", dtype=pl.col("dtype").cast(pl.String)),
        _correlations(study),
        profile.links.select(slice="work", launch="launch", op=_op_names(study)),
        profile.copies.select("slice", "bytes"),
        profile.kernels.select("slice", grid=_triple("grid"), block=_triple("block")),
        profile.ops.select("slice", shapes=profile.signatures["dims"][profile.ops["signature"]]),
    ):
        once = side.rename({"slice": "id"}).unique("id", keep="first")
        frame = frame.join(once, on="id", how="left", maintain_order="left")
    return frame.select(list(SLICES)).cast(SLICES)


def _correlations(study: Study) -> pl.DataFrame:
    profile = study.profile
    sides = (profile.kernels, profile.copies, profile.runtime, profile.waits)
    return pl.concat([side.select("slice", "correlation") for side in sides]).drop_nulls()


def _op_names(study: Study) -> pl.Series:
    profile = study.profile
    return profile.names["text"][profile.slices["name"][profile.links["op"]]]


def _triple(prefix: str) -> pl.Expr:
    return pl.concat_str([pl.col(f"{prefix}_{axis}").cast(pl.String) for axis in "xyz"], separator=",")


def step_number(study: Study, slice_id: int) -> int | None:
    """Number of the step of one slice, as in the column `step`."""
    profile = study.profile
    counted = study.work.filter(pl.col("slice") == slice_id)["step"]
    if counted.len():
        return None if counted[0] is None else int(profile.steps["number"][int(counted[0])])
    track = profile.tracks.row(int(profile.slices["track"][slice_id]), named=True)
    if track["device"] is not None:
        return None
    marks = _marks_of_host(profile)
    row = int(host_step(study.start_ps[[slice_id]], np.array([track["source"]]), marks)[0])
    return None if row == OUTSIDE else int(marks["number"][row])


def _step_numbers(study: Study) -> pl.Series:
    """Number of the step of each slice: of device work that of its launch, of a host slice the one in which it starts."""
    profile = study.profile
    source = profile.tracks["source"].to_numpy()[profile.slices["track"].to_numpy()]
    on_host = profile.tracks["device"].is_null().to_numpy()[profile.slices["track"].to_numpy()]
    marks = _marks_of_host(profile)
    row = np.full(profile.slices.height, OUTSIDE, np.int64)
    inside = host_step(study.start_ps[on_host], source[on_host], marks)
    row[on_host] = np.append(marks["row"].to_numpy().astype(np.int64), OUTSIDE)[inside]
    counted = study.work.drop_nulls("step")
    row[counted["slice"].to_numpy()] = counted["step"].to_numpy()
    return profile.steps["number"][pl.Series(row).replace(OUTSIDE, None).cast(pl.UInt32)]


def _marks_of_host(profile: Profile) -> pl.DataFrame:
    """The steps that the host marks: their row and number in `profile.steps`, source, start and end (ps)."""
    marks = profile.steps.with_row_index("row").filter(pl.col("device").is_null())
    return marks.select("row", "number", "source", "start_ps", end_ps=pl.col("start_ps") + pl.col("dur_ps"))
