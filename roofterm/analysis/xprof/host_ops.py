"""Framework ops on host threads, nested thread by thread, as XProf counts them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.xprof.framework_names import XLA_LAUNCH, framework_op_of
from roofterm_parsers.profile import HOST_CALL_KINDS, Profile, TrackKind


@dataclass(frozen=True, slots=True)
class HostOps:
    """`ops`: name, type, occurrences, time_ps, self_ps; the threads' times from first to last op, added up."""

    ops: pl.DataFrame
    threads: int
    op_ps: int
    idle_ps: int
    enqueue_ps: int = 0
    """in enqueuing infeed, the last time on each thread left out"""
    enqueue_span_ps: int = 0
    """from the start of the first enqueuing on a thread to that of the last"""


def host_ops(profile: Profile, chosen: NDArray[np.bool_] | None = None) -> HostOps:
    """Framework ops of all host threads. An op inside another takes its time away from it; one that sticks out hides it.

    `chosen`: which slices belong to the part that is asked for, None: all, and what allocators name too.
    """
    events = _events(profile, chosen)
    totals: dict[str, list[int]] = {}
    types: dict[str, str] = {}
    op_ps = idle_ps = enqueue_ps = enqueue_span_ps = 0
    for (_,), own in events.group_by(["track"], maintain_order=True):
        found = _nested(own["start_ps"].to_list(), own["end_ps"].to_list())
        names, kinds = own["name"].to_list(), own["type"].to_list()
        thread_ps = 0
        for row, self_ps, time_ps in found:
            total = totals.setdefault(names[row], [0, 0, 0])
            types[names[row]] = types.get(names[row]) or kinds[row]
            total[0] += 1
            total[1] += time_ps
            total[2] += self_ps
            thread_ps += self_ps
        span = int(own["end_ps"].max()) - int(own["start_ps"].min())  # type: ignore[arg-type]
        enqueued = own.filter(pl.col("type").str.starts_with("InfeedEnqueue")).sort("start_ps")
        if enqueued.height > 1:
            enqueue_ps += int((enqueued["end_ps"] - enqueued["start_ps"])[:-1].sum())
            enqueue_span_ps += int(enqueued["start_ps"][-1] - enqueued["start_ps"][0])
        op_ps += thread_ps
        idle_ps += max(span, thread_ps) - thread_ps
    rows = [(name, types[name], *total) for name, total in totals.items()]
    schema = {"name": pl.String, "type": pl.String, "occurrences": pl.Int64, "time_ps": pl.Int64, "self_ps": pl.Int64}
    threads = profile.tracks.filter(pl.col("kind") == int(TrackKind.HOST)).height
    return HostOps(pl.DataFrame(rows, schema=schema, orient="row"), threads, op_ps, idle_ps, enqueue_ps, enqueue_span_ps)


def _events(profile: Profile, chosen: NDArray[np.bool_] | None) -> pl.DataFrame:
    """Host events that are framework ops, in file order: track, start_ps, end_ps, name, type."""
    host = profile.tracks.with_row_index("track").filter(pl.col("kind") == int(TrackKind.HOST)).select("track")
    slices = profile.slices.with_row_index("slice").join(host, on="track", how="semi")
    slices = slices.select(
        "slice", "track", "start_ps", end_ps=pl.col("start_ps") + pl.col("dur_ps"), at="offset", kind="kind", name_id="name"
    )
    if chosen is not None:
        slices = slices.filter(pl.Series(chosen[slices["slice"].to_numpy()], dtype=pl.Boolean))
    full = profile.hlo_ops.with_row_index("op").filter(pl.col("program_id").is_null() & pl.col("name").is_null())
    full = full.join(_stated_alone(profile), on="op", how="anti")
    full_names = profile.hlo.join(full.select("op", "framework_op"), on="op").select("slice", full="framework_op")
    slices = slices.join(full_names, on="slice", how="left", maintain_order="left")
    texts = pl.coalesce(slices["full"], profile.names["text"][slices["name_id"]])
    slices = slices.with_columns(text=pl.select(texts).to_series())
    by_own_name = slices.join(_read(slices["text"]), on="text").filter("known")
    columns = ("track", "start_ps", "end_ps", "name", "type", "at")
    parts = [by_own_name, _launches(profile, slices), *([_allocations(profile)] if chosen is None else [])]
    return pl.concat([part.select(columns) for part in parts]).sort("track", "at", maintain_order=True)


def _read(texts: pl.Series) -> pl.DataFrame:
    """text, name, type, known: the framework op in each distinct text."""
    distinct = texts.unique().to_list()
    ops = [framework_op_of(text) for text in distinct]
    return pl.DataFrame(
        {
            "text": pl.Series(distinct, dtype=pl.String),
            "name": pl.Series([op.name for op in ops], dtype=pl.String),
            "type": pl.Series([op.type for op in ops], dtype=pl.String),
            "known": pl.Series([op.known for op in ops], dtype=pl.Boolean),
        }
    )


def _launches(profile: Profile, slices: pl.DataFrame) -> pl.DataFrame:
    """Calls that launch what a framework's op is known of: XLA's name for its own, else that op."""
    stated = profile.hlo_ops.with_row_index("op").join(_stated_alone(profile), on="op").select("op", stated="framework_op")
    ops = profile.hlo.join(stated, on="op", how="left").select("slice", stated=pl.col("stated").fill_null(XLA_LAUNCH))
    calls = slices.filter(pl.col("kind").is_in([int(kind) for kind in HOST_CALL_KINDS])).join(ops, on="slice")
    return calls.drop("text").join(_read(calls["stated"]), left_on="stated", right_on="text")


def _stated_alone(profile: Profile) -> pl.DataFrame:
    """The `op` rows of ops that events state by the framework's name alone."""
    return profile.hlo_facts.filter(pl.col("xprof_category") == "").select("op")


def _allocations(profile: Profile) -> pl.DataFrame:
    """Allocator events name the op that they serve; they have no length."""
    memory = profile.memory.with_row_index("memory").join(profile.allocations, on="memory")
    stated = memory.filter(pl.col("framework_op").fill_null("") != "").select("track", start_ps="time_ps", text="framework_op")
    return stated.join(_read(stated["text"]), on="text", maintain_order="left").with_columns(end_ps="start_ps", at=pl.lit(0, pl.UInt64))


def _nested(starts: list[int], ends: list[int]) -> list[tuple[int, int, int]]:
    """(row, self, whole time) of the ops of a thread, in the order in which they end."""
    moments = sorted(
        [
            (moment, order * 2 + end, order, end)
            for order, pair in enumerate(zip(starts, ends, strict=True))
            for end, moment in enumerate(pair)
        ],
        key=lambda one: (one[0], one[1]),
    )
    stack: list[int] = []
    inside = [0] * len(starts)
    found = []
    for _, _, row, end in moments:
        if not end:
            stack.append(row)
            continue
        while stack and stack[-1] != row:
            stack.pop()
        if not stack:
            continue
        stack.pop()
        whole = ends[row] - starts[row]
        found.append((row, whole - inside[row], whole))
        if stack:
            inside[stack[-1]] += whole
    return found
