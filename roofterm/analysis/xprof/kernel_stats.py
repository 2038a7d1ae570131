"""XProf's GPU kernel statistics: one row for each kernel, launch and framework op (xplane_to_kernel_stats_db.cc)."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from roofterm.analysis.xprof.framework_names import XLA_LAUNCH, framework_op_of
from roofterm.analysis.xprof.peaks import planes, version_numbers
from roofterm.analysis.xprof.source import framework_op
from roofterm_parsers.profile import Profile

MOST_KERNELS = 1000
BARE_OP_NAMES_FROM = AMD_KNOWN_FROM = (2, 24)
"""From this version on an op of the HLO stands without its colon and type, as others always did; matrix cores of AMD are known."""

_TENSOR_CORE_NAMES = (
    "16816", "c1688", "conv1x1", "conv2d_c1_k1", "dgrad_1x1_stride_2x2", "direct_group", "first_layer_wgrad_kernel", "h1688", "h884",
    "hmma", "i16832", "i8816", "s884", "s1688", "xmma_gemm", "xmma_implicit_gemm", "xmma_sparse_conv", "xmma_sparse_gemm",
    "xmma_warp_specialized_implicit_gemm",
)  # fmt: skip
"""Parts of Nvidia kernels' names by which XProf knows tensor cores."""
_MATRIX_CORES = re.compile(r"mfma|wmma|_xdl|gtcx|gemm_fusion|attn_fwd|TileFmha(Bwd)?Shape<|_MI\d+x\d+x\d+")
"""Parts of AMD kernels' names by which later versions know matrix cores (as their answers show; the list is not public)."""
_SHOWN = pl.Struct({"op_name": pl.String, "eligible": pl.Boolean, "uses": pl.Boolean})
_LAUNCH = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


def xprof_kernel_stats(profile: Profile, version: str) -> list[dict[str, Any]]:
    """Rows by column id, most time first; kernels without a length or without launch details are not counted."""
    numbers = version_numbers(version)
    kernels = _kernels(profile)
    amd = numbers >= AMD_KNOWN_FROM and any(stats.get("device_vendor") == "AMD" for stats in planes(profile, "gpu"))
    said = ["kernel_name", "framework_op", "stated", "hlo"]
    kinds = kernels.select(said).unique(maintain_order=True)
    kinds = kinds.with_columns(
        pl.Series("shown", [_shown(name, op, stated, hlo, numbers, amd) for name, op, stated, hlo in kinds.iter_rows()], _SHOWN)
    ).unnest("shown")
    key = ["kernel_name", *_LAUNCH, "registers", "shared", "op_name", "eligible", "uses"]
    found = (
        kernels.join(kinds, on=said, how="left", maintain_order="left")
        .group_by(key)
        .agg(
            pl.len().alias("occurrences"),
            pl.col("ns").sum().alias("total"),
            pl.col("ns").min().alias("least"),
            pl.col("ns").max().alias("most"),
            pl.col("occupancy").first(),
        )
    )
    found = found.sort(["total", *key], descending=[True, *[False] * len(key)]).head(MOST_KERNELS)
    rows = []
    for rank, row in enumerate(found.iter_rows(named=True), 1):
        rows.append(
            {
                "rank": float(rank),
                "kernel_name": row["kernel_name"],
                "registers_per_thread": float(row["registers"]),
                "shmem_bytes": float(row["shared"]),
                "block_dim": ",".join(str(row[f"block_{axis}"]) for axis in "xyz"),
                "grid_dim": ",".join(str(row[f"grid_{axis}"]) for axis in "xyz"),
                "occupancy_pct": float(row["occupancy"]),
                "is_op_tensor_core_eligible": row["eligible"],
                "is_kernel_using_tensor_core": row["uses"],
                "op_name": row["op_name"],
                "occurrences": float(row["occurrences"]),
                "total_duration_us": row["total"] / 1e3,
                "avg_duration_us": (row["total"] // row["occurrences"]) / 1e3,
                "min_duration_us": row["least"] / 1e3,
                "max_duration_us": row["most"] / 1e3,
            }
        )
    return rows


def _shown(name: str, stated_op: str, stated: bool, hlo: bool, numbers: tuple[int, ...], amd: bool) -> dict[str, Any]:
    """A kernel's op as the table names it, and whether op and kernel can use tensor cores; `hlo`: the op is of the file's HLO."""
    op = framework_op(stated_op)
    bare = framework_op_of(op).name
    uses = bool(_MATRIX_CORES.search(name)) if amd else any(part in name for part in _TENSOR_CORE_NAMES)
    eligible = _eligible(bare)
    if numbers >= AMD_KNOWN_FROM:
        eligible |= (uses and stated) or "dot_general" in op or "conv_general_dilated" in op
    return {"op_name": op if hlo and numbers < BARE_OP_NAMES_FROM else bare, "eligible": eligible, "uses": uses}


def _kernels(profile: Profile) -> pl.DataFrame:
    """Kernels with launch details: kernel_name, launch, registers, shared, framework_op, ns."""
    known = profile.hlo_facts.select("op", "xprof_category")
    named = profile.hlo_ops.with_row_index("op").join(known, on="op", how="left")
    # An instruction that is not in the HLO has the name that XLA gives all its launches.
    shown = pl.when(pl.col("xprof_category").is_not_null()).then("framework_op").when(pl.col("name").is_not_null()).then(pl.lit(XLA_LAUNCH))
    named = named.select("op", framework_op=shown, stated=pl.lit(True), hlo=pl.col("name").is_not_null())
    ops = profile.hlo.join(named, on="op").drop("op")
    rows = profile.kernels["slice"]
    frame = profile.kernels.filter(pl.col("grid_x").is_not_null()).select(
        "slice",
        *_LAUNCH,
        pl.col("registers").fill_null(0),
        # ROCm's details, which state no registers, give shared memory under a name that XProf does not read.
        pl.when(pl.col("registers").is_not_null()).then(pl.col("shared_bytes").fill_null(0)).otherwise(0).alias("shared"),
        pl.col("occupancy_pct").fill_null(0.0).alias("occupancy"),
    )
    texts = profile.names["text"][profile.slices["name"][rows]]
    length = profile.slices["dur_ps"][rows]
    facts = pl.DataFrame({"slice": rows, "kernel_name": texts, "ns": length // 1000, "timed": length > 0})
    return (
        frame.join(facts, on="slice", maintain_order="left")
        .filter("timed")
        .join(ops, on="slice", how="left", maintain_order="left")
        .with_columns(pl.col("framework_op").fill_null(""), pl.col("stated", "hlo").fill_null(False))
    )


def _eligible(op: str) -> bool:
    """Whether a framework op can use tensor cores, by its name."""
    return op.endswith(_ELIGIBLE_ENDS) or any(part in op for part in ("BatchMatMul", "CudnnRNNV", "CudnnRNNForward", "CudnnRNNBackprop"))


_ELIGIBLE_ENDS = (
    "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter",
    "DepthwiseConv2dNativeBackpropInput", "/MatMul", "FusedMatMul", "/CudnnRNN", "XlaDot", "XlaDotV2",
)  # fmt: skip
