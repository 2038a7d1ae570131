"""Columns of the `ops --by` tables."""

from __future__ import annotations

TABLES: dict[str, tuple[str, ...]] = {}
"""Columns of each `ops --by` table, in order: the shared ones first."""

_SHARED = (
    "name", "category", "calls", "total_us", "self_us", "mean_us", "min_us", "max_us", "p50_us", "p99_us", "pct",
    "device_us", "host_us", "flops", "bytes", "dtype", "bound_by", "pct_of_roof", "limiter", "limit",
)  # fmt: skip
TABLES["category"] = (*_SHARED, "flags")
TABLES["kernel"] = (
    *_SHARED, "stream_ids", "grid", "block", "registers", "shared_bytes", "occupancy_pct", "limited_by", "waves", "tail_pct", "tensor_core",
    "evidence", "launched_by", "module_path", "launched_from", "short_name", "flags",
)  # fmt: skip
TABLES["module"] = (*_SHARED, "module_path", "flags")
TABLES["hlo"] = (*_SHARED, "program", "hlo_category", "source", "tf_op", "long_name", "operands", "users", "flags")
TABLES["launch"] = (
    *_SHARED, "tf_op", "grid", "block", "registers", "shared_bytes", "occupancy_pct", "tensor_core", "flags",
)  # fmt: skip
"""One row for each way in which a kernel was launched."""
TABLES["framework"] = (*_SHARED, "side", "op_type", "flags")
"""`side`: device or host. `pct` is of the self time of its side; calls: of the instruction of an op that ran most often."""
TABLES["collective"] = (
    *_SHARED, "collective", "library", "group", "group_size", "message_bytes", "algo_bw", "bus_bw", "pct_of_link", "exposed_us",
    "hidden_us", "wait_us", "transfer_us", "latency_bound", "note",
)  # fmt: skip
TABLES["op"] = (
    *_SHARED, "self_device_us", "shapes", "is_backward", "memory_bytes", "self_memory_bytes", "device_memory_bytes",
    "self_device_memory_bytes", "stack", "module_path", "flags",
)  # fmt: skip
TABLES["counter"] = (*_SHARED, "counted_for", "value_mean", "value_min", "value_max", "value_last", "value_sum")
"""`calls`: samples. Values have the unit that the file's name for them tells."""
TABLES["gap"] = (*_SHARED, "start_us", "device", "step", "before", "after", "host_kind", "host_wait_us", "kernel_gap_us", "thread")
TABLES["iteration"] = (
    *_SHARED, "phase", "sequences", "prompt_tokens", "generated_tokens", "context_tokens", "causal_pairs", "tokens_per_s",
    "inter_token_p50_us", "inter_token_p99_us", "mbu_pct", "compute_us", "exposed_comm_us", "exposed_copy_us", "idle_us", "host_wait_us",
    "kernel_gap_us", "launched_device_us", "launches",
)  # fmt: skip
"""An iteration's tokens, breakdown and launches are means over the iterations of the row."""
