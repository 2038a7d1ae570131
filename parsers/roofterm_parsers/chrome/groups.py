"""What kinds of events there are to the decoder: by phase and category, which arguments are kept. No frames are known here."""

from __future__ import annotations

from enum import IntEnum

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
    """counters, counted ranges and metadata: their arguments have keys of the writer's own"""
    XLA = 9
    COUNTER = 10
    """values of counters: one event may hold several"""
    LAUNCH = 11
    """calls that hold the grid of the kernel they launch"""
    COLLECTIVE = 12
    """ops and kernels that hold what a collective moves"""


CALL_SUFFIXES = ("_runtime", "_driver")
MTIA_WORK = "mtia_ccp_events"

_GROUPS = {
    "cpu_op": Group.OP,
    "operator": Group.OP,
    "user_annotation": Group.OP,
    "kernel": Group.WORK,
    "concurrent_kernel": Group.WORK,
    "gpu_memcpy": Group.WORK,
    "memcpy": Group.WORK,
    "gpu_memset": Group.WORK,
    "memset": Group.WORK,
    MTIA_WORK: Group.WORK,
    "runtime": Group.RUNTIME,
    "driver": Group.RUNTIME,
    "hpu_op": Group.RUNTIME,
    "cuda_sync": Group.WAIT,
    "xpu_sync": Group.WAIT,
    "cuda_event": Group.WAIT,
    "python_function": Group.PYTHON,
    "cuda_profiler_range": Group.WHOLE,
}
_MEMORY_CATEGORIES = ("", "cpu_instant_event")


def group_of(phase: str, category: str) -> Group:
    """Which arguments of such events are kept."""
    what = PHASES.get(phase, NOTHING)
    if what in (COUNTER, METADATA):
        return Group.WHOLE
    if what in (FLOW_START, FLOW_STEP, FLOW_END):
        return Group.FLOW
    if what == INSTANT:
        return Group.MEMORY if phase in "iI" and category in _MEMORY_CATEGORIES else Group.NONE
    if what not in (SLICE, BEGIN):
        return Group.NONE
    lower = category.lower()
    return _GROUPS.get(lower, Group.RUNTIME if lower.endswith(CALL_SUFFIXES) else Group.NONE)
