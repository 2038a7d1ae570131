"""Device work to the call that launched it and the op behind that; backward ops to their forward ops.

The rules are those of Kineto's ids: a kernel and its launch share a correlation id within their process; an op and what it
caused share an External id. An External id is believed only if the launch lies within the op in time, because older
profilers gave launches outside any op their own correlation id as External id, which matches ops by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.profile import BACKWARD, LINKS, ROOT, Kind

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
NONE = -1
"""no slice, no id of a group"""
SPARSE = 8
"""Ids that span more than this many times their number are numbered anew before they are looked up."""
SLACK_PS = 2_000_000
"""By how much a launch may lie outside of the op that names it: both ends of an old trace are rounded to whole microseconds."""


@dataclass(slots=True)
class Ids:
    """Ids of some slices: `slice` (id), `group` (their process or rank) and `id`, only those that have one."""

    slice: I64
    group: I64
    id: I64


@dataclass(slots=True)
class Linkable:
    """What the links are made from; all arrays of i64, slices by their ids."""

    work: I64
    """device work in order"""
    work_correlation: Ids
    work_external: Ids
    launch_correlation: Ids
    launch_external: Ids
    op_external: Callable[[I64], Ids]
    """gives the ops that have one of the ids"""
    grouped_calls: I64
    """groups that have runtime calls at all"""
    work_group: I64


def link(slices: pl.DataFrame, given: Linkable) -> pl.DataFrame:
    """LINKS: one row for each piece of device work with its launch and its op, null where there is none."""
    start, dur = slices["start_ps"].to_numpy(), slices["dur_ps"].to_numpy()
    launch_of = Lookup(given.launch_correlation, start)
    launch = np.full(given.work.size, NONE, np.int64)
    place = np.searchsorted(given.work, given.work_correlation.slice)
    launch[place] = launch_of(given.work_correlation)
    del launch_of, place

    op = np.full(given.work.size, NONE, np.int64)
    launched = np.flatnonzero(launch != NONE)
    op[launched] = innermost_op(slices, launch[launched])
    open_rows = launched[op[launched] == NONE]
    without_calls = np.flatnonzero((launch == NONE) & ~np.isin(given.work_group, given.grouped_calls))
    if open_rows.size or without_calls.size:
        called = _only(given.launch_external, launch[open_rows])
        worked = _only(given.work_external, given.work[np.concatenate((open_rows, without_calls))])
        op_of = Lookup(given.op_external(_distinct(np.concatenate((called.id, worked.id)))), start)
        by_launch = _at(called.slice, op_of(called), launch[open_rows])
        op[open_rows] = _around(by_launch, launch[open_rows], start, dur)
        open_rows = open_rows[op[open_rows] == NONE]
        by_work = op_of(worked)
        op[open_rows] = _around(_at(worked.slice, by_work, given.work[open_rows]), launch[open_rows], start, dur)
        op[without_calls] = _at(worked.slice, by_work, given.work[without_calls])
    return pl.DataFrame({"work": _ids(given.work), "launch": _ids(launch), "op": _ids(op)}, schema=LINKS)


def innermost_op(slices: pl.DataFrame, rows: I64) -> I64:
    """The nearest slice above each of `rows` that is an op; NONE where there is none."""
    parent = slices["parent"].to_numpy()
    is_op = slices["kind"].to_numpy() == Kind.OP
    above = parent[rows]
    open_rows = np.flatnonzero(above != ROOT)
    while open_rows.size:
        at = above[open_rows]
        open_rows = open_rows[~is_op[at]]
        above[open_rows] = parent[above[open_rows]]
        open_rows = open_rows[above[open_rows] != ROOT]
    found = above.astype(np.int64)
    found[above == ROOT] = NONE
    return found


def pair_backward(slices: pl.DataFrame, ids: Ids, is_backward: NDArray[np.bool_]) -> pl.DataFrame:
    """BACKWARD: each backward op with the forward op of its sequence number: the last to start, which is the innermost."""
    start = slices["start_ps"].to_numpy()
    forward = Ids(ids.slice[~is_backward], ids.group[~is_backward], ids.id[~is_backward])
    backward = Ids(ids.slice[is_backward], ids.group[is_backward], ids.id[is_backward])
    found = Lookup(forward, start, last=True)(backward)
    paired = found != NONE
    rows = backward.slice[paired]
    order = np.argsort(rows, kind="stable")
    return pl.DataFrame({"backward": _ids(rows[order]), "forward": _ids(found[paired][order])}, schema=BACKWARD)


class Lookup:
    """From (group, id) to the slice that has it; of several the one with the smallest key, or the largest; then the first."""

    def __init__(self, ids: Ids, key: I64, *, last: bool = False) -> None:
        """`key` is that of every slice, by its id; `last`: the largest counts."""
        self._low = int(ids.id.min()) if ids.id.size else 0
        span = (int(ids.id.max()) if ids.id.size else 0) - self._low + 1
        groups = int(ids.group.max()) + 1 if ids.group.size else 1
        self._numbers: I64 | None = None
        if span * groups > SPARSE * ids.id.size + (1 << 16):
            self._numbers = _distinct(ids.id)
            span = self._numbers.size
        self._span, self._groups = span, groups
        place, _ = self._place(ids.id)
        code = ids.group * span + place
        self._slices = np.full(span * groups, NONE, np.int64)
        self._slices[code] = ids.slice
        shared = np.bincount(code, minlength=1) > 1
        if shared.any():
            rows = np.flatnonzero(shared[code])
            keys = key[ids.slice[rows]]
            order = rows[np.lexsort((ids.slice[rows], -keys if last else keys))]
            self._slices[code[order[::-1]]] = ids.slice[order[::-1]]

    def __call__(self, ids: Ids) -> I64:
        """The slice of each id, NONE where nothing has it."""
        place, known = self._place(ids.id)
        known &= ids.group < self._groups
        return np.where(known, self._slices[np.where(known, ids.group * self._span + place, 0)], NONE)

    def _place(self, ids: I64) -> tuple[I64, NDArray[np.bool_]]:
        """Place of each id among those of a group, and whether it can have one."""
        if self._numbers is None:
            known = (ids >= self._low) & (ids < self._low + self._span)
            return np.where(known, ids - self._low, 0), known
        place = np.minimum(np.searchsorted(self._numbers, ids), self._span - 1)
        return place, self._numbers[place] == ids


def _distinct(values: I64) -> I64:
    """As np.unique, which is slower: ids lie nearly in order, and a sort makes use of that."""
    ordered = np.sort(values)
    first = np.ones(ordered.size, bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def _only(ids: Ids, slices: I64) -> Ids:
    """The ids of some slices."""
    held = np.isin(ids.slice, slices)
    return Ids(ids.slice[held], ids.group[held], ids.id[held])


def _at(slices: I64, values: I64, wanted: I64) -> I64:
    """The values of the wanted slices, which are in order in `slices`; NONE where one is not there."""
    if slices.size == 0:
        return np.full(wanted.size, NONE, np.int64)
    place = np.minimum(np.searchsorted(slices, wanted), slices.size - 1)
    return np.where(slices[place] == wanted, values[place], NONE)


def _around(op: I64, inner: I64, start: I64, dur: I64) -> I64:
    """`op` where the slice `inner` begins within it, else NONE."""
    behind_start = start[inner] - start[op]
    within = (op != NONE) & (behind_start >= -SLACK_PS) & (behind_start <= dur[op] + SLACK_PS)
    return np.where(within, op, NONE)


def _ids(rows: I64) -> pl.Series:
    found = pl.Series(np.where(rows == NONE, 0, rows).astype(np.uint32))
    if not (rows == NONE).any():
        return found
    return pl.select(pl.when(pl.lit(pl.Series(rows != NONE))).then(pl.lit(found))).to_series()
