"""XProf's op metrics: for each HLO instruction its occurrences, times and costs, cores added up.

Rules: its xplane_to_op_metrics_db and op_metrics_db_utils. Devices are TensorCores, or GPUs where there is none. An op's
costs are per occurrence and multiplied; a nested op's time is inside its parent's; `IDLE` fills a device's span.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from roofterm.analysis.xprof.device_events import device_events
from roofterm.analysis.xprof.framework_names import framework_op_of
from roofterm.analysis.xprof.step_groups import NO_GROUP, groups
from roofterm.analysis.xprof.tpu_steps import step_markers, steps_of
from roofterm_parsers.profile import Profile

COSTS = (
    "flops", "model_flops", "bytes", "hbm_bytes", "cmem_read_bytes", "cmem_write_bytes", "vmem_read_bytes", "vmem_write_bytes",
    "on_chip_read_bytes", "on_chip_write_bytes",
)  # fmt: skip
TIMES = ("occurrences", "time_ps", "self_ps", "normalized_ps", "stall_ps")
CUSTOM_CALL = "custom-call"
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
    dur_ps: int = 0
    by_core: tuple[dict[str, int], ...] = ()
    """of each core the self times (ps) of its ops by category"""


def op_metrics(profile: Profile, hardware: str, version: tuple[int, ...]) -> OpMetrics:
    """Op metrics over the whole profile. `hardware` is TPU, GPU or CPU (which has none)."""
    events = device_events(profile, hardware)
    costs = _costs(profile, hardware)
    spans = _spans(profile, events, hardware)
    if hardware == "GPU":
        events, costs = _by_kernel(profile, _runs(profile, events, costs), costs)
    return _aggregate(events, costs, spans, hardware == "TPU" and version < EVENT_COSTS_UNTIL)


def step_metrics(profile: Profile, version: tuple[int, ...]) -> list[StepMetrics]:
    """Op metrics of each step that the `Steps` lines of all TensorCores have and in which all ran ops, by number."""
    markers = step_markers(profile).drop_nulls("number")
    if markers.is_empty():
        return []
    events = device_events(profile, "TPU")
    events = events.with_columns(step=pl.Series(steps_of(profile, events, markers), dtype=pl.Int64))
    busy = events.select(pl.col("device").cast(pl.UInt16), number="step").unique()
    markers = markers.join(busy, on=["device", "number"], how="semi")
    cores = markers["device"].n_unique()
    common = markers.group_by("number").agg(pl.col("device").n_unique().alias("cores"), pl.col("dur_ps").max())
    common = common.filter(pl.col("cores") == cores).sort("number").select("number", "dur_ps")
    costs = _costs(profile, "TPU")
    found = []
    for number, dur_ps in common.iter_rows():
        inside = events.filter(pl.col("step") == number)
        spans = dict.fromkeys(inside["device"].unique().to_list(), int(dur_ps))
        metrics = _aggregate(inside, costs, spans, version < EVENT_COSTS_UNTIL)
        found.append(StepMetrics(number, metrics, int(dur_ps), tuple(_by_category(inside, costs))))
    return found


def _by_category(events: pl.DataFrame, costs: pl.DataFrame) -> Iterator[dict[str, int]]:
    """Of each core that ran anything, the self times of what counts."""
    for _, own in events.join(costs.select("op", "category"), on="op", how="left").sort("device").group_by(["device"], maintain_order=True):
        counted = own.drop_nulls("category").group_by("category").agg(pl.col("self_ps").sum())
        yield dict(counted.iter_rows())


def _runs(profile: Profile, events: pl.DataFrame, costs: pl.DataFrame) -> pl.DataFrame:
    """Within a step XProf takes neighbours of one name on a stream for one instruction, even of two programs: the first one's."""
    hlo = costs.filter(pl.col("name") != "")
    if hlo["name"].n_unique() == hlo.height:
        return events
    rows = events["slice"]
    group = pl.Series("group", groups(profile)[rows.to_numpy()])
    track, at = profile.slices["track"].gather(rows), profile.slices["offset"].gather(rows).alias("at")
    known = events.with_columns(group, track, at, row=pl.int_range(pl.len())).join(costs.select("op", "name"), on="op").sort("track", "at")
    new = (pl.col("name") != pl.col("name").shift(1)) | (pl.col("group") != pl.col("group").shift(1))
    new |= (pl.col("track") != pl.col("track").shift(1)) | (pl.col("group") == NO_GROUP) | (pl.col("name") == "")
    run = new.fill_null(True).cum_sum()
    first = known.with_columns(run=run).with_columns(first=pl.col("op").first().over("run")).select("row", "first")
    joined = (
        events.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64)).join(first, on="row", how="left", maintain_order="left")
    )
    return joined.with_columns(op=pl.coalesce("first", "op")).drop("row", "first")


def _by_kernel(profile: Profile, events: pl.DataFrame, costs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """An op of a framework that no HLO is known of is one op for each of its kernels, `op/kernel`, of the op's type."""
    alone = costs.filter((pl.col("name") == "") & (pl.col("category") == ""))
    if alone.is_empty():
        return events, costs
    parsed = {text: framework_op_of(text) for text in alone["framework_op"].unique().to_list()}
    names = profile.names["text"].gather(profile.slices["name"].gather(events["slice"]))
    own = events.select("op", kernel=names).join(alone.select("op", "framework_op"), on="op").unique(maintain_order=True)
    first = profile.hlo_ops.height
    own = own.with_columns(made=pl.int_range(first, first + pl.len(), dtype=pl.Int64))
    rows = own.join(costs.drop("name", "category", "text", "framework_op"), on="op", maintain_order="left").with_columns(
        op="made",
        name=pl.col("framework_op").replace_strict({text: op.name for text, op in parsed.items()}, return_dtype=pl.String)
        + "/"
        + pl.col("kernel"),
        category=pl.col("framework_op").replace_strict({text: op.type for text, op in parsed.items()}, return_dtype=pl.String),
    )
    rows = rows.with_columns(text="name")
    kept = costs.join(alone.select("op"), on="op", how="anti")
    events = events.with_columns(kernel=names).join(
        own.select("op", "kernel", "made"), on=["op", "kernel"], how="left", maintain_order="left"
    )
    events = events.with_columns(op=pl.coalesce("made", "op")).drop("kernel", "made")
    return events, pl.concat([kept, rows.select(kept.columns)])


def _spans(profile: Profile, events: pl.DataFrame, hardware: str) -> dict[int, int]:
    """Device to the time from its first event to its last: work, and on a TPU the steps' markers too."""
    events = events.select("device", "start_ps", "dur_ps")
    if hardware == "TPU":
        events = pl.concat([events, step_markers(profile).select(pl.col("device").cast(pl.Int64), "start_ps", "dur_ps")])
    spans = events.group_by("device").agg(((pl.col("start_ps") + pl.col("dur_ps")).max() - pl.col("start_ps").min()).alias("span"))
    return dict(spans.iter_rows())


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
        *[pl.col(name).fill_null(0.0) for name in COSTS if name.startswith(("cmem", "vmem", "on_chip"))],
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
    return OpMetrics(ops, total, int(ops["self_ps"].sum()), _normalized_self(counted))


def _normalized_self(events: pl.DataFrame) -> float:
    """Self time at the nominal clock: of each instruction on each device, scaled as its whole time is."""
    totals = events.group_by("device", "op").agg(
        (pl.col("dur_ps") * pl.col("time_scale").fill_null(1.0)).sum().alias("normalized"), pl.col("dur_ps", "self_ps").sum()
    )
    scaled = totals.filter(pl.col("dur_ps") > 0).select(pl.col("self_ps") * pl.col("normalized") / pl.col("dur_ps"))
    return float(scaled.to_series().sum())
