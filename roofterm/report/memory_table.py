"""What was recorded of memory as tables: allocators, what lives at their peaks, ops, steps, calls to the driver."""

from __future__ import annotations

import msgspec
import polars as pl

from roofterm.analysis.memory import memory_blocks
from roofterm.analysis.study import Study
from roofterm.results import MemoryPool, MemoryReport

OUTSIDE = "(outside of any op)"

_REGIONS = {"stack": "(the program's stack)", "before the recording": "(before the recording)"}
"""What blocks are called that no event of the recording allocated"""

TABLES = ("memory-pool", "memory-block", "memory-op", "memory-step", "memory-pressure")


def pool_frame(report: MemoryReport) -> pl.DataFrame:
    """A row an allocator; `pool` is its row."""
    records = [{**msgspec.structs.asdict(one), "pool": at, "failed": len(one.out_of_memory_us)} for at, one in enumerate(report.pools)]
    return pl.DataFrame(records, schema=_POOLS, strict=False)


def step_frame(report: MemoryReport) -> pl.DataFrame:
    records = [{"name": one.step, **msgspec.structs.asdict(one)} for one in report.steps]
    return pl.DataFrame(records, schema=_STEPS, strict=False)


def pressure_frame(report: MemoryReport) -> pl.DataFrame:
    return pl.DataFrame([msgspec.structs.asdict(one) for one in report.pressure], schema=_PRESSURE, strict=False)


def op_frame(ops: pl.DataFrame) -> pl.DataFrame:
    """`ops` of schema `memory.OPS`."""
    return ops.rename({"op": "name"}).with_columns(pl.col("name").fill_null(OUTSIDE))


def block_frame(study: Study, pool: int) -> pl.DataFrame:
    """Blocks that live at an allocator's peak, alike ones as one, most bytes first."""
    table = memory_blocks(study.memory, pool)
    unnamed = pl.col("region").replace_strict(_REGIONS, default=OUTSIDE, return_dtype=pl.String)
    known = table.with_columns(name=pl.coalesce("op", unnamed), allocated_us=pl.col("time_ps") / 1_000_000)
    whole = known["held_bytes"].sum()
    share = (100 * pl.col("held_bytes") / whole) if whole else pl.lit(None, pl.Float64)
    return known.with_columns(pct=share).select(_BLOCKS)


def memory_frame(study: Study, name: str) -> pl.DataFrame:
    """A table of `TABLES` over all allocators; without rows where nothing of it was recorded."""
    report = study.memory_report() or MemoryReport([], [], [], [])
    pools = pool_frame(report)
    if name == "memory-pool":
        return pools.drop("pool")
    if name == "memory-pressure":
        return pressure_frame(report)
    titles = pools.select(pl.col("pool"), allocator="name", rank="rank")
    frames = {
        "memory-op": lambda: op_frame(study.memory_ops()),
        "memory-step": lambda: step_frame(report),
        "memory-block": lambda: (
            pl.concat([block_frame(study, pool).with_columns(pool=pl.lit(pool)) for pool in range(pools.height)])
            if pools.height
            else pl.DataFrame(schema={**dict.fromkeys(_BLOCKS, pl.String), "pool": pl.Int64})
        ),
    }
    frame = frames[name]().with_columns(pl.col("pool").cast(pl.Int64))
    return frame.join(titles, on="pool", how="left", maintain_order="left").drop("pool")


_BLOCKS = ("name", "held_bytes", "pct", "blocks", "bytes", "requested_bytes", "dtype", "shape", "region", "allocated_us")
_STEPS = pl.Schema(
    {
        "name": pl.String(),
        "pool": pl.Int64(),
        **dict.fromkeys(("peak_bytes", "last_bytes", "allocations", "allocated_bytes", "freed_bytes"), pl.Int64()),
    }
)
_POOLS = pl.Schema(
    {
        **dict.fromkeys(("name", "host", "peak_op", "peak_step"), pl.String()),
        **dict.fromkeys(("rank", "device", "pool", "allocations", "frees", "failed"), pl.Int64()),
        **dict.fromkeys([name for name in MemoryPool.__struct_fields__ if name.endswith("_bytes")], pl.Int64()),
        **dict.fromkeys(("peak_us", "peak_pct", "fragmentation_pct"), pl.Float64()),
    }
)
_PRESSURE = pl.Schema(
    {"name": pl.String(), "calls": pl.Int64(), "total_us": pl.Float64(), "calls_per_step": pl.Float64(), "us_per_step": pl.Float64()}
)
