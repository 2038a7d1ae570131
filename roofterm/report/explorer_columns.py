"""The columns of tables that the explorer alone shows, and further ones of those that are printed too."""

from __future__ import annotations

from dataclasses import replace

from roofterm.report.columns import CHANGE_COLUMNS
from roofterm.report.fields import (
    BYTES,
    CATEGORY,
    FLOPS,
    Column,
    amount,
    byte_rise,
    rise,
    time_rise,
    words,
)
from roofterm.text.units import bytes_text, count, duration_us, pct

_AS_TIMES = {"base": duration_us, "new": duration_us, "change": time_rise, "spread": duration_us}

TIME_CHANGE_COLUMNS = tuple(replace(column, text=_AS_TIMES.get(column.name, column.text)) for column in CHANGE_COLUMNS)
"""`CHANGE_COLUMNS` where all values are times (us)."""

MORE_COLUMNS: dict[str, tuple[Column, ...]] = {
    "kernel": (BYTES,),
    "category": (BYTES,),
    "op": (CATEGORY,),
    "iteration": (Column("phase", "phase", words, right=False, about="prefill, decode, mixed; forward, backward, optimizer"),),
    "ranks": (Column("mark", "", words, right=False, about="the others wait for it"),),
    "step": (
        Column("mark", "", words, right=False, about="what is unusual about it"),
        Column("parts", "where it goes", str, right=False, about="its breakdown, as long as the step is"),
        Column("mfu_pct", "MFU", pct, about="model FLOPs by the device's peak over the step"),
        Column("comm_us", "comm", duration_us, about="all communication, hidden or not"),
        Column("start_us", "start", duration_us, about="from the profile's zero"),
    ),
    "roofline": (
        Column("time_bound_us", "at the roofs", duration_us, short="at roofs", about="least time that the roofs allow"),
        FLOPS,
        BYTES,
        Column("flops_from", "FLOPs from", words, right=False, short="from", about="where the FLOPs come from: trace, shapes, hlo or none"),
        Column("op", "op", words, right=False, about="the op whose shapes gave the work"),
    ),
}
"""Further columns of a table that the explorer has room for."""

AGAINST_COLUMNS = (
    Column("change", "change", time_rise, about="less the baseline's: times of one step, of collectives and iterations the mean call"),
    Column("change_pct", "%", rise, short="change %", about="change by what it was in the baseline"),
    Column("base", "base", duration_us, about="in the baseline; unknown: it has no such row"),
)
"""What a table shows beside its own figures when it is held against a baseline; texts for sizes and shares in `AGAINST_TEXTS`."""

AGAINST_TEXTS = {
    "bytes": {"change": byte_rise, "base": bytes_text},
    "pct": {"change": rise, "base": pct},
}

FINDING_COLUMNS = (
    Column("name", "finding", words, right=False, about="what is wrong, in one line"),
    Column("time_at_stake_us", "at stake", duration_us, about="of a step, what could be won by mending it"),
    Column("share_of_step_pct", "% of step", pct, short="% step", about="time at stake by the step's length"),
    Column("severity", "severity", words, right=False, about="high from 10 % of the step, medium from 3 %, low below; info: worth knowing"),
)

ROOF_COLUMNS = (
    Column("name", "roof", words, right=False, about="type of arithmetic, or level of memory"),
    Column("kind", "kind", words, right=False, about="compute, memory or link"),
    Column("value", "peak", words, about="the most that the hardware gives"),
    Column("ridge", "ridge", words, right=False, about="intensity from which on compute and not memory is the limit"),
    Column("source", "from", words, right=False, about="where the figure comes from"),
)

MEMORY_COLUMNS: dict[str, tuple[Column, ...]] = {
    "memory_op": (
        Column("name", "op", words, right=False, about="innermost op around the allocation"),
        Column(
            "peak_bytes", "held at peak", bytes_text, short="at peak", about="allocated in the recording and in use at the allocator's peak"
        ),
        Column("allocated_bytes", "allocated", bytes_text, about="sum of what it allocated"),
        Column("freed_bytes", "freed", bytes_text, about="sum of what was freed in it, whoever had allocated it"),
        Column("allocations", "allocations", count, short="allocs", about="how often it allocated"),
    ),
    "memory_block": (
        Column("name", "op", words, right=False, about="innermost op around the allocation"),
        Column("held_bytes", "held", bytes_text, about="in use at the allocator's peak, all that are alike together"),
        Column("pct", "%", pct, about="of the peak"),
        Column("blocks", "blocks", count, about="alike in size, op, type and shape"),
        Column("bytes", "each", bytes_text, about="of one block, as the allocator gave it"),
        Column("requested_bytes", "asked for", bytes_text, short="asked", about="of one block, before the allocator rounded it up"),
        Column("dtype", "type", words, right=False, about="type of its elements"),
        Column("shape", "shape", words, right=False, about="of the array that it holds"),
        Column("region", "region", words, right=False, about="what XLA uses it for: output, temp, dynamic"),
        Column("allocated_us", "since", duration_us, about="when the first was allocated, from the profile's zero"),
    ),
    "memory_pool": (
        Column("name", "allocator", words, right=False, about="one a device and one of the host with PyTorch, one each with XLA"),
        Column("rank", "rank", count, about="process of a distributed job"),
        Column("peak_bytes", "peak", bytes_text, about="most in use"),
        Column("peak_pct", "of device", pct, short="% device", about="of the device's memory: what is in use or, if more, reserved"),
        Column("capacity_bytes", "capacity", bytes_text, about="memory of the device"),
        Column("reserved_peak_bytes", "reserved", bytes_text, about="most held from the driver, in use or not"),
        Column("stack_bytes", "stack", bytes_text, about="of the peak, the stack of a TPU's program"),
        Column("free_at_peak_bytes", "free at peak", bytes_text, short="free", about="what the allocator had left at its peak"),
        Column("fragmentation_pct", "fragmented", pct, short="fragm.", about="at the peak, as XLA's allocator states it"),
        Column("lifetime_peak_bytes", "own peak", bytes_text, about="most since the allocator began, as it counts itself"),
        Column("peak_us", "at", duration_us, about="when most was in use, from the profile's zero"),
        Column("peak_op", "by op", words, right=False, about="op whose allocation reached the peak"),
        Column("peak_step", "in step", words, right=False, about="the step it lies in"),
        Column("last_bytes", "at the end", bytes_text, short="at end", about="in use after the last event"),
        Column("first_bytes", "at the start", bytes_text, short="at start", about="in use before the first event"),
        Column("held_before_bytes", "held before", bytes_text, short="before", about="of the peak, allocated before the recording"),
        Column("allocations", "allocations", count, short="allocs", about="allocations"),
        Column("frees", "frees", count, about="frees"),
        Column("failed", "failed", count, needs_value=True, about="allocations that failed: out of memory"),
    ),
    "memory_step": (
        Column("name", "step", words, right=False, about="as the file names it"),
        Column("peak_bytes", "peak", bytes_text, about="most in use within the step"),
        Column("last_bytes", "at the end", bytes_text, short="at end", about="in use when it ended"),
        Column("allocated_bytes", "allocated", bytes_text, about="sum of what was allocated in it"),
        Column("freed_bytes", "freed", bytes_text, about="sum of what was freed in it"),
        Column("allocations", "allocations", count, short="allocs", about="how often was allocated"),
    ),
    "memory_pressure": (
        Column("name", "call to the driver", words, right=False, about="by which an allocator gets and gives back memory: it may wait"),
        Column("total_us", "total", duration_us, about="sum over all calls"),
        Column("calls", "calls", count, about="how often it was called"),
        Column("us_per_step", "a step", duration_us, about="time in a steady step"),
        Column("calls_per_step", "calls a step", amount, short="calls/step", about="calls in a steady step"),
    ),
}
