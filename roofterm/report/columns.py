"""The columns of every table that is shown, most wanted first. The explorer lays the same ones out for a screen (tui.columns)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from roofterm.report.fields import (
    BLOCK,
    BOUND,
    BYTES,
    CALLS,
    CATEGORY,
    DEVICE,
    DEVICE_MEMORY,
    DTYPE,
    EVIDENCE,
    FLAGS,
    FLOPS,
    GRID,
    LAUNCHED_FROM,
    LAUNCHER,
    LIMITED,
    MAX,
    MEAN,
    MEMORY,
    MIN,
    MODULE,
    NAME,
    OCCUPANCY,
    P50,
    P99,
    REGISTERS,
    ROOF,
    SELF,
    SELF_DEVICE,
    SELF_DEVICE_MEMORY,
    SELF_MEMORY,
    SHAPES,
    SHARE,
    SHARED,
    SHORT,
    STACK,
    STREAMS,
    TAIL,
    TENSOR,
    TOTAL,
    WAVES,
    Column,
    amount,
    byte_rate,
    intensity_text,
    rise,
    words,
    yes_no,
)
from roofterm.report.xprof_columns import COUNTER_COLUMNS, FRAMEWORK_COLUMNS, LAUNCH_COLUMNS
from roofterm.text.units import bytes_text, count, duration_us, pct, si

if TYPE_CHECKING:
    import polars as pl

TABLE_COLUMNS: dict[str, tuple[Column, ...]] = {
    "kernel": (
        SHORT,
        CATEGORY,
        CALLS,
        TOTAL,
        SHARE,
        MEAN,
        MAX,
        DTYPE,
        TENSOR,
        ROOF,
        BOUND,
        LAUNCHER,
        MODULE,
        LAUNCHED_FROM,
        MIN,
        P50,
        P99,
        GRID,
        BLOCK,
        REGISTERS,
        SHARED,
        OCCUPANCY,
        LIMITED,
        WAVES,
        TAIL,
        EVIDENCE,
        STREAMS,
        FLOPS,
        FLAGS,
    ),
    "op": (
        NAME,
        CALLS,
        replace(
            SELF, short="self CPU", about="host time outside of the ops that it calls; the profiler's own figure, which may be negative"
        ),
        replace(SHARE, about="of all self CPU time"),
        replace(TOTAL, short="CPU total", about="host time with the ops that it calls"),
        MEAN,
        SELF_DEVICE,
        DEVICE,
        FLOPS,
        SHAPES,
        STACK,
        MODULE,
        DEVICE_MEMORY,
        SELF_DEVICE_MEMORY,
        MEMORY,
        SELF_MEMORY,
        MIN,
        MAX,
        P50,
        P99,
    ),
    "module": (
        replace(NAME, about="module of the model, the innermost around the launch"),
        replace(CALLS, about="pieces of device work in it, those of modules inside it left out"),
        TOTAL,
        SHARE,
        MEAN,
        CATEGORY,
        ROOF,
        BOUND,
        DTYPE,
        MODULE,
        FLOPS,
        BYTES,
        MAX,
        P50,
        P99,
        FLAGS,
    ),
    "hlo": (
        replace(NAME, about="HLO instruction"),
        Column("hlo_category", "HLO category", words, right=False, about="what the compiler calls it"),
        CALLS,
        TOTAL,
        SHARE,
        SELF,
        MEAN,
        ROOF,
        BOUND,
        DTYPE,
        FLOPS,
        BYTES,
        Column("tf_op", "framework op", words, right=False, needs_value=True, about="op of the framework that it was compiled from"),
        Column("source", "source", words, right=False, needs_value=True, about="file and line that it comes from"),
        Column("program", "program", words, right=False, needs_value=True, about="module that the compiler made"),
        Column("long_name", "instruction", words, right=False, needs_value=True, about="the instruction's HLO text"),
        Column("operands", "operands", words, right=False, needs_value=True, about="instructions whose results it takes"),
        Column("users", "users", words, right=False, needs_value=True, about="instructions that take its result"),
        MAX,
        FLAGS,
    ),
    "iteration": (
        replace(NAME, about="iterations of the same name, numbers left out"),
        CALLS,
        TOTAL,
        SHARE,
        MEAN,
        P99,
        Column("tokens_per_s", "tokens/s", si, about="generated and prompt tokens by time"),
        Column("inter_token_p50_us", "inter-token p50", duration_us, short="itl p50", about="time between tokens, median"),
        Column("inter_token_p99_us", "inter-token p99", duration_us, short="itl p99", about="time between tokens, 99 of 100 are shorter"),
        Column("compute_us", "compute", duration_us, about="mean over its iterations"),
        Column(
            "exposed_comm_us",
            "exposed comm",
            duration_us,
            needs_value=True,
            short="exp comm",
            about="mean: communication under which nothing computes",
        ),
        Column(
            "exposed_copy_us",
            "exposed copy",
            duration_us,
            needs_value=True,
            short="exp copy",
            about="mean: copies under which neither computes nor communicates anything",
        ),
        Column("idle_us", "idle", duration_us, about="mean: nothing runs on the device"),
        Column("prompt_tokens", "prompt tokens", si, needs_value=True, short="prompt", about="mean prompt tokens of an iteration"),
        Column("generated_tokens", "generated", si, needs_value=True, short="gener.", about="mean generated tokens of an iteration"),
        Column("context_tokens", "context", si, about="mean tokens attended to"),
        Column("launches", "launches", si, about="mean calls that launched device work"),
        ROOF,
        BOUND,
        MIN,
        MAX,
        P50,
        FLOPS,
        BYTES,
    ),
    "collective": (
        Column("name", "collective", words, right=False, least=10, about="as the file or its kernel names it"),
        Column("group", "group", words, right=False, about="process group"),
        Column("group_size", "ranks", count, about="ranks of the group"),
        Column("message_bytes", "message", bytes_text, about="bytes of one call: the input of each rank"),
        CALLS,
        TOTAL,
        SHARE,
        MEAN,
        Column("exposed_us", "exposed", duration_us, about="of it under which nothing computes"),
        Column("bus_bw", "bus bw", byte_rate, about="comparable to the link's bandwidth, whatever the collective and its ranks"),
        Column("pct_of_link", "% of link", pct, short="% link", about="bus bandwidth by the link's"),
        Column("wait_us", "wait", duration_us, about="until the last rank came; unknown from one rank alone"),
        Column("transfer_us", "transfer", duration_us, about="from when the last rank came"),
        BOUND,
        Column("algo_bw", "algo bw", byte_rate, about="bytes by time"),
        Column("hidden_us", "hidden", duration_us, about="of it under compute"),
        Column("library", "library", words, right=False, about="NCCL, RCCL or another"),
        DTYPE,
        MIN,
        MAX,
        Column("note", "note", words, right=False, about="doubts about this row"),
    ),
    "category": (replace(NAME, about="what the work computes"), CALLS, TOTAL, SHARE, MEAN, MIN, MAX, P50, P99, FLOPS, ROOF),
}
"""Columns of each table for people, most wanted first: what does not fit the width is left out from the end."""

TABLE_COLUMNS |= {"launch": LAUNCH_COLUMNS, "framework": FRAMEWORK_COLUMNS, "counter": COUNTER_COLUMNS}

TABLE_COLUMNS["gap"] = (
    Column("name", "meanwhile on the host", words, right=False, least=20, about="what the launching thread did for most of the gap"),
    Column("total_us", "gap", duration_us, about="nothing runs on the device"),
    SHARE,
    replace(CATEGORY, short="kind", about="host wait: the work was not launched yet; kernel gap: it was"),
    Column("start_us", "start", duration_us, about="from the profile's zero"),
    Column("device", "device", count, about="device that was idle"),
    Column("step", "step", words, right=False, about="the step it lies in"),
    Column("after", "until", words, right=False, about="the work that ended the gap"),
    Column("before", "since", words, right=False, about="the work before the gap"),
    Column("host_wait_us", "host wait", duration_us, about="of it until the next launch call had ended"),
    Column("kernel_gap_us", "kernel gap", duration_us, short="kern gap", about="of it though the next work was launched"),
    Column("thread", "thread", words, right=False, about="the launching thread"),
)

NESTING = ("kernel", "category", "module", "hlo")
"""Tables whose rows may lie inside others on a device's line (a TPU's loops)."""


def table_columns(by: str, table: pl.DataFrame) -> tuple[Column, ...]:
    """The columns of a table: where rows hold others, self time, by which they are ordered and shared out, before the total."""
    columns = TABLE_COLUMNS[by]
    if by not in NESTING or (table["self_us"] == table["total_us"]).all():
        return columns
    kept = [column for column in columns if column.name not in ("self_us", "total_us")]
    at = 1 + next(place for place, column in enumerate(kept) if column.name == "calls")
    own = replace(SELF, about="outside of what is nested in it")
    return (*kept[:at], own, replace(SHARE, about="of this table's self time"), TOTAL, *(c for c in kept[at:] if c.name != "pct"))


STEP_COLUMNS = (
    Column("name", "step", words, right=False, least=16, about="as the file names it"),
    Column("rank", "rank", count, about="process of a distributed job"),
    Column("phase", "phase", words, right=False, about="prefill or decode, where it is told"),
    Column("dur_us", "time", duration_us, about="from the previous step's end until its own device work has ended"),
    Column("host_dur_us", "host", duration_us, about="the annotation on the host"),
    Column("compute_us", "compute", duration_us, about="union of compute kernels in the step's window"),
    Column("exposed_comm_us", "exposed comm", duration_us, short="exp comm", about="communication under which nothing computes"),
    Column(
        "exposed_copy_us",
        "exposed copy",
        duration_us,
        short="exp copy",
        about="copies under which neither computes nor communicates anything",
    ),
    Column("idle_us", "idle", duration_us, about="nothing runs on the device"),
    Column("host_wait_us", "host wait", duration_us, about="idle until the next launch call has ended"),
    Column("kernel_gap_us", "kernel gaps", duration_us, short="kern gap", about="idle though the next work was launched"),
    Column("busy_pct", "busy", pct, about="of the step in which the device works"),
    Column("launches", "launches", count, about="calls that launched device work"),
    Column("tensor_core_pct", "tensor", pct, about="of the step in which kernels on tensor or matrix units run"),
    Column("sm_efficiency_pct", "SM eff.", pct, about="estimated share of the device's units that work"),
    Column("host_busy_pct", "host busy", pct, about="of the step in which the host works"),
    Column("steady", "steady", yes_no, about="averages speak of the steady steps"),
    Column("complete", "complete", yes_no, about="the file holds all of it"),
)


RANK_COLUMNS = (
    Column("rank", "rank", count, about="process of a distributed job"),
    Column("host", "host", words, right=False, about="machine that it ran on"),
    Column("late", "late", yes_no, about="the others wait for it"),
    Column("step_us", "step", duration_us, about="mean of its steady steps"),
    Column("compute_us", "compute", duration_us, about="union of compute kernels, a step"),
    Column("exposed_comm_us", "exposed comm", duration_us, short="exp comm", about="communication under which nothing computes, a step"),
    Column("exposed_wait_us", "of it wait", duration_us, about="of it until the last rank came"),
    Column("exposed_transfer_us", "of it transfer", duration_us, short="of it xfer", about="of it from when the last rank came"),
    Column(
        "kept_waiting_us", "kept waiting", duration_us, short="kept wait", about="how long the others waited for this rank alone, a step"
    ),
    Column("last_pct", "came last", pct, short="last", about="of the matched collectives, those to which it came last"),
    Column("busy_pct", "busy", pct, about="of the step in which the device works"),
    Column("idle_us", "idle", duration_us, about="nothing runs on the device, a step"),
    Column("host_wait_us", "host wait", duration_us, about="of the idle time, until the host's next launch had ended, a step"),
    Column("wait_us", "wait", duration_us, about="in collectives until the last rank came, hidden or not, a step"),
    Column("transfer_us", "transfer", duration_us, about="the shortest of the matched calls, a step"),
    Column("exposed_copy_us", "exposed copy", duration_us, needs_value=True, short="exp copy", about="copies under nothing else, a step"),
    Column("launches", "launches", amount, about="calls that launched device work, a step"),
    Column("slowest_us", "slowest", duration_us, about="its longest steady step"),
    Column("steps", "steps", count, about="steps that the means speak of"),
    Column("devices", "devices", count, about="that worked"),
)

RANK_GROUP_COLUMNS = (
    Column("called", "group", words, right=False, least=12, about="description or name of the process group"),
    Column("role", "for", words, right=False, needs_value=True, about="what it splits: data, tensor, pipeline, expert, context"),
    Column("members", "ranks", words, right=False, needs_value=True, about="its members"),
    Column("seen_of", "seen", words, about="of its members, those whose files are here"),
    Column("calls", "calls", amount, about="collectives, a step and device"),
    Column("uneven", "unequal", words, needs_value=True, about="calls of the rank with fewest and of that with most"),
    Column("matched_pct", "matched", pct, about="of the calls, those that were matched over the ranks"),
    Column("total_us", "time", duration_us, about="in its collectives, a step and device"),
    Column("wait_us", "wait", duration_us, about="of it until the last rank came"),
    Column("transfer_us", "transfer", duration_us, about="the shortest of the matched calls"),
    Column("message_bytes", "bytes", bytes_text, about="of its messages, a step and device"),
    Column("bus_bw", "bus bandwidth", byte_rate, short="bus bw", about="bytes on the wire over transfer time"),
)

CHANGE_COLUMNS = (
    Column("name", "name", words, right=False, least=20, about="figure, phase, category, module, op or kernel"),
    Column("base", "base", words, about="in the baseline"),
    Column("new", "new", words, about="in the profile shown"),
    Column("change", "change", words, about="new less base; what is only on one side changed from or to nothing"),
    Column("change_pct", "%", rise, about="change by base"),
    Column("status", "", words, right=False, needs_value=True, about="new or gone; ~ spread: the steps' own may account for it"),
    Column("base_calls", "calls", si, needs_value=True, short="base #", about="calls in the baseline"),
    Column("new_calls", "now", si, needs_value=True, short="new #", about="calls in the profile shown"),
    Column("base_mean_us", "mean", duration_us, needs_value=True, short="base mean", about="mean call in the baseline"),
    Column("new_mean_us", "now", duration_us, needs_value=True, short="new mean", about="mean call in the profile shown"),
    Column("spread", "spread", words, needs_value=True, about="what the steps' own spread may account for"),
    Column("limiter", "bound by", words, right=False, needs_value=True, about="what held it back, and holds it back now"),
)
"""Values come as texts: each row has its own unit."""

DEVICE_COLUMNS = (
    Column("id", "id", words, right=False, least=16),
    Column("arch", "arch", words, right=False),
    Column("units", "units", count),
    Column("bf16_tflops", "bf16 TF", amount),
    Column("fp16_tflops", "fp16 TF", amount),
    Column("fp32_tflops", "fp32 TF", amount),
    Column("fp8_tflops", "fp8 TF", amount),
    Column("memory_bytes", "memory", bytes_text),
    Column("memory_tbps", "TB/s", amount),
    Column("ridge_flop_per_byte", "ridge", amount),
    Column("confidence", "figures", words, right=False),
    Column("names", "names in profiles", words, right=False),
)


_STEP = Column("step", "step", words, right=False)

ROOFLINE_COLUMNS = (
    NAME,
    CATEGORY,
    CALLS,
    Column("time_us", "time", duration_us, about="device time in the part spoken of"),
    ROOF,
    replace(BOUND, title="limit"),
    Column("headroom_us", "headroom", duration_us, about="device time less the time that the roofs allow"),
    Column("intensity", "FLOP/B", intensity_text, about="FLOPs by bytes of device memory: an upper bound, as bytes are a lower one"),
    Column("flops_per_s", "FLOP/s", si, about="FLOPs by device time"),
    Column("bytes_per_s", "B/s", si, about="bytes of device memory by device time"),
    DTYPE,
    SHAPES,
    Column("flags", "flags", words, right=False, about="doubts about this row"),
    Column("pct_of_peak_flops", "% of peak", pct, short="% peak", about="of the compute roof of its type"),
    Column("pct_of_peak_bw", "% of bandwidth", pct, short="% bw", about="of the memory's bandwidth; a lower bound"),
)

PROGRAM_COLUMNS = (NAME, _STEP, *ROOFLINE_COLUMNS[2:9], FLOPS, *ROOFLINE_COLUMNS[9:])

MODULE_COLUMNS = (NAME, *ROOFLINE_COLUMNS[2:9], MODULE, *ROOFLINE_COLUMNS[9:])

OP_PROFILE_COLUMNS = (
    Column("name", "op profile", words, right=False, about="program, category or instruction"),
    TOTAL,
    replace(SHARE, about="of all time, the idle one included"),
    Column("wasted_us", "wasted", duration_us, about="time that neither arithmetic nor main memory would have needed"),
    Column("flops_pct", "FLOPs", pct, about="of the device's peak, in its time"),
    Column("hbm_pct", "HBM", pct, about="of the main memory's bandwidth"),
    CALLS,
    MEAN,
    Column("hlo_category", "HLO category", words, right=False, about="what the compiler calls it"),
    Column("long_name", "instruction", words, right=False, about="the instruction's HLO text"),
)

PROFILE = Column("profile", "profile", words, right=False)


WHATIF_COLUMNS = (
    NAME,
    CATEGORY,
    Column("calls", "calls", amount),
    Column("bound_us", "now", duration_us),
    Column("bound_by", "by", words, right=False),
    Column("whatif_us", "what if", duration_us),
    Column("whatif_bound_by", "by", words, right=False),
    Column("time_us", "measured", duration_us),
    Column("estimate_us", "estimate", duration_us),
    SHAPES,
    Column("flops", "FLOPs", si, needs_value=True),
    Column("weight_bytes", "weights", bytes_text, needs_value=True),
    Column("kv_bytes", "KV cache", bytes_text, needs_value=True),
    Column("activation_bytes", "activations", bytes_text, needs_value=True),
    Column("state_bytes", "state", bytes_text, needs_value=True),
    Column("other_bytes", "other bytes", bytes_text, needs_value=True),
    Column("wire_bytes", "on the wire", bytes_text, needs_value=True),
    Column("held", "held", yes_no),
)

SWEEP_COLUMNS = (
    Column("value", "value", words),
    Column("phase", "phase", words, right=False),
    Column("bound_us", "least time", duration_us),
    Column("bound_by", "bound by", words, right=False),
    Column("tokens_per_s", "tokens/s", si),
    Column("itl_us", "between tokens", duration_us),
    Column("ttft_us", "first token", duration_us),
    Column("intensity", "FLOP/B", intensity_text),
    Column("weight_bytes", "weights", bytes_text),
    Column("kv_bytes", "KV cache", bytes_text),
    Column("activation_bytes", "activations", bytes_text),
    Column("held_bytes", "in memory", bytes_text, needs_value=True),
    Column("estimate_us", "estimate", duration_us),
    Column("flops", "FLOPs", si),
)
