"""The profiler's own table: `key_averages()` from the trace file alone (torch/autograd/profiler_util.py, 2.13).

Its tree differs from the nesting that every other view uses: a slice that sticks out of another has no parent there,
a slice of the same name that is its parent's only child is merged away, and self time may be negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import ROOT, Kind, Profile, TrackKind

I64 = NDArray[np.int64]

TREE_KINDS = (Kind.OP, Kind.ANNOTATION, Kind.STEP, Kind.PYTHON, Kind.RUNTIME, Kind.SYNC, Kind.OVERHEAD)

HIDDEN = ("profiler::_record_function_enter", "profiler::_record_function_enter_new", "profiler::_record_function_exit",
          "aten::is_leaf", "aten::output_nr", "aten::_version")  # fmt: skip
"""Names that the profiler leaves out of its events (`_filter_name`)."""

EVENTS = pl.Schema(
    {
        "slice": pl.UInt32,
        "parent": pl.Int64,  # row of this frame, -1 for none
        "dur_ps": pl.Int64,
        "self_ps": pl.Int64,  # may be negative
        "device_ps": pl.Int64,  # own kernels and those of the children
        "self_device_ps": pl.Int64,
        "memory_bytes": pl.Int64,  # host memory allocated less freed within its interval, on any thread
        "self_memory_bytes": pl.Int64,
        "device_memory_bytes": pl.Int64,
        "self_device_memory_bytes": pl.Int64,
    }
)


class FunctionTree(NamedTuple):
    """The profiler's function events before merging, in order of slice id."""

    slice: I64
    start_ps: I64
    dur_ps: I64
    parent: I64
    """row of this tree, -1 for none"""

    @property
    def self_ps(self) -> int:
        """Self time of all events together, ps: merging takes none away, and a child's time is its parent's loss."""
        return int(self.dur_ps[self.parent < 0].sum())


def function_tree(profile: Profile) -> FunctionTree:
    """The host's function events, nested as the profiler nests them."""
    rows = _rows(profile)
    start, dur = (profile.slices[name].to_numpy()[rows] for name in ("start_ps", "dur_ps"))
    return FunctionTree(rows, start, dur, _parents(profile, rows, start, dur))


def profiler_events(profile: Profile, work: pl.DataFrame, tree: FunctionTree | None = None) -> pl.DataFrame:
    """The profiler's function events of the host after merging (schema `EVENTS`), in order of slice id.

    `work` is the device work with its `op` (roofterm.analysis.work): its time goes to the op that launched it. `tree`: what
    `function_tree` gives for the profile.
    """
    rows, start, dur, parent = function_tree(profile) if tree is None else tree
    own_device = _device_time(rows, work)
    keep, parent = _merge_same_names(profile, profile.slices["name"].to_numpy()[rows], parent)
    own_device = _lifted(own_device, keep, parent)
    at = np.full(rows.size, -1, np.int64)
    at[keep] = np.arange(keep.size)
    up = np.where(parent[keep] >= 0, at[parent[keep]], -1)
    memory, device_memory = _memory(profile, rows[keep], start[keep], dur[keep])
    return pl.DataFrame(
        {
            "slice": pl.Series(rows[keep], dtype=pl.UInt32),
            "parent": up,
            "dur_ps": dur[keep],
            "self_ps": _own(dur[keep], up),
            "device_ps": _subtree(own_device[keep], up),
            "self_device_ps": own_device[keep],
            "memory_bytes": memory,
            "self_memory_bytes": _own(memory, up),
            "device_memory_bytes": device_memory,
            "self_device_memory_bytes": _own(device_memory, up),
        },
        schema=EVENTS,
    )


class TopMemory(NamedTuple):
    """Memory events that lie in no function event: the profiler's row `[memory]`."""

    calls: int
    host_bytes: int
    device_bytes: int


def top_level_memory(profile: Profile, events: pl.DataFrame) -> TopMemory:
    """Count and bytes of memory events that lie in no event of `EVENTS`."""
    memory = profile.memory.filter(~pl.col("out_of_memory").fill_null(False))
    if memory.height == 0:
        return TopMemory(0, 0, 0)
    start = profile.slices["start_ps"].to_numpy()[events["slice"].to_numpy()]
    end = start + events["dur_ps"].to_numpy()
    order = np.argsort(start, kind="stable")
    reach = np.maximum.accumulate(end[order]) if order.size else end
    time = memory["time_ps"].to_numpy()
    before = np.searchsorted(start[order], time, side="right") - 1
    outside = (before < 0) | (reach[np.maximum(before, 0)] < time) if order.size else np.ones(time.size, np.bool_)
    host = (memory["device_type"] == 0).fill_null(True).to_numpy()
    size = memory["bytes"].to_numpy()
    return TopMemory(int(outside.sum()), int(size[outside & host].sum()), int(size[outside & ~host].sum()))


def _rows(profile: Profile) -> I64:
    """Slice ids that are function events: host slices of the tree's kinds, the profiler's own spans apart."""
    kind = profile.slices["kind"].to_numpy()
    hidden = profile.names.with_row_index("id").filter(pl.col("text").is_in(HIDDEN) | (pl.col("cat") == "Trace"))["id"].to_numpy()
    host = np.isin(profile.tracks["kind"].to_numpy(), (TrackKind.HOST, TrackKind.PROFILER))
    taken = np.isin(kind, np.array(TREE_KINDS, np.uint8)) & host[profile.slices["track"].to_numpy()]
    if hidden.size:
        taken &= ~np.isin(profile.slices["name"].to_numpy(), hidden)
    return np.flatnonzero(taken)


def _parents(profile: Profile, rows: I64, start: I64, dur: I64) -> I64:
    """Parent of each row as a position in `rows`, -1 for none, by the profiler's rule."""
    slices = profile.slices
    parent = slices["parent"].to_numpy()
    position = np.full(slices.height, -1, np.int64)
    position[rows] = np.arange(rows.size)
    end = slices["start_ps"].to_numpy() + slices["dur_ps"].to_numpy()
    child = np.flatnonzero(parent != ROOT)
    sticking = child[end[child] > end[parent[child]]]
    track = slices["track"].to_numpy()
    odd = occurring(track[sticking])
    up = parent[rows]
    found = np.where(up == ROOT, -1, position[np.where(up == ROOT, 0, up)])
    if position.size > rows.size:
        _skip_absent(found, up, parent, position)
    if odd.size:
        mine = track[rows]
        for number in odd.tolist():
            here = np.flatnonzero(mine == number)
            around = holders(start[here], start[here] + dur[here])
            found[here] = np.where(around < 0, -1, here[around])
    return found


def _skip_absent(found: I64, up: NDArray[np.uint32], parent: NDArray[np.uint32], position: I64) -> None:
    """Where a parent is no function event, take the nearest slice above it that is one."""
    up = up.copy()
    lost = np.flatnonzero((up != ROOT) & (found < 0))
    while lost.size:
        up[lost] = parent[up[lost]]
        inside = up[lost] != ROOT
        found[lost[inside]] = position[up[lost[inside]]]
        lost = lost[inside & (found[lost] < 0)]


def holders(start: I64, end: I64) -> I64:
    """The profiler's parents on one thread, -1 for none: the nearest earlier event that ends no earlier, and after the child starts.

    All events look at the one before them first. What one has found too short, whatever lies between that and where it looked
    on itself, is too short for it too: so all jump at once, and ever farther.
    """
    found = np.arange(-1, start.size - 1)
    active = np.arange(start.size)
    while active.size:
        looked = found[active]
        short = (looked >= 0) & ((end[looked] < end[active]) | (end[looked] <= start[active]))
        active = active[short]
        found[active] = found[looked[short]]
    return found


def _merge_same_names(profile: Profile, name: NDArray[np.uint32], parent: I64) -> tuple[I64, I64]:
    """Positions kept, and parents, after merging each only child that has its parent's name, until none is left.

    Merging is confluent, so all of a round are merged at once: their children go to the nearest ancestor that stays.
    """
    text = profile.names["text"].rank("dense").to_numpy() if profile.names.height else np.zeros(0)
    label = text[name]
    alive = np.ones(parent.size, np.bool_)
    parent = parent.copy()
    while True:
        child = np.flatnonzero(alive & (parent >= 0))
        children = np.bincount(parent[child], minlength=parent.size)
        gone = child[(children[parent[child]] == 1) & (label[child] == label[parent[child]])]
        if gone.size == 0:
            return np.flatnonzero(alive), parent
        alive[gone] = False
        while True:
            dead = np.flatnonzero((parent >= 0) & alive & ~alive[np.maximum(parent, 0)])
            if dead.size == 0:
                break
            parent[dead] = parent[parent[dead]]


def _device_time(rows: I64, work: pl.DataFrame) -> I64:
    """Device time (ps) of the work that each row launched itself."""
    own = np.zeros(rows.size, np.int64)
    linked = work.drop_nulls("op")
    if linked.height:
        at = np.searchsorted(rows, linked["op"].to_numpy())
        inside = (at < rows.size) & (rows[np.minimum(at, rows.size - 1)] == linked["op"].to_numpy())
        length = (linked["end_ps"] - linked["start_ps"]).to_numpy()
        np.add.at(own, at[inside], length[inside])
    return own


def _lifted(own: I64, keep: I64, parent: I64) -> I64:
    """Own device time with that of merged rows lifted to the row that stays."""
    alive = np.zeros(own.size, np.bool_)
    alive[keep] = True
    gone = np.flatnonzero(~alive & (own != 0))
    lifted = own.copy()
    for row in gone.tolist():
        up = int(parent[row])
        while up >= 0 and not alive[up]:
            up = int(parent[up])
        if up >= 0:
            lifted[up] += own[row]
    return lifted


def _own(total: I64, parent: I64) -> I64:
    """Each row's total less that of its children."""
    own = total.copy()
    child = parent >= 0
    np.subtract.at(own, parent[child], total[child])
    return own


def _subtree(own: I64, parent: I64) -> I64:
    """Each row's own value and all values below it."""
    total = own.copy()
    value = np.flatnonzero(own)
    up = parent[value]
    while value.size:
        inside = up >= 0
        value, up = value[inside], up[inside]
        np.add.at(total, up, own[value])
        up = parent[up]
    return total


def _memory(profile: Profile, rows: I64, start: I64, dur: I64) -> tuple[I64, I64]:
    """Bytes of memory events of the same source within each interval, both ends included, of host and of devices."""
    memory = profile.memory.filter(~pl.col("out_of_memory").fill_null(False)).sort("time_ps", maintain_order=True)
    host, devices = np.zeros(rows.size, np.int64), np.zeros(rows.size, np.int64)
    if memory.height == 0:
        return host, devices
    source_of = profile.tracks["source"].to_numpy()
    event_source = source_of[memory["track"].to_numpy()]
    row_source = source_of[profile.slices["track"].to_numpy()[rows]]
    on_device = (memory["device_type"] != 0).fill_null(False).to_numpy()
    size = memory["bytes"].to_numpy()
    for source in occurring(event_source):
        events, mine = event_source == source, row_source == source
        time = memory["time_ps"].to_numpy()[events]
        first = np.searchsorted(time, start[mine], side="left")
        last = np.searchsorted(time, start[mine] + dur[mine], side="right")
        for sums, wanted in ((host, ~on_device), (devices, on_device)):
            running = np.concatenate(([0], np.cumsum(np.where(wanted, size, 0)[events])))
            sums[mine] = running[last] - running[first]
    return host, devices
