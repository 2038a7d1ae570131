"""Steps, what other tools say of them, and how their work was launched."""

from __future__ import annotations

import msgspec


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


class PhaseTime(msgspec.Struct):
    """A phase's part of a step, or of a mean step (`analysis.phase_table`)."""

    phase: str
    """forward, backward, optimizer, prefill ...; other: nothing tells it"""
    device_us: float
    """union of its work within the step, mean over devices"""
    exposed_us: float
    """of that, time in which no other phase's work ran"""
    pieces: float
    """pieces of work that it launched"""
    host_us: float
    """self time of its ops and calls, over all threads"""


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
    input_wait_us: float = 0.0
    """idle time of the device while the host loads or prepares input"""
    input_wait_pct: float = 0.0
    """its share of the steps"""
    blocked_us: float = 0.0
    """time of the host in calls that wait for the device: synchronising ones, and copies that return only when they are done"""
    blocked_busy_us: float = 0.0
    """of that, time in which the device worked"""


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
