"""Device work as one frame: what ran on an accelerator, of which class, launched by what, counted for which step."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.intervals import Intervals, among, union, without
from roofterm_parsers.occurring import occurring
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
    rows = work_rows(profile)
    if rows.size == 0:
        return pl.DataFrame(schema=WORK)
    start, dur, kind = (slices[column].to_numpy()[rows] for column in ("start_ps", "dur_ps", "kind"))
    device = profile.tracks["device"].fill_null(0).to_numpy()[slices["track"].to_numpy()[rows]]
    nesting = _nesting(profile, device)
    end = start + dur
    frame = pl.DataFrame(
        {
            "slice": rows.astype(np.uint32),
            "device": device,
            "start_ps": start,
            "end_ps": end,
            "own_ps": self_ps[rows] if nesting.all() else np.where(nesting, self_ps[rows], dur) if nesting.any() else dur,
            "kind": kind,
            "work_class": _classes(profile, rows, kind, classes),
        }
    )
    if profile.links.height:
        frame = frame.join(profile.links.rename({"work": "slice"}), on="slice", how="left", maintain_order="left")
    else:
        frame = frame.with_columns(launch=pl.lit(None, dtype=pl.UInt32), op=pl.lit(None, dtype=pl.UInt32))
    return frame.with_columns(step=_steps_of(profile, frame)).select(pl.col(name).cast(dtype) for name, dtype in WORK.items())


def work_rows(profile: Profile) -> NDArray[np.int64]:
    """Slices that are kernels, copies or memsets."""
    is_work = np.zeros(256, np.bool_)
    is_work[[int(kind) for kind in WORK_KINDS]] = True
    return np.flatnonzero(is_work[profile.slices["kind"].to_numpy()])


def _classes(profile: Profile, rows: NDArray[np.int64], kind: NDArray[np.uint8], classes: pl.DataFrame) -> NDArray[np.uint8]:
    """The class of each of these slices, of the kinds given: the one told, else copy or compute by kind and name."""
    named = profile.names["text"].str.contains(COPY_KERNEL).fill_null(False).to_numpy()
    copies = kind != int(Kind.KERNEL)
    if named.any():  # ROCm up to 7.1 runs copies as kernels
        copies |= named[profile.slices["name"].to_numpy()[rows]]
    found = np.where(copies, np.uint8(WorkClass.COPY), np.uint8(WorkClass.COMPUTE))
    at = np.searchsorted(rows, classes["slice"].to_numpy())
    found[at] = classes["work_class"].to_numpy()
    return found


def by_device(work: pl.DataFrame) -> list[pl.DataFrame]:
    """The work of each device."""
    device = work["device"].to_numpy()
    if device.size and (device[0] == device).all():
        return [work]
    return [work.filter(pl.Series(device == number)) for number in occurring(device).tolist()]


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


def _nesting(profile: Profile, device: NDArray[np.uint16]) -> NDArray[np.bool_]:
    """Whether each piece lies on a device whose ops nest on one line."""
    nests = (profile.devices["kind"] == "tpu").fill_null(False).to_numpy()
    if not nests.any():
        return np.zeros(device.size, np.bool_)
    result: NDArray[np.bool_] = nests[device]
    return result


def _steps_of(profile: Profile, work: pl.DataFrame) -> pl.Series:
    """Row of `profile.steps` that each piece of work counts for, null for none."""
    found = np.full(work.height, -1, np.int32)
    steps = profile.steps
    if steps.height:
        start, dur = profile.slices["start_ps"].to_numpy(), profile.slices["dur_ps"].to_numpy()
        device = work["device"].to_numpy()
        launched = work["launch"].is_not_null().to_numpy() if work["launch"].null_count() < work.height else np.zeros(0, np.bool_)
        for key, group in steps.with_row_index("row").group_by("source", "device", maintain_order=True):
            group = group.sort("start_ps")
            step_start = group["start_ps"].to_numpy()
            step_end = step_start + group["dur_ps"].to_numpy()
            if key[1] is not None:
                mine = np.flatnonzero(device == key[1])
                begin = end = work["start_ps"].to_numpy()[mine]
            elif launched.size:
                mine = np.flatnonzero(launched & (profile.devices["source"].to_numpy()[device] == key[0]))
                launch = work["launch"][mine].to_numpy()
                begin, end = start[launch], start[launch] + dur[launch]
            else:
                continue
            at = among(step_start, begin, "right") - 1
            inside = (at >= 0) & (end <= step_end[np.maximum(at, 0)])
            found[mine[inside]] = group["row"].to_numpy()[at[inside]]
    if not (found >= 0).any():
        return pl.Series("step", [None], dtype=pl.UInt32).new_from_index(0, found.size)
    steps_of = pl.Series("step", found)
    return steps_of.set(steps_of < 0, None).cast(pl.UInt32)
