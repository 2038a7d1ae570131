"""What the category of a slice says, in all eras and of all vendors: its kind, and the class of its track."""

from __future__ import annotations

import re

from roofterm_parsers.chrome.groups import CALL_SUFFIXES, MTIA_WORK
from roofterm_parsers.profile import Kind, TrackKind

STEP_NAME = re.compile(r"ProfilerStep#([0-9]+)\Z")
SYNCHRONISES = re.compile(r"synchroni[sz]e|urQueueFinish|urEventWait|piQueueFinish|piEventsWait|zeCommandQueueSync", re.IGNORECASE)

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
_MTIA_KINDS = {"dma_request": Kind.COPY, "event_wait": Kind.DEVICE_WAIT, "event_record": Kind.DEVICE_WAIT}
KINETO_CATEGORIES = frozenset(_KINDS) - {"trace", "driver", "overhead"}

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
    if lower.endswith(CALL_SUFFIXES):
        return Kind.RUNTIME
    return Kind.KERNEL if lower == MTIA_WORK else Kind.OTHER


def kind_by_name(kind: Kind, category: str, name: str) -> Kind:
    """Kind of a slice by its name too."""
    if kind == Kind.RUNTIME and SYNCHRONISES.search(name):
        return Kind.SYNC
    if kind in (Kind.OP, Kind.ANNOTATION) and STEP_NAME.match(name):
        return Kind.STEP
    if kind == Kind.KERNEL and category.lower() == MTIA_WORK:
        return _MTIA_KINDS.get(name, Kind.KERNEL)
    return kind
