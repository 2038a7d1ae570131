"""Do matrix products and convolutions run on the vector units, though the device has tensor cores?"""

from __future__ import annotations

import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.findings.evidence import Evidence, of_category
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding

LEAST_PCT = 5.0
UNKNOWN_RATIO = 0.25
"""Vector over tensor peak where the device is unknown: no less is claimed to remain."""

HELPERS = (
    r"(?i)splitK_?reduce|reduce_kernel|reduce_1Block|transpose|nchwTo|nhwcTo|SubTensorOp|computeOffsets|compute\w*Offsets|scalePacked|im2?d?2?col|col2im|"
    r"Im[23]d2|scal_kernel|gemv|gemmk1|dot_kernel|depthwise|winograd(Forward|Wgrad)(Data|Output|Delta|Filter)|epilogue::impl"
)
"""Kernels beside or instead of a product: sums of split-K, layout changes, products with a vector, depthwise convolutions."""

NAMED_ARCHITECTURE = r"volta_|turing_|ampere_|hopper_|sm(7|8|9)\d|sm1[02]\d"
"""Names that tell of an NVIDIA device with tensor cores, where the file does not name it."""


@rule(
    "gemms-off-tensor-cores",
    question="Do matrix products run on the tensor cores, in the type that was meant?",
    definition="""
    Time of GEMM and convolution kernels that run on the vector units (fp32 without TF32, or a shape the tensor cores cannot
    take) on a device that has tensor cores; helpers (split-K sums, layout changes, products with a vector, depthwise
    convolutions) and products bound by memory do not count. What they would not take at the same efficiency on the tensor
    cores (vector over tensor peak) or at the memory's roof is saved while they run alone: reported from 5 % of the step. At
    stake is the part of it for which the step waits.
    """,
    source="torch-tb-profiler (Tensor Cores rule); torch pattern matcher (FP32 MatMul); triage question 15",
    of_device=True,
)
def gemms_off_tensor_cores(e: Evidence) -> Finding | None:
    ratio = _remaining_share(e)
    if ratio is None:
        return None
    products = of_category(e.pieces, Category.GEMM, Category.CONV).filter(pl.col("inside_ps") > 0)
    names = e.profile.names["text"][products["name"]]
    helper = names.str.contains(HELPERS)
    products = products.filter(~helper)
    items = e.bounded.items.select("item", item_time="time_ps", memory_s="hbm_s", by_compute="compute_s")
    products = products.join(items, on="item", how="left", maintain_order="left")
    # A product that would be no faster for its FLOPs than for its bytes gains nothing from tensor cores.
    memory_share = (pl.col("memory_s") * 1e12 / pl.col("item_time")).fill_null(0.0).clip(upper_bound=1.0)
    off = products.filter((pl.col("tensor_core") == False) | (pl.col("tensor_core").is_null() & (pl.col("dtype") == "fp32")))  # noqa: E712
    saved = 1.0 - pl.max_horizontal(pl.lit(ratio), memory_share)
    off = off.with_columns(saved_ps=pl.col("exclusive_ps") * saved, won_ps=pl.col("critical_ps") * saved)
    saved_ps, stake = float(off["saved_ps"].sum()), float(off["won_ps"].sum())
    if off.height == 0 or e.pct(saved_ps) < LEAST_PCT:
        return None
    time, whole = int(off["inside_ps"].sum()), int(products["inside_ps"].sum())
    dtypes = off.group_by(pl.col("dtype").cast(pl.String)).agg(pl.col("inside_ps").sum()).sort("inside_ps", descending=True)
    worst = off.group_by("name").agg(pl.col("inside_ps").sum(), pl.len()).sort("inside_ps", descending=True).row(0, named=True)
    dtype = dtypes["dtype"][0]
    evidence = {
        "off_tensor_cores_us": e.mean_us(time),
        "all_products_us": e.mean_us(whole),
        "off_tensor_cores_pct_of_products": 100.0 * time / whole,
        "dtype": dtype,
        "vector_to_tensor_peak": ratio,
        "device_time_saved_us": e.mean_us(saved_ps),
        "worst": e.text(worst["name"]),
        "worst_us": e.mean_us(worst["inside_ps"]),
        "kernels": off.height / e.count,
    }
    title = f"Off the tensor cores: {e.time(time)} of {e.time(whole)} in GEMMs and convolutions ({dtype or 'type unknown'})"
    after = " Most of it pays only when the device no longer waits for the host." if stake < saved_ps / 2 else ""
    return e.finding(title, stake, "compute", evidence, _advice(e, dtype) + after, view="ops", filter="cat:gemm|conv")


def _advice(e: Evidence, dtype: str | None) -> str:
    device = e.study.device
    if dtype in (None, "fp32") and e.is_xla:
        return 'Compute in bf16 (dtype=jnp.bfloat16), or let fp32 products run at jax.default_matmul_precision("tensorfloat32").'
    if dtype in (None, "fp32"):
        if device is not None and "tf32" in device.peaks:
            return 'Allow TF32 (torch.set_float32_matmul_precision("high"), torch.backends.cudnn.allow_tf32=True) or use autocast to bf16.'
        return "Run under autocast to fp16 (with a gradient scaler) or bf16: this device's tensor cores take no fp32."
    if dtype == "fp64":
        return "Check that double precision is meant: cast to fp32 or lower where the algorithm allows."
    return (
        "Make the dimensions multiples of 8 (16 for 8-bit types) and the tensors contiguous and aligned, so that a tensor-core kernel fits."
    )


def _remaining_share(e: Evidence) -> float | None:
    """Vector peak over tensor peak of the device; None if it has no tensor cores."""
    device = e.study.device
    if device is None:
        return None
    peaks = device.peaks
    tensor = max((peaks[name] for name in ("tf32", "fp16", "bf16") if name in peaks), default=None)
    if tensor is not None and "fp32" in peaks:
        return peaks["fp32"] / tensor if tensor > 2 * peaks["fp32"] else None
    named = e.profile.names["text"].str.contains(NAMED_ARCHITECTURE).any()
    return UNKNOWN_RATIO if device.model is None and named else None
