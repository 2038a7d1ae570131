"""How columns are shown to people, for every table that commands print: title, alignment, text of a value. Explorer: tui.columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from roofterm.text.safe import safe_text
from roofterm.text.units import UNKNOWN, bytes_text, count, duration_us, figures, pct, si


@dataclass(frozen=True)
class Column:
    name: str
    title: str
    text: Callable[[Any], str]
    right: bool = True
    least: int = 0
    """narrowest width in cells"""
    needs_value: bool = False
    """left out where every row has 0, as where it is unknown"""


def words(value: Any) -> str:
    """Text out of a file, made safe."""
    return UNKNOWN if value is None else safe_text(str(value))


def yes_no(value: bool | None) -> str:
    return UNKNOWN if value is None else "yes" if value else "no"


def numbers(value: list[int] | None) -> str:
    """Up to four numbers of a list."""
    if value is None or len(value) == 0:
        return UNKNOWN
    shown = ",".join(map(str, list(value)[:4]))
    return shown if len(value) <= 4 else f"{shown},+{len(value) - 4}"


def flops_rate(value: float | None) -> str:
    return si(value, "FLOP/s")


def amount(value: float | None) -> str:
    return UNKNOWN if value is None else figures(value)


def byte_rate(value: float | None) -> str:
    return si(value, "B/s")


NAME = Column("name", "name", words, right=False, least=20)
SHORT = Column("short_name", "name", words, right=False, least=20)
CATEGORY = Column("category", "category", words, right=False)
CALLS = Column("calls", "calls", count)
TOTAL = Column("total_us", "total", duration_us)
SELF = Column("self_us", "self", duration_us)
MEAN = Column("mean_us", "mean", duration_us)
MIN = Column("min_us", "min", duration_us)
MAX = Column("max_us", "max", duration_us)
P50 = Column("p50_us", "p50", duration_us)
P99 = Column("p99_us", "p99", duration_us)
SHARE = Column("pct", "%", pct)
DEVICE = Column("device_us", "device", duration_us, needs_value=True)
SELF_DEVICE = Column("self_device_us", "self device", duration_us, needs_value=True)
FLOPS = Column("flops", "FLOPs", si, needs_value=True)
BYTES = Column("bytes", "bytes", bytes_text)
DTYPE = Column("dtype", "dtype", words, right=False)
BOUND = Column("bound_by", "bound by", words, right=False)
ROOF = Column("pct_of_roof", "% of roof", pct)
STREAMS = Column("stream_ids", "streams", numbers)
GRID = Column("grid", "grid", words)
BLOCK = Column("block", "block", words)
OCCUPANCY = Column("occupancy_pct", "occupancy", pct)
WAVES = Column("waves", "waves", amount)
TAIL = Column("tail_pct", "tail", pct)
TENSOR = Column("tensor_core", "tensor", yes_no)
LAUNCHER = Column("launched_by", "launched by", words, right=False)
SHAPES = Column("shapes", "shapes", words, right=False)
MEMORY = Column("memory_bytes", "memory", bytes_text, needs_value=True)
SELF_MEMORY = Column("self_memory_bytes", "self memory", bytes_text, needs_value=True)

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
        MIN,
        P50,
        P99,
        GRID,
        BLOCK,
        OCCUPANCY,
        WAVES,
        TAIL,
        STREAMS,
        FLOPS,
    ),
    "op": (NAME, CALLS, SELF, SHARE, TOTAL, MEAN, SELF_DEVICE, DEVICE, FLOPS, SHAPES, MEMORY, SELF_MEMORY, MIN, MAX, P50, P99),
    "iteration": (
        NAME,
        CALLS,
        TOTAL,
        SHARE,
        MEAN,
        P99,
        Column("tokens_per_s", "tokens/s", si),
        Column("inter_token_p50_us", "inter-token p50", duration_us),
        Column("inter_token_p99_us", "inter-token p99", duration_us),
        Column("compute_us", "compute", duration_us),
        Column("exposed_comm_us", "exposed comm", duration_us, needs_value=True),
        Column("exposed_copy_us", "exposed copy", duration_us, needs_value=True),
        Column("idle_us", "idle", duration_us),
        Column("prompt_tokens", "prompt tokens", si, needs_value=True),
        Column("generated_tokens", "generated", si, needs_value=True),
        Column("context_tokens", "context", si),
        Column("launches", "launches", si),
        ROOF,
        BOUND,
        MIN,
        MAX,
        P50,
        FLOPS,
        BYTES,
    ),
    "collective": (
        Column("name", "collective", words, right=False, least=10),
        Column("group", "group", words, right=False),
        Column("group_size", "ranks", count),
        Column("message_bytes", "message", bytes_text),
        CALLS,
        TOTAL,
        SHARE,
        MEAN,
        Column("exposed_us", "exposed", duration_us),
        Column("bus_bw", "bus bw", byte_rate),
        Column("pct_of_link", "% of link", pct),
        Column("wait_us", "wait", duration_us),
        Column("transfer_us", "transfer", duration_us),
        BOUND,
        Column("algo_bw", "algo bw", byte_rate),
        Column("hidden_us", "hidden", duration_us),
        Column("library", "library", words, right=False),
        DTYPE,
        MIN,
        MAX,
        Column("note", "note", words, right=False),
    ),
    "category": (NAME, CALLS, TOTAL, SHARE, MEAN, MIN, MAX, P50, P99, FLOPS, ROOF),
}
"""Columns of each table for people, most wanted first: what does not fit the width is left out from the end."""

TABLE_COLUMNS["gap"] = (
    Column("name", "meanwhile on the host", words, right=False, least=20),
    Column("total_us", "gap", duration_us),
    SHARE,
    CATEGORY,
    Column("start_us", "start", duration_us),
    Column("device", "device", count),
    Column("step", "step", words, right=False),
    Column("after", "until", words, right=False),
    Column("before", "since", words, right=False),
    Column("host_wait_us", "host wait", duration_us),
    Column("kernel_gap_us", "kernel gap", duration_us),
    Column("thread", "thread", words, right=False),
)


STEP_COLUMNS = (
    Column("name", "step", words, right=False, least=16),
    Column("rank", "rank", count),
    Column("phase", "phase", words, right=False),
    Column("dur_us", "time", duration_us),
    Column("host_dur_us", "host", duration_us),
    Column("compute_us", "compute", duration_us),
    Column("exposed_comm_us", "exposed comm", duration_us),
    Column("exposed_copy_us", "exposed copy", duration_us),
    Column("idle_us", "idle", duration_us),
    Column("host_wait_us", "host wait", duration_us),
    Column("kernel_gap_us", "kernel gaps", duration_us),
    Column("busy_pct", "busy", pct),
    Column("launches", "launches", count),
    Column("tensor_core_pct", "tensor", pct),
    Column("sm_efficiency_pct", "SM eff.", pct),
    Column("host_busy_pct", "host busy", pct),
    Column("steady", "steady", yes_no),
    Column("complete", "complete", yes_no),
)


RANK_COLUMNS = (
    Column("rank", "rank", count),
    Column("host", "host", words, right=False),
    Column("late", "late", yes_no),
    Column("step_us", "step", duration_us),
    Column("compute_us", "compute", duration_us),
    Column("exposed_comm_us", "exposed comm", duration_us),
    Column("exposed_wait_us", "of it wait", duration_us),
    Column("exposed_transfer_us", "of it transfer", duration_us),
    Column("kept_waiting_us", "kept waiting", duration_us),
    Column("last_pct", "came last", pct),
    Column("busy_pct", "busy", pct),
    Column("idle_us", "idle", duration_us),
    Column("wait_us", "wait", duration_us),
    Column("transfer_us", "transfer", duration_us),
    Column("exposed_copy_us", "exposed copy", duration_us, needs_value=True),
    Column("launches", "launches", amount),
    Column("slowest_us", "slowest", duration_us),
    Column("steps", "steps", count),
    Column("devices", "devices", count),
)


def rise(value: float | None) -> str:
    """A change in percent, with its sign."""
    return UNKNOWN if value is None else ("+" if value > 0 else "") + pct(value)


CHANGE_COLUMNS = (
    Column("name", "name", words, right=False, least=20),
    Column("base", "base", words),
    Column("new", "new", words),
    Column("change", "change", words),
    Column("change_pct", "%", rise),
    Column("base_calls", "calls", si),
    Column("new_calls", "now", si),
    Column("base_mean_us", "mean", duration_us),
    Column("new_mean_us", "now", duration_us),
    Column("status", "", words, right=False, needs_value=True),
)
"""Values come as texts: each row has its own unit."""


def _tera(value: float | None) -> str:
    return UNKNOWN if value is None else figures(value)


DEVICE_COLUMNS = (
    Column("id", "id", words, right=False, least=16),
    Column("arch", "arch", words, right=False),
    Column("units", "units", count),
    Column("bf16_tflops", "bf16 TF", _tera),
    Column("fp16_tflops", "fp16 TF", _tera),
    Column("fp32_tflops", "fp32 TF", _tera),
    Column("fp8_tflops", "fp8 TF", _tera),
    Column("memory_bytes", "memory", bytes_text),
    Column("memory_tbps", "TB/s", _tera),
    Column("ridge_flop_per_byte", "ridge", _tera),
    Column("confidence", "figures", words, right=False),
    Column("names", "names in profiles", words, right=False),
)


def _intensity(value: float | None) -> str:
    return UNKNOWN if value is None else si(value) if value >= 1000 else figures(value)


_STEP = Column("step", "step", words, right=False)

ROOFLINE_COLUMNS = (
    NAME,
    CATEGORY,
    CALLS,
    Column("time_us", "time", duration_us),
    ROOF,
    Column("limit", "limit", words, right=False),
    Column("headroom_us", "headroom", duration_us),
    Column("intensity", "FLOP/B", _intensity),
    Column("flops_per_s", "rate", flops_rate),
    Column("bytes_per_s", "traffic", byte_rate),
    DTYPE,
    SHAPES,
    Column("flags", "flags", words, right=False),
    Column("pct_of_peak_flops", "% of peak", pct),
    Column("pct_of_peak_bw", "% of bandwidth", pct),
)

PROGRAM_COLUMNS = (NAME, _STEP, *ROOFLINE_COLUMNS[2:9], FLOPS, *ROOFLINE_COLUMNS[9:])

MODULE_COLUMNS = (NAME, *ROOFLINE_COLUMNS[2:9], Column("module_path", "inside", words, right=False), *ROOFLINE_COLUMNS[9:])

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
    Column("intensity", "FLOP/B", _intensity),
    Column("weight_bytes", "weights", bytes_text),
    Column("kv_bytes", "KV cache", bytes_text),
    Column("activation_bytes", "activations", bytes_text),
    Column("estimate_us", "estimate", duration_us),
    Column("flops", "FLOPs", si),
)


def shown(columns: Sequence[Column], records: Sequence[dict[str, Any]]) -> list[Column]:
    """The columns that say something about these rows."""
    return [c for c in columns if not records or any(_says(c, record.get(c.name)) for record in records)]


def _says(column: Column, value: Any) -> bool:
    return value is not None and not (column.needs_value and not value)
