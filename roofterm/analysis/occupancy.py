"""How well launches fill a device: blocks that fit on one unit, occupancy, waves and the tail of the last wave.

What fits is NVIDIA's rule (cuda_occupancy.h of the CUDA toolkit): the least of what threads, blocks, registers and shared
memory allow. Kineto's estimate (libkineto, DeviceProperties.cpp) follows it up to 48 KiB of shared memory a block and says
0 % of any kernel that takes more; there, and where a file states none (ROCm, XLA), the figures are worked out here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from roofterm_parsers.profile import Profile

LIMITS = ("threads", "blocks", "registers", "shared memory")

OCCUPANCY = pl.Schema(
    {
        "slice": pl.UInt32(),
        "blocks_per_unit": pl.Float64(),  # of the whole grid, over the device's units
        "resident_blocks": pl.UInt32(),  # that fit on one unit at once
        "limited_by": pl.Enum(LIMITS),  # what keeps a further block out
        "waves": pl.Float64(),  # grid over the blocks that the device holds at once
        "tail_pct": pl.Float64(),  # share of the block slots of its waves that stay empty
        "occupancy_pct": pl.Float64(),  # as the file states it, else estimated
        "estimated": pl.Boolean(),
    }
)
"""One row a kernel, in order of slice id. Without registers (ROCm) what fits is an upper limit, and so is the occupancy."""

DEFAULT_SHARED_BYTES = 48 * 1024
"""Shared memory of a block without opting in to more: Kineto's estimate stops here."""


class Unit(NamedTuple):
    """What one multiprocessor or compute unit holds."""

    threads: int
    blocks: int
    registers: int
    shared_bytes: int
    warp: int = 32
    register_granule: int = 256
    """registers are given to a warp in steps of this many"""
    partitions: int = 4
    """each holds its own registers"""
    shared_granule: int = 256
    reserved_shared_bytes: int = 0
    """that the system takes of each block"""


KIB = 1024
_FROM_8 = {"shared_granule": 128, "reserved_shared_bytes": KIB}
# CUDA C++ Programming Guide, technical specifications per compute capability.
NVIDIA_UNITS: dict[str, Unit] = {
    "6.0": Unit(2048, 32, 65536, 64 * KIB, partitions=2),
    "6.1": Unit(2048, 32, 65536, 96 * KIB),
    "7.0": Unit(2048, 32, 65536, 96 * KIB),
    "7.5": Unit(1024, 16, 65536, 64 * KIB),
    "8.0": Unit(2048, 32, 65536, 164 * KIB, **_FROM_8),
    "8.6": Unit(1536, 16, 65536, 100 * KIB, **_FROM_8),
    "8.7": Unit(1536, 16, 65536, 164 * KIB, **_FROM_8),
    "8.9": Unit(1536, 24, 65536, 100 * KIB, **_FROM_8),
    "9.0": Unit(2048, 32, 65536, 228 * KIB, **_FROM_8),
    "10.0": Unit(2048, 32, 65536, 228 * KIB, **_FROM_8),
    "10.3": Unit(2048, 32, 65536, 228 * KIB, **_FROM_8),
    "12.0": Unit(1536, 24, 65536, 100 * KIB, **_FROM_8),
    "12.1": Unit(1536, 24, 65536, 100 * KIB, **_FROM_8),
}
# CDNA instruction set guides: eight wavefronts of 64 on each of four SIMDs (ten on gfx908), 64 KiB of local memory.
_CDNA = Unit(2048, 32, 4 * 512 * 64, 64 * KIB, warp=64, register_granule=512)
AMD_UNITS: dict[str, Unit] = {"9.0": _CDNA, "9.4": _CDNA, "9.5": _CDNA._replace(shared_bytes=160 * KIB)}


def occupancies(profile: Profile) -> pl.DataFrame:
    """Blocks that fit, waves, tail and occupancy of every kernel: frame of schema `OCCUPANCY`; unknown where the file does not tell."""
    kernels = profile.kernels
    if kernels.height == 0:
        return pl.DataFrame(schema=OCCUPANCY)
    launches = _launches(profile)
    frame = launches.with_columns(_resident(launches)).with_columns(resident_blocks=pl.min_horizontal(f"by_{name}" for name in LIMITS))
    fits = pl.col("resident_blocks") > 0
    grid = pl.col("blocks").cast(pl.Float64)
    waves = pl.when(fits).then(grid / (pl.col("units") * pl.col("resident_blocks")))
    frame = frame.with_columns(
        blocks_per_unit=pl.coalesce(pl.col("stated_blocks").cast(pl.Float64), grid / pl.col("units")),
        limited_by=pl.when(fits).then(
            pl.coalesce(pl.when(pl.col(f"by_{name}") == pl.col("resident_blocks")).then(pl.lit(name)) for name in LIMITS)
        ),
        waves=waves,
        tail_pct=100 * (1 - waves / waves.ceil()),
        estimate=pl.when(fits & pl.col("units").is_not_null() & grid.is_not_null()).then(
            100 * pl.min_horizontal(grid / pl.col("units"), "resident_blocks") * pl.col("block_threads") / pl.col("unit_threads")
        ),
    )
    refused = (pl.col("stated") == 0) & (pl.col("shared_bytes") > DEFAULT_SHARED_BYTES)
    stated = pl.when(~refused).then(pl.col("stated").cast(pl.Float64))
    return frame.with_columns(
        resident_blocks=pl.when(fits).then("resident_blocks"),
        occupancy_pct=pl.coalesce(stated, "estimate"),
        estimated=stated.is_null() & pl.col("estimate").is_not_null(),
    ).select(pl.col(name).cast(kind) for name, kind in OCCUPANCY.items())


def kineto_occupancy(profile: Profile) -> pl.Series:
    """Kineto's "est. achieved occupancy %" of every kernel, worked out by its own formula: whole percent, null where unknown.

    min(blocks that fit, blocks per SM) x block size / threads of an SM, in single precision as Kineto has it; a block of more
    than 48 KiB of shared memory does not fit (libkineto, DeviceProperties.cpp, computeOccupancyMetrics).
    """
    launches = _launches(profile)
    limits = launches.select(_resident(launches))
    fits = limits.select(pl.min_horizontal(f"by_{name}" for name in LIMITS)).to_series()
    frame = launches.with_columns(fits=pl.when(pl.col("shared_bytes") > DEFAULT_SHARED_BYTES).then(0).otherwise(fits))
    known = frame.select(pl.all_horizontal(pl.col("fits", "blocks", "units", "unit_threads").is_not_null())).to_series()
    values = {name: frame[name].fill_null(1).to_numpy().astype(np.float32) for name in ("fits", "blocks", "units", "block_threads")}
    threads = frame["unit_threads"].fill_null(1).to_numpy().astype(np.float32)
    share = np.minimum(values["fits"], values["blocks"] / values["units"]) * values["block_threads"] / threads
    percent = np.floor(share.astype(np.float64) * 100 + 0.5)
    return pl.select(pl.when(known).then(pl.Series(percent))).to_series().cast(pl.Int64).alias("occupancy_pct")


def unit_of(device: dict[str, Any]) -> Unit | None:
    """What one unit of a device holds, by the file's own figures, else by its compute capability. `device`: a row of `DEVICES`."""
    amd = device["warp_size"] == AMD_UNITS["9.0"].warp
    known = (AMD_UNITS if amd else NVIDIA_UNITS).get(device["capability"] or "")
    if known is None:
        return None
    stated = {
        "threads": device["threads_per_unit"],
        "registers": None if amd else device["registers_per_unit"],
        "shared_bytes": device["shared_bytes_per_unit"],
    }
    return known._replace(**{name: int(value) for name, value in stated.items() if value})


def _launches(profile: Profile) -> pl.DataFrame:
    """One row a kernel: its launch, and the unit of the device that it ran on."""
    devices = profile.devices.to_dicts()
    units = [unit_of(device) for device in devices]
    names = ("threads", "blocks", "registers", "shared_bytes", *Unit._fields[4:])
    table = pl.DataFrame(
        {f"unit_{name}": pl.Series([getattr(unit, name) if unit else None for unit in units], dtype=pl.Int64) for name in names}
        | {"units": pl.Series([device["units"] for device in devices], dtype=pl.Int64)}
    )
    kernels = profile.kernels
    shape = kernels.select(
        "slice",
        blocks=_volume("grid"),
        block_threads=_volume("block"),
        registers=pl.col("registers").cast(pl.Int64),
        shared_bytes=pl.col("shared_bytes").cast(pl.Int64),
        stated="occupancy_pct",
        stated_blocks="blocks_per_unit",
    )
    return pl.concat([shape, table[kernels["device"]]], how="horizontal")


def _volume(prefix: str) -> pl.Expr:
    x, y, z = (pl.col(f"{prefix}_{axis}").cast(pl.Int64) for axis in "xyz")
    return x * y * z


def _resident(launches: pl.DataFrame) -> list[pl.Expr]:
    """Blocks that each resource lets onto one unit; a resource of unknown use sets no limit."""
    warps = -(-pl.col("block_threads") // pl.col("unit_warp"))
    registers = _rounded(pl.col("registers") * pl.col("unit_warp"), pl.col("unit_register_granule"))
    warps_by_registers = pl.col("unit_registers") // pl.col("unit_partitions") // registers * pl.col("unit_partitions")
    shared = _rounded(pl.col("shared_bytes") + pl.col("unit_reserved_shared_bytes"), pl.col("unit_shared_granule"))
    runs = pl.col("block_threads") > 0
    return [
        pl.when(runs).then(pl.col("unit_threads") // pl.col("unit_warp") // warps).alias("by_threads"),
        pl.when(runs).then("unit_blocks").alias("by_blocks"),
        pl.when(runs & (pl.col("registers") > 0)).then(warps_by_registers // warps).alias("by_registers"),
        pl.when(runs & (shared > 0)).then(pl.col("unit_shared_bytes") // shared).alias("by_shared memory"),
    ]


def _rounded(size: pl.Expr, granule: pl.Expr) -> pl.Expr:
    return -(-size // granule) * granule
