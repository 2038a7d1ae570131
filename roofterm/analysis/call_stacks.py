"""The Python stack of host slices, as `key_averages(group_by_stack_n=5)` groups by it: the innermost frames around each.

Frames are the slices of Python around an op; files without them (2021) state each op's stack in its arguments.
Ops of a backward pass have the stack of their forward op, as in torch's own table (`_set_backward_stacktraces`), where autograd
runs them from one place. Where several ops bear the sequence number of a backward op, torch takes the first, which may be one before
it that needs no gradient (of the data loader, say); here it is the innermost, which made the node. torch fills its stacks only
where the profiler ran with `verbose=True`; a trace with stacks has them anyway.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.lookup import ABSENT, rows_by_id, taken
from roofterm_parsers.profile import ROOT, Kind, Profile

I64 = NDArray[np.int64]

FRAMES = 5
"""Frames that tell two stacks apart: as many as torch's own tables usually group by."""

BETWEEN = ";"
"""stands between frames, as in Kineto's `Call stack`"""

NONE = -1

_LEFT_OUT = r"autograd/__init__.*(_make_grads|backward)|torch/tensor.*backward|_internal/common_utils.*prof_(callable|func_call|meth_call)"
"""Frames that torch's tables leave out of stacks (torch/autograd/profiler_util.py, `_filter_stack_entry`)."""

_LEFT_OUT_FRAME = re.compile(_LEFT_OUT)

_ENGINE = "autograd::engine::evaluate_function"
_ACCUMULATE = "torch::autograd::AccumulateGrad"


def call_stacks(profile: Profile, slices: pl.Series, frames: int = FRAMES) -> pl.Series:
    """The innermost `frames` Python frames around each slice, the innermost first, with ";" between; null where there is none."""
    rows = slices.to_numpy().astype(np.int64)
    names, name = profile.names["text"], profile.slices["name"].to_numpy()
    is_frame = (profile.slices["kind"].to_numpy() == Kind.PYTHON) & ~names.str.contains(_LEFT_OUT).to_numpy()[name]
    bearing = bearers(profile, rows)
    if rows.size == 0 or not is_frame.any():
        return _cut(stated(profile, bearing, "stack"), frames)
    levels: list[I64] = [innermost_above(profile, is_frame, bearing)]
    while len(levels) < frames:
        levels.append(innermost_above(profile, is_frame, levels[-1]))
    of_frame = {
        f"f{depth}": np.where(level == NONE, NONE, name[np.maximum(level, 0)].astype(np.int64)) for depth, level in enumerate(levels)
    }
    keys = pl.DataFrame(of_frame).with_row_index("row")
    distinct = keys.drop("row").unique(maintain_order=True)
    texts = [BETWEEN.join(names[code] for code in codes if code != NONE) or None for codes in distinct.iter_rows()]
    distinct = distinct.with_columns(stack=pl.Series(texts, dtype=pl.String))
    return keys.join(distinct, on=list(of_frame), how="left", maintain_order="left")["stack"]


def stated(profile: Profile, rows: I64, column: str) -> pl.Series:
    """What ops state of their caller (a column of `profile.callers`) for each slice; null for NONE and where nothing is stated."""
    if profile.called.height == 0:
        return pl.Series(column, [None] * rows.size, dtype=pl.String)
    row = rows_by_id(profile.called["slice"], profile.slices.height)[np.maximum(rows, 0)]
    row[rows == NONE] = ABSENT
    caller = profile.called["caller"].to_numpy().astype(np.int64)[np.maximum(row, 0)]
    return taken(profile.callers[column], np.where(row == ABSENT, ABSENT, caller))


def _cut(stacks: pl.Series, frames: int) -> pl.Series:
    """Stated stacks without the frames that torch's tables leave out, the innermost `frames` of each."""
    distinct = stacks.unique().drop_nulls().to_list()
    kept = {stack: [frame for frame in stack.split(BETWEEN) if frame and not _LEFT_OUT_FRAME.search(frame)] for stack in distinct}
    short = {stack: BETWEEN.join(taken_frames[:frames]) or None for stack, taken_frames in kept.items()}
    return stacks.replace_strict(short, default=None, return_dtype=pl.String).alias("stack")


def bearers(profile: Profile, rows: I64) -> I64:
    """The slice whose frames count for each: itself, or the forward op of the backward op it is or lies in (NONE: it has none)."""
    backward = _backward_ops(profile)
    if not backward.any():
        return rows
    forward = np.full(profile.slices.height, NONE, np.int64)
    forward[profile.backward["backward"].to_numpy()] = profile.backward["forward"].to_numpy()
    inside = np.where(backward[rows], rows, innermost_above(profile, backward, rows))
    return np.where(inside == NONE, rows, forward[np.maximum(inside, 0)])


def _backward_ops(profile: Profile) -> NDArray[np.bool_]:
    """Which slices are nodes of autograd that run: `AddmmBackward0`, not the engine's slice around it."""
    flags = np.zeros(profile.slices.height, np.bool_)
    flags[profile.ops.filter(pl.col("forward_thread").is_not_null())["slice"].to_numpy()] = True
    texts, name = profile.names["text"], profile.slices["name"].to_numpy()
    flags |= (texts == _ACCUMULATE).to_numpy()[name]
    flags &= ~texts.str.starts_with(_ENGINE).to_numpy()[name]
    return flags


def innermost_above(profile: Profile, marked: NDArray[np.bool_], rows: I64) -> I64:
    """The innermost marked slice around each slice, itself apart; NONE for none and for NONE."""
    parent = profile.slices["parent"].to_numpy()
    found = np.full(rows.size, NONE, np.int64)
    active = np.flatnonzero(rows != NONE)
    current = rows[active]
    while active.size:
        up = parent[current].astype(np.int64)
        inside = up != ROOT
        active, current = active[inside], up[inside]
        hit = marked[current]
        found[active[hit]] = current[hit]
        active, current = active[~hit], current[~hit]
    return found
