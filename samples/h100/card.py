"""The card that is played: what a trace says of it, and the roofs that kernels are held against."""

from __future__ import annotations

from typing import Any

NAME = "NVIDIA H100 80GB HBM3"
PEAK_BF16 = 989.4e12
"""dense FLOP/s of the tensor cores, data sheet"""
BANDWIDTH = 3.35232e12
"""bytes/s: 5,120 bits of HBM3 at 5.238 Gbit/s"""
UNITS = 132
THREADS_PER_UNIT = 2048
REGISTERS_PER_UNIT = 65536
SHARED_PER_UNIT = 233472
BLOCKS_PER_UNIT = 32


def properties(count: int) -> list[dict[str, Any]]:
    """`deviceProperties` of a host with `count` such cards."""
    return [
        {
            "id": number,
            "name": NAME,
            "totalGlobalMem": 85017624576,
            "computeMajor": 9,
            "computeMinor": 0,
            "maxThreadsPerBlock": 1024,
            "maxThreadsPerMultiprocessor": THREADS_PER_UNIT,
            "regsPerBlock": 65536,
            "warpSize": 32,
            "sharedMemPerBlock": 49152,
            "numSms": UNITS,
            "regsPerMultiprocessor": REGISTERS_PER_UNIT,
            "sharedMemPerBlockOptin": 232448,
            "sharedMemPerMultiprocessor": SHARED_PER_UNIT,
        }
        for number in range(count)
    ]


def occupancy(grid: tuple[int, int, int], block: tuple[int, int, int], registers: int, shared_bytes: int) -> tuple[float, float, int]:
    """(blocks per unit, warps per unit, estimated achieved occupancy in percent) as Kineto computes them."""
    threads = block[0] * block[1] * block[2]
    blocks = grid[0] * grid[1] * grid[2] / UNITS
    fit = min(
        BLOCKS_PER_UNIT, THREADS_PER_UNIT // threads, REGISTERS_PER_UNIT // (registers * threads), SHARED_PER_UNIT // (shared_bytes + 1024)
    )
    return blocks, blocks * threads / 32, int(min(blocks, fit) * threads * 100 / THREADS_PER_UNIT)
