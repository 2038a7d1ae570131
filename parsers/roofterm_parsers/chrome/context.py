"""What the makers of side tables share: the profile so far and how gathered rows map to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.chrome.axis import Axis
from roofterm_parsers.chrome.codes import Lane
from roofterm_parsers.chrome.devices import Devices
from roofterm_parsers.chrome.gathering import Gathered
from roofterm_parsers.chrome.groups import Group
from roofterm_parsers.chrome.naming import Names
from roofterm_parsers.chrome.store import Table
from roofterm_parsers.chrome.tracks import Tracks
from roofterm_parsers.linking import Ids, Linkable
from roofterm_parsers.profile import HOST_CALL_KINDS, WORK_KINDS, Kind, Profile

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

_IS_WORK = np.isin(np.arange(256), [int(kind) for kind in WORK_KINDS])
_IS_CALL = np.isin(np.arange(256), [int(kind) for kind in HOST_CALL_KINDS])
NO_ROWS = np.zeros(0, np.int64)


@dataclass(slots=True)
class XlaStep:
    """A step that a trace made from an XPlane names: on a host thread, or on a device's line of steps."""

    slice: int
    number: int
    name: str
    device: int | None


@dataclass(slots=True)
class Context:
    profile: Profile
    gathered: Gathered
    id_of: NDArray[np.int32]
    """gathered slice to slice id; -1: left out"""
    lane: U32
    """of each slice"""
    lanes: Sequence[Lane]
    group_of_lane: I64
    names: Names
    tracks: Tracks
    track_place: I64
    devices: Devices
    axis: Axis
    xla_steps: list[XlaStep] = field(default_factory=list)

    def group_of(self, slices: I64) -> I64:
        """Rank of each slice: ids are compared within one only."""
        return self.group_of_lane[self.lane[slices]]

    def ids(self, slices: I64, ids: I64) -> Ids:
        """Ids of slices as links are made by them."""
        return Ids(slices, self.group_of(slices), ids)

    def op_ids(self, wanted: I64) -> Ids:
        """Those of the wanted External ids that ops and annotations have; a step's is that of no launch."""
        ops = (
            self.profile.ops.lazy()
            .select("slice", "external_id")
            .filter(pl.col("external_id").is_in(pl.Series(wanted).implode()))
            .collect()
        )
        slices = ops["slice"].to_numpy()
        is_op = self.profile.slices["kind"].to_numpy()[slices] != Kind.STEP
        return self.ids(slices[is_op].astype(np.int64), ops["external_id"].to_numpy()[is_op])

    def rows(self, group: Group) -> Rows | None:
        """A kind of event in the order of its slices; None if there is none."""
        table = self.gathered.table(group)
        if table is None:
            return None
        ids = self.id_of[table.column("row")]
        held = (ids >= 0).nonzero()[0]
        row_of = np.full(self.lane.size, -1, np.int32)
        row_of[ids[held]] = held  # each slice is one event: a look at every slice is quicker than a sort
        slices = (row_of >= 0).nonzero()[0]
        return Rows(slices, row_of[slices], table)


class Rows:
    """Columns of a kind of event, each taken once, in the order of the slices."""

    def __init__(self, slices: I64, order: NDArray[np.int32], table: Table) -> None:
        self.slices = slices
        self._order = order
        self._table = table

    def take(self, name: str) -> NDArray[Any]:
        """The values of a column; what it was kept in is given up."""
        return self._table.column(name)[self._order]


@dataclass(slots=True)
class GatheredIds:
    """Ids by which work, calls and ops are linked: slices and the ids they carry."""

    work: tuple[I64, I64] = (NO_ROWS, NO_ROWS)
    """slice, correlation"""
    work_external: tuple[I64, I64] = (NO_ROWS, NO_ROWS)
    launch: tuple[I64, I64] = (NO_ROWS, NO_ROWS)
    launch_external: tuple[I64, I64] = (NO_ROWS, NO_ROWS)
    linked: I64 | None = None
    """work that calls launch; None: all of it"""

    def linkable(self, context: Context) -> Linkable:
        kinds = context.profile.slices["kind"].to_numpy()
        work = np.flatnonzero(_IS_WORK[kinds]) if self.linked is None else self.linked
        calls = np.flatnonzero(_IS_CALL[kinds])
        return Linkable(
            work=work,
            work_group=context.group_of(work),
            work_correlation=context.ids(*self.work),
            work_external=context.ids(*self.work_external),
            launch_correlation=context.ids(*self.launch),
            launch_external=context.ids(*self.launch_external),
            op_external=context.op_ids,
            grouped_calls=np.bincount(context.group_of(calls)).nonzero()[0],
        )


def with_id(slices: I64, ids: I64, missing: int) -> tuple[I64, I64]:
    """The slices that have an id, and their ids."""
    held = ids != missing
    return slices[held], ids[held]
