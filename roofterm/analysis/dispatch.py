"""How a piece of device work came about: annotation, module, Python line, op, call, work; for the detail pane."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from roofterm.analysis.graphs import GRAPH_LAUNCH
from roofterm.analysis.launch_places import own_code
from roofterm.analysis.steps import US
from roofterm.results import ChainLink
from roofterm_parsers.profile import HOST_CALL_KINDS, ROOT, WORK_KINDS, Kind, Profile, TrackKind

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

_MODULE = "nn.Module: "
_FRAME = re.compile(r"\.py(\(\d+\): |:\d+ )")
"""as PyTorch and as JAX write a frame"""


def dispatch_chain(study: Study, slice_id: int) -> list[ChainLink]:
    """What led to a slice, from the outside to the slice itself.

    Of device work: the step and annotations in which its call was made, modules, the line of the user's code, ops, the
    call, the work. Work of a backward op also names its forward op, and the modules of that one. Replayed work names the graph launch
    and, if a capture trace was joined, the captured ops.
    """
    profile = study.joined
    kind = Kind(int(profile.slices["kind"][slice_id]))
    if kind not in WORK_KINDS:
        return [*_around(profile, slice_id), _link(profile, slice_id)]
    launch, op = _launch_and_op(study.profile, slice_id)
    chain: list[ChainLink] = [] if launch is None else [*_around(profile, launch), _link(profile, launch)]
    if launch is None and op is not None:
        chain = [*_around(profile, op), _link(profile, op)]
    executed = None if op is not None else executed_in(study, slice_id)
    if executed is not None:
        chain = [*_around(profile, executed), _link(profile, executed), *chain]
    chain = [*_forward(study.profile, chain), *chain]
    captured = study.captured.placed.filter(pl.col("work") == slice_id)
    if captured.height:
        call = int(captured["call"][0])
        chain += [_as_captured(link) for link in [*_around(profile, call), _link(profile, call)]]
    return [*chain, _link(profile, slice_id)]


def launching_op(study: Study, work: int) -> int | None:
    """The innermost op around the call that launched a piece of work: the one that it is linked to, or of XLA the one around the slice
    that it is `executed_in`."""
    _, op = _launch_and_op(study.profile, work)
    if op is None and (executed := executed_in(study, work)) is not None:
        kind = study.profile.slices["kind"]
        op = next((row for row in _ancestors(study.profile, executed) if kind[row] == Kind.OP), None)
    return op


def executed_in(study: Study, work: int) -> int | None:
    """The host slice in which XLA executed the instruction that a piece of work is a run of.

    A profile of JAX on a GPU holds the calls that launch on lines of their own, under the driver's number of the thread, and what the
    thread did on another line, where a slice with the instruction's name lies around each call. None unless there is exactly one.
    """
    profile = study.profile
    launch, _ = _launch_and_op(profile, work)
    at = int(profile.hlo["slice"].search_sorted(work))
    if launch is None or at >= profile.hlo.height or profile.hlo["slice"][at] != work:
        return None
    instruction = profile.hlo_ops["name"][int(profile.hlo["op"][at])]
    if instruction is None:
        return None
    names = (profile.names["text"] == instruction).arg_true()
    begins = study.start_ps[launch]
    ends = begins + study.dur_ps[launch]
    around = np.isin(profile.slices["name"].to_numpy(), names.to_numpy())
    around &= (study.start_ps <= begins) & (study.start_ps + study.dur_ps >= ends)
    rows = np.flatnonzero(around)
    tracks = profile.tracks[profile.slices["track"][rows].to_list()]
    source = profile.tracks["source"][int(profile.slices["track"][launch])]
    rows = rows[((tracks["source"] == source) & (tracks["kind"].cast(pl.UInt8) == int(TrackKind.HOST))).to_numpy()]
    return int(rows[0]) if rows.size == 1 else None


def _launch_and_op(profile: Profile, work: int) -> tuple[int | None, int | None]:
    at = int(profile.links["work"].search_sorted(work))
    if at >= profile.links.height or profile.links["work"][at] != work:
        return None, None
    return profile.links["launch"][at], profile.links["op"][at]


def _around(profile: Profile, slice_id: int) -> list[ChainLink]:
    """What lies around a host slice on its thread: the ranges that its start falls in, and of what it nests in the modules,
    the ops and one line of Python. Ranges are told by time, since with Python stacks they nest in nothing."""
    nested = _ancestors(profile, slice_id)
    names = profile.names["text"]
    kinds = profile.slices["kind"]
    name = profile.slices["name"]
    text = {row: str(names[int(name[row])]) for row in nested}
    kept = [row for row in nested if kinds[row] in (Kind.OP, *HOST_CALL_KINDS) or text[row].startswith(_MODULE)]
    frames = [row for row in nested if kinds[row] == Kind.PYTHON and not text[row].startswith(_MODULE)]
    own = own_code(pl.Series([text[row] for row in frames], dtype=pl.String))
    line = next((row for row, mine in zip(frames, own, strict=True) if mine), None)
    line = line if line is not None else next((row for row in frames if _FRAME.search(text[row])), None)
    rows = {*kept, *_ranges(profile, slice_id)} | ({line} if line is not None else set())
    start, dur = profile.slices["start_ps"], profile.slices["dur_ps"]
    return [_link(profile, row) for row in sorted(rows, key=lambda row: (start[row], -dur[row], row))]


def _ancestors(profile: Profile, slice_id: int) -> list[int]:
    """What a slice nests in, from the inside out."""
    parent = profile.slices["parent"]
    found = []
    row = int(parent[slice_id])
    while row != ROOT:
        found.append(row)
        row = int(parent[row])
    return found


def _ranges(profile: Profile, slice_id: int) -> list[int]:
    slices = profile.slices
    track = slices["track"].to_numpy()
    number, time = int(track[slice_id]), int(slices["start_ps"][slice_id])
    first, last = (int(np.searchsorted(track, number, side=side)) for side in ("left", "right"))
    start = slices["start_ps"].to_numpy()[first:last]
    end = start + slices["dur_ps"].to_numpy()[first:last]
    kind = slices["kind"].to_numpy()[first:last]
    around = (start <= time) & (end > time) & ((kind == Kind.ANNOTATION) | (kind == Kind.STEP))
    return [int(row) for row in np.flatnonzero(around) + first if row != slice_id]


def _forward(profile: Profile, chain: list[ChainLink]) -> list[ChainLink]:
    """The forward op of the outermost backward op in a chain, with its modules."""
    pairs = dict(profile.backward.filter(pl.col("backward").is_in([link.slice for link in chain])).iter_rows())
    forward = next((pairs[link.slice] for link in chain if link.slice in pairs), None)
    if forward is None:
        return []
    modules = [link for link in _around(profile, forward) if link.kind == "module"]
    link = _link(profile, forward)
    link.kind = "forward"
    return [*modules, link]


def _link(profile: Profile, slice_id: int) -> ChainLink:
    row = profile.slices.row(slice_id, named=True)
    name = str(profile.names["text"][row["name"]])
    kind = Kind(row["kind"])
    if kind in HOST_CALL_KINDS:
        word = "graph" if re.search(GRAPH_LAUNCH, name) else "call"
    elif name.startswith(_MODULE):
        word, name = "module", name.removeprefix(_MODULE)
    else:
        word = kind.name.lower()
    return ChainLink(word, name, row["start_ps"] / US, row["dur_ps"] / US, slice_id)


def _as_captured(link: ChainLink) -> ChainLink:
    """A link of the capture trace: its times are of another day."""
    return ChainLink(f"captured {link.kind}", link.name, None, None)
