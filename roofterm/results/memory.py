"""Allocators, what they held and for whom."""

from __future__ import annotations

import msgspec


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
    stack_bytes: int | None = None
    """of the peak, the stack of a TPU's program; this and what follows XLA's allocators alone say"""
    free_at_peak_bytes: int | None = None
    """what the allocator had left"""
    fragmentation_pct: float | None = None
    """at the peak, as the allocator states it"""
    lifetime_peak_bytes: int | None = None
    """most in use since the allocator began, which may be before the recording"""


class MemoryBlock(msgspec.Struct):
    """Blocks, alike in all that is said of them, that live at a pool's peak."""

    pool: int
    op: str | None
    """None: outside of any op"""
    blocks: int
    bytes: int
    """of one"""
    held_bytes: int
    """of all of them"""
    requested_bytes: int | None
    """of one, before the allocator rounded it up"""
    dtype: str | None
    shape: str | None
    region: str | None
    """what XLA uses it for: output, temp, dynamic; stack; before the recording"""
    allocated_us: float | None
    """when the first was allocated; None: not in the recording"""


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
    peak_bytes: int | None
    """held when most was in use; None: the recording does not tell blocks apart"""


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
    blocks: list[MemoryBlock] = []
    """the largest that live at each pool's peak"""
