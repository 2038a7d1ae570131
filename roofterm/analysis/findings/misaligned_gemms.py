"""Are the dimensions of products no multiples of what the tensor cores take?"""

from __future__ import annotations

import msgspec
import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.registry import rule
from roofterm.results import Finding

LEAST_PCT = 3.0
MULTIPLE = {"fp16": 8, "bf16": 8, "fp8": 16, "int8": 16, "tf32": 4, "fp32": 4, "fp32_matrix": 4}
"""16 bytes of each type: what a tensor core's loads want rows to begin at."""
SETTLED_PS = 10_000_000
HALF = 0.5

PRODUCTS = {
    "aten::mm": (0, 1), "aten::addmm": (1, 2), "aten::bmm": (0, 1), "aten::baddbmm": (1, 2), "aten::_scaled_mm": (0, 1),
    "aten::matmul": (0, 1),
}  # fmt: skip
"""Slots of the two factors."""


@rule(
    "misaligned-gemms",
    question="Are the dimensions of matrix products multiples of the tensor cores' tile?",
    definition="""
    Products with recorded shapes whose K or N is no multiple of 8 (16-bit types), 16 (8-bit types) or 4 (TF32, FP32): their
    rows begin at addresses that wide loads cannot use. At stake is the time in which they run alone and the step waits for
    them, beyond what they would take at the share of the roof that aligned products of at least 10 us reach in this profile
    (half of the roof if there are none). From 3 % of the step.
    """,
    source="torch pattern matcher (MatMul Dimension Not Aligned); NVIDIA matrix multiplication guide",
    of_device=True,
)
def misaligned_gemms(e: Evidence) -> Finding | None:
    products = _products(e)
    if products.height == 0:
        return None
    off = products.filter(~pl.col("aligned"))
    if off.height == 0:
        return None
    aligned = products.filter(pl.col("aligned") & (pl.col("time_ps") >= SETTLED_PS))
    weight = int(aligned["exclusive_ps"].sum())
    reached = float((aligned["share"] * aligned["exclusive_ps"]).sum()) / weight if weight else HALF
    reached = min(1.0, max(reached, 0.05))
    off = off.with_columns(won_ps=(pl.col("critical_ps") * (1.0 - pl.col("share") / reached)).clip(lower_bound=0.0))
    stake = float(off["won_ps"].sum())
    if e.pct(stake) < LEAST_PCT:
        return None
    worst = off.group_by("op_text", "dims", "multiple", maintain_order=True).agg(
        pl.len(), pl.col("time_ps").sum(), pl.col("won_ps").sum(), pl.col("sizes").first()
    )
    top = worst.sort("won_ps", "dims", descending=[True, False]).row(0, named=True)
    sizes = " x ".join(str(size) for size in top["sizes"])
    op = top["op_text"]
    evidence = {
        "misaligned_us": e.mean_us(int(off["exclusive_ps"].sum())),
        "products": off.height / e.count,
        "reached_by_aligned_pct_of_roof": 100.0 * reached,
        "worst_op": op,
        "worst_shape": sizes,
        "worst_multiple": top["multiple"],
        "worst_us": e.mean_us(top["time_ps"]),
        "worst_calls": top["len"] / e.count,
    }
    title = f"Misaligned products: K or N is no multiple of {top['multiple']}, most of all in {op} {sizes}"
    advice = (
        f"Pad the dimensions to multiples of {top['multiple']} (better 64): sequence length, vocabulary, head size; {op} has "
        f"M x K x N = {sizes}."
    )
    return e.finding(title, stake, "compute", evidence, advice, view="roofline", filter="cat:gemm")


def _products(e: Evidence) -> pl.DataFrame:
    """Products of the spans with shapes: name, dims, time_ps, exclusive_ps, share (of the roof), sizes [M, K, N], multiple, aligned."""
    inside = e.pieces.filter(pl.col("inside_ps") > 0).group_by("item").agg(pl.col("exclusive_ps", "critical_ps").sum())
    items = e.bounded.items.filter(pl.col("category") == int(Category.GEMM))
    items = items.select("item", "signature", "name", "dtype", "bound_s", "time_ps").join(
        inside, on="item", how="inner", maintain_order="left"
    )
    items = items.filter(pl.col("signature").is_not_null() & pl.col("bound_s").is_not_null() & (pl.col("time_ps") > 0))
    items = items.with_columns(
        dims=e.study.joined.signatures["dims"][items["signature"]], op_text=e.study.joined.names["text"][items["name"]]
    ).filter(pl.col("op_text").is_in(list(PRODUCTS)) & pl.col("dtype").is_in(list(MULTIPLE)))
    if items.height == 0:
        return items
    distinct = items.select("op_text", "dims").unique()
    sizes = [_sizes(op, dims) for op, dims in distinct.iter_rows()]
    distinct = distinct.with_columns(sizes=pl.Series(sizes, dtype=pl.List(pl.Int64)))
    items = items.join(distinct, on=["op_text", "dims"], how="left", maintain_order="left").drop_nulls("sizes")
    items = items.with_columns(
        share=(pl.col("bound_s") * 1e12 / pl.col("time_ps")).clip(upper_bound=1.0),
        multiple=pl.col("dtype").replace_strict(MULTIPLE, return_dtype=pl.Int64),
    )
    k, n = pl.col("sizes").list.get(1), pl.col("sizes").list.get(2)
    return items.with_columns(aligned=(k % pl.col("multiple") == 0) & (n % pl.col("multiple") == 0))


def _sizes(op: str, dims: str | None) -> list[int] | None:
    """M, K and N of a product by its recorded dimensions; None if they do not tell."""
    if dims is None:
        return None
    try:
        shapes = msgspec.json.decode(dims, type=list[list[int]])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    left, right = PRODUCTS[op]
    if len(shapes) <= max(left, right) or len(shapes[left]) < 2 or len(shapes[right]) < 2:
        return None
    a, b = shapes[left], shapes[right]
    return [a[-2], a[-1], b[-1]] if a[-1] == b[-2] else None
