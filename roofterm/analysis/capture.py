"""Graph replays joined to the trace of their capture, so that replayed kernels get ops, shapes and modules.

While a graph is captured its calls are made once, in their ops, and nothing runs; a replay runs all of it and names no
op. The two are paired by the size of the batch, by the order of launches, and by the names (on ROCm) and grids of the
kernels: a replay must consist of exactly what was captured, in number and kind, or nothing of it is joined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.batches import parse_capture
from roofterm.analysis.graphs import graph_replays, replayed_work
from roofterm.analysis.launches import KERNEL_LAUNCH
from roofterm.analysis.work import COPY_KERNEL
from roofterm_parsers.linking import innermost_op
from roofterm_parsers.profile import HOST_CALL_KINDS, Kind, Profile, Warning

I64 = NDArray[np.int64]

BEGIN, END = r"StreamBeginCapture", r"StreamEndCapture"
COPY_CALL = r"^(cuda|hip|cu)Mem(cpy|set)\w*"
COPY_KEY = "(copy)"
"""How a copy or set is called when names are compared: calls do not name its kernel."""

MOST_LOST = 0.01
"""A replay may lack this share of the captured launches at its end: profilers lose records there."""

JOINED = pl.Schema(
    {
        "work": pl.UInt32,  # slice of the replayed piece
        "capture": pl.UInt16,  # index of the capture trace
        "call": pl.UInt32,  # slice of the captured call, in the capture trace
        "op": pl.UInt32,  # the op around it there; null: none
    }
)


class CapturedGraph(NamedTuple):
    """One graph of a capture trace."""

    capture: int
    """index of the trace"""
    size: int | None
    """batch size, by the annotation around its capture"""
    mode: str | None
    calls: I64
    """slices of the calls that it consists of, in order"""
    keys: tuple[str | None, ...]
    """what each call launches: a kernel's name, `COPY_KEY`, or None where the trace does not say"""

    @property
    def text(self) -> str:
        size = "" if self.size is None else f"size {self.size:,}, "
        return f"{size}{self.calls.size:,} captured launches"


class Match(NamedTuple):
    """Replays paired with captured graphs."""

    joined: pl.DataFrame
    """schema `JOINED`, in order of `work`"""
    graph_of: list[CapturedGraph | None]
    """the captured graph of each replay, row for row with `graphs.graph_replays`"""
    warnings: list[Warning]


def captured_graphs(capture: Profile, index: int = 0) -> list[CapturedGraph]:
    """The graphs of a capture trace, in the order in which they were captured."""
    calls, keys = _captured_calls(capture)
    if calls.size == 0:
        return []
    start = capture.slices["start_ps"].to_numpy()[calls]
    track = capture.slices["track"].to_numpy()[calls]
    windows = _capture_windows(capture)
    if not windows:
        windows = [(int(start.min()), int(start.max()) + 1, int(track[0]))]
    graphs = []
    for begin, end, number in windows:
        rows = np.flatnonzero((start >= begin) & (start < end) & (track == number))
        if rows.size:
            size, mode = _annotated(capture, begin, number)
            graphs.append(CapturedGraph(index, size, mode, calls[rows], tuple(keys[row] for row in rows.tolist())))
    return graphs


def match_captures(profile: Profile, captures: Sequence[Profile], sizes: Sequence[int | None] | None = None) -> Match:
    """Pairs the replays of `profile` with the graphs of capture traces.

    `sizes`: for each replay (row of `graphs.graph_replays`) what its batch needs, by the iteration's annotation; the graph
    used is the smallest that holds it. What does not fit is left alone, and a warning says what and why.
    """
    replays = graph_replays(profile)
    graphs = [graph for index, capture in enumerate(captures) for graph in captured_graphs(capture, index)]
    graph_of: list[CapturedGraph | None] = [None] * replays.height
    if not graphs or replays.height == 0:
        return Match(pl.DataFrame(schema=JOINED), graph_of, _nothing_to_match(captures, graphs, replays))
    runs = replayed_work(profile, replays["launch"].to_numpy())
    pieces = _Pieces(profile)
    pairing = _Pairing(captures, graphs)
    parts: list[pl.DataFrame] = []
    misfits: Counter[tuple[int, str]] = Counter()
    for row, candidates in enumerate(pairing.candidates(list(sizes) if sizes is not None else [None] * replays.height)):
        run = runs[row]
        if run.size == 0:
            continue
        fit = pairing.fitting(pieces.keys(run), pieces.grids(run), candidates)
        if isinstance(fit, str):
            misfits[run.size, fit] += 1
            continue
        graph_of[row] = fit.graph
        parts.append(_joined(captures[fit.graph.capture], fit, run))
    joined = pl.concat(parts).sort("work") if parts else pl.DataFrame(schema=JOINED)
    told = [_misfit_warning(size, why, count) for (size, why), count in misfits.items()]
    told += _lost_warnings(captures, [(graph, run.size) for graph, run in zip(graph_of, runs, strict=True) if graph is not None])
    return Match(joined, graph_of, told)


class _Fit(NamedTuple):
    graph: CapturedGraph
    places: I64
    """place in the graph of each replayed piece"""


class _Pairing:
    """Which captured graph each replay is of."""

    def __init__(self, captures: Sequence[Profile], graphs: list[CapturedGraph]) -> None:
        self._captures = captures
        self._graphs = graphs
        self._grids = [_grids_of_calls(capture) for capture in captures]
        self._ops: dict[int, tuple[object, ...]] = {}

    def candidates(self, needed: list[int | None]) -> list[list[CapturedGraph]]:
        """For each replay the graphs that it may be of: those of its size, or the one whose turn it is among them."""
        of_size = [self._of_size(size) for size in needed]
        keys = [tuple(id(graph) for graph in graphs) for graphs in of_size]
        replays = Counter(keys)
        turn: Counter[tuple[int, ...]] = Counter()
        found = []
        for key, graphs in zip(keys, of_size, strict=True):
            # As many launches as graphs, or a multiple: the k-th launch of an iteration is of the k-th graph.
            ordered = graphs and replays[key] % len(graphs) == 0 and len({graph.size for graph in graphs}) == 1
            found.append([graphs[turn[key] % len(graphs)]] if ordered else graphs)
            turn[key] += 1
        return found

    def fitting(self, keys: list[str], grids: I64, candidates: list[CapturedGraph]) -> _Fit | str:
        """The graph that consists of exactly these pieces; or why there is none."""
        if not candidates:
            return "no captured graph is large enough for"
        fits = []
        for graph in candidates:
            places = _places(keys, graph.keys)
            if places is not None and _fits_grids(grids, self._grids[graph.capture][graph.calls[places]]):
                fits.append(_Fit(graph, places))
        if not fits:
            path = self._captures[candidates[0].capture].sources[0].path
            return f"{path} ({candidates[0].text}) does not fit"
        if len({self._ops_of(fit.graph) for fit in fits}) > 1:
            return f"{len(fits)} captured graphs of unlike shapes fit"
        return fits[0]

    def _of_size(self, needed: int | None) -> list[CapturedGraph]:
        sizes = {graph.size for graph in self._graphs if graph.size is not None}
        if needed is None or not sizes:
            return self._graphs
        large = [size for size in sizes if size >= needed]
        return [graph for graph in self._graphs if graph.size == min(large)] if large else []

    def _ops_of(self, graph: CapturedGraph) -> tuple[object, ...]:
        """What a graph would give to a replay: equal for graphs that cannot be told apart and need not be."""
        if id(graph) not in self._ops:
            capture = self._captures[graph.capture]
            op = innermost_op(capture.slices, graph.calls)
            signature = np.full(capture.slices.height + 1, -1, np.int64)
            known = capture.ops.drop_nulls("signature")
            signature[known["slice"].to_numpy()] = known["signature"].to_numpy()
            name = np.append(capture.slices["name"].to_numpy().astype(np.int64), -1)
            self._ops[id(graph)] = (graph.capture, name[op].tobytes(), signature[op].tobytes())
        return self._ops[id(graph)]


def _places(replayed: list[str], captured: tuple[str | None, ...]) -> I64 | None:
    """Place in the captured sequence of each replayed piece; None if the two are not of the same work.

    Equal sequences are paired as they stand. Equal numbers of each kernel in another order (several streams) are paired
    kernel by kernel. A replay may end a little early.
    """
    lost = len(captured) - len(replayed)
    if lost < 0 or lost > MOST_LOST * len(captured):
        return None
    if all(_same(a, b) for a, b in zip(replayed, captured, strict=False)):
        return np.arange(len(replayed))
    if lost or any(key is None for key in captured) or Counter(replayed) != Counter(captured):
        return None
    order = np.argsort(np.array([str(key) for key in captured]), kind="stable")
    places = np.empty(len(replayed), np.int64)
    places[np.argsort(np.array(replayed), kind="stable")] = order
    return places


def _same(replayed: str, captured: str | None) -> bool:
    return replayed == captured or (captured is None and replayed != COPY_KEY)


def _captured_calls(capture: Profile) -> tuple[I64, list[str | None]]:
    """Calls that launched nothing in the file, in order of time, with what each would have launched."""
    slices, names = capture.slices, capture.names["text"]
    kinds = np.isin(slices["kind"].to_numpy(), np.array(HOST_CALL_KINDS, np.uint8))
    kernel = names.str.contains(KERNEL_LAUNCH).to_numpy()[slices["name"].to_numpy()] & kinds
    copy = names.str.contains(COPY_CALL).to_numpy()[slices["name"].to_numpy()] & kinds
    calls = np.union1d(np.flatnonzero(kernel | copy), capture.launches["slice"].to_numpy()).astype(np.int64)
    calls = calls[~np.isin(calls, capture.links["launch"].drop_nulls().to_numpy())]
    # A driver call inside a runtime call is the same launch.
    calls = calls[~np.isin(slices["parent"].to_numpy()[calls], calls)]
    calls = calls[np.argsort(slices["start_ps"].to_numpy()[calls], kind="stable")]
    said = dict(zip(capture.launches["slice"].to_list(), capture.launches["kernel"].to_list(), strict=True))
    return calls, [COPY_KEY if copy[call] else _key(said.get(call)) for call in calls.tolist()]


def _key(name: str | None) -> str | None:
    return COPY_KEY if name is not None and name.startswith(("__amd_rocclr_copyBuffer", "__amd_rocclr_fillBuffer")) else name


def _capture_windows(capture: Profile) -> list[tuple[int, int, int]]:
    """From the beginning to the end of each capture, with its track."""
    slices = capture.slices
    name = slices["name"].to_numpy()
    marks = []
    for pattern, begins in ((BEGIN, True), (END, False)):
        wanted = capture.names["text"].str.contains(pattern).arg_true().to_numpy()
        rows = np.flatnonzero(np.isin(name, wanted) & np.isin(slices["kind"].to_numpy(), np.array(HOST_CALL_KINDS, np.uint8)))
        marks += [(int(slices["track"][row]), int(slices["start_ps"][row]), begins) for row in rows.tolist()]
    windows = []
    opened: tuple[int, int] | None = None
    for track, time, begins in sorted(marks):
        if begins:
            opened = opened if opened is not None and opened[0] == track else (track, time)
        elif opened is not None and opened[0] == track:
            windows.append((opened[1], time, track))
            opened = None
    return sorted(windows)


def _annotated(capture: Profile, time_ps: int, track: int) -> tuple[int | None, str | None]:
    """Size and mode that the annotation around a capture names."""
    around = capture.slices.filter(
        (pl.col("track") == track)
        & (pl.col("kind") == int(Kind.ANNOTATION))
        & (pl.col("start_ps") <= time_ps)
        & (pl.col("start_ps") + pl.col("dur_ps") >= time_ps)
    )
    for name in capture.names["text"][around["name"]].to_list()[::-1]:
        found = parse_capture(name)
        if found is not None:
            return found
    return None, None


class _Pieces:
    """What replayed pieces of work are compared with captured calls by."""

    def __init__(self, profile: Profile) -> None:
        texts = profile.names["text"]
        copies = texts.str.contains(COPY_KERNEL).to_list()
        self._texts = [COPY_KEY if is_copy else text for text, is_copy in zip(texts.to_list(), copies, strict=True)]
        self._name = profile.slices["name"].to_numpy()
        self._kernel = profile.slices["kind"].to_numpy() == Kind.KERNEL
        self._grids = _grids(profile.kernels, profile.slices.height)

    def keys(self, run: I64) -> list[str]:
        return [self._texts[self._name[piece]] if self._kernel[piece] else COPY_KEY for piece in run.tolist()]

    def grids(self, run: I64) -> I64:
        found: I64 = self._grids[run]
        return found


def _grids_of_calls(capture: Profile) -> I64:
    return _grids(capture.launches, capture.slices.height)


def _grids(side_table: pl.DataFrame, slices: int) -> I64:
    """Grid of each slice, by id; -1 where it is unknown."""
    grids = np.full((slices, 3), -1, np.int64)
    known = side_table.drop_nulls("grid_x")
    grids[known["slice"].to_numpy()] = known.select("grid_x", "grid_y", "grid_z").cast(pl.Int64).to_numpy()
    return grids


def _fits_grids(a: I64, b: I64) -> bool:
    """Whether grids agree where both are known."""
    return bool(((a == b) | (a < 0) | (b < 0)).all())


def _joined(capture: Profile, fit: _Fit, run: I64) -> pl.DataFrame:
    calls = fit.graph.calls[fit.places]
    frame = pl.DataFrame({"work": run, "capture": np.full(run.size, fit.graph.capture), "call": calls})
    op = innermost_op(capture.slices, calls)
    return frame.with_columns(op=pl.Series(op)).with_columns(op=pl.when(pl.col("op") >= 0).then("op")).cast(JOINED)


def _nothing_to_match(captures: Sequence[Profile], graphs: list[CapturedGraph], replays: pl.DataFrame) -> list[Warning]:
    if not captures:
        return []
    paths = ", ".join(source.path for capture in captures for source in capture.sources)
    if replays.height == 0:
        return [Warning("capture", f"{paths}: no graph is launched in this profile; the capture trace is not used")]
    if not graphs:
        return [Warning("capture", f"{paths}: no captured launch is in it; nothing of it was joined to {_launches(replays.height)}")]
    return []


def _misfit_warning(pieces: int, why: str, count: int) -> Warning:
    what = f"{_launches(count)} of {pieces:,} piece{'s' if pieces != 1 else ''} of work"
    return Warning("capture", f"{why} {what}: nothing was joined to {'them' if count != 1 else 'it'}", count)


def _launches(count: int) -> str:
    return f"{count:,} graph launch{'es' if count != 1 else ''}"


def _lost_warnings(captures: Sequence[Profile], pairs: list[tuple[CapturedGraph, int]]) -> list[Warning]:
    """Where replays end before their captured graph does."""
    lost = Counter((graph.capture, graph.text, graph.calls.size - pieces) for graph, pieces in pairs if graph.calls.size > pieces)
    return [
        Warning(
            "capture", f"{captures[capture].sources[0].path} ({text}): the last {missing:,} of them are lost in {_launches(count)}", count
        )
        for (capture, text, missing), count in lost.items()
    ]
