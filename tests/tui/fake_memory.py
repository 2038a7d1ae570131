"""Two allocators with a made-up course: the device's fills up over each step, and fails once in the last."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.memory import EVENTS, OPS, POOLS, Memory
from roofterm.results import MemoryPool, MemoryPressure, MemoryReport, MemoryStep
from roofterm_parsers.profile import empty

GIB = 1 << 30
MS = 1_000_000_000
TURNS = 8
PEAK_MS = 5.5


def frame() -> pl.DataFrame:
    """The parser's frame, of which only its being there counts."""
    return empty("memory").clear(1)


def memory() -> Memory:
    """Each ms the device holds 20 GiB, half a ms later 40 (60 in turn 5); the host 1 GiB all along."""
    rows: list[tuple[object, ...]] = []
    for turn in range(TURNS):
        high = 60 if turn == int(PEAK_MS) else 40
        rows += [
            (0, turn * MS, -GIB, turn, 20 * GIB, 64 * GIB, None, None, False),
            (0, turn * MS + MS // 2, GIB, turn, high * GIB, 64 * GIB, None, "aten::mm" if turn % 2 else None, False),
            (1, turn * MS + MS // 4, GIB, turn, GIB, None, None, "aten::empty", False),
        ]
    rows.append((0, 7 * MS + 600_000_000, GIB, 99, None, None, None, "aten::mm", True))
    pools = [(0, "device 0", True, 0, 80 * GIB), (0, "host [bold]", False, None, None)]
    known = {name: kind for name, kind in EVENTS.items() if name in list(EVENTS)[: len(rows[0])]}
    events = pl.DataFrame(rows, schema=known, orient="row").sort("time_ps")
    events = events.with_columns(pl.lit(None, kind).alias(name) for name, kind in EVENTS.items() if name not in known)
    return Memory(pl.DataFrame(pools, schema=POOLS, orient="row"), events)


def report() -> MemoryReport:
    device = MemoryPool(
        name="device 0",
        rank=0,
        host=None,
        device=0,
        on_device=True,
        allocations=8,
        frees=8,
        capacity_bytes=80 * GIB,
        out_of_memory_us=[7600.0],
        peak_bytes=60 * GIB,
        peak_us=5500.0,
        peak_op="aten::mm",
        peak_step="ProfilerStep#5",
        peak_pct=80.0,
        reserved_peak_bytes=64 * GIB,
        reserved_at_peak_bytes=64 * GIB,
        first_bytes=20 * GIB,
        last_bytes=40 * GIB,
        held_before_bytes=18 * GIB,
    )
    host = MemoryPool(
        "host [bold]", 0, None, None, False, 8, 0, None, [], GIB, 250.0, "aten::empty", "ProfilerStep#0", None, None, None, 0, GIB, 0
    )
    steps = [
        MemoryStep(f"ProfilerStep#{n}", pool, (60 if n == 5 else 40) * GIB, 40 * GIB, 2, GIB, GIB) for n in range(TURNS) for pool in (0, 1)
    ]
    return MemoryReport([device, host], [], steps, [MemoryPressure("cudaMalloc", 12, 8400.0, 2.0, 1400.0)])


def ops() -> pl.DataFrame:
    rows = [
        (0, "aten::mm", 1200, 44 * GIB, 2 * GIB, 24 * GIB),
        (0, "aten::[bold]\x1b[31mempty 中文", 300, 12 * GIB, 0, 10 * GIB),
        (0, None, 40, 8 * GIB, 8 * GIB, 8 * GIB),
        (0, "aten::add", 96, 3 * GIB, 3 * GIB, 0),
        (1, "aten::empty", 8, GIB, 0, GIB),
    ]
    return pl.DataFrame(rows, schema=OPS, orient="row")
