"""torch-tb-profiler's figures by its own rules (0.4.3): step breakdown by role, GPU metrics and kernel table.

They stand beside roofterm's own under its name. What differs: a step's time goes to the first role that covers it, host
roles included; collectives are the kernels of five nccl and gloo calls alone; tensor cores are recognised by parts of names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.intervals import NONE, Intervals, both, clip, union, without
from roofterm.analysis.step_use import edges_of, level
from roofterm_parsers.profile import HOST_CALL_KINDS, Kind, Profile

ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu_exec")
"""In order of priority; what none covers is `other`."""

STEP_ROLES = pl.Schema({"step": pl.UInt32, **{f"{role}_ps": pl.Int64 for role in (*ROLES, "other", "total")}})

GPU_METRICS = pl.Schema(
    {
        "device": pl.UInt16,  # row of Profile.devices
        "utilization": pl.Float64,
        "est_sm_efficiency": pl.Float64,
        "est_achieved_occupancy_pct": pl.Float64,
    }
)
"""Shares of 1 but for the occupancy; null where no kernel states what is needed."""

TENSOR_CORE_NAMES = (
    "h884", "s884", "h1688", "s1688", "hmma", "i8816", "16816", "dgrad_1x1_stride_2x2", "first_layer_wgrad_kernel", "conv1x1",
    "conv2d_c1_k1", "direct_group", "xmma_implicit_gemm", "xmma_sparse_conv", "xmma_warp_specialized_implicit_gemm", "xmma_gemm",
    "xmma_sparse_gemm", "c1688",
)  # fmt: skip
"""A kernel is taken to run on tensor cores if its name holds one of these."""

_COLLECTIVES = tuple(
    f"{library}:{call}" for library in ("nccl", "gloo") for call in ("broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter")
)
_DATALOADER = r"^enumerate\(DataLoader\)#.*\.__next__$|^enumerate\(DataPipe\)#"
_OPERATORS = ("operator", "cpu_op", "python")


def step_roles(profile: Profile, work: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Time of each step by role: frame of schema `STEP_ROLES`, one row a complete step of `windows` (schema `steps.WINDOWS`).

    The windows are the plugin's; it drops incomplete steps at the end. Roles take what the roles before them leave, so that
    they add up to the step. All devices and threads of the profile count together.
    """
    kept = windows.filter(pl.col("complete"))
    if kept.height == 0:
        return pl.DataFrame(schema=STEP_ROLES)
    left = union(kept["start_ps"].to_numpy(), kept["end_ps"].to_numpy())
    taken: dict[str, Intervals] = {}
    for role, intervals in zip(ROLES, _roles(profile, work), strict=True):
        taken[role] = both(left, intervals)
        left = without(left, taken[role])
    taken["other"] = left
    rows = []
    for step, start, end in kept.select("step", "start_ps", "end_ps").iter_rows():
        shares = {f"{role}_ps": clip(intervals, start, end).length for role, intervals in taken.items()}
        rows.append({"step": step, **shares, "total_ps": end - start})
    return pl.DataFrame(rows, schema=STEP_ROLES)


def gpu_metrics(profile: Profile, work: pl.DataFrame, start_ps: int, end_ps: int) -> pl.DataFrame:
    """Its "GPU Summary" over [start, end), from the first step's start to the last one's end: frame of schema `GPU_METRICS`.

    Utilisation: union of kernels over the range. SM efficiency: mean of min(sum of the running kernels' blocks per SM, 1).
    Occupancy: mean of the kernels' estimates as the file states them, weighted by their lengths inside the range.
    """
    kernels = work.filter(pl.col("kind") == Kind.KERNEL)
    kernels = kernels.join(profile.kernels.select("slice", "occupancy_pct", "blocks_per_unit"), on="slice", how="left")
    rows = []
    for key, group in kernels.group_by("device", maintain_order=True):
        start, end = group["start_ps"].to_numpy(), group["end_ps"].to_numpy()
        blocks, occupancy = (group[name].cast(pl.Float64).to_numpy() for name in ("blocks_per_unit", "occupancy_pct"))
        inside = np.maximum(np.minimum(end, end_ps) - np.maximum(start, start_ps), 0)
        weight = inside[~np.isnan(occupancy)]
        filled = ~np.isnan(blocks) & (blocks > 0)
        whole = end_ps - start_ps
        running = level(edges_of(start[filled], end[filled]), blocks[filled], most=1.0)
        efficiency = float(running.between(np.array([start_ps]), np.array([end_ps]))[0])
        rows.append(
            {
                "device": key[0],
                "utilization": clip(union(start, end), start_ps, end_ps).length / whole if whole > 0 else None,
                "est_sm_efficiency": efficiency / whole if whole > 0 and filled.any() else None,
                "est_achieved_occupancy_pct": _mean(occupancy[~np.isnan(occupancy)], weight),
            }
        )
    return pl.DataFrame(rows, schema=GPU_METRICS).sort("device")


def kernel_table(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    """Its kernel view: name, tc_used, count, sum_us, mean_us, max_us, min_us, blocks_per_sm and occupancy_pct, most time first.

    Blocks and occupancy are means weighted by length, a kernel that states none counting as 0.
    """
    kernels = work.filter(pl.col("kind") == Kind.KERNEL)
    kernels = kernels.join(
        profile.kernels.select("slice", "occupancy_pct", "blocks_per_unit"), on="slice", how="left", maintain_order="left"
    )
    kernels = kernels.with_columns(
        name=profile.names["text"][profile.slices["name"][kernels["slice"]]], length=pl.col("end_ps") - pl.col("start_ps")
    )
    length = pl.col("length")
    weight = pl.when(length.sum() > 0).then(length.sum())
    table = kernels.group_by("name", maintain_order=True).agg(
        count=pl.len(),
        sum_us=length.sum() / 1e6,
        mean_us=length.mean() / 1e6,
        max_us=length.max() / 1e6,
        min_us=length.min() / 1e6,
        blocks_per_sm=((pl.col("blocks_per_unit").fill_null(0).cast(pl.Float64) * length).sum() / weight).fill_null(0),
        occupancy_pct=((pl.col("occupancy_pct").fill_null(0).cast(pl.Float64) * length).sum() / weight).fill_null(0),
    )
    named = "|".join(map(re.escape, TENSOR_CORE_NAMES))
    return table.with_columns(tc_used=pl.col("name").str.contains(named)).sort(["sum_us", "name"], descending=[True, False])


def _roles(profile: Profile, work: pl.DataFrame) -> list[Intervals]:
    """The union of each role, in the order of `ROLES`."""
    names = profile.names
    slices = profile.slices
    operators = names["cat"].str.to_lowercase().is_in(_OPERATORS)
    collective = names["text"].is_in(_COLLECTIVES)
    loader = names["text"].str.contains(_DATALOADER) & operators
    step = names["text"].str.contains(r"^ProfilerStep#")

    def of_names(chosen: pl.Series) -> Intervals:
        rows = slices.filter(pl.col("name").is_in(chosen.arg_true().implode()))
        return _union(rows["start_ps"], rows["dur_ps"])

    called = names["text"].is_in(_COLLECTIVES)[slices["name"][work["op"]]].fill_null(False)
    kernels = work.filter((pl.col("kind") == Kind.KERNEL) & ~called)
    exchanged = work.filter((pl.col("kind") == Kind.KERNEL) & called)
    calls = slices.filter(pl.col("kind").is_in([int(kind) for kind in HOST_CALL_KINDS]))
    return [
        _of_work([kernels]),
        _of_work([work.filter(pl.col("kind") == Kind.COPY)]),
        _of_work([work.filter(pl.col("kind") == Kind.MEMSET)]),
        _joined([of_names(collective), _of_work([exchanged])]),
        _union(calls["start_ps"], calls["dur_ps"]),
        of_names(loader),
        of_names(operators & ~loader & ~collective & ~step),
    ]


def _of_work(frames: Sequence[pl.DataFrame]) -> Intervals:
    return _joined([union(frame["start_ps"].to_numpy(), frame["end_ps"].to_numpy()) for frame in frames])


def _union(start: pl.Series, dur: pl.Series) -> Intervals:
    return union(start.to_numpy(), (start + dur).to_numpy())


def _joined(sets: Sequence[Intervals]) -> Intervals:
    full = [one for one in sets if one.start.size]
    return union(np.concatenate([one.start for one in full]), np.concatenate([one.end for one in full])) if full else NONE


def _mean(values: NDArray[np.float64], weight: NDArray[np.int64]) -> float | None:
    return float((values * weight).sum() / weight.sum()) if weight.sum() > 0 else None
