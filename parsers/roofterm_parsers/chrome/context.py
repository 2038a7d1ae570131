"""What the makers of side tables share: the profile so far and how gathered rows map to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.chrome.axis import Axis
from roofterm_parsers.chrome.categories import Group
from roofterm_parsers.chrome.codes import Columns, Lane
from roofterm_parsers.chrome.devices import Devices
from roofterm_parsers.chrome.gathering import Gathered
from roofterm_parsers.chrome.naming import Names
from roofterm_parsers.chrome.tracks import Tracks
from roofterm_parsers.linking import Ids, Linkable
from roofterm_parsers.profile import HOST_CALL_KINDS, WORK_KINDS, Profile

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
    id_of: I64
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

    def rows(self, group: Group) -> tuple[I64, Columns] | None:
        """Slice ids in order, and the columns of a kind of event in that order."""
        columns = self.gathered.table(group)
        if columns is None:
            return None
        ids = self.id_of[columns.pop("row")]
        order = np.argsort(ids, kind="stable")
        order = order[np.searchsorted(ids[order], 0) :]
        return ids[order], {name: values[order] for name, values in columns.items()}


@dataclass(slots=True)
class GatheredIds:
    """Ids by which work, calls and ops are linked: slice ids and the ids they carry."""

    work: tuple[I64, I64] = (NO_ROWS, NO_ROWS)
    """slice, correlation"""
    work_external: tuple[I64, I64] = (NO_ROWS, NO_ROWS)
    launch: tuple[I64, I64] = (NO_ROWS, NO_ROWS)
    launch_external: tuple[I64, I64] = (NO_ROWS, NO_ROWS)
    op_external: tuple[I64, I64] = (NO_ROWS, NO_ROWS)
    linked: I64 | None = None
    """work that calls launch; None: all of it"""

    def linkable(self, profile: Profile, context: Context) -> Linkable:
        kinds = profile.slices["kind"].to_numpy()
        work = np.flatnonzero(_IS_WORK[kinds]) if self.linked is None else self.linked
        calls = np.flatnonzero(_IS_CALL[kinds])
        group = context.group_of_lane[context.lane]
        return Linkable(
            work=work,
            work_group=group[work],
            work_correlation=_ids(self.work, group),
            work_external=_ids(self.work_external, group),
            launch_correlation=_ids(self.launch, group),
            launch_external=_ids(self.launch_external, group),
            op_external=_ids(self.op_external, group),
            grouped_calls=np.unique(group[calls]),
        )


def _ids(pairs: tuple[I64, I64], group: I64) -> Ids:
    return Ids(pairs[0], group[pairs[0]], pairs[1])


def with_id(slices: I64, ids: I64, missing: int) -> tuple[I64, I64]:
    """The slices that have an id, and their ids."""
    held = ids != missing
    return slices[held], ids[held]
