"""Iterations of a profile that marks no steps: told by what the job says of itself, or by what it does again and again.

Tried in this order: annotations of inference engines; annotations that repeat and hold the device work; the optimizer's
steps, each of which ends an iteration; repeated launches of graphs. What none of these tells stays one window.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.batches import Batch, parse_batch
from roofterm.analysis.graphs import graph_replays, repetition
from roofterm.analysis.host_names import OPTIMIZER_STEP
from roofterm_parsers.profile import ROOT, STEPS, Kind, Profile, TrackKind

I64 = NDArray[np.int64]

ITERATIONS = pl.Schema(
    {
        "source": pl.UInt16,
        "number": pl.Int64,
        "name": pl.String,
        "start_ps": pl.Int64,
        "dur_ps": pl.Int64,
        "slice": pl.UInt32,  # the annotation; null where no slice stands for it
        "told_by": pl.String,  # engine, range, optimizer or graph
        "phase": pl.String,  # prefill, decode, mixed; null: unknown
        "sequences": pl.Int64,
        "prompt_tokens": pl.Int64,  # new tokens of prompts
        "generated_tokens": pl.Int64,  # new tokens of sequences in generation, drafts included
        "context_tokens": pl.Int64,  # tokens attended to, over all sequences
        "causal_pairs": pl.Int64,  # visible (query, key) pairs
        "graph_size": pl.Int64,  # what sizes of captured graphs are compared with
    }
)
"""One row an iteration, in order of source and start. Those of a source do not overlap."""

LEAST_SHARE = 0.8
"""Repeated ranges are iterations only if this share of the source's device time was launched in them; of graph launches
this share must belong to the repetition."""

LEAST_GRAPH_WORK = 50
"""A period of graph launches with fewer pieces of work is a layer (piecewise graphs) rather than an iteration."""

_NO_ITERATION = (
    r"^(nccl|gloo|mpi|ucc|c10d|FSDP)[:_]|^Optimizer\.|^enumerate\(|^## Call Compiled|DataParallel|compile|_data:|^Torch-Compiled"
    r"|^PyTorch Profiler|^(Activity )?Buffer"
)
"""Ranges that the frameworks set themselves, which are parts of an iteration."""

_RUNTIME_RANGES = ("xplane", "xla_json")
"""Formats in which nothing tells a user's ranges from those of the runtime (PJRT_LoadedExecutable_Execute)."""

_NUMBER = r"\d+"


def find_iterations(profile: Profile) -> pl.DataFrame:
    """The iterations of a profile, schema `ITERATIONS`; its step markers play no part. Empty where nothing tells them."""
    ranges, loads = _ranges(profile), _Loads(profile)
    return _joined(
        [_of_source(profile, ranges.filter(pl.col("source") == source), loads, source) for source in range(len(profile.sources))]
    )


def as_steps(iterations: pl.DataFrame) -> pl.DataFrame:
    """Iterations as a frame of schema `STEPS`, row for row, for the functions that speak of steps."""
    return iterations.with_columns(device=pl.lit(None, dtype=pl.UInt16)).select(list(STEPS)).cast(STEPS)


def engine_iterations(profile: Profile) -> pl.DataFrame:
    """Only the iterations that an inference engine annotates."""
    ranges = _ranges(profile)
    return _joined([_by_engine(ranges.filter(pl.col("source") == source), source) for source in ranges["source"].unique().sort()])


def facts_of_steps(steps: pl.DataFrame, iterations: pl.DataFrame) -> pl.DataFrame:
    """For each step the facts of the one engine iteration that starts inside it: columns of `ITERATIONS` from `phase` on.

    `steps`: schema `STEPS`. Null where none or several start in a step.
    """
    facts = list(ITERATIONS)[list(ITERATIONS).index("phase") :]
    picked = np.full(steps.height, -1, np.int64)
    start, source = iterations["start_ps"].to_numpy(), iterations["source"].to_numpy()
    for row, step in enumerate(steps.iter_rows(named=True)):
        begin = step["start_ps"]
        inside = np.flatnonzero((source == step["source"]) & (start >= begin) & (start < begin + step["dur_ps"]))
        if inside.size == 1:
            picked[row] = inside[0]
    rows = pl.Series("row", picked).replace(-1, None)
    return iterations.select(pl.col(fact).gather(rows) for fact in facts) if iterations.height else _no_facts(facts, steps.height)


def _no_facts(facts: list[str], rows: int) -> pl.DataFrame:
    return pl.DataFrame({fact: pl.Series([None] * rows, dtype=ITERATIONS[fact]) for fact in facts})


def _joined(parts: list[pl.DataFrame | None]) -> pl.DataFrame:
    frames = [part for part in parts if part is not None]
    return pl.concat(frames) if frames else pl.DataFrame(schema=ITERATIONS)


def _of_source(profile: Profile, ranges: pl.DataFrame, loads: _Loads, source: int) -> pl.DataFrame | None:
    found = _by_engine(ranges, source)
    if found is None and profile.sources[source].format not in _RUNTIME_RANGES:
        found = _by_ranges(ranges, loads, source)
    if found is None:
        found = _by_optimizer(profile, ranges, source)
    if found is None:
        found = _by_graphs(loads.replays.filter(pl.col("source") == source), source)
    return found


def _ranges(profile: Profile) -> pl.DataFrame:
    """Annotations of host threads, and steps of optimizers: slice, source, track, start_ps, end_ps, text."""
    kind = profile.slices["kind"].to_numpy()
    optimizers = profile.names["text"].str.starts_with(OPTIMIZER_STEP).arg_true().to_numpy()
    wanted = kind == Kind.ANNOTATION
    if optimizers.size:
        wanted |= (kind == Kind.OP) & np.isin(profile.slices["name"].to_numpy(), optimizers)
    at = np.flatnonzero(wanted)
    rows = profile.slices[at]
    host = (profile.tracks["kind"] == int(TrackKind.HOST))[rows["track"]]
    return rows.select(
        "track",
        "start_ps",
        slice=pl.Series(at, dtype=pl.UInt32),
        source=profile.tracks["source"][rows["track"]],
        end_ps=pl.col("start_ps") + pl.col("dur_ps"),
        text=profile.names["text"][rows["name"]],
    ).filter(host)


def _by_engine(ranges: pl.DataFrame, source: int) -> pl.DataFrame | None:
    batches = {text: batch for text in ranges["text"].unique().to_list() if (batch := parse_batch(text)) is not None}
    if not batches:
        return None
    mine = ranges.filter(pl.col("text").is_in(list(batches)))
    busiest = mine["track"].value_counts(sort=True)["track"][0]
    mine = _outermost(mine.filter(pl.col("track") == busiest))
    found = [batches[text] for text in mine["text"].to_list()]
    named = mine.with_columns(text=pl.Series([_short(batch, text) for batch, text in zip(found, mine["text"].to_list(), strict=True)]))
    return _iterations(named, source, "engine", [_facts(batch) for batch in found])


def _short(batch: Batch, text: str) -> str:
    """An annotation in few words: "decode 32"."""
    if batch.phase is None:
        return text
    return batch.phase if batch.sequences is None else f"{batch.phase} {batch.sequences}"


def _facts(batch: Batch) -> dict[str, object]:
    return {
        "phase": batch.phase,
        "sequences": batch.sequences,
        "prompt_tokens": batch.prefill.q,
        "generated_tokens": batch.decode.q,
        "context_tokens": batch.context_tokens,
        "causal_pairs": batch.causal_pairs,
        "graph_size": batch.graph_size,
    }


def _by_ranges(ranges: pl.DataFrame, loads: _Loads, source: int) -> pl.DataFrame | None:
    """The longest of the repeated ranges, equal but for numbers, that together hold most of what the source launched."""
    own = ranges.filter(~pl.col("text").str.contains(_NO_ITERATION)).with_columns(key=pl.col("text").str.replace_all(_NUMBER, "#"))
    best: tuple[int, pl.DataFrame] | None = None
    for _, group in own.filter(pl.len().over("key", "track") > 1).group_by("key", "track", maintain_order=True):
        outer = _outermost(group)
        if outer.height < 2 or loads.of(source).share(outer) < LEAST_SHARE:
            continue
        length = int((outer["end_ps"] - outer["start_ps"]).sum())
        if best is None or length > best[0]:
            best = length, outer
    return None if best is None else _iterations(best[1], source, "range")


def _by_optimizer(profile: Profile, ranges: pl.DataFrame, source: int) -> pl.DataFrame | None:
    """An iteration ends where the optimizer's step ends; the first begins with the thread's first slice."""
    ends = ranges.filter(pl.col("text").str.starts_with(OPTIMIZER_STEP))
    if ends.height < 2:
        return None
    ends = _outermost(ends.filter(pl.col("track") == ends["track"].value_counts(sort=True)["track"][0]))
    if ends.height < 2 or ends["text"].n_unique() > 1:
        return None  # several optimizers may belong to one iteration
    first = profile.slices.filter(pl.col("track") == ends["track"][0])["start_ps"].min()
    start = pl.Series([first, *ends["end_ps"].to_list()[:-1]], dtype=pl.Int64)
    rows = ends.with_columns(start_ps=start, text=pl.lit("iteration"), slice=pl.lit(None, dtype=pl.UInt32))
    return _iterations(rows, source, "optimizer")


def _by_graphs(replays: pl.DataFrame, source: int) -> pl.DataFrame | None:
    """Periods of graph launches that replay the same work; each lasts until the next begins, the last as long as the others do."""
    if replays.height < 2:
        return None
    found = repetition(replays["work_key"].to_numpy())
    if found is None or found.length * found.times < LEAST_SHARE * replays.height:
        return None
    begin = replays[found.start : found.start + found.length * found.times]
    if int(begin["pieces"].sum()) < LEAST_GRAPH_WORK * found.times:
        return None
    firsts = begin.gather_every(found.length)
    start = firsts["start_ps"].to_numpy()
    last = start[-1] + int(np.median(np.diff(start)))
    rows = pl.DataFrame(
        {
            "slice": pl.Series([None] * start.size, dtype=pl.UInt32),
            "start_ps": start,
            "end_ps": np.append(start[1:], last),
            "text": ["graph replay"] * start.size,
        }
    )
    return _iterations(rows, source, "graph")


def _outermost(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of one track in order of start, without those that begin inside an earlier one."""
    rows = rows.sort("start_ps", -pl.col("end_ps"), maintain_order=True)
    reach = rows["end_ps"].cum_max().shift(1)
    return rows.filter((rows["start_ps"] >= reach).fill_null(True))


class _Load(NamedTuple):
    """When a source launched its device work, in order, and how long (ps) each piece ran; without devices, when its ops ran."""

    time: I64
    length: I64

    def share(self, windows: pl.DataFrame) -> float:
        """Which share of the load lies in windows that do not overlap."""
        total = np.concatenate(([0], np.cumsum(self.length)))
        if total[-1] == 0:
            return 0.0
        first = np.searchsorted(self.time, windows["start_ps"].to_numpy(), side="left")
        last = np.searchsorted(self.time, windows["end_ps"].to_numpy(), side="left")
        return float((total[last] - total[first]).sum() / total[-1])


class _Loads:
    """The load and the graph launches of each source, worked out when they are asked for."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._kept: dict[int, _Load] = {}

    @cached_property
    def replays(self) -> pl.DataFrame:
        return graph_replays(self._profile)

    def of(self, source: int) -> _Load:
        if source not in self._kept:
            self._kept[source] = self._made(source)
        return self._kept[source]

    def _made(self, source: int) -> _Load:
        slices = self._profile.slices
        own = (self._profile.tracks["source"].to_numpy() == source)[slices["track"].to_numpy()]
        start, dur = slices["start_ps"].to_numpy(), slices["dur_ps"].to_numpy()
        launched = self._profile.links.drop_nulls("launch")
        call, work = launched["launch"].to_numpy(), launched["work"].to_numpy()
        call, work = call[own[call]], work[own[call]]
        if call.size == 0:
            is_op = slices["kind"].to_numpy() == int(Kind.OP)
            parent = slices["parent"].to_numpy()
            inner = (parent != ROOT) & is_op[np.where(parent == ROOT, 0, parent)]
            call = work = np.flatnonzero(own & is_op & ~inner)
        order = np.argsort(start[call], kind="stable")
        return _Load(start[call][order], dur[work][order])


def _iterations(rows: pl.DataFrame, source: int, told_by: str, facts: list[dict[str, object]] | None = None) -> pl.DataFrame:
    known = list(ITERATIONS)[list(ITERATIONS).index("phase") :]
    columns = {fact: pl.Series([row[fact] for row in facts] if facts else [None] * rows.height, dtype=ITERATIONS[fact]) for fact in known}
    return (
        rows.with_columns(
            source=pl.lit(source),
            number=pl.int_range(rows.height),
            # Names of ranges may repeat, or end in numbers of their own: the last one counts.
            name=pl.format("{} #{}", "text", pl.int_range(rows.height)),
            dur_ps=pl.col("end_ps") - pl.col("start_ps"),
            told_by=pl.lit(told_by),
        )
        .with_columns(**columns)
        .select(list(ITERATIONS))
        .cast(ITERATIONS)
    )
