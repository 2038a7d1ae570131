"""Four ranks with made-up figures: rank 2 is late, and rank 3 makes two collectives fewer than the others."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.rank_steps import RANK_STEPS
from roofterm.results import RankGroup, RankRow

RANKS = 4
LATE = 2


def rank_rows() -> list[RankRow]:
    return [rank_row(rank) for rank in range(RANKS)]


def rank_row(rank: int) -> RankRow:
    late = rank == LATE
    return RankRow(
        rank=rank,
        host=f"node{rank // 2}",
        path=f"rank{rank}.pt.trace.json.gz",
        devices=1,
        steps=6,
        step_us=1045.0,
        slowest_us=1240.0,
        compute_us=900.0 if late else 800.0,
        comm_us=120.5,
        exposed_comm_us=25.0 if late else 120.0 + rank,
        exposed_copy_us=4.0,
        idle_us=116.0,
        busy_pct=88.9,
        launches=1912.0,
        wait_us=0.0 if late else 98.0,
        transfer_us=22.5,
        exposed_wait_us=0.0 if late else 95.0,
        exposed_transfer_us=22.0,
        kept_waiting_us=97.0 if late else 0.5,
        last_pct=91.0 if late else 3.0,
        late=late,
        host_wait_us=72.0,
    )


def rank_steps(steps: int) -> pl.DataFrame:
    """Rank 2 keeps the others waiting, most of all in step 5."""
    rows = [
        {
            "source": rank,
            "rank": rank,
            "host": f"node{rank // 2}",
            "number": step,
            "name": f"ProfilerStep#{step}",
            "steady": step not in (0, steps - 1),
            "dur_us": 1000.0 + 2 * step,
            "compute_us": 900.0 if rank == LATE else 800.0 + step,
            "exposed_comm_us": 120.0,
            "wait_us": 0.0 if rank == LATE else 98.0,
            "kept_waiting_us": (90.0 + (50.0 if step == 5 else step)) if rank == LATE else 0.5,
            "idle_us": 116.0,
            "host_wait_us": None,
        }
        for rank in range(RANKS)
        for step in range(steps)
    ]
    return pl.DataFrame(rows, schema=RANK_STEPS)


def groups() -> list[RankGroup]:
    """All four share the tensors; of the two data groups one has a rank that makes two calls fewer."""
    tensor = RankGroup("tp [bold]", "tensor", [0, 1, 2, 3], 4, 4, 16.0, 96, 96, 100.0, 120.0, 98.0, 22.0, 3.2e9, 361e9)
    data = RankGroup("dp", "data", [1, 3], 2, 2, 2.2, 12, 14, 85.7, 10.0, None, None, None, None)
    return [tensor, data]
