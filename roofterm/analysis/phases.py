"""Phases: which part of a training step, or of inference, each host slice and each piece of device work belongs to.

A host slice belongs to the nearest mark above it, itself included: autograd's nodes are backward, the optimizer's ranges
optimizer, process groups communication, the loader's ranges dataloader. What carries no mark is forward if it lies between
the first and the last op of its thread to which a backward op belongs, up to the next backward pass. Forward ops under a
backward node are recomputation (activation checkpointing). Device work takes the phase of the call that launched it, but
collectives are communication. In inference, work takes the phase of its iteration. What nothing tells has no phase.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.work import WorkClass
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import ROOT, Kind, Profile, TrackKind

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]


class Phase(IntEnum):
    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    RECOMPUTE = 3
    OPTIMIZER = 4
    COMMUNICATION = 5
    DATALOADER = 6
    PREFILL = 7
    DECODE = 8
    MIXED = 9


PHASE_TITLES: tuple[str | None, ...] = (None, *(phase.name.lower() for phase in Phase if phase))
"""Name of each phase by its number."""

OTHER = "other"
"""What tables call work without a phase."""

_MARKS: tuple[tuple[Phase, str], ...] = (
    (Phase.RECOMPUTE, r"^CheckpointFunctionBackward$|torch/utils/checkpoint\.py\(\d+\): (recompute_fn|unpack_hook)$"),
    (
        Phase.BACKWARD,
        r"^autograd::engine::|^(struct |class )?torch::autograd::(AccumulateGrad|CopyBackwards|GraphRoot)$|^\w+Backward\d*$"
        r"|^torch/(_tensor\.py|autograd/__init__\.py)\(\d+\): backward$|^[# \[]*backward([ _]pass)?[# \]]*$",
    ),
    (Phase.OPTIMIZER, r"^Optimizer\.(step|zero_grad)#|^[# \[]*(optimizer([ _]step)?|zero_grad)[# \]]*$"),
    (Phase.COMMUNICATION, r"^(nccl|gloo|mpi|ucc|xccl|hccl|c10d|_c10d_functional|c10d_functional):|^record_param_comms$"),
    (
        Phase.DATALOADER,
        r"^enumerate\(Data(Loader|Pipe)\)#"
        r"|^[# \[]*(data[ _]?load(ing|er)?|load_batch|wait_for_batch|next_batch|copy_batch_to_\w+)[# \]]*$",
    ),
    (Phase.FORWARD, r"^[# \[]*forward([ _]pass)?[# \]]*$|DataParallel\.forward$"),
)
"""Names that mark a phase, the first that fits; a forward mark under backward is recomputation."""

_FORWARD_ONLY = (
    r"^aten::(linear|addmm|conv[123]d|convolution|conv_transpose[123]d|scaled_dot_product_attention|layer_norm|batch_norm)$"
    r"|^CheckpointFunction$"
)
"""Ops that no backward formula calls: one under a backward node is recomputation."""

_PRODUCTS = r"^aten::(linear|matmul|mm|addmm|bmm|baddbmm|conv[123]d|convolution|scaled_dot_product_attention|embedding)$"
"""Ops that tell a forward pass where the file has no sequence numbers."""

_FRAMEWORK_OPS: tuple[tuple[Phase, str], ...] = (
    (Phase.RECOMPUTE, r"rematted_computation|/remat/"),
    (Phase.BACKWARD, r"transpose\(jvp\("),
    (Phase.FORWARD, r"jvp\("),
)
"""What JAX's names of compiled instructions tell: the transformation that an op came from."""


def host_phases(profile: Profile) -> U8:
    """`Phase` of every slice, by its id; device work has none here."""
    slices = profile.slices
    if slices.height == 0:
        return np.zeros(0, np.uint8)
    marks = _marks(profile)
    phase, anchor = _inherited(marks, slices["parent"].to_numpy(), slices["depth"].to_numpy())
    _spread_loose_ranges(profile, marks, phase, anchor)
    if not np.isin(marks, (Phase.BACKWARD, Phase.OPTIMIZER)).any():
        return phase
    _mark_recomputation(profile, marks, phase, anchor)
    _mark_autograd_threads(profile, phase)
    _mark_forward(profile, phase)
    return phase


def work_phases(profile: Profile, work: pl.DataFrame, host: U8, iteration_phase: pl.Series | None = None) -> U8:
    """`Phase` of every piece of device work (schema `work.WORK`), row for row.

    `host`: of the host slices; `iteration_phase`: text for each row of `profile.steps`, for inference.
    """
    if work.height == 0:
        return np.zeros(0, np.uint8)
    behind = work.select(pl.coalesce("launch", "op"))["launch"]
    known = behind.is_not_null().to_numpy()
    found = np.where(known, host[behind.fill_null(0).to_numpy()], 0).astype(np.uint8)
    found = np.where(found == 0, _of_instructions(profile, work["slice"]), found)
    if iteration_phase is not None and work["step"].null_count() < work.height:
        codes = [_code(text) for text in iteration_phase.to_list()]
        steps = np.array([*codes, 0], np.uint8)[work["step"].fill_null(len(codes)).to_numpy()]
        found = np.where(np.isin(found, (Phase.NONE, Phase.FORWARD)) & (steps != 0), steps, found)
    collective = work["work_class"].to_numpy() == int(WorkClass.COMMUNICATION)
    result: U8 = np.where(collective, np.uint8(Phase.COMMUNICATION), found)
    return result


def phase_names(codes: U8) -> pl.Series:
    """Phases as texts, null for none."""
    titles = pl.Series("phase", PHASE_TITLES, dtype=pl.String)
    return titles[codes]


def _code(text: str | None) -> int:
    return PHASE_TITLES.index(text) if text in PHASE_TITLES else 0


def _marks(profile: Profile) -> U8:
    """The mark that each slice carries itself."""
    texts, cats = profile.names["text"], profile.names["cat"].str.to_lowercase()
    of_name = np.zeros(texts.len(), np.uint8)
    for phase, pattern in reversed(_MARKS):
        of_name[texts.str.contains(pattern).to_numpy()] = phase
    of_name[cats.str.starts_with("gpu_").to_numpy()] = 0
    kind = profile.slices["kind"].to_numpy()
    marks: U8 = of_name[profile.slices["name"].to_numpy()]
    marks[~np.isin(kind, (Kind.OP, Kind.ANNOTATION, Kind.PYTHON))] = 0
    backward = profile.ops.filter(pl.col("forward_thread").is_not_null())["slice"].to_numpy()
    marks[backward[marks[backward] == 0]] = Phase.BACKWARD
    return marks


def _inherited(marks: U8, parent: NDArray[np.uint32], depth: NDArray[np.uint16]) -> tuple[U8, I64]:
    """Each slice's own mark or that of the nearest marked slice above, and which slice that is (-1: none)."""
    phase = marks.copy()
    anchor = np.where(marks != 0, np.arange(marks.size), -1)
    order = np.argsort(depth, kind="stable")
    bounds = np.flatnonzero(np.diff(depth[order])) + 1
    for rows in np.split(order, bounds)[1:]:
        above = parent[rows]
        rows, above = rows[above != ROOT], above[above != ROOT]
        over = phase[above]
        again = (marks[rows] == Phase.FORWARD) & ((over == Phase.BACKWARD) | (over == Phase.RECOMPUTE))
        phase[rows[again]] = Phase.RECOMPUTE
        open_rows = marks[rows] == 0
        phase[rows[open_rows]] = over[open_rows]
        anchor[rows[open_rows]] = anchor[above[open_rows]]
    return phase, anchor


def _spread_loose_ranges(profile: Profile, marks: U8, phase: U8, anchor: I64) -> None:
    """Give a range's mark to all that starts within it on its thread, where the range itself sticks out of its parent.

    With Python stacks a range begins inside the frame that opens it and outlasts that frame, so nothing nests in it.
    """
    slices = profile.slices
    parent, start, track = slices["parent"].to_numpy(), slices["start_ps"].to_numpy(), slices["track"].to_numpy()
    end = start + slices["dur_ps"].to_numpy()
    ranges = np.flatnonzero((marks != 0) & (slices["kind"].to_numpy() == Kind.ANNOTATION) & (parent != ROOT))
    for row in ranges[end[ranges] > end[parent[ranges]]].tolist():
        last = int(np.searchsorted(track, track[row], side="right"))
        rows = np.arange(row, row + int(np.searchsorted(start[row:last], end[row], side="left")))
        # A mark that was set further in stays; one from further out gives way.
        outer = (anchor[rows] < row) & (marks[rows] == 0) | (rows == row)
        mark = marks[row]
        if mark == Phase.FORWARD and phase[row] in (Phase.BACKWARD, Phase.RECOMPUTE):
            mark = Phase.RECOMPUTE
        phase[rows[outer]] = mark
        anchor[rows[outer]] = row


def _mark_recomputation(profile: Profile, marks: U8, phase: U8, anchor: I64) -> None:
    """Turn into recomputation what a backward node runs from the first to the last forward op under it.

    A forward op has a sequence number of its own, as autograd gives to what it will differentiate. Numbers alone would
    also fit a backward pass that is differentiated again (create_graph), so one op must be such that no formula calls it.
    """
    kind = profile.slices["kind"].to_numpy()
    only_forward = profile.names["text"].str.contains(_FORWARD_ONLY).to_numpy()[profile.slices["name"].to_numpy()]
    numbered = np.zeros(kind.size, np.bool_)
    forward = profile.ops.filter(pl.col("sequence").is_not_null() & pl.col("forward_thread").is_null())["slice"].to_numpy()
    numbered[forward] = True
    candidates = np.flatnonzero((kind == Kind.OP) & (phase == Phase.BACKWARD) & (marks == 0) & (numbered | only_forward))
    if candidates.size == 0:
        return
    start = profile.slices["start_ps"].to_numpy()
    end = start + profile.slices["dur_ps"].to_numpy()
    nodes, at = np.unique(anchor[candidates], return_inverse=True)
    certain = np.zeros(nodes.size, np.bool_)
    np.logical_or.at(certain, at, only_forward[candidates])
    first, last = np.full(nodes.size, np.iinfo(np.int64).max), np.full(nodes.size, -1)
    np.minimum.at(first, at, start[candidates])
    np.maximum.at(last, at, end[candidates])
    inside = np.flatnonzero(phase == Phase.BACKWARD)
    place = np.minimum(np.searchsorted(nodes, anchor[inside]), nodes.size - 1)
    again = (nodes[place] == anchor[inside]) & certain[place] & (start[inside] >= first[place]) & (end[inside] <= last[place])
    phase[inside[again & (marks[inside] == 0)]] = Phase.RECOMPUTE


def _mark_autograd_threads(profile: Profile, phase: U8) -> None:
    """What lies between the nodes of a thread that only autograd uses is backward."""
    track = profile.slices["track"].to_numpy()
    count = profile.tracks.height
    host = (profile.tracks["kind"] == int(TrackKind.HOST)).to_numpy()
    is_op = profile.slices["kind"].to_numpy() == Kind.OP
    backward = np.bincount(track[is_op & (phase == Phase.BACKWARD)], minlength=count) > 0
    other = np.bincount(track[is_op & np.isin(phase, (Phase.FORWARD, Phase.OPTIMIZER, Phase.DATALOADER))], minlength=count) > 0
    other |= np.bincount(track[_forward_ops(profile, phase)], minlength=count) > 0
    phase[(host & backward & ~other)[track] & (phase == 0)] = Phase.BACKWARD


def _mark_forward(profile: Profile, phase: U8) -> None:
    """Mark what has no phase from the first to the last op with a backward op, for each thread between two backward passes."""
    slices = profile.slices
    forward = _forward_ops(profile, phase)
    track = slices["track"].to_numpy()
    start = slices["start_ps"].to_numpy()
    end = start + slices["dur_ps"].to_numpy()
    source = profile.tracks["source"].to_numpy()
    for number in occurring(track[forward]).tolist():
        mine = forward[track[forward] == number]
        passes = np.sort(start[np.flatnonzero((phase == Phase.BACKWARD) & (source[track] == source[number]))])
        turn = np.searchsorted(passes, start[mine])
        firsts = np.concatenate(([0], np.flatnonzero(np.diff(turn)) + 1))
        low, high = start[mine[firsts]], np.maximum.reduceat(end[mine], firsts)
        rows = np.flatnonzero((track == number) & (phase == 0))
        place = np.searchsorted(low, start[rows], side="right") - 1
        inside = (place >= 0) & (end[rows] <= high[np.maximum(place, 0)])
        phase[rows[inside]] = Phase.FORWARD


def _forward_ops(profile: Profile, phase: U8) -> I64:
    """Ops without a phase that a backward op belongs to; where the file pairs none, those that compute products."""
    if profile.backward.height:
        forward: I64 = occurring(profile.backward["forward"].to_numpy()).astype(np.int64)
    else:
        product = profile.names["text"].str.contains(_PRODUCTS).to_numpy()[profile.slices["name"].to_numpy()]
        forward = np.flatnonzero(product & (profile.slices["kind"].to_numpy() == Kind.OP))
    found: I64 = forward[phase[forward] == 0]
    return found


def _of_instructions(profile: Profile, slices: pl.Series) -> U8:
    """Phases of work that HLO instructions name."""
    if profile.hlo.height == 0:
        return np.zeros(slices.len(), np.uint8)
    texts = profile.hlo_ops["framework_op"].fill_null("")
    of_op = np.zeros(texts.len(), np.uint8)
    for phase, pattern in reversed(_FRAMEWORK_OPS):
        of_op[texts.str.contains(pattern).to_numpy()] = phase
    if not (of_op == Phase.BACKWARD).any():
        return np.zeros(slices.len(), np.uint8)
    op = (
        slices.alias("slice")
        .to_frame()
        .join(profile.hlo.unique("slice", keep="first"), on="slice", how="left", maintain_order="left")["op"]
    )
    found: U8 = np.where(op.is_not_null().to_numpy(), of_op[op.fill_null(0).to_numpy()], 0).astype(np.uint8)
    return found
