"""Memory as the allocators recorded it: peak and when, who held it, by op and by step, pressure on the driver, marks of failure.

PyTorch records every allocation and free of its caching allocators with `profile_memory=True`; XLA's allocators are in every
XPlane file. What was allocated before the recording is known by its sum only: it is never attributed to an op.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.memory_course import memory_curves
from roofterm.analysis.steps import US
from roofterm.results import MemoryBlock, MemoryHolder, MemoryOp, MemoryPool, MemoryPressure, MemoryReport, MemoryStep
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import HOST_CALL_KINDS, ROOT, Kind, Profile

EVENTS = pl.Schema(
    {
        "pool": pl.UInt16,  # row of the pools
        "time_ps": pl.Int64,
        "bytes": pl.Int64,  # below 0: freed
        "address": pl.Int64,
        "used_bytes": pl.Int64,  # in use after the event; on a TPU the program's stack is in it
        "reserved_bytes": pl.Int64,  # that a caching allocator holds from the driver, in use or not
        "available_bytes": pl.Int64,  # that the allocator has left, where it says so
        "op": pl.String,  # innermost op around the event, or the framework's own word; null: neither
        "out_of_memory": pl.Boolean,
        "stack_bytes": pl.Int64,  # of what is in use, the stack of a TPU's program; what follows XLA's allocators alone say
        "lifetime_peak_bytes": pl.Int64,  # most in use since the allocator began, as it counts itself
        "fragmentation": pl.Float64,
        "requested_bytes": pl.Int64,
        "region": pl.String,
        "dtype": pl.String,
        "shape": pl.String,
    }
)
"""One row an event of an allocator, in order of time."""

POOLS = pl.Schema(
    {"source": pl.UInt16, "name": pl.String, "on_device": pl.Boolean, "device": pl.Int64, "capacity_bytes": pl.Int64}
)  # fmt: skip
"""One row an allocator of a source; `device`: the file's number of its device, `capacity_bytes`: size of the device's memory."""

OPS = pl.Schema(
    {
        "pool": pl.UInt16,
        "op": pl.String,
        "allocations": pl.UInt32,
        "allocated_bytes": pl.Int64,
        "freed_bytes": pl.Int64,
        "peak_bytes": pl.Int64,  # held at the pool's peak
    }
)


BLOCKS = pl.Schema(
    {
        "pool": pl.UInt16,
        "op": pl.String,
        "blocks": pl.UInt32,  # alike in all that is said of them
        "bytes": pl.Int64,  # of one
        "held_bytes": pl.Int64,  # of all
        "requested_bytes": pl.Int64,  # of one
        "dtype": pl.String,
        "shape": pl.String,
        "region": pl.String,
        "time_ps": pl.Int64,  # when the first was allocated
    }
)


CALLS = (
    r"^(cuda|hip)(Malloc|Free|HostAlloc|HostFree|HostMalloc)|^cuMem(Alloc|Free|Create|Map|Unmap|Release)|^hipMem(Create|Map|Unmap|Release)"
)
"""Calls by which an allocator gets memory from the driver and gives it back: each may wait for the device."""

HOLDERS = 20

STACK, BEFORE = "stack", "before the recording"
"""Regions of what no event of the recording allocated"""

HOST_ALLOCATOR = r"(?i)host|cpu"


class Memory(NamedTuple):
    pools: pl.DataFrame
    """schema `POOLS`"""
    events: pl.DataFrame
    """schema `EVENTS`"""


def memory_of(profile: Profile) -> Memory:
    """The allocators of a profile and their events; empty where none were recorded."""
    events = profile.memory.with_row_index("memory").join(profile.allocations, on="memory", how="left", maintain_order="left")
    if events.height == 0:
        return Memory(pl.DataFrame(schema=POOLS), pl.DataFrame(schema=EVENTS))
    by_type = pl.when(pl.col("device_type") == 0).then(pl.lit("host")).otherwise(pl.format("device {}", "device_id"))
    hosted = pl.when(pl.col("allocator").is_not_null()).then(pl.col("allocator").str.contains(HOST_ALLOCATOR))
    number = pl.coalesce(pl.when(pl.col("device_id") >= 0).then("device_id"), pl.col("allocator").str.extract(r"(\d+)").cast(pl.Int32))
    events = events.with_columns(
        source=profile.tracks["source"][events["track"]],
        name=pl.coalesce("allocator", by_type, pl.lit("device")),
        on_device=~pl.coalesce(hosted, pl.col("device_type") == 0, pl.lit(False)),
        device=number.cast(pl.Int64),
    )
    keys = ["source", "name", "on_device", "device"]
    pools = events.select(keys).unique(maintain_order=True).sort("source", pl.col("on_device").not_(), "name").with_row_index("pool")
    pools = pools.with_columns(capacity_bytes=_capacities(profile, pools))
    # XLA counts a program's stack as reserved, and says what its allocator has left; PyTorch's reserve holds what is in use, and
    # is 0 where there is no caching allocator.
    stack = pl.when(pl.col("available_bytes").is_not_null()).then(pl.col("reserved_bytes").fill_null(0)).otherwise(0)
    framework = pl.when(~pl.col("framework_op").is_in(["", "(null)", "dummy"])).then("framework_op")
    events = events.join(pools, on=keys, how="left", nulls_equal=True, maintain_order="left").with_columns(
        used_bytes=pl.col("allocated_bytes") + stack,
        reserved_bytes=pl.when(pl.col("available_bytes").is_null() & (pl.col("reserved_bytes") >= pl.col("allocated_bytes"))).then(
            "reserved_bytes"
        ),
        op=pl.coalesce(framework, pl.lit(_ops_around(profile, events["track"], events["time_ps"]))),
        out_of_memory=pl.col("out_of_memory").fill_null(False),
        stack_bytes=pl.when(pl.col("available_bytes").is_not_null()).then(stack),
        lifetime_peak_bytes="peak_bytes",
        dtype=pl.when(~pl.col("dtype").is_in(["", "INVALID"])).then("dtype"),
        **{column: pl.when(~pl.col(column).is_in(["", "(null)", "unknown"])).then(column) for column in ("region", "shape")},
    )
    events = events.select(pl.col(name).cast(kind) for name, kind in EVENTS.items()).sort("time_ps", maintain_order=True)
    return Memory(pools.select(pl.col(name).cast(kind) for name, kind in POOLS.items()), events)


def memory_report(profile: Profile, windows: pl.DataFrame, memory: Memory) -> MemoryReport | None:
    """Peaks, holders, steps and pressure; None where neither allocations nor calls for memory were recorded.

    `windows` is of schema `steps.WINDOWS`: steps are the host's, since allocators work in the host's time.
    """
    pressure = memory_pressure(profile, windows)
    if memory.events.height == 0 and not pressure:
        return None
    return MemoryReport(
        pools=[_pool(profile, windows, memory, number) for number in range(memory.pools.height)],
        holders=_holders(memory),
        steps=_steps(profile, windows, memory),
        pressure=pressure,
        blocks=_blocks(memory),
        ops=[MemoryOp(**row) for row in _most_of_each(memory_by_op(memory)).iter_rows(named=True)],
        curves=memory_curves(memory),
    )


def memory_by_op(memory: Memory, window_ps: tuple[int, int] | None = None) -> pl.DataFrame:
    """What each op allocated, freed and held at the peak of each pool: frame of schema `OPS`, most allocated first.

    With a window what was allocated and freed in it; the peak stays the pool's own. Of a pool whose events have no addresses (PyTorch
    before 1.11) nobody knows what was held: null.
    """
    size = pl.col("bytes")
    counted = memory.events.filter(~pl.col("out_of_memory"))
    within = counted if window_ps is None else counted.filter(pl.col("time_ps").is_between(*window_ps, closed="left"))
    table = within.group_by("pool", "op", maintain_order=True).agg(
        allocations=(size > 0).sum(), allocated_bytes=size.filter(size > 0).sum(), freed_bytes=-size.filter(size < 0).sum()
    )
    held = [_held(counted.filter(pl.col("pool") == pool)).with_columns(pool=pl.lit(pool, pl.UInt16)) for pool in range(memory.pools.height)]
    held = [one.group_by("pool", "op").agg(peak_bytes=pl.col("bytes").sum()) for one in held]
    if held:
        table = table.join(pl.concat(held), on=["pool", "op"], how="left", nulls_equal=True, maintain_order="left")
    else:
        table = table.with_columns(peak_bytes=0)
    told = counted.filter(pl.col("address").is_not_null())["pool"].unique()
    table = table.with_columns(peak_bytes=pl.when(pl.col("pool").is_in(told.implode())).then(pl.col("peak_bytes").fill_null(0)))
    return table.select(pl.col(name).cast(kind) for name, kind in OPS.items()).sort("allocated_bytes", descending=True, maintain_order=True)


def memory_pressure(profile: Profile, windows: pl.DataFrame) -> list[MemoryPressure]:
    """Calls for memory to the driver, by name, most time first: in all, and in the steady steps."""
    names = profile.names.with_row_index("name").filter(pl.col("text").str.contains(CALLS))
    kinds = [int(kind) for kind in HOST_CALL_KINDS]
    calls = profile.slices.filter(pl.col("name").is_in(names["name"].implode()) & pl.col("kind").is_in(kinds))
    if calls.height == 0:
        return []
    steady = windows.filter(pl.col("steady"))
    source = profile.tracks["source"][calls["track"]]
    calls = calls.select("start_ps", "dur_ps", text=profile.names["text"][calls["name"]]).with_columns(source=source)
    inside = np.zeros(calls.height, np.bool_)
    for window in steady.iter_rows(named=True):
        start = calls["start_ps"].to_numpy()
        inside |= (source.to_numpy() == window["source"]) & (start >= window["host_start_ps"]) & (start < window["host_end_ps"])
    count = steady.height
    table = calls.with_columns(inside=pl.Series(inside)).group_by("text", maintain_order=True)
    sums = table.agg(
        calls=pl.len(), dur=pl.col("dur_ps").sum(), steady=pl.col("inside").sum(), steady_dur=pl.col("dur_ps").filter("inside").sum()
    )
    return [
        MemoryPressure(
            name=row["text"],
            calls=row["calls"],
            total_us=row["dur"] / US,
            calls_per_step=row["steady"] / count if count else None,
            us_per_step=row["steady_dur"] / US / count if count else None,
        )
        for row in sums.sort("dur", descending=True).iter_rows(named=True)
    ]


def _pool(profile: Profile, windows: pl.DataFrame, memory: Memory, number: int) -> MemoryPool:
    facts = memory.pools.row(number, named=True)
    events = memory.events.filter(pl.col("pool") == number)
    failed = events.filter(pl.col("out_of_memory"))
    counted = events.filter(~pl.col("out_of_memory"))
    source = profile.sources[facts["source"]]
    pool = MemoryPool(
        name=facts["name"],
        rank=source.rank,
        host=source.host,
        device=facts["device"],
        on_device=facts["on_device"],
        allocations=counted.filter(pl.col("bytes") > 0).height,
        frees=counted.filter(pl.col("bytes") < 0).height,
        capacity_bytes=facts["capacity_bytes"],
        out_of_memory_us=[time / US for time in failed["time_ps"]],
    )
    peak = _peak_row(counted)
    if peak is None:
        return pool
    at = counted.row(peak, named=True)
    available = at["available_bytes"]
    pool.capacity_bytes = at["used_bytes"] + available if available is not None else pool.capacity_bytes
    pool.peak_bytes, pool.peak_us, pool.peak_op = at["used_bytes"], at["time_ps"] / US, at["op"]
    pool.peak_step = _step_at(profile, windows, facts["source"], at["time_ps"])
    pool.reserved_at_peak_bytes = at["reserved_bytes"]
    pool.reserved_peak_bytes = _whole(counted["reserved_bytes"].max())
    pool.first_bytes = counted["used_bytes"][0] - counted["bytes"][0] if counted["bytes"][0] is not None else None
    pool.last_bytes = counted["used_bytes"][-1]
    if counted["address"].null_count() < counted.height:
        pool.held_before_bytes = at["used_bytes"] - (at["stack_bytes"] or 0) - int(_held(counted)["bytes"].sum())
    pool.stack_bytes, pool.free_at_peak_bytes = at["stack_bytes"], available
    pool.fragmentation_pct = 100 * at["fragmentation"] if at["fragmentation"] is not None else None
    pool.lifetime_peak_bytes = _whole(counted["lifetime_peak_bytes"].max())
    if pool.capacity_bytes:
        pool.peak_pct = 100 * max(pool.peak_bytes, pool.reserved_peak_bytes or 0) / pool.capacity_bytes
    return pool


def _holders(memory: Memory) -> list[MemoryHolder]:
    """The ops that held most at the peak of each pool."""
    holders = []
    for number in range(memory.pools.height):
        held = _held(memory.events.filter((pl.col("pool") == number) & ~pl.col("out_of_memory")))
        table = held.group_by("op", maintain_order=True).agg(pl.col("bytes").sum(), blocks=pl.len())
        table = table.sort("bytes", descending=True, maintain_order=True).head(HOLDERS)
        holders += [
            MemoryHolder(pool=number, op=row["op"], bytes=row["bytes"], blocks=row["blocks"]) for row in table.iter_rows(named=True)
        ]
    return holders


def memory_blocks(memory: Memory, pool: int) -> pl.DataFrame:
    """What is in use at a pool's peak: schema `BLOCKS`, most bytes first, alike blocks as one.

    What was allocated before the recording, and the stack of a TPU's program, are rows of their own, told by their region.
    """
    events = memory.events.filter((pl.col("pool") == pool) & ~pl.col("out_of_memory"))
    alike = _held(events).group_by("op", "bytes", "requested_bytes", "dtype", "shape", "region", maintain_order=True)
    table = alike.agg(pl.len().alias("blocks"), pl.col("time_ps").first()).with_columns(
        held_bytes=pl.col("bytes") * pl.col("blocks"), pool=pl.lit(pool, pl.UInt16)
    )
    table = table.select(pl.col(name).cast(kind) for name, kind in BLOCKS.items())
    peak = _peak_row(events)
    if peak is not None:
        used, stack = events["used_bytes"][peak], events["stack_bytes"][peak] or 0
        rest = {STACK: stack, BEFORE: used - stack - int(table["held_bytes"].sum())}
        rows = [
            {"pool": pool, "blocks": 1, "bytes": size, "held_bytes": size, "region": region} for region, size in rest.items() if size > 0
        ]
        table = pl.concat([table, pl.DataFrame(rows, schema=BLOCKS)])
    order = ["held_bytes", "bytes", "op"]
    return table.sort(order, descending=[True, True, False], nulls_last=True, maintain_order=True)


def _blocks(memory: Memory) -> list[MemoryBlock]:
    """The largest blocks of each pool's peak."""
    tables = [memory_blocks(memory, number).head(HOLDERS) for number in range(memory.pools.height)]
    return [
        MemoryBlock(
            **{name: row[name] for name in ("pool", "op", "blocks", "bytes", "held_bytes", "requested_bytes", "dtype", "shape", "region")},
            allocated_us=None if row["time_ps"] is None else row["time_ps"] / US,
        )
        for table in tables
        for row in table.iter_rows(named=True)
    ]


def _steps(profile: Profile, windows: pl.DataFrame, memory: Memory) -> list[MemoryStep]:
    """Peak and change of use of each pool in each step of its host."""
    rows = []
    pools = [memory.events.filter((pl.col("pool") == number) & ~pl.col("out_of_memory")) for number in range(memory.pools.height)]
    for window in windows.unique("step", keep="first", maintain_order=True).iter_rows(named=True):
        for number, events in enumerate(pools):
            if memory.pools["source"][number] != window["source"]:
                continue
            first, last = np.searchsorted(events["time_ps"].to_numpy(), [window["host_start_ps"], window["host_end_ps"]])
            inside = events.slice(int(first), max(int(last - first), 0))
            size = inside["bytes"]
            rows.append(
                MemoryStep(
                    step=profile.steps["name"][window["step"]],
                    pool=number,
                    peak_bytes=_whole(inside["used_bytes"].max()),
                    last_bytes=inside["used_bytes"][-1] if inside.height else None,
                    allocations=int((size > 0).sum()),
                    allocated_bytes=int(size.filter(size > 0).sum()),
                    freed_bytes=-int(size.filter(size < 0).sum()),
                )
            )
    return rows


def _most_of_each(table: pl.DataFrame) -> pl.DataFrame:
    """The first rows of each pool of a frame of schema `OPS`."""
    return table.filter(pl.int_range(pl.len()).over("pool") < HOLDERS)


def _peak_row(events: pl.DataFrame) -> int | None:
    """Row of the last event after which most is in use: of steps with equal peaks the last, of which the file tells most, as XProf does."""
    used = events["used_bytes"]
    return None if used.null_count() == events.height else events.height - 1 - (used.reverse().arg_max() or 0)


def _held(events: pl.DataFrame) -> pl.DataFrame:
    """The blocks that were allocated in the recording and in use at the peak, columns of `EVENTS`; `events`: of one pool.

    A block lives until an event of the same address frees it. Without addresses none is known.
    """
    peak = _peak_row(events)
    until = events.head(0 if peak is None else peak + 1).filter(pl.col("address").is_not_null())
    return until.unique("address", keep="last", maintain_order=True).filter(pl.col("bytes") > 0)


def _step_at(profile: Profile, windows: pl.DataFrame, source: int, time_ps: int) -> str | None:
    around = windows.filter((pl.col("source") == source) & (pl.col("host_start_ps") <= time_ps) & (time_ps < pl.col("host_end_ps")))
    return None if around.height == 0 else str(profile.steps["name"][around["step"][0]])


def _ops_around(profile: Profile, track: pl.Series, time: pl.Series) -> pl.Series:
    """Name of the innermost op on each event's thread at its time."""
    start = profile.slices["start_ps"].to_numpy()
    end = start + profile.slices["dur_ps"].to_numpy()
    parent, kind = profile.slices["parent"].to_numpy(), profile.slices["kind"].to_numpy()
    found = _latest(profile.slices["track"].to_numpy(), start, track.to_numpy(), time.to_numpy())
    at = time.to_numpy()
    while True:
        inside = found != ROOT
        row = np.where(inside, found, 0)
        climbs = inside & ((end[row] < at) | (kind[row] != Kind.OP)) if row.size and start.size else np.zeros(found.size, np.bool_)
        if not climbs.any():
            break
        found = np.where(climbs, parent[row], found)
    names = profile.names["text"][profile.slices["name"][pl.Series(np.where(found == ROOT, 0, found))]]
    return names.set(pl.Series(found == ROOT), None) if names.len() else names


def _latest(
    tracks: NDArray[np.uint32], starts: NDArray[np.int64], track: NDArray[np.uint32], time: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """The slice that began last on each event's track, at its time or before; ROOT: none did. Slices are sorted by track and start."""
    found = np.full(time.size, ROOT, np.uint32)
    for number in occurring(track):
        first, last = np.searchsorted(tracks, [number, number + 1])
        mine = track == number
        row = np.searchsorted(starts[first:last], time[mine], side="right") - 1
        found[mine] = np.where(row >= 0, row + first, ROOT)
    return found


def _capacities(profile: Profile, pools: pl.DataFrame) -> pl.Series:
    """Memory of each pool's device: by its number, else of the source's only device that worked (ROCm numbers them otherwise)."""
    sizes: list[int | None] = []
    for pool in pools.iter_rows(named=True):
        mine = profile.devices.filter(pl.col("source") == pool["source"])
        named = mine.filter(pl.col("id") == pool["device"]) if pool["device"] is not None else mine.head(0)
        worked = mine.filter(pl.col("worked"))
        chosen = named if named.height == 1 else worked if worked.height == 1 else mine.head(0)
        sizes.append(chosen["memory_bytes"][0] if pool["on_device"] and chosen.height else None)
    return pl.Series(sizes, dtype=pl.Int64)


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int) else None
