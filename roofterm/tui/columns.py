"""The columns of the explorer's tables: width, what gives way when room is short, and what each figure means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roofterm.analysis.categories.short import short_name
from roofterm.glossary import find
from roofterm.report.columns import byte_rate, numbers, words, yes_no
from roofterm.text.units import bytes_text, count, duration_us, pct, si
from roofterm.tui.stacked import share_bar, step_bar
from roofterm.tui.widgets.detail import Details, Fact
from roofterm.tui.widgets.table_layout import Column

if TYPE_CHECKING:
    import polars as pl


def _time(key: str, label: str, priority: int, about: str) -> Column:
    return Column(key, label, 9, duration_us, priority, about=about)


def _share(key: str, label: str, priority: int, about: str, tint: str | None = None) -> Column:
    return Column(key, label, max(6, len(label)), pct, priority, tint=tint, about=about)


def _word(key: str, label: str, width: int, priority: int, about: str, tint: str | None = None) -> Column:
    return Column(key, label, width, words, priority, left=True, tint=tint, about=about)


def _name(label: str, shorten: bool = True) -> Column:
    show: Callable[[Any], str] = short_name if shorten else words
    return Column("name", label, 24, show, 0, left=True, about="as in the file")


_CATEGORY = _word("category", "category", 13, 2, "what it computes, by its launching op and its name", tint="category")
_CALLS = Column("calls", "calls", 8, count, 2, about="how often it ran")
_TOTAL = _time("total_us", "total", 0, "sum over all calls")
_PCT = _share("pct", "%", 1, "of this table's total")
_SHARE = Column("pct", "", 12, pct, 8, left=True, draw=share_bar)
_MEAN = _time("mean_us", "mean", 3, "total by calls")
_MAX = _time("max_us", "max", 4, "the longest call")
_MIN = _time("min_us", "min", 6, "the shortest call")
_P50 = _time("p50_us", "p50", 5, "half of the calls are shorter")
_P99 = _time("p99_us", "p99", 5, "99 of 100 calls are shorter")
_FLOPS = Column("flops", "FLOPs", 8, si, 6, about="executed operations, 2 per multiply-add, over all calls")
_BYTES = Column("bytes", "bytes", 9, bytes_text, 6, about="compulsory traffic: each operand and result once")
_DTYPE = _word("dtype", "dtype", 5, 4, "type of the arithmetic")
_ROOF = _share("pct_of_roof", "% roof", 1, "of what the roofs allow; above 100 % something in the model is wrong", tint="share")
_BOUND = _word("bound_by", "bound", 8, 1, "the resource used most")

LAST = 99
"""priority of a column in which nothing is known"""

TABLES: Mapping[str, Sequence[Column]] = {
    "kernel": (
        _name("kernel"),
        _CATEGORY,
        _CALLS,
        _TOTAL,
        _PCT,
        _SHARE,
        _MEAN,
        _MAX,
        _ROOF,
        _BOUND,
        _DTYPE,
        Column("tensor_core", "tensor", 6, yes_no, 5, about="runs on tensor or matrix units, as far as its name tells"),
        _word("launched_by", "launched by", 26, 6, "the op under which most of its time was launched"),
        _MIN,
        _P50,
        _P99,
        _FLOPS,
        _BYTES,
        Column("occupancy_pct", "occup.", 6, pct, 7, about="estimated achieved occupancy, as the file states it; weighted by time"),
        Column("grid", "grid", 13, words, 7, about="blocks, most frequent"),
        Column("block", "block", 9, words, 7, about="threads of a block, most frequent"),
        Column("stream_ids", "streams", 9, numbers, 7, about="streams on which it ran"),
    ),
    "op": (
        _name("host op", shorten=False),
        _CALLS,
        _time("self_us", "self CPU", 0, "host time outside of the ops that it calls; the profiler's own figure, which may be negative"),
        _share("pct", "%", 1, "of all self CPU time"),
        _time("total_us", "CPU total", 1, "host time with the ops that it calls"),
        _MEAN,
        _time("self_device_us", "self dev", 1, "device time of the work that it launched itself"),
        _time("device_us", "device", 2, "device time of the work that it and its children launched"),
        _FLOPS,
        _word("shapes", "shapes", 26, 6, "input shapes"),
        Column("memory_bytes", "memory", 10, bytes_text, 6, about="allocated less freed, with its children"),
        Column("self_memory_bytes", "self mem", 10, bytes_text, 7, about="allocated less freed by itself"),
        _MIN,
        _MAX,
        _P50,
        _P99,
        _CATEGORY,
    ),
    "category": (
        Column("name", "category", 24, words, 0, left=True, tint="category", about="what the work computes"),
        _CALLS,
        _TOTAL,
        _PCT,
        replace(_SHARE, priority=2),
        _MEAN,
        _MIN,
        _MAX,
        _P50,
        _P99,
        _FLOPS,
        _BYTES,
        _ROOF,
    ),
    "collective": (
        Column("name", "collective", 20, words, 0, left=True, about="as the file or its kernel names it"),
        _word("group", "group", 12, 4, "process group"),
        Column("group_size", "ranks", 5, count, 3, about="ranks of the group"),
        Column("message_bytes", "message", 9, bytes_text, 1, about="bytes of one call: the input of each rank"),
        _CALLS,
        _TOTAL,
        _PCT,
        _MEAN,
        _time("exposed_us", "exposed", 1, "of it under which nothing computes"),
        Column("bus_bw", "bus bw", 10, byte_rate, 2, about="comparable to the link's bandwidth, whatever the collective and its ranks"),
        _share("pct_of_link", "% link", 2, "bus bandwidth by the link's"),
        _time("wait_us", "wait", 3, "until the last rank came; unknown from one rank alone"),
        _time("transfer_us", "transfer", 4, "from when the last rank came"),
        Column("algo_bw", "algo bw", 10, byte_rate, 6, about="bytes by time"),
        _time("hidden_us", "hidden", 6, "of it under compute"),
        _word("library", "library", 8, 7, "NCCL, RCCL or another"),
        _word("note", "note", 20, 7, "doubts about this row"),
    ),
    "gap": (
        Column("name", "meanwhile on the host", 24, words, 0, left=True, about="what the launching thread did for most of the gap"),
        _time("total_us", "gap", 0, "nothing runs on the device"),
        _PCT,
        _word("category", "kind", 11, 1, "host wait: the work was not launched yet; kernel gap: it was"),
        _time("start_us", "start", 2, "from the profile's zero"),
        _word("after", "until", 24, 3, "the work that ended the gap"),
        _word("before", "since", 24, 4, "the work before the gap"),
        _word("step", "step", 16, 4, "the step it lies in"),
        Column("device", "device", 6, count, 5, about="device that was idle"),
        _time("host_wait_us", "host wait", 6, "of it until the next launch call had ended"),
        _time("kernel_gap_us", "kern gap", 6, "of it though the next work was launched"),
        _word("thread", "thread", 20, 7, "the launching thread"),
    ),
    "iteration": (
        Column("name", "iteration", 24, words, 0, left=True, about="iterations of the same name, numbers left out"),
        _word("phase", "phase", 8, 2, "prefill, decode, mixed; forward, backward, optimizer"),
        _CALLS,
        _TOTAL,
        _PCT,
        _MEAN,
        _P99,
        Column("tokens_per_s", "tokens/s", 8, si, 1, about="generated and prompt tokens by time"),
        _time("inter_token_p50_us", "itl p50", 3, "time between tokens, median"),
        _time("inter_token_p99_us", "itl p99", 3, "time between tokens, 99 of 100 are shorter"),
        _time("compute_us", "compute", 3, "mean over its iterations"),
        _time("exposed_comm_us", "exp comm", 4, "mean: communication under which nothing computes"),
        _time("idle_us", "idle", 3, "mean: nothing runs on the device"),
        Column("prompt_tokens", "prompt", 8, si, 5, about="mean prompt tokens of an iteration"),
        Column("generated_tokens", "gener.", 8, si, 5, about="mean generated tokens of an iteration"),
        Column("context_tokens", "context", 8, si, 5, about="mean tokens attended to"),
        Column("launches", "launches", 8, si, 5, about="mean calls that launched device work"),
        _share("mbu_pct", "MBU", 5, "bytes of weights and KV cache that a decode must read, by time and peak bandwidth"),
        _ROOF,
        _BOUND,
        _FLOPS,
        _BYTES,
    ),
    "roofline": (
        _name("op"),
        _CATEGORY,
        _word("shapes", "shapes", 26, 4, "input shapes"),
        Column("calls", "calls", 8, count, 4, about="how often it ran"),
        _time("time_us", "time", 0, "device time in the part spoken of"),
        Column("intensity", "FLOP/B", 8, si, 1, about="FLOPs by bytes of device memory: an upper bound, as bytes are a lower one"),
        Column("flops_per_s", "FLOP/s", 8, si, 2, about="FLOPs by device time"),
        Column("bytes_per_s", "B/s", 8, si, 3, about="bytes of device memory by device time"),
        _ROOF,
        _word("limit", "bound", 9, 1, "the resource used most; with ? if even that one is used by less than 60 %: then latency limits"),
        _time("headroom_us", "headroom", 3, "device time less the time that the roofs allow"),
        _time("time_bound_us", "at roofs", 6, "least time that the roofs allow"),
        _DTYPE,
        Column("flops", "FLOPs", 8, si, 6, about="executed operations, 2 per multiply-add"),
        _BYTES,
        _share("pct_of_peak_flops", "% peak", 6, "of the compute roof of its type"),
        _share("pct_of_peak_bw", "% bw", 6, "of the memory's bandwidth; a lower bound"),
        _word("flops_from", "from", 6, 7, "where the FLOPs come from: trace, shapes, hlo or none"),
        _word("op", "op", 20, 7, "the op whose shapes gave the work"),
        _word("flags", "flags", 20, 7, "doubts about this row"),
    ),
    "step": (
        Column("name", "step", 18, words, 0, left=True, about="as the file names it"),
        _word("mark", "", 10, 0, "what is unusual about it", tint="warn"),
        Column("parts", "where it goes", 28, str, 3, left=True, draw=step_bar),
        _time("dur_us", "length", 0, "from the previous step's end until its own device work has ended"),
        _time("host_dur_us", "host", 4, "the annotation on the host"),
        _time("compute_us", "compute", 1, "union of compute kernels in the step's window"),
        _time("exposed_comm_us", "exp comm", 1, "communication under which nothing computes"),
        _time("exposed_copy_us", "exp copy", 3, "copies under which neither computes nor communicates anything"),
        _time("idle_us", "idle", 1, "nothing runs on the device"),
        _share("busy_pct", "busy", 2, "of the step in which the device works"),
        _time("host_wait_us", "host wait", 5, "idle until the next launch call has ended"),
        _time("kernel_gap_us", "kern gap", 5, "idle though the next work was launched"),
        _time("comm_us", "comm", 5, "all communication, hidden or not"),
        Column("launches", "launches", 8, count, 4, about="calls that launched device work"),
        Column("rank", "rank", 5, count, 5, about="process of a distributed job"),
        _share("mfu_pct", "MFU", 4, "model FLOPs by the device's peak over the step"),
        _time("start_us", "start", 6, "from the profile's zero"),
    ),
    "roofs": (
        Column("name", "roof", 20, words, 0, left=True, about="type of arithmetic, or level of memory"),
        _word("kind", "kind", 7, 1, "compute, memory or link"),
        Column("value", "peak", 13, words, 0, about="the most that the hardware gives"),
        _word("ridge", "ridge", 11, 1, "intensity from which on compute and not memory is the limit"),
        _word("source", "from", 8, 2, "where the figure comes from"),
    ),
}
"""Columns of each table, in the order in which they stand."""

NOUNS = {
    "kernel": "kernels",
    "op": "host ops",
    "category": "categories",
    "collective": "collectives",
    "gap": "gaps",
    "iteration": "iterations",
    "roofline": "points",
    "step": "steps",
    "roofs": "roofs",
}


def known_first(columns: Sequence[Column], frame: pl.DataFrame) -> list[Column]:
    """The columns, those without a single known value giving way before all others."""
    empty = {name for name in frame.columns if frame.height and frame[name].null_count() == frame.height}
    return [replace(c, priority=LAST) if c.key in empty and c.priority else c for c in columns]


def definition(name: str) -> str:
    """A figure's definition from the glossary, with its source; empty if it has none."""
    entry = find(name)
    return "" if entry is None else f"{entry.text} [{entry.source}]" if entry.source else entry.text


def row_details(table: str, row: Mapping[str, Any], extra: Sequence[Fact] = ()) -> Details:
    """Everything that a row of a table says, unknown figures left out."""
    facts = [
        Fact(column.label or "note", column.show(row[column.key]), definition(column.key) or column.about)
        for column in TABLES[table][1:]
        if column.draw is None and row.get(column.key) is not None and row[column.key] != ""
    ]
    unknown = [column.label for column in TABLES[table][1:] if column.label and row.get(column.key, "") is None]
    if unknown:
        facts.append(Fact("unknown", ", ".join(unknown), "the profile does not tell"))
    return Details(str(row["name"]), [*facts, *extra])
