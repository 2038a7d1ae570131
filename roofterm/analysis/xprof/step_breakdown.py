"""A step's time by what was going on, as XProf counts it (event_span.cc, step_events_to_steps_db.cc)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import polars as pl

from roofterm.analysis.xprof.framework_names import framework_op_of
from roofterm.analysis.xprof.step_groups import NO_GROUP, groups, roots
from roofterm_parsers.profile import WORK_KINDS, Kind, Profile, TrackKind

KEPT_WHOLE = 5
"""Of more steps than this the first and the last are taken to be incomplete and left out."""
DROPPED_FROM = (2, 24)
"""by this version and later ones"""


class Activity(IntEnum):
    """What goes on; of several at a time the highest counts."""

    OTHER = 0
    HOST_COMPUTE = 10
    HOST_TO_HOST = 70
    HOST_TO_DEVICE = 80
    DEVICE_COLLECTIVES = 100
    HOST_WAIT_INPUT = 110
    DEVICE_TO_DEVICE = 120
    DEVICE_TO_HOST = 130
    DEVICE_COMPUTE_32 = 140
    DEVICE_COMPUTE_16 = 150


COMPUTE = (Activity.DEVICE_COMPUTE_32, Activity.DEVICE_COMPUTE_16)
Span = tuple[Activity, int, int]


@dataclass(frozen=True, slots=True)
class StepTime:
    name: str
    dur_ps: int
    by_activity: dict[Activity, int]
    """ps; adds up to the step"""


def step_times(profile: Profile, hardware: str, version: tuple[int, ...]) -> list[StepTime]:
    """Steps of GPUs by their devices' events, or of a program that ran on CPUs by its threads' events."""
    slices = _grouped(profile)
    found = _device_steps(profile, slices) if hardware == "GPU" else _host_steps(profile, slices)
    return found[1:-1] if len(found) > KEPT_WHOLE and version >= DROPPED_FROM else found


def _grouped(profile: Profile) -> pl.DataFrame:
    """Slices that belong to a step, with its number as `group`, and `slice`, `end_ps`, `text`."""
    group = pl.Series("group", groups(profile))
    slices = profile.slices.with_row_index("slice").with_columns(group, end_ps=pl.col("start_ps") + pl.col("dur_ps"))
    slices = slices.filter(pl.col("group") != NO_GROUP)
    return slices.with_columns(text=profile.names["text"][slices["name"]])


def _device_steps(profile: Profile, slices: pl.DataFrame) -> list[StepTime]:
    """A step is as long as its longest marker on a device: of its `Steps` line, else a run of its events that no other's breaks."""
    markers = _on(profile, slices, TrackKind.DEVICE_OTHER).filter(pl.col("kind") == int(Kind.STEP))
    if markers.is_empty():
        work = _work(profile, slices).sort(["device", "start_ps", "track", "offset"], descending=[False, False, True, False])
        run = (pl.col("group") != pl.col("group").shift(1)).fill_null(True).over("device").cum_sum().over("device").alias("run")
        runs = work.group_by("device", run, "group", maintain_order=True)
        markers = runs.agg(pl.col("start_ps").min(), pl.col("end_ps").max())
    events = _device_events(profile, slices)
    found = []
    for (number,), own in markers.sort("group", "start_ps").group_by(["group"], maintain_order=True):
        marker = own.sort(pl.col("end_ps") - pl.col("start_ps"), descending=True, maintain_order=True).row(0, named=True)
        step = _step(str(number), marker["start_ps"], marker["end_ps"], events[int(str(number))])
        if step.dur_ps > 0 and any(kind in step.by_activity for kind in COMPUTE):
            found.append(step)
    return found


def _device_events(profile: Profile, slices: pl.DataFrame) -> dict[int, list[Span]]:
    """By step; what no launch is known of does not count."""
    correlated = pl.concat([frame.drop_nulls("correlation").select("slice") for frame in (profile.kernels, profile.copies)])
    work = _work(profile, slices).join(correlated, on="slice", how="semi")
    inputs = profile.hlo_facts.filter(pl.col("xprof_category").is_null() | (pl.col("xprof_category") == "")).select("op", inputs="shape")
    inputs = profile.hlo.join(inputs.drop_nulls(), on="op").unique("slice", keep="first").select("slice", "inputs")
    work = work.join(inputs, on="slice", how="left", maintain_order="left").with_columns(pl.col("inputs").fill_null(""))
    activity = {told: _device_activity(*told) for told in work.select("text", "inputs").unique().iter_rows()}
    events: dict[int, list[Span]] = defaultdict(list)
    for number, text, shapes, start, end in work.select("group", "text", "inputs", "start_ps", "end_ps").iter_rows():
        events[number].append((activity[text, shapes], start, end))
    return events


def precision_times(profile: Profile) -> dict[Activity, int]:
    """What GPUs computed in 16 and in 32 bits within steps, ps: of overlapping kernels the 16 bit ones count (event_span.cc)."""
    sums = dict.fromkeys(COMPUTE, 0)
    for events in _device_events(profile, _grouped(profile)).values():
        for activity, start, end in flattened(events):
            if activity in sums:
                sums[activity] += end - start
    return sums


def _work(profile: Profile, slices: pl.DataFrame) -> pl.DataFrame:
    return _on(profile, slices, TrackKind.DEVICE).filter(pl.col("kind").is_in([int(kind) for kind in WORK_KINDS]))


def _host_steps(profile: Profile, slices: pl.DataFrame) -> list[StepTime]:
    slices = _on(profile, slices, TrackKind.HOST)
    annotations = set(roots(profile).tolist())
    names = dict(profile.steps.select("slice", "name").iter_rows())
    activity = {text: _host_activity(text) for text in slices["text"].unique().to_list()}
    events: dict[int, list[Span]] = defaultdict(list)
    steps: dict[int, tuple[str, int, int]] = {}
    for row, number, text, start, end in slices.select("slice", "group", "text", "start_ps", "end_ps").iter_rows():
        if row in annotations:
            steps[number] = (names.get(row, text), start, end)
        elif (kind := activity[text]) is not None:
            events[number].append((kind, start, end))
    found = [_step(*steps[number], events[number]) for number in sorted(steps)]
    return [step for step in found if step.dur_ps > 0 and Activity.HOST_COMPUTE in step.by_activity]


def input_waits(profile: Profile) -> dict[int, int]:
    """By step what the host spent on waiting for input and on sending it to the devices, ps; overlaps count twice."""
    slices = _on(profile, _grouped(profile), TrackKind.HOST)
    activity = {text: _host_activity(text) for text in slices["text"].unique().to_list()}
    waits: dict[int, int] = defaultdict(int)
    for number, text, dur_ps in slices.select("group", "text", "dur_ps").iter_rows():
        if activity[text] in (Activity.HOST_WAIT_INPUT, Activity.HOST_TO_DEVICE):
            waits[number] += dur_ps
    return waits


def _on(profile: Profile, slices: pl.DataFrame, kind: TrackKind) -> pl.DataFrame:
    tracks = profile.tracks.with_row_index("track").filter(pl.col("kind") == int(kind)).select("track", "device")
    return slices.join(tracks, on="track", maintain_order="left")


def _device_activity(text: str, inputs: str) -> Activity:
    """By the kernel's name and the inputs that its op's annotation tells; how many bits it computes in these say first."""
    copy = framework_op_of(text).type
    copies = {"MemcpyHToD": Activity.HOST_TO_DEVICE, "MemcpyDToH": Activity.DEVICE_TO_HOST, "MemcpyDToD": Activity.DEVICE_TO_DEVICE}
    if copy in copies:
        return copies[copy]
    if text.lower().startswith("nccl"):
        return Activity.DEVICE_COLLECTIVES
    half = "half" in inputs if inputs else "half" in text or "fp16" in text
    return Activity.DEVICE_COMPUTE_16 if half else Activity.DEVICE_COMPUTE_32


_HULLS = ("EagerExecute", "EagerLocalExecute", "EagerKernelExecute", "FunctionRun")
_MARKERS = ("train", "test", "TraceContext")


def _host_activity(text: str) -> Activity | None:
    """None for what only holds others: steps, and the hulls of eager execution."""
    if text.startswith(_HULLS) or (text.startswith(_MARKERS) and "/" not in text):
        return None
    op = framework_op_of(text)
    if op.type in ("InfeedEnqueue", "InfeedEnqueueTuple", "MemcpyHToD"):
        return Activity.HOST_TO_DEVICE
    if op.type == "MemcpyHToH":
        return Activity.HOST_TO_HOST
    return Activity.HOST_WAIT_INPUT if text.lower().startswith("iteratorgetnext") else Activity.HOST_COMPUTE


def _step(name: str, start: int, end: int, events: list[Span]) -> StepTime:
    sums: dict[Activity, int] = defaultdict(int)
    for activity, a, b in flattened(events):
        sums[activity] += max(0, min(b, end) - max(a, start))
    known = sum(sums.values())
    if known < end - start:
        sums[Activity.OTHER] += end - start - known
    return StepTime(name, end - start, dict(sums))


def flattened(events: Iterable[Span]) -> Iterable[Span]:
    """The highest activity of each moment.

    As in XProf an event without length sets its activity, when nothing else goes on, until the next event ends.
    """
    bounds = sorted(((moment, begins, -kind) for kind, start, end in events for begins, moment in ((True, start), (False, end))))
    open_: dict[Activity, int] = defaultdict(int)
    current = Activity.OTHER
    for i, (moment, begins, negative) in enumerate(bounds[:-1]):
        kind = Activity(-negative)
        open_[kind] += 1 if begins else -1
        if begins:
            current = max(current, kind)
        elif kind == current and open_[kind] == 0:
            current = max((below for below, count in open_.items() if count > 0 and below < kind), default=Activity.OTHER)
        yield current, moment, bounds[i + 1][0]
