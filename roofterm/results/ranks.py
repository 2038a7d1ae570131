"""Ranks of a job and their process groups."""

from __future__ import annotations

import msgspec


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
