"""What XProf's overview and input pipeline analysis say of a profile, by their rules."""

from __future__ import annotations

import msgspec


class InputOp(msgspec.Struct):
    """An op of the host that prepares input or sends it to a device."""

    name: str
    category: str
    """Enqueue, Demanded file read, Advanced file read, Preprocessing"""
    calls: int
    total_us: float
    self_us: float
    pct: float
    """of the self time of all of them"""


class InputPipeline(msgspec.Struct):
    """Where XProf's steps spend their time, and whether they wait for input."""

    verdict: str | None
    """high, moderate, potential or none; None: no step is known"""
    statement: str
    steps: int
    step_mean_us: float | None
    step_sd_us: float | None
    """None of fewer than two steps"""
    step_min_us: float | None
    step_max_us: float | None
    input_pct: float | None
    """of the steps' time, waiting for input"""
    output_pct: float | None
    other_pct: float | None
    """of the steps' time, what no event explains; on a TPU it is idle"""
    by_activity_us: dict[str, float]
    """mean of a step"""
    host_input_us: dict[str, float]
    """the host's input time by what it did: enqueue, demanded_file_read, advanced_file_read, preprocessing, unclassified"""
    ops: list[InputOp]


class XlaOverview(msgspec.Struct):
    """Shares in percent; None: it does not apply to the hardware, or the file does not tell."""

    version: str
    """of XProf whose rules these are"""
    hardware: str
    """TPU, GPU or CPU"""
    cores: int
    duty_cycle_pct: float | None
    device_idle_pct: float | None
    host_idle_pct: float | None
    infeed_us: float | None
    """mean of a TensorCore over the whole file, as are outfeed and host transfers"""
    outfeed_us: float | None
    host_transfer_us: float | None
    device_op_pct: float | None
    """of the framework's ops that ran, those on the device"""
    host_op_pct: float | None
    compute_16bit_pct: float | None
    compute_32bit_pct: float | None
    mxu_pct: float | None
    """utilisation of the matrix units, as the host's plane states it"""
    hbm_pct: float | None
    input_pipeline: InputPipeline
