"""XProf's op metrics: for each HLO instruction its occurrences, times and costs, cores added up.

Rules: its xplane_to_op_metrics_db and op_metrics_db_utils. Devices are TensorCores, or GPUs where there is none. An op's
costs are per occurrence and multiplied; a nested op's time is inside its parent's; `IDLE` fills a device's span.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.xprof.nesting import self_ps
from roofterm_parsers.profile import WORK_KINDS, Kind, Profile, TrackKind

I64 = NDArray[np.int64]

COSTS = (
    "flops", "model_flops", "bytes", "hbm_bytes", "cmem_read_bytes", "cmem_write_bytes", "vmem_read_bytes", "vmem_write_bytes",
)  # fmt: skip
TIMES = ("occurrences", "time_ps", "self_ps", "normalized_ps", "stall_ps")
CUSTOM_CALL = "custom-call"
NO_STEP = -1
EVENT_COSTS_UNTIL = (2, 24)
"""Versions before this add what a custom call's events state; later ones ignore it (a regression)."""


@dataclass(frozen=True, slots=True)
class OpMetrics:
    """Ops of all devices, and the devices' time.

    `ops`: module (program id, 0 for none), name, category, `TIMES`, `COSTS` (of all occurrences together), broken_down
    (the compiler gave bytes by memory), program, source, source_stack, text, framework_op, deduplicated, autotuned, inside.
    """

    ops: pl.DataFrame
    total_ps: int
    op_ps: int
    normalized_op_ps: float

    @property
    def idle_ps(self) -> int:
        return self.total_ps - self.op_ps


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """A step's number and op metrics; on every core it takes as long as its longest marker on any core."""

    number: int
    metrics: OpMetrics
    cores: int = 1


def op_metrics(profile: Profile, hardware: str, version: tuple[int, ...]) -> OpMetrics:
    """Op metrics over the whole profile. `hardware` is TPU, GPU or CPU (which has none)."""
    events = device_events(profile, hardware)
    costs = _costs(profile, hardware)
    spans = _spans(profile, events, hardware)
    return _aggregate(events, costs, spans, hardware == "TPU" and version < EVENT_COSTS_UNTIL)


def step_metrics(profile: Profile, version: tuple[int, ...]) -> list[StepMetrics]:
    """Op metrics of each step that the `Steps` lines of all TensorCores have, by number."""
    markers = step_markers(profile)
    cores = markers["device"].n_unique()
    common = markers.group_by("number").agg(pl.col("device").n_unique().alias("cores"), pl.col("dur_ps").max())
    common = common.filter(pl.col("cores") == cores).sort("number").select("number", "dur_ps")
    if common.is_empty():
        return []
    events = device_events(profile, "TPU")
    events = events.with_columns(step=pl.Series(_steps_of(events, markers), dtype=pl.Int64))
    costs = _costs(profile, "TPU")
    found = []
    for number, dur_ps in common.iter_rows():
        inside = events.filter(pl.col("step") == number)
        spans = dict.fromkeys(inside["device"].unique().to_list(), int(dur_ps))
        found.append(StepMetrics(number, _aggregate(inside, costs, spans, version < EVENT_COSTS_UNTIL), len(spans)))
    return found


def device_events(profile: Profile, hardware: str) -> pl.DataFrame:
    """Work events by the device's own clock: slice, device, op (row of hlo_ops, null), start_ps, dur_ps, self_ps.

    On a TPU the `XLA Ops` lines, nested; on a GPU everything on its streams, each event on its own.
    """
    slices = profile.slices
    kinds = (Kind.KERNEL,) if hardware == "TPU" else WORK_KINDS
    tracks = _tracks(profile, hardware)
    device_of = np.full(profile.tracks.height, -1, np.int64)
    device_of[tracks["track"].to_numpy()] = tracks["device"].to_numpy()
    track = slices["track"].to_numpy()
    rows = np.flatnonzero((device_of[track] >= 0) & np.isin(slices["kind"].to_numpy(), [int(kind) for kind in kinds]))
    if hardware == "TPU":  # in file order: what is inside what depends on it where the device's clock and the host's disagree
        at = slices["offset"].to_numpy()[rows]
        if np.any((at[1:] < at[:-1]) & (track[rows[1:]] == track[rows[:-1]])):
            rows = rows[np.lexsort((at, track[rows]))]
    start, dur = _device_time(profile, rows)
    own = _self_by_track(track[rows], start, dur) if hardware == "TPU" else dur
    op = np.full(slices.height, -1, np.int64)
    op[profile.hlo["slice"].to_numpy()] = profile.hlo["op"].to_numpy()
    return (
        pl.DataFrame({"slice": rows, "device": device_of[track[rows]], "op": op[rows], "start_ps": start, "dur_ps": dur, "self_ps": own})
        .with_columns(pl.when(pl.col("op") >= 0).then("op"))
        .join(_event_costs(profile), on="slice", how="left", maintain_order="left")
    )


def step_markers(profile: Profile) -> pl.DataFrame:
    """Events of the `Steps` lines: device, number, name, start_ps, dur_ps, by the device's own clock."""
    tracks = _tracks(profile, "TPU", steps=True)
    slices = profile.slices.with_row_index("slice").join(tracks, on="track", how="inner", maintain_order="left")
    slices = slices.filter(pl.col("kind") == int(Kind.STEP))
    rows = slices["slice"].to_numpy().astype(np.int64)
    start, dur = _device_time(profile, rows)
    names = profile.names["text"].gather(slices["name"])
    stated = profile.hlo_events.select("slice", "step")
    numbers = slices.join(stated, on="slice", how="left", maintain_order="left")["step"]
    markers = {"device": slices["device"], "number": numbers, "name": names, "start_ps": start, "dur_ps": dur}
    return pl.DataFrame(markers).drop_nulls("number")


def _tracks(profile: Profile, hardware: str, steps: bool = False) -> pl.DataFrame:
    """Tracks of the devices of a kind that hold work, or their other tracks: track, device."""
    kind = TrackKind.DEVICE_OTHER if steps else TrackKind.DEVICE
    devices = profile.devices.with_row_index("device").filter(pl.col("kind") == hardware.lower()).select(pl.col("device").cast(pl.UInt16))
    tracks = profile.tracks.with_row_index("track").filter(pl.col("kind") == int(kind)).join(devices, on="device")
    return tracks.select("track", "device").sort("track")


def _device_time(profile: Profile, rows: I64) -> tuple[I64, I64]:
    """Start and length of the slices by the device's own clock where it is known."""
    start, dur = profile.slices["start_ps"].to_numpy()[rows], profile.slices["dur_ps"].to_numpy()[rows]
    clock = profile.device_clock
    if clock.is_empty() or rows.size == 0:
        return start, dur
    known = clock["slice"].to_numpy().astype(np.int64)
    at = np.searchsorted(known, rows)
    at[at == known.size] = 0
    here = known[at] == rows
    return np.where(here, clock["start_ps"].to_numpy()[at], start), np.where(here, clock["dur_ps"].to_numpy()[at], dur)


def _self_by_track(track: NDArray[np.uint32], start: I64, dur: I64) -> I64:
    own = np.empty(dur.size, np.int64)
    cuts = np.flatnonzero(np.diff(track)) + 1 if track.size else np.empty(0, np.int64)
    for a, b in zip([0, *cuts.tolist()], [*cuts.tolist(), track.size], strict=True):
        own[a:b] = self_ps(start[a:b], dur[a:b])
    return own


def _event_costs(profile: Profile) -> pl.DataFrame:
    return profile.hlo_events.select(
        pl.col("slice").cast(pl.Int64),
        "time_scale",
        "dma_stall_ps",
        pl.col("flops").alias("event_flops"),
        pl.col("model_flops").alias("event_model_flops"),
        pl.col("bytes").alias("event_bytes"),
        "step",
    )


def _spans(profile: Profile, events: pl.DataFrame, hardware: str) -> dict[int, int]:
    """Device to the time from its first event to its last: work, and on a TPU the steps' markers too."""
    events = events.select("device", "start_ps", "dur_ps")
    if hardware == "TPU":
        events = pl.concat([events, step_markers(profile).select(pl.col("device").cast(pl.Int64), "start_ps", "dur_ps")])
    spans = events.group_by("device").agg(((pl.col("start_ps") + pl.col("dur_ps")).max() - pl.col("start_ps").min()).alias("span"))
    return dict(spans.iter_rows())


def _steps_of(events: pl.DataFrame, markers: pl.DataFrame) -> I64:
    """For each of the events the step it names, else that of its device in which it begins."""
    device, start = events["device"].to_numpy(), events["start_ps"].to_numpy()
    numbers = np.full(events.height, NO_STEP, np.int64)
    for (core,), own in markers.sort("start_ps").group_by(["device"], maintain_order=True):
        begin, end = own["start_ps"].to_numpy(), (own["start_ps"] + own["dur_ps"]).to_numpy()
        rows = np.flatnonzero(device == core)
        at = np.searchsorted(begin, start[rows], side="right") - 1
        inside = (at >= 0) & (start[rows] < end[np.maximum(at, 0)])
        numbers[rows[inside]] = own["number"].to_numpy()[at[inside]]
    named = events["step"]
    return np.where(named.is_null().to_numpy(), numbers, named.fill_null(NO_STEP).to_numpy())


def _costs(profile: Profile, hardware: str) -> pl.DataFrame:
    """Instructions that XProf counts, with its costs per occurrence."""
    ops = profile.hlo_ops.with_row_index("op").join(profile.hlo_facts, on="op", how="left", maintain_order="left")
    if hardware == "TPU":
        counted = ops.filter(pl.col("program_id").is_not_null() & (pl.col("symbol_id").fill_null(0) != 0))
        hbm = pl.col("hbm_read_bytes") + pl.col("hbm_write_bytes")
    else:
        counted = ops.filter(pl.col("xprof_category").is_not_null())
        hbm = pl.col("xprof_hbm_bytes")
    return counted.select(
        pl.col("op").cast(pl.Int64),
        pl.col("program_id").fill_null(0).alias("module"),
        "program",
        pl.col("name").fill_null(""),
        pl.col("xprof_category").fill_null("").alias("category"),
        pl.col("xprof_flops").fill_null(0.0).alias("flops"),
        pl.col("xprof_model_flops").fill_null(0.0).alias("model_flops"),
        pl.col("xprof_bytes").fill_null(0.0).alias("bytes"),
        hbm.fill_null(0.0).alias("hbm_bytes"),
        hbm.is_not_null().alias("broken_down"),
        *[pl.col(name).fill_null(0.0) for name in COSTS if name.startswith(("cmem", "vmem"))],
        "source",
        "source_stack",
        "text",
        "framework_op",
        "deduplicated",
        "autotuned",
        "inside",
    )


def _aggregate(events: pl.DataFrame, costs: pl.DataFrame, spans: dict[int, int], event_costs: bool) -> OpMetrics:
    counted = events.join(costs.select("op"), on="op", how="semi")
    per_op = (
        counted.with_columns(normalized_ps=(pl.col("dur_ps") * pl.col("time_scale").fill_null(1.0)))
        .group_by("op")
        .agg(
            pl.len().cast(pl.Int64).alias("occurrences"),
            pl.col("dur_ps").sum().alias("time_ps"),
            pl.col("self_ps").sum(),
            pl.col("normalized_ps").sum(),
            pl.col("dma_stall_ps").sum().alias("stall_ps"),
            pl.col("event_flops").sum(),
            pl.col("event_model_flops").sum(),
            pl.col("event_bytes").sum(),
        )
        .join(costs, on="op")
    )
    custom = (pl.col("category") == CUSTOM_CALL) & pl.lit(event_costs)
    per_op = per_op.with_columns(pl.col(*COSTS) * pl.col("occurrences"))
    model = pl.when(pl.col("model_flops") > 0).then("model_flops").otherwise("flops")
    per_op = per_op.with_columns(
        flops=pl.col("flops") + pl.when(custom).then("event_flops").otherwise(0.0),
        model_flops=pl.when(custom).then(pl.col("model_flops") + pl.col("event_model_flops")).otherwise(model),
        bytes=pl.col("bytes") + pl.when(custom).then("event_bytes").otherwise(0.0),
    )
    ops = per_op.group_by("module", "name").agg(
        pl.col(*TIMES, *COSTS).sum(),
        pl.col("broken_down", "autotuned").any(),
        pl.col("program", "category", "source", "source_stack", "text", "framework_op", "deduplicated", "inside").first(),
    )
    by_device = dict(counted.group_by("device").agg(pl.col("self_ps").sum()).iter_rows())
    total = sum(max(span, by_device.get(device, 0)) for device, span in spans.items())
    self_total, time_total = ops["self_ps"], ops["time_ps"]
    share = ops["normalized_ps"] / time_total.cast(pl.Float64)
    normalized = float((self_total * share.fill_nan(0.0)).sum()) if ops.height else 0.0
    return OpMetrics(ops, total, int(self_total.sum()), normalized)
