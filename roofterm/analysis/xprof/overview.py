"""XProf's overview figures: duty cycle, idle time, where ops ran (op_stats_to_overview_page.cc)."""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.intervals import union
from roofterm.analysis.xprof.framework_op_stats import framework_ops
from roofterm.analysis.xprof.host_ops import HostOps, host_ops
from roofterm.analysis.xprof.op_metrics import OpMetrics, op_metrics
from roofterm.analysis.xprof.peaks import peaks, version_numbers
from roofterm.analysis.xprof.record import divide
from roofterm.analysis.xprof.step_breakdown import Activity, precision_times
from roofterm_parsers.profile import ROOT, Kind, Profile, TrackKind

OFF_DUTY = (
    "infeed", "outfeed", "host send", "host send-done", "host recv", "host recv-done", "async-done", "megacore fusion",
)  # fmt: skip
"""Categories of ops during which a TensorCore waits rather than works."""


def xprof_overview(profile: Profile, version: str, host: HostOps | None = None, metrics: OpMetrics | None = None) -> dict[str, float]:
    """Percentages by XProf's names, as far as they apply to the hardware.

    device_tf_op_percent, host_tf_op_percent: of the framework ops that ran. Of TPUs also device_duty_cycle_percent (from the
    first program to the last op), device_idle_time_percent (by the device's own clock), host_idle_time_percent; of GPUs
    device_compute_16bit_percent and device_compute_32bit_percent, by what steps' kernels and their inputs are called. `host` and
    `metrics` give what is known already.
    """
    numbers = version_numbers(version)
    hardware = peaks(profile, numbers).hardware
    metrics = op_metrics(profile, hardware, numbers) if metrics is None else metrics
    host = host_ops(profile) if host is None else host
    on_device = sum(op.occurrences for op in framework_ops(metrics)) if hardware != "CPU" else 0
    on_host = int(host.ops["occurrences"].sum())
    shares = {
        "device_tf_op_percent": 100 * divide(on_device, on_device + on_host),
        "host_tf_op_percent": 100 * divide(on_host, on_device + on_host),
    }
    if hardware == "TPU":
        shares["device_duty_cycle_percent"] = duty_cycle_pct(profile)
        shares["device_idle_time_percent"] = 100 * (1 - divide(metrics.op_ps, metrics.total_ps))
        shares["host_idle_time_percent"] = 100 * (1 - divide(host.op_ps, host.idle_ps + host.op_ps))
    if hardware == "GPU":
        bits = precision_times(profile)
        computed = sum(bits.values())
        shares["device_compute_16bit_percent"] = 100 * divide(bits[Activity.DEVICE_COMPUTE_16], computed)
        shares["device_compute_32bit_percent"] = 100 * divide(bits[Activity.DEVICE_COMPUTE_32], computed)
    return shares


def duty_cycle_pct(profile: Profile) -> float:
    """Share of the TensorCores' time, from the first program's start to the last op's end, in which the innermost op works."""
    device = pl.col("device").is_in(profile.devices.with_row_index("row").filter(pl.col("kind") == "tpu")["row"].to_list())
    tracks = profile.tracks.with_row_index("track").filter(
        device & pl.col("kind").is_in([int(TrackKind.DEVICE), int(TrackKind.DEVICE_OTHER)])
    )
    slices = profile.slices.with_row_index("slice").filter(pl.col("kind").is_in([int(Kind.KERNEL), int(Kind.MODULE)]))
    ops = profile.hlo_ops.with_row_index("op").select("op", "category")
    known = profile.hlo.join(ops, on="op", how="left").select("slice", "category")
    slices = slices.join(tracks.select("track", "device"), on="track").join(known, on="slice", how="left").sort("slice")
    off_duty = pl.col("category").is_in(OFF_DUTY).fill_null(False)
    slices = slices.select("device", "slice", "parent", "start_ps", "dur_ps", op=pl.col("kind") == int(Kind.KERNEL), off=off_duty)
    busy = whole = 0
    for _, own in slices.group_by(["device"], maintain_order=True):
        start, length = own["start_ps"].to_numpy().astype(np.int64), own["dur_ps"].to_numpy().astype(np.int64)
        whole += int((start + length).max() - start.min())
        ops_alone = own.filter("op")
        busy += _busy(ops_alone)
    return 100 * divide(busy, whole)


def _busy(ops: pl.DataFrame) -> int:
    """Time in which ops work, less that of what waits inside them. `ops` of one device, with `slice`, `parent`, `off`."""
    start, length = ops["start_ps"].to_numpy().astype(np.int64), ops["dur_ps"].to_numpy().astype(np.int64)
    off = ops["off"].to_numpy()
    working = union(start[~off], (start + length)[~off]).length
    rows = ops["slice"].to_numpy().astype(np.int64)
    parent = ops["parent"].to_numpy().astype(np.int64)
    above = np.searchsorted(rows, parent)
    above = np.where((parent != ROOT) & (rows[np.minimum(above, rows.size - 1)] == parent), above, -1)
    if not off.any():
        return working
    inside = np.zeros(rows.size, bool)  # whether an op that works is around it
    around = above.copy()
    while (nested := np.flatnonzero(around >= 0)).size:
        inside[nested] |= ~off[around[nested]]
        around[nested] = above[around[nested]]
    children = np.zeros(rows.size, np.int64)
    in_waits = np.flatnonzero((above >= 0) & off[above])
    np.add.at(children, above[in_waits], length[in_waits])
    waits = off & inside
    return working - int(np.maximum(length[waits] - children[waits], 0).sum())
