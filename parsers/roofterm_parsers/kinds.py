"""What slices and tracks are: the codes of `slices.kind` and `tracks.kind`. Apart from the frames, since these load polars."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """What a slice is, by its file's own words (category, line); what it computes is a question for the analysis."""

    OP = 0
    """A framework operator on the host (`cpu_op`, `Operator`)."""
    ANNOTATION = 1
    """A range named by the user or a framework (`user_annotation`, NVTX, TraceMe)."""
    STEP = 2
    """A step marker of the host (`ProfilerStep#N`, `step_num`) or of a `Steps` line."""
    RUNTIME = 3
    """A call into the driver or runtime (`cuda_runtime`, `hipLaunchKernel`)."""
    SYNC = 4
    """A runtime call in which the host waits for the device (`cudaDeviceSynchronize`)."""
    KERNEL = 5
    """Work on an accelerator's stream, collectives included; on TPU an `XLA Ops` event."""
    COPY = 6
    MEMSET = 7
    PYTHON = 8
    """A Python frame (`python_function`)."""
    MODULE = 9
    """A compiled program on a device (`XLA Modules`)."""
    ASYNC = 10
    """Device work that overlaps its issuer and must not be added to it (`Async XLA Ops`)."""
    DEVICE_ANNOTATION = 11
    """A projection of a host range on the device (`gpu_user_annotation`, derived XLA lines): never work."""
    DEVICE_WAIT = 12
    """A synchronisation as the device sees it (`cuda_sync`): never work."""
    OVERHEAD = 13
    """The profiler itself (`overhead`, `Trace`, Activity Buffer Request)."""
    COUNTED = 14
    """A range of hardware counters (`cuda_profiler_range`): never work."""
    OTHER = 15


WORK_KINDS = (Kind.KERNEL, Kind.COPY, Kind.MEMSET)
"""The kinds whose union is a device's busy time."""

HOST_CALL_KINDS = (Kind.RUNTIME, Kind.SYNC)


class TrackKind(IntEnum):
    HOST = 0
    """A host thread."""
    DEVICE = 1
    """A stream or an op line of an accelerator: holds work."""
    DEVICE_OTHER = 2
    """A device's annotations, steps, modules, derived lines and waits."""
    PROFILER = 3
    """The profiler's own rows (Spans, Traces, overhead)."""
