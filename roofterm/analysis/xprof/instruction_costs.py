"""What XProf takes each HLO instruction to cost: the compiler's figures on a TPU, its own analysis of the HLO on a GPU."""

from __future__ import annotations

import polars as pl

from roofterm_parsers.profile import Profile

COSTS = (
    "flops", "model_flops", "bytes", "hbm_bytes", "cmem_read_bytes", "cmem_write_bytes", "vmem_read_bytes", "vmem_write_bytes",
    "on_chip_read_bytes", "on_chip_write_bytes",
)  # fmt: skip


def instruction_costs(profile: Profile, hardware: str) -> pl.DataFrame:
    """Instructions that XProf counts, with its costs per occurrence."""
    ops = profile.hlo_ops.with_row_index("op").join(profile.hlo_facts, on="op", how="left", maintain_order="left")
    if hardware == "TPU":
        counted = ops.filter(pl.col("program_id").is_not_null() & (pl.col("symbol_id").fill_null(0) != 0))
        hbm = pl.col("hbm_read_bytes") + pl.col("hbm_write_bytes")
    else:
        counted = ops.filter(pl.col("xprof_category").is_not_null())
        hbm = pl.col("xprof_hbm_bytes")
    return counted.select(
        "op",
        pl.col("program_id").fill_null(0).alias("module"),
        "program",
        pl.col("name").fill_null(""),
        pl.col("xprof_category").fill_null("").alias("category"),
        pl.col("xprof_flops").fill_null(0.0).alias("flops"),
        pl.col("xprof_model_flops").fill_null(0.0).alias("model_flops"),
        pl.col("xprof_bytes").fill_null(0.0).alias("bytes"),
        hbm.fill_null(0.0).alias("hbm_bytes"),
        hbm.is_not_null().alias("broken_down"),
        *[pl.col(name).fill_null(0.0) for name in COSTS if name.startswith(("cmem", "vmem", "on_chip"))],
        "source",
        "source_stack",
        "text",
        "framework_op",
        "deduplicated",
        "autotuned",
        "inside",
    )
