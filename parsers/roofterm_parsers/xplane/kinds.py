"""What the planes, lines and events of an XPlane file are, by their names (tsl/profiler/utils/xplane_schema.cc)."""

from __future__ import annotations

import re
from typing import NamedTuple

from roofterm_parsers.profile import Kind, TrackKind

DEVICE_PLANE = re.compile(r"^/device:(?!CUSTOM)([A-Za-z_]+):(\d+)(?: SparseCore (\d+))?$")
HLO_PLANE = "/host:metadata"
ENVIRONMENT_PLANE = "Task Environment"
SILENT_PLANES = frozenset({HLO_PLANE, ENVIRONMENT_PLANE})

FIRST_DERIVED_LINE = 0xDEADBEEF
"""Lines from this id (in 32 bits) up are made by the profiler's grouping from other lines."""

_LINES: dict[str, Kind] = {
    "XLA Ops": Kind.KERNEL,
    "Sparse Core Ops": Kind.KERNEL,
    "Steps": Kind.STEP,
    "Sparse Core Steps": Kind.STEP,
    "XLA Modules": Kind.MODULE,
    "Sparse Core Modules": Kind.MODULE,
    "Async XLA Ops": Kind.ASYNC,
    "Host Offload Ops": Kind.ASYNC,
    "Tensor Core Sync Flag": Kind.DEVICE_WAIT,
    "Sparse Core Syncs": Kind.DEVICE_WAIT,
    "_counters_": Kind.COUNTED,
}
_DERIVED_LINES = frozenset(
    {
        "XLA TraceMe",
        "Framework Ops",
        "Framework Name Scope",
        "TensorFlow Ops",
        "TensorFlow Name Scope",
        "Source code",
        "Launch Stats",
        "Overlay",
        "TC Overlay",
        "Tensor Core",
    }
)

DEVICE_STATS = frozenset(
    {
        "device_offset_ps",
        "device_duration_ps",
        "Time Scale Multiplier",
        "dma_stall_duration_ps",
        "flops",
        "model_flops",
        "bytes_accessed",
        "group_id",
        "step_name",
        "hlo_op",
        "hlo_module",
        "program_id",
        "name",
        "tf_op",
        "level 0",
        "annotation",
        "correlation_id",
        "kernel_details",
        "memcpy_details",
        "memset_details",
        "theoretical_occupancy_pct",
        "% util",
        "counter_value",
        "cuda_graph_id",
        "cuda_graph_node_id",
        "_p",
        "_pt",
        "_c",
        "_ct",
    }
)
HOST_STATS = frozenset(
    {
        "step_num",
        "group_id",
        "correlation_id",
        "hlo_op",
        "hlo_module",
        "program_id",
        "is_eager",
        "allocator_name",
        "index_on_host",
        "bytes_reserved",
        "bytes_allocated",
        "bytes_available",
        "fragmentation",
        "peak_bytes_in_use",
        "requested_bytes",
        "allocation_bytes",
        "addr",
        "tf_op",
        "region_type",
        "data_type",
        "shape",
        "device_ordinal",
        "_p",
        "_pt",
        "_c",
        "_ct",
    }
)

_RUNTIME = re.compile(r"^(cuda|hip|hsa_|zeModule|zeCommand|cu)[A-Z_]")
_SYNC = re.compile(r"Synchronize|StreamWaitEvent$|EventQuery$")
_STREAM = re.compile(r"Stream #(\d+)")
_COPY = re.compile(r"^(memcpy|copy(host|device|array)to)", re.IGNORECASE)
_SET = re.compile(r"^(memset|fillbuffer)", re.IGNORECASE)


class Device(NamedTuple):
    kind: str
    """gpu, tpu, sparsecore, ... in lower case"""
    id: int


def device_of(plane: str) -> Device | None:
    """The device that a plane shows; None for the host's planes and for what is no accelerator.

    A SparseCore of a TPU is a device of its own: its work runs beside the TensorCore's. Its id is 1000 times that of the
    TensorCore, and its own number and 1 added.
    """
    match = DEVICE_PLANE.match(plane)
    if match is None:
        return None
    name, number, sparse = match.groups()
    if sparse is not None:
        return Device("sparsecore", int(number) * 1000 + int(sparse) + 1)
    return Device(name.lower(), int(number))


def device_line_kind(name: str, line: int) -> Kind | None:
    """Kind of a device line's events; None: a stream, whose events are told apart one by one."""
    if name in _LINES:
        return _LINES[name]
    if name in _DERIVED_LINES or (line & 0xFFFFFFFF) >= FIRST_DERIVED_LINE:
        return Kind.DEVICE_ANNOTATION
    return None


def track_kind(kind: Kind | None) -> TrackKind:
    return TrackKind.DEVICE if kind in (None, Kind.KERNEL) else TrackKind.DEVICE_OTHER


def stream_of(line: str) -> int | None:
    match = _STREAM.match(line)
    return int(match.group(1)) if match else None


def stream_event_kind(name: str) -> Kind:
    """Kind of a GPU stream's event by its name alone; its details tell better where it has them."""
    if _COPY.match(name):
        return Kind.COPY
    return Kind.MEMSET if _SET.match(name) else Kind.KERNEL


def host_event_kind(name: str) -> Kind:
    """Kind of a host event by its name; its stats may say better (step_num, correlation_id, hlo_op, is_eager)."""
    if name.startswith("$"):
        return Kind.PYTHON
    if _RUNTIME.match(name):
        return Kind.SYNC if _SYNC.search(name) else Kind.RUNTIME
    if name.startswith("PjitFunction("):
        return Kind.OP
    if name in ("MemoryAllocation", "MemoryDeallocation") or name.startswith(("ThreadpoolListener::", "end: ")):
        return Kind.OTHER
    return Kind.ANNOTATION
