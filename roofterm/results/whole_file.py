"""Facts of the whole file, and of where it came from."""

from __future__ import annotations

import msgspec


class SourceInfo(msgspec.Struct):
    path: str
    format: str
    container: str
    producer: str | None
    bytes: int
    bytes_expanded: int
    events: int
    seconds: float
    from_cache: bool


class Summary(msgspec.Struct):
    """Facts of the whole file (`--step all`); a fact that the profile does not hold is None."""

    slices: int
    kernels: int
    kernel_us: float
    memcpy_us: float
    gpu_busy_us: float
    gpu_busy_pct: float | None
    gpu_idle_in_step_us: float | None
    comm_us: float
    exposed_comm_us: float
    steps: int
    step_us: list[float]
    step_names: list[str]
    devices: int
    device_names: list[str]
    kernel_us_by_device: dict[str, float]
    ranks: int | None
    hosts: int | None
    runs: int | None
    kernel_us_by_rank: dict[str, float] | None
    unlinked_kernels: int
    total_self_us: float
    self_us_min: float | None
    sync_us: float
    span_us: float
    flops_total: float | None
    distinct_kernels: int
    threads: int
    process_names: list[str]
    counter_series: list[str]
    peak_mem_bytes: int | None
    min_launch_delay_us: float | None
    cpu_top: str | None
    device_step_us: list[float]
    compute_busy_pct: float | None
    mfu_pct: float | None
    mfu_palm_pct: float | None
    hfu_pct: float | None
    mbu_pct: float | None
    self_cpu_us: float | None
    self_device_us: float | None


class WarningInfo(msgspec.Struct):
    code: str
    message: str
    count: int
