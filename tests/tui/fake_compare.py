"""A made-up comparison: a GEMM slower by half, an all-reduce gone, a kernel with a nasty name new."""

from __future__ import annotations

from typing import Any, cast

import polars as pl

from roofterm.analysis.compare import CHANGES, Comparison
from roofterm.tui.baseline import Baseline

GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT"
NASTY = "kernel [bold]with markup[/bold] and \x1b[31mescape\x1b[0m \u202eand bidi 中文宽字"

COLUMNS = (
    "level", "name", "base", "new", "change", "change_pct", "spread", "unit", "base_calls", "new_calls", "base_mean_us", "new_mean_us",
    "status",
)  # fmt: skip
ROWS = (
    ("step", "step_us", 1000.0, 1200.0, 200.0, 20.0, 12.0, "us", None, None, None, None, "changed"),
    ("step", "busy_pct", 84.0, 84.4, 0.4, 0.48, 2.0, "pct", None, None, None, None, "within spread"),
    ("step", "launches", 1912.0, 1912.0, 0.0, 0.0, 0.0, "count", None, None, None, None, "same"),
    ("step", "mfu_pct", None, None, None, None, None, "pct", None, None, None, None, "unknown"),
    ("category", "gemm", 400.0, 600.0, 200.0, 50.0, 12.0, "us", 12.0, 12.0, 33.3, 50.0, "changed"),
    ("kernel", GEMM, 384.0, 576.0, 192.0, 50.0, 12.0, "us", 16.0, 16.0, 24.0, 36.0, "changed"),
    ("kernel", "ncclDevKernel_ReduceScatter", 90.0, None, -90.0, -100.0, 5.0, "us", 2.0, None, 45.0, None, "removed"),
    ("kernel", NASTY, None, 3.0, 3.0, None, 0.1, "us", None, 2.0, None, 1.5, "added"),
    ("kernel", "Memset (Device)", 7.2, 7.2, 0.0, 0.0, 0.1, "us", 8.0, 8.0, 0.9, 0.9, "same"),
    ("host op", "aten::mm", 30.0, 33.0, 3.0, 10.0, 1.0, "us", 16.0, 16.0, 1.9, 2.1, "changed"),
)


def comparison() -> Comparison:
    records = [{**dict.fromkeys(CHANGES), **dict(zip(COLUMNS, row, strict=True)), "new_name": row[1]} for row in ROWS]
    changes = pl.DataFrame(records, schema=CHANGES)
    facts = {row[1]: (row[2], row[3]) for row in ROWS if row[0] == "step"}
    return Comparison(changes, facts, True, "6 steady steps", "7 steady steps", None, None, "h100-sxm", "h100-sxm", False)


def baseline(study: object) -> Baseline:
    return Baseline(
        "yesterday [bold].json", cast(Any, study), comparison(), ["step: 1.000 ms -> 1.200 ms, +200.0 us (+20.0%)", "of which compute"]
    )
