"""How fast work could go on a device: the roof of its type and path, of each memory, of each link; and what that says.

Each piece of work is held against the roof that it could use (reference/roofline.md 3.2): products of tensor cores
against the peak of their type, all other arithmetic against the vector peak. A level or type that the device's figures
lack has no bound: nothing is borrowed from another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from roofterm.analysis.categories.kinds import TENSOR_CATEGORIES, Category
from roofterm.analysis.costed import LEVELS
from roofterm.analysis.host_work import CPU
from roofterm.hardware.table import load_table
from roofterm.results import DeviceInfo, Roof

PS = 1e12
"""picoseconds in a second"""

LAUNCH_S = 2e-6
"""Time that one launch takes at least, for programs and steps (torchao's roofline assumes the same); a measured one replaces it."""

AT_ROOF_PCT = 60.0
"""From here on the resource with the highest utilisation is also what limits; below, latency does (ncu's speed-of-light rule)."""

ABOVE_PCT = 100.5
"""Rounding of times may lift a point this far over its roof; what lies higher is flagged."""

RESOURCES = ("compute", *LEVELS)

_LINKS = ("nvlink", "xgmi", "ici")


def compute_peak(device: DeviceInfo, dtype: str | None, tensor_core: bool | None, category: int) -> tuple[str, float] | None:
    """The peak (name of the roof, FLOP/s) for arithmetic of this type on this path; None if the device has none known.

    Elementwise kernels of 16-bit types compute in fp32 registers, so they are held against the fp32 vector peak. On a TPU
    whose plane states a peak everything is held against that of bf16: the FLOPs beside it are normalised to it by the compiler.
    """
    peaks = device.peaks
    if device.kind == "tpu":
        normalised = "trace" in device.sets and bool(device.sets["trace"].peaks)
        name = dtype if dtype in ("fp8", "int8", "int4") and dtype in peaks and not normalised else "bf16"
        return (name, peaks[name]) if name in peaks else None
    if dtype is None or (dtype.startswith(("int", "bool", "complex")) and dtype != "int8"):
        return None
    if Category(category) in TENSOR_CATEGORIES and tensor_core is not False:
        order = _TENSOR_ROOFS.get(dtype, (dtype,)) if tensor_core or dtype not in ("fp32", "fp64") else (dtype,)
    else:
        order = ("fp64",) if dtype == "fp64" else ("fp32",)
    return next(((name, peaks[name]) for name in order if name in peaks), None)


_TENSOR_ROOFS: Mapping[str, tuple[str, ...]] = {
    "fp32": ("fp32_matrix", "tf32", "fp32"),
    "tf32": ("tf32", "fp32"),
    "fp64": ("fp64_tensor", "fp64"),
    "fp16": ("fp16",),
    "bf16": ("bf16",),
}


def level_rates(device: DeviceInfo) -> dict[str, tuple[str, float]]:
    """For each level of `costed.LEVELS` that the device has a figure for: its name at this device and bytes/s."""
    rates = {level: (level, device.bandwidths[level]) for level in LEVELS if level in device.bandwidths}
    link = next((name for name in _LINKS if name in device.links), None)
    if link is not None:
        rates["link"] = (link, device.links[link])
    if "pcie" in device.links:
        rates["pcie"] = ("pcie", device.links["pcie"])
    return rates


def with_bounds(items: pl.DataFrame, device: DeviceInfo | None) -> pl.DataFrame:
    """Items with `roof` (name of the compute roof) and, in seconds, what each resource needs at least.

    Adds `compute_s` and `{level}_s` (null: no figure) and `bound_s`, the longest of them (null: none known).
    """
    if device is None:
        nothing = [pl.lit(None, dtype=pl.Float64).alias(f"{resource}_s") for resource in RESOURCES]
        return items.with_columns(*nothing, roof=pl.lit(None, dtype=pl.String), bound_s=pl.lit(None, dtype=pl.Float64))
    paths = items.select("dtype", "tensor_core", "category").unique()
    peaks = [compute_peak(device, *row) for row in paths.iter_rows()]
    paths = paths.with_columns(
        roof=pl.Series([None if peak is None else peak[0] for peak in peaks], dtype=pl.String),
        peak=pl.Series([None if peak is None else peak[1] for peak in peaks], dtype=pl.Float64),
    )
    items = items.join(paths, on=["dtype", "tensor_core", "category"], how="left", nulls_equal=True, maintain_order="left")
    rates = level_rates(device)
    items = items.with_columns(
        compute_s=pl.col("flops") / pl.col("peak"),
        **{
            f"{level}_s": pl.col(f"{level}_bytes") / rates[level][1] if level in rates else pl.lit(None, dtype=pl.Float64)
            for level in LEVELS
        },
    ).drop("peak")
    return items.with_columns(bound_s=pl.max_horizontal(f"{resource}_s" for resource in RESOURCES))


def roofs_of(device: DeviceInfo | None, launch_s: float | None = None) -> list[Roof]:
    """Every roof of a device that has a figure, each with its source."""
    if device is None:
        return []

    def source(key: str) -> str:
        return device.sources.get(key) or device.roofs_from or "derived"

    roofs = [Roof("compute", None, dtype, peak, "FLOP/s", source(dtype)) for dtype, peak in device.peaks.items()]
    roofs += [Roof("memory", level, None, rate, "B/s", source(level)) for level, rate in device.bandwidths.items()]
    roofs += [Roof("link", link, None, rate, "B/s", source(link)) for link, rate in device.links.items()]
    if device.kind == CPU:
        return roofs
    measured = launch_s is not None
    roofs.append(Roof("launch", None, None, launch_s if launch_s is not None else LAUNCH_S, "s", "measured" if measured else "derived"))
    return roofs


class Caches(NamedTuple):
    """Sizes of a device's caches, bytes; None: unknown."""

    l2: int | None = None
    last: int | None = None
    """the last one before memory: an L2, or a larger cache behind it"""


def caches_of(device: DeviceInfo | None) -> Caches:
    """Cache sizes of a device's model, from the hardware table."""
    entry = load_table().by_id((device.model or "").split(" or ")[0]) if device is not None and device.model else None
    if entry is None:
        return Caches()
    l2 = entry.l2.bytes if entry.l2 is not None else None
    llc = entry.llc.bytes if entry.llc is not None else None
    return Caches(l2, max((size for size in (l2, llc) if size), default=None))
