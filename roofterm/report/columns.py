"""The columns of every other table that is shown than those of `ops`: steps, ranks, changes, rooflines, devices, what if."""

from __future__ import annotations

from dataclasses import replace

from roofterm.report.fields import (
    BOUND,
    CALLS,
    CATEGORY,
    DTYPE,
    FLOPS,
    MEAN,
    MODULE,
    NAME,
    ROOF,
    SHAPES,
    SHARE,
    TOTAL,
    Column,
    amount,
    byte_rate,
    intensity_text,
    rise,
    words,
    yes_no,
)
from roofterm.text.units import bytes_text, count, duration_us, pct, si

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
