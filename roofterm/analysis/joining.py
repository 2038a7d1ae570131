"""A profile whose replayed kernels hang on the ops of a capture trace.

The captured ops, what is around them and what is known of them are put behind the profile's own slices, on tracks of
their own: numbers of the profile's slices, names and tracks stay, so both profiles can be asked for the same slice. The
joined profile serves costs, launchers and chains; times and counts are taken from the profile as it was read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.capture import Match, match_captures
from roofterm.analysis.graphs import graph_replays
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import FRAMES, ROOT, Profile

I64 = NDArray[np.int64]


class Joined(NamedTuple):
    """A profile with what capture traces tell of its graph replays."""

    profile: Profile
    """with the captured ops behind its own slices"""
    placed: pl.DataFrame
    """columns work, call, op: slices of `profile`, for each joined piece of work; in order of work"""
    match: Match

    def hung(self, work: pl.DataFrame) -> pl.DataFrame:
        """Device work (schema `work.WORK`) with the captured op where there is one."""
        if self.placed.height == 0:
            return work
        found = self.placed.select(slice="work", captured="op")
        hung = work.join(found, on="slice", how="left", maintain_order="left")
        return hung.with_columns(op=pl.coalesce("captured", "op")).drop("captured")


def with_captures(profile: Profile, captures: Sequence[Profile], iterations: pl.DataFrame) -> Joined:
    """Joins capture traces to the replays of a profile; `iterations` (schema `iterations.ITERATIONS`) tell batch sizes."""
    match = match_captures(profile, captures, replay_sizes(graph_replays(profile), iterations) if captures else None)
    if match.joined.height == 0:
        return Joined(profile, pl.DataFrame(schema={"work": pl.UInt32, "call": pl.UInt32, "op": pl.UInt32}), match)
    joined, placed = join_captures(profile, captures, match.joined)
    return Joined(joined, placed, match)


def replay_sizes(replays: pl.DataFrame, iterations: pl.DataFrame) -> list[int | None]:
    """For each graph launch (schema `graphs.REPLAYS`) what its iteration's annotation says that the graph must hold."""
    if replays.height == 0 or iterations.height == 0:
        return [None] * replays.height
    windows = iterations.select("source", "start_ps", "graph_size", end_ps=pl.col("start_ps") + pl.col("dur_ps")).sort("start_ps")
    calls = replays.select("source", "start_ps").with_row_index("row").sort("start_ps")
    found = calls.join_asof(windows, on="start_ps", by="source", strategy="backward", check_sortedness=False).sort("row")
    inside = pl.when(pl.col("start_ps") < pl.col("end_ps")).then("graph_size")
    sizes: list[int | None] = found.select(inside)["graph_size"].to_list()
    return sizes


def join_captures(profile: Profile, captures: Sequence[Profile], joined: pl.DataFrame) -> tuple[Profile, pl.DataFrame]:
    """The profile with the captured ops behind its slices, and for each joined piece of work its call and op there.

    `joined`: schema `capture.JOINED`. The second frame has columns work, call, op: slices of the joined profile. Links of
    joined work name the captured op; its grid, block and shared memory are those of the captured call where the replay's
    are unknown. The profile itself is left as it is.
    """
    result = dataclasses.replace(profile)
    places = []
    for (index,), rows in joined.group_by("capture", maintain_order=True):
        places.append(_put_behind(result, captures[int(str(index))], rows))
    if not places:
        return result, pl.DataFrame(schema={"work": pl.UInt32, "call": pl.UInt32, "op": pl.UInt32})
    placed = pl.concat(places).sort("work")
    found = placed.select("work", captured="op")
    result.links = profile.links.join(found, on="work", how="left", maintain_order="left").select(
        "work", "launch", op=pl.coalesce("captured", "op")
    )
    result.kernels = _with_shapes(profile.kernels, placed)
    return result, placed.select("work", "call", "op")


def _put_behind(result: Profile, capture: Profile, rows: pl.DataFrame) -> pl.DataFrame:
    """Append what is around the captured calls; gives `rows` with calls and ops as slices of the result."""
    slices = capture.slices
    kept = _with_ancestors(slices["parent"].to_numpy(), rows["call"].unique().to_numpy().astype(np.int64))
    new = np.full(slices.height + 1, ROOT, np.int64)
    new[kept] = np.arange(result.slices.height, result.slices.height + kept.size)
    taken = slices[kept]
    tracks, track = np.unique(taken["track"].to_numpy(), return_inverse=True)
    names, name = np.unique(taken["name"].to_numpy(), return_inverse=True)
    result.names, codes = _united(result.names, capture.names[names])
    parent = taken["parent"].to_numpy().astype(np.int64)
    moved = taken.with_columns(
        track=pl.Series(track + result.tracks.height),
        name=pl.Series(codes[name]),
        parent=pl.Series(new[np.where(parent == ROOT, slices.height, parent)]),
    ).cast(FRAMES["slices"])
    result.tracks = pl.concat(
        [
            result.tracks,
            capture.tracks[tracks]
            .with_columns(source=(pl.col("source") + len(result.sources)).cast(pl.UInt16), device=None)
            .cast(FRAMES["tracks"]),
        ]
    )
    result.sources = [*result.sources, *capture.sources]
    result.slices = pl.concat([result.slices, moved])
    _append_ops(result, capture, new)
    for frame in ("python", "collectives"):
        mine = _of_slices(getattr(capture, frame), new)
        setattr(result, frame, pl.concat([getattr(result, frame), mine]))
    shapes = capture.launches.rename({"slice": "call"}).drop("kernel")
    rows = rows.join(shapes, on="call", how="left", maintain_order="left")
    op = rows["op"].fill_null(slices.height).to_numpy()
    moved_op = pl.Series(new[op], dtype=pl.Int64)
    return rows.with_columns(
        call=pl.Series(new[rows["call"].to_numpy()]).cast(pl.UInt32),
        op=pl.select(pl.when(moved_op != ROOT).then(moved_op)).to_series().cast(pl.UInt32),
    )


def _with_ancestors(parent: NDArray[np.uint32], rows: I64) -> I64:
    """These slices and all that are around them, in order."""
    wanted = np.zeros(parent.size, np.bool_)
    while rows.size:
        rows = rows[~wanted[rows]]
        wanted[rows] = True
        above = parent[rows]
        rows = occurring(above[above != ROOT]).astype(np.int64)
    return np.flatnonzero(wanted)


def _united(names: pl.DataFrame, more: pl.DataFrame) -> tuple[pl.DataFrame, I64]:
    """Names with those of `more` that are new behind them, and the row of each of `more`."""
    united = pl.concat([names, more.join(names, on=["text", "cat"], how="anti", maintain_order="left")])
    codes = more.join(united.with_row_index("code"), on=["text", "cat"], how="left", maintain_order="left")["code"]
    return united, codes.to_numpy().astype(np.int64)


def _append_ops(result: Profile, capture: Profile, new: I64) -> None:
    ops = _of_slices(capture.ops, new)
    used = ops["signature"].drop_nulls().unique().sort()
    parts = capture.signatures[used]
    every = pl.concat([result.signatures, parts])
    # Equal inputs are one row, as the rows of tables are made by it.
    columns = every.columns
    rows = every.with_row_index("row")
    first = rows.with_columns(code=pl.col("row").min().over(columns))["code"]
    signature = pl.DataFrame({"signature": used, "code": first[result.signatures.height :]})
    ops = ops.join(signature, on="signature", how="left", maintain_order="left").with_columns(signature="code").drop("code")
    result.signatures = every
    result.ops = pl.concat([result.ops, ops.select(list(FRAMES["ops"])).cast(FRAMES["ops"])])


def _of_slices(frame: pl.DataFrame, new: I64) -> pl.DataFrame:
    """Rows of a side table whose slice was kept, with its new number."""
    moved = frame.with_columns(slice=pl.Series(new[frame["slice"].to_numpy()], dtype=pl.Int64))
    return moved.filter(pl.col("slice") != ROOT).with_columns(pl.col("slice").cast(pl.UInt32))


def _with_shapes(kernels: pl.DataFrame, placed: pl.DataFrame) -> pl.DataFrame:
    """Kernels with the grids of their captured calls, where they have none themselves."""
    shape = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared_bytes")
    found = placed.select(pl.col("work").alias("slice"), *(pl.col(name).alias(f"captured_{name}") for name in shape))
    joined = kernels.join(found, on="slice", how="left", maintain_order="left")
    return joined.with_columns(pl.coalesce(name, f"captured_{name}").alias(name) for name in shape).select(kernels.columns)
