"""XProf's op metrics: for each HLO instruction its occurrences, times and costs, cores added up.

Rules: its xplane_to_op_metrics_db and op_metrics_db_utils. Devices are TensorCores, or GPUs where there is none. An op's
costs are per occurrence and multiplied; a nested op's time is inside its parent's; `IDLE` fills a device's span.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from roofterm.analysis.xprof.device_events import device_events
from roofterm.analysis.xprof.event_sums import event_sums
from roofterm.analysis.xprof.gpu_instructions import by_kernel, by_run
from roofterm.analysis.xprof.host_steps import steps_over_hosts
from roofterm.analysis.xprof.instruction_costs import COSTS, instruction_costs
from roofterm.analysis.xprof.tpu_steps import NO_STEP, step_markers, steps_of
from roofterm_parsers.profile import Profile

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
    """A step's number and op metrics; on every core it takes as long as its longest marker on any core of the host."""

    number: int
    metrics: OpMetrics
    dur_ps: int = 0
    by_core: tuple[dict[str, int], ...] = ()
    """of each core the self times (ps) of its ops by category"""


def op_metrics(profile: Profile, hardware: str, version: tuple[int, ...]) -> OpMetrics:
    """Op metrics over the whole profile. `hardware` is TPU, GPU or CPU (which has none)."""
    if hardware == "TPU":
        return tpu_metrics(profile, version, ops_of_steps=False)[0]
    events = device_events(profile, hardware)
    costs = instruction_costs(profile, hardware)
    spans = _spans(events)
    if hardware == "GPU":
        events, costs = by_kernel(profile, by_run(profile, events, costs), costs)
    return _whole(event_sums(profile, events), costs, spans, event_costs=False)


def tpu_metrics(profile: Profile, version: tuple[int, ...], ops_of_steps: bool = True) -> tuple[OpMetrics, list[StepMetrics]]:
    """Op metrics of TensorCores over the whole profile, and of each step; without `ops_of_steps` the steps have times alone.

    Steps are those that the `Steps` lines of all TensorCores of a host have and in which all ran ops, by number; of several
    hosts those that all have (`host_steps.steps_over_hosts`).
    """
    events = device_events(profile, "TPU")
    costs = instruction_costs(profile, "TPU")
    event_costs = version < EVENT_COSTS_UNTIL
    marked = step_markers(profile)
    markers = marked.drop_nulls("number")
    spans = _spans(events, marked)
    if markers.is_empty():
        return _whole(event_sums(profile, events), costs, spans, event_costs), []
    sums = event_sums(profile, events, pl.Series("step", steps_of(profile, events, markers)))
    whole = _whole(sums, costs, spans, event_costs)
    source = profile.devices["source"][markers["device"]]
    sums, markers = sums.filter(pl.col("step") != NO_STEP), markers.with_columns(source=source)
    return whole, _steps(sums, markers, costs, event_costs, ops_of_steps)


def _spans(*events: pl.DataFrame) -> pl.DataFrame:
    """Of each device the time from its first event to its last: work, and on a TPU the steps' markers too."""
    end = pl.col("start_ps") + pl.col("dur_ps")
    ends = pl.concat([part.group_by("device").agg(first=pl.col("start_ps").min(), last=end.max()) for part in events])
    return ends.group_by("device").agg(span_ps=pl.col("last").max() - pl.col("first").min())


def _whole(sums: pl.DataFrame, costs: pl.DataFrame, spans: pl.DataFrame, event_costs: bool) -> OpMetrics:
    one = pl.lit(0, pl.Int64).alias("step")
    sums = sums.group_by("device", "op").agg(pl.exclude("step").sum()).with_columns(one)
    return _aggregated(sums, costs, spans.with_columns(one), event_costs).get(0, NOTHING)


def _steps(sums: pl.DataFrame, markers: pl.DataFrame, costs: pl.DataFrame, event_costs: bool, ops: bool) -> list[StepMetrics]:
    busy = sums.select("device", number="step").unique()
    markers = markers.join(busy, on=["device", "number"], how="semi")
    cores = markers.group_by("source").agg(all=pl.col("device").n_unique())
    common = markers.group_by("source", "number").agg(
        cores=pl.col("device").n_unique(),
        span_ps=pl.col("dur_ps").max(),
        begin_ps=pl.col("aligned_ps").min(),
        end_ps=pl.col("aligned_end_ps").max(),
    )
    common = common.join(cores, on="source").filter(pl.col("cores") == pl.col("all")).sort("source", "number")
    common = common.join(steps_over_hosts(common), on=["source", "number"]).select("source", "number", "span_ps", "step")
    of_device = markers.select("device", "source").unique().join(common, on="source").select("device", "number", "step", "span_ps")
    sums = sums.rename({"step": "number"}).join(of_device, on=["device", "number"]).drop("number")
    spans = sums.select("step", "device", "span_ps").unique()
    sums = sums.drop("span_ps")
    metrics = _aggregated(sums, costs, spans, event_costs) if ops else {}
    by_core = _by_core(sums, costs)
    longest = common.group_by("step").agg(pl.col("span_ps").max()).sort("step")
    return [StepMetrics(step, metrics.get(step, NOTHING), int(dur_ps), tuple(by_core[step])) for step, dur_ps in longest.iter_rows()]


def _by_core(sums: pl.DataFrame, costs: pl.DataFrame) -> dict[int, list[dict[str, int]]]:
    """For each step and each core that ran anything in it, the self times of what counts by category."""
    known = sums.join(costs.select("op", "category"), on="op", how="left")
    by_category = known.group_by("step", "device", "category").agg(pl.col("self_ps").sum()).sort("step", "device")
    found: dict[int, dict[int, dict[str, int]]] = {}
    for step, device, category, own_ps in by_category.iter_rows():
        core = found.setdefault(step, {}).setdefault(device, {})
        if category is not None:
            core[category] = own_ps
    return {step: list(cores.values()) for step, cores in found.items()}


def _aggregated(sums: pl.DataFrame, costs: pl.DataFrame, spans: pl.DataFrame, event_costs: bool) -> dict[int, OpMetrics]:
    """The op metrics of each step. `spans`: step, device, span_ps, how long the device takes at least."""
    counted = sums.join(costs.select("op"), on="op", how="semi")
    numbers = [name for name in sums.columns if name not in ("step", "device", "op")]
    per_op = counted.group_by("step", "op").agg(pl.col(numbers).sum()).join(costs, on="op").sort("step", "op")
    custom = (pl.col("category") == CUSTOM_CALL) & pl.lit(event_costs)
    per_op = per_op.with_columns(pl.col(*COSTS) * pl.col("occurrences"))
    model = pl.when(pl.col("model_flops") > 0).then("model_flops").otherwise("flops")
    per_op = per_op.with_columns(
        flops=pl.col("flops") + pl.when(custom).then("event_flops").otherwise(0.0),
        model_flops=pl.when(custom).then(pl.col("model_flops") + pl.col("event_model_flops")).otherwise(model),
        bytes=pl.col("bytes") + pl.when(custom).then("event_bytes").otherwise(0.0),
    )
    ops = per_op.group_by("step", "module", "name", maintain_order=True).agg(
        pl.col(*TIMES, *COSTS).sum(),
        pl.col("broken_down", "autotuned").any(),
        pl.col("program", "category", "source", "source_stack", "text", "framework_op", "deduplicated", "inside").first(),
    )
    by_step = ops.partition_by("step", as_dict=True, include_key=False)
    found = {}
    for step, total_ps, op_ps, normalized_ps in _totals(counted, spans).iter_rows():
        if (step,) in by_step:
            found[step] = OpMetrics(by_step[step,], total_ps, op_ps, normalized_ps)
        else:
            found[step] = OpMetrics(ops.clear().drop("step"), total_ps, 0, 0.0)
    return found


def _totals(counted: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Of each step: its time, that of its ops, and theirs at the nominal clock; cores added up.

    An instruction's self time on a device is scaled as its whole time is.
    """
    scaled = pl.when(pl.col("time_ps") > 0).then(pl.col("self_ps") * pl.col("normalized_ps") / pl.col("time_ps")).otherwise(0.0)
    by_device = counted.group_by("step", "device").agg(pl.col("self_ps").sum(), scaled.sum().alias("normalized_ps"))
    spans = spans.join(by_device, on=["step", "device"], how="left")
    own = pl.col("self_ps").fill_null(0)
    totals = spans.group_by("step").agg(pl.max_horizontal("span_ps", own).sum().alias("total_ps"), own.sum(), pl.col("normalized_ps").sum())
    return totals.select("step", "total_ps", "self_ps", "normalized_ps")


NOTHING = OpMetrics(
    pl.DataFrame(
        schema={
            "module": pl.UInt64,
            "name": pl.String,
            **dict.fromkeys(TIMES, pl.Int64),
            **dict.fromkeys(COSTS, pl.Float64),
            **dict.fromkeys(("broken_down", "autotuned"), pl.Boolean),
            **dict.fromkeys(("program", "category", "source", "source_stack", "text", "framework_op", "deduplicated", "inside"), pl.String),
        }
    ),
    0,
    0,
    0.0,
)
"""No op and no time."""
