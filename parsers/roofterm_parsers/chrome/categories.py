"""What the category of an event says, in all eras and of all vendors: kind of slice, class of track, arguments to keep."""

from __future__ import annotations

import re
from enum import IntEnum

from roofterm_parsers.profile import Kind, TrackKind

STEP_NAME = re.compile(r"ProfilerStep#(\d+)\Z")
SYNCHRONISES = re.compile(r"synchroni[sz]e|urQueueFinish|urEventWait|piQueueFinish|piEventsWait|zeCommandQueueSync", re.IGNORECASE)


class Group(IntEnum):
    """Which arguments of an event are kept, and in which side table."""

    NONE = 0
    OP = 1
    RUNTIME = 2
    WORK = 3
    WAIT = 4
    PYTHON = 5
    MEMORY = 6
    FLOW = 7
    WHOLE = 8
    """counters and metadata: their arguments have keys of the writer's own"""
    XLA = 9
    COUNTER = 10
    """values of counters: one event may hold several"""
    LAUNCH = 11
    """calls that hold the grid of the kernel they launch"""
    COLLECTIVE = 12
    """ops and kernels that hold what a collective moves"""


_KINDS = {
    "cpu_op": Kind.OP,
    "operator": Kind.OP,
    "user_annotation": Kind.ANNOTATION,
    "gpu_user_annotation": Kind.DEVICE_ANNOTATION,
    "kernel": Kind.KERNEL,
    "concurrent_kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.COPY,
    "memcpy": Kind.COPY,
    "gpu_memset": Kind.MEMSET,
    "memset": Kind.MEMSET,
    "runtime": Kind.RUNTIME,
    "driver": Kind.RUNTIME,
    "hpu_op": Kind.RUNTIME,
    "cuda_sync": Kind.DEVICE_WAIT,
    "xpu_sync": Kind.DEVICE_WAIT,
    "cuda_event": Kind.DEVICE_WAIT,
    "python_function": Kind.PYTHON,
    "overhead": Kind.OVERHEAD,
    "trace": Kind.OVERHEAD,
    "cuda_profiler_range": Kind.COUNTED,
    "mtia_insight": Kind.DEVICE_ANNOTATION,
}
_CALLS = ("_runtime", "_driver")
_MTIA_WORK = "mtia_ccp_events"
_MTIA_KINDS = {"dma_request": Kind.COPY, "event_wait": Kind.DEVICE_WAIT, "event_record": Kind.DEVICE_WAIT}
KINETO_CATEGORIES = frozenset(_KINDS) - {"trace", "driver", "overhead"}

_GROUPS = {
    Kind.OP: Group.OP,
    Kind.ANNOTATION: Group.OP,
    Kind.RUNTIME: Group.RUNTIME,
    Kind.KERNEL: Group.WORK,
    Kind.COPY: Group.WORK,
    Kind.MEMSET: Group.WORK,
    Kind.DEVICE_WAIT: Group.WAIT,
    Kind.PYTHON: Group.PYTHON,
}

SLICE, BEGIN, END, INSTANT, COUNTER, METADATA, FLOW_START, FLOW_STEP, FLOW_END, NOTHING = range(10)
PHASES = {
    "X": SLICE,
    "B": BEGIN,
    "E": END,
    "i": INSTANT,
    "I": INSTANT,
    "R": INSTANT,
    "b": INSTANT,  # asynchronous ranges belong to no thread's nesting: their ends are marks
    "n": INSTANT,
    "e": INSTANT,
    "S": INSTANT,
    "T": INSTANT,
    "p": INSTANT,
    "F": INSTANT,
    "C": COUNTER,
    "M": METADATA,
    "s": FLOW_START,
    "t": FLOW_STEP,
    "f": FLOW_END,
}
QUIET_PHASES = frozenset("PNODvVac()")
"""Phases of the format that say nothing about time on a track: object snapshots, memory dumps, marks of the tracer."""

TRACK_KINDS = {
    Kind.KERNEL: TrackKind.DEVICE,
    Kind.COPY: TrackKind.DEVICE,
    Kind.MEMSET: TrackKind.DEVICE,
    Kind.MODULE: TrackKind.DEVICE_OTHER,
    Kind.ASYNC: TrackKind.DEVICE_OTHER,
    Kind.DEVICE_ANNOTATION: TrackKind.DEVICE_OTHER,
    Kind.DEVICE_WAIT: TrackKind.DEVICE_OTHER,
    Kind.COUNTED: TrackKind.DEVICE_OTHER,
    Kind.OVERHEAD: TrackKind.PROFILER,
}
"""Class of the track by the kind of its slices; a host thread for all others."""


def kind_of(category: str) -> Kind:
    """Kind of a slice by its category alone; steps, synchronising calls and MTIA's work are told further by name."""
    lower = category.lower()
    kind = _KINDS.get(lower)
    if kind is not None:
        return kind
    if lower.endswith(_CALLS):
        return Kind.RUNTIME
    return Kind.KERNEL if lower == _MTIA_WORK else Kind.OTHER


def kind_by_name(kind: Kind, category: str, name: str) -> Kind:
    """Kind of a slice by its name too."""
    if kind == Kind.RUNTIME and SYNCHRONISES.search(name):
        return Kind.SYNC
    if kind in (Kind.OP, Kind.ANNOTATION) and STEP_NAME.match(name):
        return Kind.STEP
    if kind == Kind.KERNEL and category.lower() == _MTIA_WORK:
        return _MTIA_KINDS.get(name, Kind.KERNEL)
    return kind


def group_of(phase: str, category: str) -> Group:
    """Which arguments of such events are kept."""
    what = PHASES.get(phase, NOTHING)
    if what in (COUNTER, METADATA):
        return Group.WHOLE
    if what in (FLOW_START, FLOW_STEP, FLOW_END):
        return Group.FLOW
    if what == INSTANT:
        return Group.MEMORY if phase in "iI" and category in ("", "cpu_instant_event") else Group.NONE
    if what in (SLICE, BEGIN):
        return _GROUPS.get(kind_of(category), Group.NONE)
    return Group.NONE
