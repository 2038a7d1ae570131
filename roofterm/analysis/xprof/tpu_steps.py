"""Steps of TPU cores by XProf's grouping (group_events.cc): the events of their `Steps` lines and the numbers these get.

In a file that its profiler has grouped, the numbers stand on the events. Else a step that is started out of a host's annotated
step takes that one's number, counted from 0; steps that follow one another with one number are one, and those that nothing
starts are dropped. If the host starts none, all are numbered in order, after the host's.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.intervals import among
from roofterm.analysis.lookup import ABSENT, rows_among
from roofterm.analysis.xprof.device_events import device_time, tracks_of
from roofterm.analysis.xprof.step_groups import NO_GROUP, groups, is_grouped, roots, steps_of_file
from roofterm_parsers.profile import Profile

I64 = NDArray[np.int64]
NO_STEP = -1


def step_markers(profile: Profile) -> pl.DataFrame:
    """Events of the `Steps` lines: device, number (null: in no step), start_ps, dur_ps by the device's own clock.

    `aligned_ps` and `aligned_end_ps` are by the clock of the timeline.
    """
    tracks = tracks_of(profile, "TPU", steps=True)
    slices = steps_of_file(profile).join(tracks, on="track", how="inner", maintain_order="left")
    rows = slices["slice"].to_numpy().astype(np.int64)
    start, dur = device_time(profile, rows)
    markers = slices.select("device", "slice", aligned_ps="start_ps", aligned_end_ps=pl.col("start_ps") + pl.col("dur_ps"))
    markers = markers.with_columns(pl.Series("start_ps", start), pl.Series("dur_ps", dur)).sort("device", "aligned_ps")
    if is_grouped(profile):
        stated = profile.hlo_events.select("slice", number=pl.col("step").cast(pl.Int64))
        markers = markers.join(stated, on="slice", how="left", maintain_order="left")
    else:
        markers = _numbered(profile, markers)
    return markers.select("device", "number", "start_ps", "dur_ps", "aligned_ps", "aligned_end_ps")


def _numbered(profile: Profile, markers: pl.DataFrame) -> pl.DataFrame:
    number = np.full(markers.height, NO_GROUP, np.int64)
    for device, own in _started(profile).partition_by("device", as_dict=True).items():
        rows = np.flatnonzero(markers["device"].to_numpy() == device[0])
        begin, end = markers["aligned_ps"].to_numpy()[rows], markers["aligned_end_ps"].to_numpy()[rows]
        for first, last, group in own.select("start_ps", "end_ps", "group").iter_rows():
            at = int(np.searchsorted(end, first, side="right"))
            if at < rows.size and begin[at] <= first and last <= end[at]:
                known = number[rows[at]]
                number[rows[at]] = group if known == NO_GROUP else min(known, group)
    if (number == NO_GROUP).all():
        order = pl.int_range(pl.len()).over("device") + roots(profile).size
        return markers.with_columns(number=order.cast(pl.Int64))
    markers = markers.with_columns(number=pl.Series(number)).with_columns(number=pl.when(pl.col("number") != NO_GROUP).then("number"))
    named = pl.col("number").is_not_null()
    markers = markers.filter(named | ~named.any().over("device"))
    return _merged(markers)


def _merged(markers: pl.DataFrame) -> pl.DataFrame:
    """Neighbours of one number as one, from the first's start to the last's end; those without a number stay as they are."""
    run = (pl.col("number") != pl.col("number").shift(1)).fill_null(True).over("device").cum_sum()
    end = pl.col("start_ps") + pl.col("dur_ps")
    merged = markers.group_by("device", run.alias("run"), maintain_order=True).agg(
        pl.col("number").first(), pl.col("start_ps", "aligned_ps").min(), pl.col("aligned_end_ps").max(), end.max().alias("end_ps")
    )
    return merged.with_columns(dur_ps=pl.col("end_ps") - pl.col("start_ps"))


def _started(profile: Profile) -> pl.DataFrame:
    """What the host's annotated steps start on the cores: device, start_ps, end_ps, group."""
    group = groups(profile)
    rows = np.flatnonzero(group != NO_GROUP)
    slices = profile.slices.select("track", "start_ps", "dur_ps")[rows].with_columns(group=pl.Series(group[rows]))
    tracks = pl.concat([tracks_of(profile, "TPU"), tracks_of(profile, "TPU", steps=True)])
    end = pl.col("start_ps") + pl.col("dur_ps")
    return slices.join(tracks, on="track").select("device", "start_ps", end.alias("end_ps"), "group")


def steps_of(profile: Profile, events: pl.DataFrame, markers: pl.DataFrame) -> I64:
    """For each of the events its step: the one it states, else, unless the file is grouped, the first of its device that it meets.

    An event that begins where a step ends meets that step still.
    """
    named = _stated(profile, events)
    if is_grouped(profile):
        return named
    device = events["device"].to_numpy()
    rows = events["slice"].to_numpy()
    slices = profile.slices
    numbers = np.full(events.height, NO_STEP, np.int64)
    for (core,), own in markers.sort("aligned_ps").group_by(["device"], maintain_order=True):
        begin, end = own["aligned_ps"].to_numpy(), own["aligned_end_ps"].to_numpy()
        number = own["number"].fill_null(NO_STEP).to_numpy()
        mine = np.flatnonzero(device == core)
        start, dur = slices["start_ps"].to_numpy()[rows[mine]], slices["dur_ps"].to_numpy()[rows[mine]]
        at = among(end, start, "left")
        met = np.minimum(at, end.size - 1)
        inside = (at < end.size) & (begin[met] <= start + dur)
        numbers[mine[inside]] = number[at[inside]]
    return np.where(named == NO_STEP, numbers, named) if (named != NO_STEP).any() else numbers


def _stated(profile: Profile, events: pl.DataFrame) -> I64:
    """The step that each of the events states itself, or NO_STEP."""
    stated = profile.hlo_events.drop_nulls("step").select("slice", "step")
    named = np.full(events.height, NO_STEP, np.int64)
    if stated.height and events.height:
        rows = rows_among(events["slice"], stated["slice"], profile.slices.height)
        named[rows[rows != ABSENT]] = stated["step"].to_numpy()[rows != ABSENT]
    return named
