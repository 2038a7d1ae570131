"""Device work as one frame: what ran on an accelerator, of which class, launched by what, counted for which step."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.intervals import Intervals, union, without
from roofterm_parsers.profile import WORK_KINDS, Kind, Profile


class WorkClass(IntEnum):
    """The classes of the breakdown, first come first served: what compute covers is never counted as communication."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2
    WAITING = 3
    """The device waits for the host (infeed, outfeed, host send and receive of XLA): an op, but no work, and never busy."""


COPY_KERNEL = r"^__amd_rocclr_(copy|fill)Buffer"

WORK = pl.Schema(
    {
        "slice": pl.UInt32,
        "device": pl.UInt16,
        "start_ps": pl.Int64,
        "end_ps": pl.Int64,
        "own_ps": pl.Int64,  # length; where ops nest on one line (TPU) without the children's
        "kind": pl.UInt8,
        "work_class": pl.UInt8,
        "launch": pl.UInt32,
        "op": pl.UInt32,
        "step": pl.UInt32,
    }
)
"""One row a kernel, copy or memset, in order of slice id."""


def device_work(profile: Profile, self_ps: NDArray[np.int64], classes: pl.DataFrame) -> pl.DataFrame:
    """The profile's device work as a frame of schema `WORK`.

    `classes` says for each work slice its class: columns `slice`, `work_class` (a missing one: compute, or copy if it is
    a copy or memset, also where a runtime runs those as kernels of its own). A piece counts for the step whose host
    window holds its launching call whole, whatever thread made the call (definitions.md, step window); on devices with a
    step line of their own, for the step in which it starts.
    """
    slices = profile.slices
    rows = np.flatnonzero(np.isin(slices["kind"].to_numpy(), np.array(WORK_KINDS, np.uint8)))
    if rows.size == 0:
        return pl.DataFrame(schema=WORK)
    taken = slices[rows]
    start = taken["start_ps"].to_numpy()
    dur = taken["dur_ps"].to_numpy()
    device = profile.tracks["device"].fill_null(0).to_numpy()[taken["track"].to_numpy()]
    frame = pl.DataFrame(
        {
            "slice": pl.Series(rows, dtype=pl.UInt32),
            "device": device,
            "start_ps": start,
            "end_ps": start + dur,
            "own_ps": np.where(_nesting(profile, device), self_ps[rows], dur),
            "kind": taken["kind"],
        }
    )
    frame = frame.join(profile.links.rename({"work": "slice"}), on="slice", how="left", maintain_order="left")
    frame = frame.join(classes.select("slice", "work_class"), on="slice", how="left", maintain_order="left").with_columns(
        pl.col("work_class").fill_null(pl.when(_copies(profile, taken)).then(int(WorkClass.COPY)).otherwise(int(WorkClass.COMPUTE)))
    )
    return frame.with_columns(step=_steps_of(profile, frame)).select(list(WORK)).cast(WORK)


def busy(work: pl.DataFrame, work_class: WorkClass | None = None) -> Intervals:
    """The union of a device's work, or of one class of it.

    Without a class, what only waits is left out: as itself, and where it lies inside a loop that has nothing else to do.
    """
    if work_class is not None:
        return _union(work.filter(pl.col("work_class") == int(work_class)))
    waits = pl.col("work_class") == int(WorkClass.WAITING)
    waiting = work.filter(waits)
    if waiting.height == 0:
        return _union(work)
    leaf = pl.col("own_ps") == pl.col("end_ps") - pl.col("start_ps")
    around = without(_union(work.filter(~waits & ~leaf)), _union(waiting))
    leaves = work.filter(~waits & leaf)
    starts, ends = leaves["start_ps"].to_numpy(), leaves["end_ps"].to_numpy()
    return union(np.concatenate((starts, around.start)), np.concatenate((ends, around.end)))


def _union(work: pl.DataFrame) -> Intervals:
    return union(work["start_ps"].to_numpy(), work["end_ps"].to_numpy())


def _copies(profile: Profile, work: pl.DataFrame) -> pl.Series:
    """Whether each slice is a copy or memset; ROCm up to 7.1 runs them as kernels."""
    names = profile.names["text"].str.contains(COPY_KERNEL)
    return (work["kind"] != int(Kind.KERNEL)) | names.gather(work["name"])


def _nesting(profile: Profile, device: NDArray[np.uint16]) -> NDArray[np.bool_]:
    """Whether each piece lies on a device whose ops nest on one line."""
    nests = (profile.devices["kind"] == "tpu").fill_null(False).to_numpy()
    if not nests.any():
        return np.zeros(device.size, np.bool_)
    result: NDArray[np.bool_] = nests[device]
    return result


def _steps_of(profile: Profile, work: pl.DataFrame) -> pl.Series:
    """Row of `profile.steps` that each piece of work counts for, null for none."""
    found = np.full(work.height, -1, np.int64)
    steps = profile.steps
    if steps.height:
        start, dur = profile.slices["start_ps"].to_numpy(), profile.slices["dur_ps"].to_numpy()
        source = profile.devices["source"].to_numpy()[work["device"].to_numpy()]
        launch = work["launch"].fill_null(0).to_numpy()
        launched = work["launch"].is_not_null().to_numpy()
        for key, group in steps.with_row_index("row").group_by("source", "device", maintain_order=True):
            group = group.sort("start_ps")
            step_start = group["start_ps"].to_numpy()
            step_end = step_start + group["dur_ps"].to_numpy()
            row = group["row"].to_numpy()
            if key[1] is None:
                begin, end, mine = start[launch], start[launch] + dur[launch], launched & (source == key[0])
            else:
                begin = end = work["start_ps"].to_numpy()
                mine = work["device"].to_numpy() == key[1]
            at = np.searchsorted(step_start, begin, side="right") - 1
            inside = mine & (at >= 0) & (end <= step_end[np.maximum(at, 0)])
            found[inside] = row[at[inside]]
    return pl.Series("step", np.where(found < 0, 0, found)).cast(pl.UInt32).set(pl.Series(found < 0), None)
