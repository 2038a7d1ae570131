"""The records that the analysis gives and every writer and screen shows: one struct a thing, named as in the JSON.

Times at this edge are microseconds (`_us`), rates FLOP/s and bytes/s, sizes bytes, shares percent (`_pct`). Unknown is
None and is shown as `--`; 0 is a measured zero. Long tables (ops, kernels, roofline rows) are polars frames with the
columns of `TABLES`.
"""

from __future__ import annotations

from typing import Any

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


class RoofSet(msgspec.Struct):
    """What one source says of a device, before sources are merged."""

    peaks: dict[str, float]
    bandwidths: dict[str, float]
    links: dict[str, float]
    note: str | None = None


class DeviceInfo(msgspec.Struct):
    """A device of the profile with its roofs. `id` is the file's own number."""

    id: int
    name: str | None
    model: str | None
    """id of the hardware table's entry; None: unknown device, no roof"""
    kind: str
    units: int | None
    memory_bytes: int | None
    peaks: dict[str, float]
    """dtype: dense FLOP/s"""
    bandwidths: dict[str, float]
    """level (hbm, l2, l1, vmem, cmem, ...): bytes/s"""
    roofs_from: str | None
    """measured, vendor, trace, derived or option"""
    ridge: dict[str, dict[str, float]]
    notes: list[str]
    links: dict[str, float] = {}
    """link (nvlink, xgmi, pcie): bytes/s in one direction"""
    matched_by: str | None = None
    """why this model: exact name, pattern, units and memory, ..."""
    sources: dict[str, str] = {}
    """dtype, level or link: where its figure comes from (vendor, measured, trace, derived or given)"""
    sets: dict[str, RoofSet] = {}
    """every source's own figures (vendor, measured, trace, given), to be shown side by side"""
    partition: str | None = None
    """the device is a part of its model: "MIG 1g.5gb", "CPX partition", "fewer units"; peaks and bandwidths are scaled"""
    launch_s: float | None = None
    """least time of a launch, as it was measured; None: not measured, or other roofs are in use"""


class StepRow(msgspec.Struct):
    name: str
    rank: int | None
    phase: str | None
    complete: bool
    steady: bool
    start_us: float
    dur_us: float
    host_dur_us: float
    compute_us: float | None
    exposed_comm_us: float | None
    exposed_copy_us: float | None
    idle_us: float | None
    comm_us: float | None
    copy_us: float | None
    host_wait_us: float | None
    kernel_gap_us: float | None
    launched_device_us: float | None
    busy_pct: float | None
    compute_busy_pct: float | None
    launches: int | None
    mfu_pct: float | None = None
    hfu_pct: float | None = None
    mbu_pct: float | None = None
    tensor_core_pct: float | None = None
    sm_efficiency_pct: float | None = None
    host_busy_pct: float | None = None


class Roof(msgspec.Struct):
    kind: str
    """compute, memory, link or launch"""
    level: str | None
    dtype: str | None
    value: float
    unit: str
    """FLOP/s, B/s or s"""
    source: str
    """vendor, measured, trace, derived or given"""
    drawn: bool = True
    """some op is held against it; the others are drawn on request"""


class ScopeUse(msgspec.Struct):
    """How well a part of a profile used its devices; times are of all of them together."""

    time_us: float
    busy_us: float
    idle_us: float
    busy_pct: float | None
    mfu_pct: float | None
    hfu_pct: float | None
    at_least: bool
    """MFU and HFU are lower limits: less than 95 % of GEMM and attention time has FLOPs"""
    mbu_pct: float | None
    """of the steps of decode among it"""


class RooflineRow(msgspec.Struct):
    level: str
    """program, phase, category, module, op or kernel"""
    step: str
    name: str
    category: str | None
    calls: int
    time_us: float
    time_per_unit_us: float | None
    flops: float | None
    model_flops: float | None
    bytes: dict[str, float]
    flops_per_s: float | None
    bytes_per_s: dict[str, float]
    intensity: dict[str, float]
    bytes_by_role: dict[str, dict[str, float]] | None
    bound_by: str | None
    limiter: str | None
    pct_of_peak_flops: float | None
    pct_of_peak_bw: float | None
    pct_of_roof: float | None
    time_bound_us: float | None
    headroom_us: float | None
    dtype: str | None
    flops_from: str
    """trace, shapes, hlo or none"""
    bytes_from: str
    flags: list[str]
    shapes: str | None = None
    op: str | None = None
    """for a kernel row: the op whose shapes gave the work"""
    at_stake_us: float | None = None
    """of the headroom, time in which nothing else ran on the device"""
    module_path: str | None = None
    """for a module row: the modules around it, from the outermost"""


class Coverage(msgspec.Struct):
    """Shares of the device's busy time (percent): work with FLOPs, with bytes only, with neither."""

    modelled_pct: float | None
    bytes_only_pct: float | None
    unknown_pct: float | None
    unknown_by: dict[str, float] = {}
    """what the unknown hangs on, most first: shares of busy time by `costed.ORIGINS`"""
    missing: str | None = None
    """what was not recorded that would tell it; None: the profile has what it can have"""


class Roofline(msgspec.Struct):
    coverage: Coverage
    roofs: list[Roof]
    program: list[RooflineRow]
    steps: list[RooflineRow]
    ops: list[RooflineRow]


class RankRow(msgspec.Struct):
    """A rank or host: means a step over its steady steps (us), without steps over the whole file."""

    rank: int | None
    host: str | None
    path: str
    devices: int
    """that worked"""
    steps: int
    """steps that the means speak of; 0: the profile has none"""
    step_us: float | None
    slowest_us: float | None
    compute_us: float | None
    comm_us: float | None
    exposed_comm_us: float | None
    exposed_copy_us: float | None
    idle_us: float | None
    busy_pct: float | None
    launches: float | None
    wait_us: float | None = None
    """in matched collectives: until the last rank of the group arrived"""
    transfer_us: float | None = None
    """the shortest of the matched calls"""
    exposed_wait_us: float | None = None
    exposed_transfer_us: float | None = None
    kept_waiting_us: float | None = None
    """how long the others waited for this rank alone: where it came last, its arrival less the one before"""
    last_pct: float | None = None
    """share of the matched collectives to which it came last"""
    late: bool | None = None
    host_wait_us: float | None = None
    """of the idle time, what the device waited for the host's next launch"""


class RankGroup(msgspec.Struct):
    """A process group of a job: times (us) and bytes are means a step and device, without steps of the whole file."""

    name: str | None
    """as its calls tell it"""
    role: str | None
    """tensor, pipeline, expert, context, data or world, by the name; None: it tells nothing"""
    ranks: list[int]
    """members; empty: the files do not list them"""
    size: int | None
    seen: int
    """ranks of it that the profile holds"""
    calls: float
    least_calls: int
    """calls of the rank that made fewest, in the whole file; unlike `most_calls` where calls are unequal or missing"""
    most_calls: int
    matched_pct: float
    """share of the calls that were matched over the ranks"""
    total_us: float
    wait_us: float | None
    transfer_us: float | None
    message_bytes: float | None
    bus_bw: float | None
    """bytes/s over the transfers of matched calls (nccl-tests' factors)"""


class MemoryPool(msgspec.Struct):
    """An allocator of a rank: one a device and one of the host with PyTorch, one each with XLA."""

    name: str
    rank: int | None
    host: str | None
    device: int | None
    """the file's number"""
    on_device: bool
    allocations: int
    frees: int
    capacity_bytes: int | None
    out_of_memory_us: list[float]
    """times of failed allocations"""
    peak_bytes: int | None = None
    """most in use"""
    peak_us: float | None = None
    peak_op: str | None = None
    """op whose allocation reached it"""
    peak_step: str | None = None
    peak_pct: float | None = None
    """of the capacity: the larger of what is in use and what the allocator reserves"""
    reserved_peak_bytes: int | None = None
    reserved_at_peak_bytes: int | None = None
    """reserved from the driver when most was in use: what lies between the two is cached or fragmented"""
    first_bytes: int | None = None
    """in use before the first event"""
    last_bytes: int | None = None
    held_before_bytes: int | None = None
    """of the peak, what had been allocated before the recording"""


class MemoryHolder(msgspec.Struct):
    """An op's part of a pool's peak."""

    pool: int
    op: str | None
    """None: outside of any op"""
    bytes: int
    blocks: int


class MemoryStep(msgspec.Struct):
    """Use of a pool within a step of its host."""

    step: str
    pool: int
    peak_bytes: int | None
    last_bytes: int | None
    allocations: int
    allocated_bytes: int
    freed_bytes: int


class MemoryOp(msgspec.Struct):
    """What an op did to a pool over the whole recording."""

    pool: int
    op: str | None
    """None: outside of any op"""
    allocations: int
    allocated_bytes: int
    freed_bytes: int
    peak_bytes: int
    """held when most was in use"""


class MemoryCurve(msgspec.Struct):
    """The most that a pool had in use in each of equal parts of the time from its first event to its last."""

    pool: int
    start_us: float
    part_us: float
    used_bytes: list[int]
    reserved_bytes: list[int] | None
    """None: not recorded"""


class MemoryPressure(msgspec.Struct):
    """Calls of one name by which an allocator turns to the driver."""

    name: str
    calls: int
    total_us: float
    calls_per_step: float | None
    """in the steady steps; None: there are none"""
    us_per_step: float | None


class MemoryReport(msgspec.Struct):
    pools: list[MemoryPool]
    holders: list[MemoryHolder]
    """who held most at each pool's peak"""
    steps: list[MemoryStep]
    pressure: list[MemoryPressure]
    ops: list[MemoryOp] = []
    """who allocated most"""
    curves: list[MemoryCurve] = []


class Finding(msgspec.Struct):
    id: str
    severity: str
    title: str
    time_at_stake_us: float | None
    share_of_step_pct: float | None
    evidence: dict[str, Any]
    advice: str
    where: dict[str, str]


class HostBalance(msgspec.Struct):
    """The host's own time against the device's (`findings.host_balance`). Times are means of a step or, without steps, of the window."""

    per: str
    """step or window"""
    host_self_us: float
    """self time of all host slices but synchronising calls"""
    device_busy_us: float
    host_to_device_ratio: float | None
    self_cpu_us: float | None
    """Self CPU time total and Self CUDA time total, of the whole file"""
    self_device_us: float | None
    raw_ratio: float | None
    dispatch_wait_pct: float
    """share of the steps in which the device waits while the host runs Python, operators and launches"""
    reading: str | None
    """overhead-bound, compute-bound or neither; None: the evidence is thin"""


class PluginStep(msgspec.Struct):
    """A step as torch-tb-profiler breaks it down (`analysis.tb_plugin`): the roles add up to the step."""

    name: str
    kernel_us: float
    memcpy_us: float
    memset_us: float
    communication_us: float
    runtime_us: float
    dataloader_us: float
    cpu_exec_us: float
    other_us: float
    total_us: float


class PluginDevice(msgspec.Struct):
    """torch-tb-profiler's summary of a device, from its first step's start to its last one's end."""

    id: int
    utilization_pct: float | None
    est_sm_efficiency_pct: float | None
    est_achieved_occupancy_pct: float | None


class HtaRank(msgspec.Struct):
    """A rank's device time as HolisticTraceAnalysis breaks it down (`analysis.hta`): without its last step."""

    rank: int | None
    kernel_us: float
    """from the first event's start to the last one's end"""
    idle_us: float
    compute_us: float
    non_compute_us: float
    overlap_pct: float | None
    idle_by_cause_us: dict[str, float]
    """host_wait, kernel_wait and other, over streams, of which each idles by itself"""


class OtherTools(msgspec.Struct):
    """A profile's figures under other tools' definitions and names."""

    torch_tb_profiler_steps: list[PluginStep]
    torch_tb_profiler_devices: list[PluginDevice]
    hta: list[HtaRank]


class LaunchPath(msgspec.Struct):
    """How device work was launched (`analysis.launches`)."""

    launches: int
    """calls that launched work"""
    launches_per_step: float | None
    kernels: int
    mean_kernel_us: float | None
    short_kernels: int
    """kernels under 10 us"""
    short_kernels_pct: float | None
    short_time_pct: float | None
    """their share of all kernels' time"""
    delay_mean_us: float | None
    delay_p50_us: float | None
    delay_p99_us: float | None
    delay_max_us: float | None
    clock_faults: int
    """launches whose work starts before the call did; no delay is counted for them"""
    queue_mean: float | None
    queue_max: int | None
    """most launched and not yet started on one stream"""
    found_empty_pct: float | None
    """launches that found nothing else waiting on their stream"""
    graph_launches: int
    graph_pieces: int
    """pieces of device work that graph launches replayed"""
    orphans: int | None
    """work without a call: launched before the window; None: the file holds no calls at all"""
    silent_calls: int
    """kernel launches without work in the file: captured into a graph, or lost"""


class GraphReplay(msgspec.Struct):
    """The replays of one graph: launches of the same work in the same order."""

    launches: int
    pieces: int
    """of one replay"""
    device_us: float
    """mean union of a replay's work"""
    layers: str | None
    """what repeats in it, such as "36 x 15": 36 times the same 15 kernels; None: nothing does"""
    capture: str | None
    """the capture trace that gave its ops; None: none did"""


class ChainLink(msgspec.Struct):
    """One step on the way from the host to a piece of device work."""

    kind: str
    """step, annotation, module, python, op, forward, captured op, call, graph, kernel, copy or memset"""
    name: str
    start_us: float | None
    dur_us: float | None
    slice: int | None = None
    """None: the slice lies in the capture trace"""


class WhatIfState(msgspec.Struct):
    """The least time of a step as it is or would be, on one device, and what it is made of."""

    phase: str | None
    """prefill or decode; None: a step of a profile that is neither"""
    sequences: float | None
    tokens: float | None
    """new tokens of a sequence"""
    context: float | None
    """tokens attended to by a sequence's last token"""
    dtype: str | None
    weights: str | None
    """how weights are stored, if it is not as the dtype is"""
    kv_dtype: str | None
    tp: int
    """devices that every layer is split among"""
    drafts: int
    """tokens that speculation proposes in a step"""
    accept: float | None
    device: str
    bound_us: float
    bound_by: str | None
    arithmetic_us: float
    """sums of what each resource needs, part by part"""
    memory_us: float
    link_us: float
    held_us: float
    """measured time of work without a model, and bounds that do not follow the change"""
    launch_us: float | None
    flops: float
    bytes: float
    bytes_by_role: dict[str, dict[str, float]]
    held_bytes: float | None
    """weights and KV cache in one device's memory; None: no model tells them"""
    fits: bool | None
    """whether they fit in it"""
    intensity: float | None
    tokens_per_step: float | None
    """new tokens of a sequence that a step is expected to give"""
    tokens_per_s: float | None
    """of all sequences, at the bound"""
    itl_us: float | None
    """time between a sequence's tokens, at the bound"""
    ttft_us: float | None
    """time to the first token of prompts that start together, at the bound"""
    estimate_us: float | None = None
    """with each part as near to its bound as it was measured"""


class WhatIfRow(msgspec.Struct):
    """One part of the step: now and as asked for."""

    phase: str | None
    name: str
    category: str
    calls: float
    bound_us: float | None
    bound_by: str | None
    whatif_us: float
    whatif_bound_by: str | None
    flops: float
    weight_bytes: float
    kv_bytes: float
    activation_bytes: float
    state_bytes: float
    """what training moves of weights beside reading them: updates, gradients, the optimizer's state"""
    other_bytes: float
    wire_bytes: float
    time_us: float | None
    """measured"""
    estimate_us: float | None
    held: bool
    """kept as it was"""
    shapes: str | None = None


class WhatIfLimit(msgspec.Struct):
    """A batch at which something changes; None: at none."""

    name: str
    batch: int | None
    text: str


class WhatIf(msgspec.Struct):
    base: WhatIfState
    whatif: WhatIfState
    measured_us: float | None
    """length of the step in the profile"""
    busy_us: float | None
    rows: list[WhatIfRow]
    limits: list[WhatIfLimit]
    kv_token_bytes: float | None
    """KV cache of one token on one device"""
    held: list[str]
    """what is held constant or not counted, in sentences"""


class SweepRow(msgspec.Struct):
    name: str
    value: float
    state: WhatIfState


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
TABLES["collective"] = (
    *_SHARED, "collective", "library", "group", "group_size", "message_bytes", "algo_bw", "bus_bw", "pct_of_link", "exposed_us",
    "hidden_us", "wait_us", "transfer_us", "latency_bound", "note",
)  # fmt: skip
TABLES["op"] = (
    *_SHARED, "self_device_us", "shapes", "is_backward", "memory_bytes", "self_memory_bytes", "device_memory_bytes",
    "self_device_memory_bytes", "stack", "module_path", "flags",
)  # fmt: skip
TABLES["gap"] = (*_SHARED, "start_us", "device", "step", "before", "after", "host_kind", "host_wait_us", "kernel_gap_us", "thread")
TABLES["iteration"] = (
    *_SHARED, "phase", "sequences", "prompt_tokens", "generated_tokens", "context_tokens", "causal_pairs", "tokens_per_s",
    "inter_token_p50_us", "inter_token_p99_us", "mbu_pct", "compute_us", "exposed_comm_us", "exposed_copy_us", "idle_us", "host_wait_us",
    "kernel_gap_us", "launched_device_us", "launches",
)  # fmt: skip
"""An iteration's tokens, breakdown and launches are means over the iterations of the row."""
