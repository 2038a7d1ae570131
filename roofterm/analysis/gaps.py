"""Gaps: every interval in which a device did nothing, with what the host did meanwhile.

A gap's part until the call that launches the next work has ended is host wait, the rest a kernel gap (definitions of
`host_wait_us` and `kernel_gap_us`). A rest of a millisecond and more is neither launch latency nor a dependency within
the device: the file lacks the work that ran then, and the gap stays unexplained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from roofterm.analysis.categories import TITLES
from roofterm.analysis.intervals import I64, Intervals, covered, gaps
from roofterm.analysis.scope import ALL, Scope
from roofterm.analysis.steps import US, DeviceLine
from roofterm.analysis.work import WorkClass
from roofterm.results import TABLES
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import ROOT, Kind, TrackKind

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

SPANS = pl.Schema(
    {
        "source": pl.UInt16,
        "device": pl.UInt16,  # row of devices; null: no device worked
        "start_ps": pl.Int64,
        "end_ps": pl.Int64,
        "step": pl.UInt32,  # row of steps; null: the profile has none, or is taken whole
    }
)
"""What a result over time speaks of: one row a step (or the whole) and device."""

GAPS = pl.Schema(
    {
        "span": pl.UInt32,  # row of the spans
        "device": pl.UInt16,
        "start_ps": pl.Int64,
        "end_ps": pl.Int64,
        "before": pl.UInt32,  # slice of the work that ended last; null: none before
        "after": pl.UInt32,  # slice of the next work
        "launch": pl.UInt32,  # slice of the call that launched it
        "track": pl.UInt32,  # thread of that call
        "host_wait_ps": pl.Int64,  # null: no known launch
        "kernel_gap_ps": pl.Int64,
        "reason": pl.UInt8,  # row of REASONS
    }
)
REASONS = ("host_wait", "kernel_gap", "unexplained")
HOST_WAIT, KERNEL_GAP, UNEXPLAINED = range(3)

UNRECORDED_PS = 1_000_000_000
"""A launched kernel starts within microseconds on an idle device. One that waits longer than this (1 ms) waits for work
that the file does not hold: launched before the window, lost, or left out."""


def gap_table(study: Study, scope: Scope = ALL) -> pl.DataFrame:
    """One row a gap, columns `results.TABLES["gap"]`, longest first; times in us.

    `name` is what the host did: the innermost host slice that covers most of the gap, on the thread that launches the
    next work, else on the one other thread that did anything, which is then named; `host_kind` is its category.
    `category` is host_wait, kernel_gap or unexplained. Raises ScopeError for a step or rank that is not there.
    """
    where = spans(study, scope)
    found = find_gaps(study, where, study.device_lines)
    texts = study.profile.names["text"]
    names = study.profile.slices["name"]
    length = (found["end_ps"] - found["start_ps"]).to_numpy()
    host = pl.select(pl.coalesce(_waiting_ops(study, found), host_slices(study, found))).to_series()
    title = pl.Series(REASONS)[found["reason"]]
    total = length / US
    thread = study.profile.tracks["thread_name"][found["track"]] if study.profile.tracks.height else None
    elsewhere = _elsewhere(study, found, host)
    columns: dict[str, object] = {
        "name": pl.select(pl.coalesce(texts[names[host]], elsewhere, pl.lit("(nothing recorded)"))).to_series(),
        "category": title,
        "calls": np.ones(length.size, np.int64),
        **dict.fromkeys(("total_us", "self_us", "mean_us", "min_us", "max_us", "p50_us", "p99_us"), total),
        "pct": 100 * total / total.sum() if length.size else total,
        "start_us": found["start_ps"].to_numpy() / US,
        "device": study.profile.devices["id"][found["device"]],
        "step": _step_names(study, where, found),
        "before": texts[names[found["before"]]],
        "after": texts[names[found["after"]]],
        "host_kind": pl.Series(TITLES)[pl.Series(study.category)[host]] if study.kind.size else None,
        "host_wait_us": _us(found["host_wait_ps"]),
        "kernel_gap_us": _us(found["kernel_gap_ps"]),
        "thread": thread,
    }
    made = {name: columns.get(name) if length.size and columns.get(name) is not None else [None] * length.size for name in _SCHEMA}
    return pl.DataFrame(made, schema=_SCHEMA).sort(["total_us", "start_us"], descending=[True, False], maintain_order=True)


_COUNTS = ("calls", "device")
_MEASURES = ("pct", "flops", "bytes", "pct_of_roof")
_SCHEMA = pl.Schema(
    {
        name: pl.Int64() if name in _COUNTS else pl.Float64() if name in _MEASURES or name.endswith("_us") else pl.String()
        for name in TABLES["gap"]
    }
)


def spans(study: Study, scope: Scope) -> pl.DataFrame:
    """What of each device's time a scope covers (schema `SPANS`): its steps, or from the first to the last slice of a file.

    A profile without device work has its steps or its whole with a null device.
    """
    part = study.selection(scope)
    worked = study.work["device"].unique().sort()
    if scope.rank is not None:
        worked = part.work["device"].unique().sort()
    devices = pl.DataFrame({"device": worked, "source": study.profile.devices["source"][worked]}, schema_overrides=_IDS)
    if scope.step != "all" and part.windows.height:
        windows = part.windows.select("source", pl.col("device").alias("own"), "start_ps", "end_ps", "step")
        rows = windows.join(devices, on="source", how="inner" if worked.len() else "left", maintain_order="left")
        rows = rows.filter(pl.col("own").is_null() | (pl.col("own") == pl.col("device")))
    else:
        rows = _whole(study)
        rows = rows.join(devices, on="source", how="inner" if worked.len() else "left", maintain_order="left")
        rows = rows.with_columns(step=pl.lit(None, dtype=pl.UInt32))
    if scope.window_ps is not None:
        first, last = scope.window_ps
        rows = rows.with_columns(pl.col("start_ps").clip(lower_bound=first), pl.col("end_ps").clip(upper_bound=last))
    return rows.filter(pl.col("end_ps") > pl.col("start_ps")).select(list(SPANS)).cast(SPANS)


_IDS = {"device": pl.UInt16, "source": pl.UInt16}


def find_gaps(study: Study, where: pl.DataFrame, lines: dict[int, DeviceLine]) -> pl.DataFrame:
    """The gaps (schema `GAPS`) of the spans `where`, in their order."""
    by_device: dict[int, list[tuple[int, Intervals]]] = {}
    for row, (device, start, end) in enumerate(where.select("device", "start_ps", "end_ps").iter_rows()):
        if device in lines:
            by_device.setdefault(device, []).append((row, gaps(lines[device].busy, start, end)))
    frames = [_described(study, device, found, lines[device]) for device, found in by_device.items()]
    return pl.concat(frames).sort("span", "start_ps") if frames else pl.DataFrame(schema=GAPS)


def host_slices(study: Study, found: pl.DataFrame) -> pl.Series:
    """For each gap the innermost host slice that covers at least half of it on the thread that launches the next work.

    Where most of a gap is host wait, that part counts. Without a next launch the main thread of the source is asked.
    Null: nothing on the thread lasts that long.
    """
    start = found["start_ps"].to_numpy()
    length = (found["end_ps"] - found["start_ps"]).to_numpy()
    wait = found["host_wait_ps"].fill_null(0).to_numpy()
    end = start + np.where(2 * wait >= length, wait, length)
    main = main_threads(study)
    source = study.profile.devices["source"][found["device"]]
    asked = pl.select(pl.coalesce(found["track"], source.replace_strict(main, default=None, return_dtype=pl.UInt32))).to_series()
    return doing(study, asked, source, start, end)


def doing(study: Study, track: pl.Series, source: pl.Series, start: I64, end: I64) -> pl.Series:
    """What the host does for most of [start, end) (`covering`), on each track; of an XPlane file else on the source's Python thread.

    Such a file has the calls that launch on lines of their own, where nothing else stands.
    """
    told = covering(study, track, start, end)
    if study.is_torch or not study.profile.hlo_ops.height:
        return told
    python = source.replace_strict(_python_threads(study), default=None, return_dtype=pl.UInt32)
    return pl.select(pl.coalesce(told, covering(study, python, start, end))).to_series()


def _elsewhere(study: Study, found: pl.DataFrame, host: pl.Series) -> pl.Series:
    """Where nothing is recorded of the thread that launches: what another host thread of an XPlane file did, if one alone did anything
    for most of the gap, with its name. Such a thread runs beside, and what it did need not be why the device waited."""
    told: list[str | None] = [None] * found.height
    asked = host.is_null().arg_true()
    if study.is_torch or not study.profile.hlo_ops.height or not asked.len():
        return pl.Series(told, dtype=pl.String)
    gaps_asked = found[asked]
    start, end = gaps_asked["start_ps"].to_numpy(), gaps_asked["end_ps"].to_numpy()
    sources = study.profile.devices["source"][gaps_asked["device"]]
    threads = study.profile.tracks.with_row_index("track").filter(pl.col("kind").cast(pl.UInt8) == int(TrackKind.HOST))
    acted, did = np.zeros(asked.len(), np.int64), np.zeros(asked.len(), np.int64)
    for track, source in threads.select("track", "source").iter_rows():
        mine = pl.Series([track], dtype=pl.UInt32).extend_constant(track, gaps_asked.height - 1).set(sources != source, None)
        row = covering(study, mine, start, end)
        acted += row.is_not_null().to_numpy()
        did = np.where(row.is_not_null(), row.fill_null(0), did)
    texts, slices = study.profile.names["text"], study.profile.slices
    for at, row_of in zip(asked.filter(pl.Series(acted == 1)), did[acted == 1].tolist(), strict=True):
        told[at] = f"{texts[slices['name'][row_of]]} (on {study.profile.tracks['thread_name'][slices['track'][row_of]]})"
    return pl.Series(told, dtype=pl.String)


def _python_threads(study: Study) -> dict[int, int]:
    """The host thread of each source with most Python frames, by row of `sources`; none where no frame was recorded."""
    tracks = study.profile.slices["track"].filter(pl.Series(study.kind == int(Kind.PYTHON)))
    source = study.profile.tracks["source"].to_numpy()
    found: dict[int, int] = {}
    for track, _ in tracks.value_counts().sort(["count", "track"], descending=[True, False]).iter_rows():
        found.setdefault(int(source[track]), int(track))
    return found


def _waiting_ops(study: Study, found: pl.DataFrame) -> pl.Series:
    """For each gap the op of the device that waits for the host in it (slice); null: none does."""
    waits = study.work.filter(pl.col("work_class") == int(WorkClass.WAITING)).select("device", "slice", "start_ps", stop_ps="end_ps")
    gaps_by_end = found.select("device", "end_ps", begin_ps="start_ps").with_row_index("row").sort("end_ps")
    last = gaps_by_end.join_asof(
        waits.sort("start_ps"), left_on="end_ps", right_on="start_ps", by="device", strategy="backward", check_sortedness=False
    ).sort("row")
    return last.select(pl.when(pl.col("stop_ps") > pl.col("begin_ps")).then("slice"))["slice"]


def main_threads(study: Study) -> dict[int, int]:
    """The host thread of each source that steps are marked on, or that launches most work; by row of `sources`."""
    profile = study.profile
    source = profile.tracks["source"].to_numpy()
    found: dict[int, int] = {}
    launches = profile.slices["track"][study.work["launch"].drop_nulls()]
    marks = profile.slices["track"][profile.steps["slice"].filter(profile.steps["device"].is_null()).drop_nulls()]
    for tracks in (marks, launches):
        for track, _ in tracks.value_counts(sort=True).sort(["count", tracks.name], descending=[True, False]).iter_rows():
            found.setdefault(int(source[track]), int(track))
    return found


def covering(study: Study, track: pl.Series, start: I64, end: I64) -> pl.Series:
    """The innermost slice of each track that covers at least half of [start, end) there; null for none."""
    slices = study.profile.slices
    begins, lengths, parent = study.start_ps, study.dur_ps, slices["parent"].to_numpy()
    tracks = slices["track"].to_numpy()
    known = track.is_not_null().to_numpy()
    thread = track.fill_null(0).to_numpy().astype(np.int64)
    # What covers half of an interval covers its middle.
    middle = start + (end - start) // 2
    at = np.full(start.size, -1, np.int64)
    for number in occurring(thread[known]).tolist():
        first, last = np.searchsorted(tracks, number, "left"), np.searchsorted(tracks, number, "right")
        mine = np.flatnonzero(known & (thread == number))
        place = np.searchsorted(begins[first:last], middle[mine], side="right") - 1
        at[mine] = np.where(place >= 0, place + first, -1)
    active = np.flatnonzero(at >= 0)
    while active.size:
        here = at[active]
        overlap = np.minimum(begins[here] + lengths[here], end[active]) - np.maximum(begins[here], start[active])
        short = 2 * overlap < end[active] - start[active]
        active = active[short]
        above = parent[at[active]]
        at[active] = np.where(above == ROOT, -1, above.astype(np.int64))
        active = active[above != ROOT]
    return pl.Series("host", np.where(at < 0, 0, at)).cast(pl.UInt32).set(pl.Series(at < 0), None)


def _described(study: Study, device: int, found: list[tuple[int, Intervals]], line: DeviceLine) -> pl.DataFrame:
    """Gaps of one device; `found`: the row of each span with what it leaves free."""
    row = np.repeat([row for row, _ in found], [free.start.size for _, free in found])
    start = np.concatenate([free.start for _, free in found])
    end = np.concatenate([free.end for _, free in found])
    following = np.searchsorted(line.start, end, side="left")
    known = following < line.start.size
    after = np.minimum(following, line.start.size - 1)
    launch_end = np.where(known, line.launch_end[after], -1)
    launched = launch_end >= 0
    waiting = covered(line.waiting, start, end)
    wait = np.where(launched, np.clip(launch_end, start, end) - start, waiting)
    rest = np.where(launched, end - start - wait, 0)
    reason = np.where(~launched | (rest >= UNRECORDED_PS), UNEXPLAINED, np.where(wait >= rest, HOST_WAIT, KERNEL_GAP))
    reason[~launched & (2 * waiting >= end - start)] = HOST_WAIT
    worked = line.work.filter(pl.col("work_class") != int(WorkClass.WAITING))
    previous = np.searchsorted(worked["start_ps"].to_numpy(), start, side="right") - 1
    slices = line.work["slice"]
    launch = line.work["launch"][pl.Series(after)].set(pl.Series(~launched), None)
    return pl.DataFrame(
        {
            "span": row,
            "device": np.full(start.size, device),
            "start_ps": start,
            "end_ps": end,
            "before": _last_to_end(worked)[pl.Series(np.maximum(previous, 0))].set(pl.Series(previous < 0), None),
            "after": slices[pl.Series(after)].set(pl.Series(~known), None),
            "launch": launch,
            "track": study.profile.slices["track"][launch],
            "host_wait_ps": pl.Series(wait).set(pl.Series(~launched & (waiting == 0)), None),
            "kernel_gap_ps": pl.Series(rest).set(pl.Series(~launched), None),
            "reason": reason,
        },
        schema_overrides=dict(GAPS),
    )


def _last_to_end(work: pl.DataFrame) -> pl.Series:
    """For each piece of work in order of start the slice of the piece that ends last up to there."""
    end = work["end_ps"].to_numpy()
    reach = np.maximum.accumulate(end)
    fresh = np.concatenate(([True], reach[1:] > reach[:-1])) if end.size else np.zeros(0, np.bool_)
    return work["slice"][pl.Series(np.maximum.accumulate(np.where(fresh, np.arange(end.size), 0)))]


def _whole(study: Study) -> pl.DataFrame:
    """Each source from its first to its last slice: columns source, start_ps, end_ps. The profiler's own rows do not count."""
    track = study.profile.slices["track"].to_numpy()
    shown = np.flatnonzero(study.kind != Kind.OVERHEAD)
    shown = shown[(study.profile.tracks["kind"] != int(TrackKind.PROFILER)).to_numpy()[track[shown]]]
    if shown.size == 0:
        return pl.DataFrame(schema={"source": pl.UInt16, "start_ps": pl.Int64, "end_ps": pl.Int64})
    # Slices are sorted by track.
    first = np.flatnonzero(np.concatenate(([True], track[shown][1:] != track[shown][:-1])))
    start = study.start_ps[shown]
    rows = pl.DataFrame(
        {
            "source": study.profile.tracks["source"][track[shown][first]],
            "start_ps": np.minimum.reduceat(start, first),
            "end_ps": np.maximum.reduceat(start + study.dur_ps[shown], first),
        }
    )
    return rows.group_by("source").agg(pl.col("start_ps").min(), pl.col("end_ps").max()).sort("source")


def _step_names(study: Study, where: pl.DataFrame, found: pl.DataFrame) -> pl.Series:
    step = where["step"][found["span"]]
    return study.profile.steps["name"][step] if study.profile.steps.height else pl.Series([None] * found.height, dtype=pl.String)


def _us(times: pl.Series) -> pl.Series:
    return pl.Series(times.cast(pl.Float64).to_numpy() / US).fill_nan(None)
