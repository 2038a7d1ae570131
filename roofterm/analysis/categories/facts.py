"""What each piece of device work is, by the best evidence: the launching op, a collective's arguments, the name.

The order is that of reference/roofline.md 5.1. A name never overrides an op; it refines one where it alone can know: the
tensor-core path of an fp32 product (tf32), a narrower type than the op's, and helpers (transposes, copies, fills) that a
library launches beside the op's own work.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.categories.hlo import hlo_category_of, hlo_dtype
from roofterm.analysis.categories.kernel_names import classify_texts
from roofterm.analysis.categories.kinds import TENSOR_CATEGORIES, Category
from roofterm.analysis.categories.op_names import op_category
from roofterm.analysis.categories.short import short_name
from roofterm.analysis.costs.signature import Inputs, dtype_name
from roofterm_parsers.profile import WORK_KINDS, Kind, Profile

DTYPES = (
    "fp64",
    "fp32",
    "tf32",
    "fp16",
    "bf16",
    "fp8",
    "fp4",
    "int64",
    "int32",
    "int16",
    "int8",
    "int4",
    "bool",
    "complex64",
    "complex128",
)
EVIDENCE = ("op", "args", "name")

FACTS = pl.Schema(
    {
        "slice": pl.UInt32(),
        "category": pl.UInt8(),  # Category
        "dtype": pl.Enum(DTYPES),  # type that the arithmetic runs in; null: unknown
        "tensor_core": pl.Boolean(),  # runs on tensor or matrix units; null: unknown
        "evidence": pl.Enum(EVIDENCE),  # what the category rests on
    }
)
"""One row a kernel, copy or memset, in order of slice id."""

_HOST_CATS = {
    "cpu_op", "operator", "user_annotation", "python_function", "cuda_runtime", "runtime", "cuda_driver", "hip_runtime", "cuda_sync",
    "cpu_instant_event", "overhead", "trace", "gpu_user_annotation", "fwdbwd", "ac2g", "async_gpu", "xpu_runtime",
}  # fmt: skip
_HELPERS = (int(Category.LAYOUT), int(Category.COPY), int(Category.MEMSET), int(Category.FILL))
_HELPED = tuple(int(category) for category in (*TENSOR_CATEGORIES, Category.NORM, Category.SOFTMAX, Category.EMBEDDING, Category.POOLING))
_NARROW = ("fp8", "fp4", "int8")


def classify(names: pl.DataFrame) -> pl.DataFrame:
    """What each name tells, row for row with `Profile.names`.

    Columns: category (u8), dtype (str), tensor_core (bool), short (str, a name for people). Names of host categories are
    not read as kernels: their category is OTHER.
    """
    host = names["cat"].str.to_lowercase().is_in(_HOST_CATS)
    found = classify_texts(names["text"]).with_columns(host=host)
    found = found.select(
        pl.when("host").then(pl.lit(int(Category.OTHER), dtype=pl.UInt8)).otherwise("category").alias("category"),
        *(pl.when("host").then(None).otherwise(pl.col(column)).alias(column) for column in ("dtype", "tensor_core")),
    )
    return found.with_columns(short=pl.Series([short_name(text) for text in names["text"].to_list()], dtype=pl.String))


def is_communication(text: str) -> bool:
    """Whether a kernel of this name is a collective or a transfer between devices' programs."""
    return bool((classify_texts(pl.Series([text]))["category"] == int(Category.COMMUNICATION))[0])


def kernel_facts(profile: Profile) -> pl.DataFrame:
    """Category, type, unit and evidence of every kernel, copy and memset: frame of schema `FACTS`."""
    kind = profile.slices["kind"].to_numpy()
    rows = np.flatnonzero(np.isin(kind, np.array(WORK_KINDS, np.uint8)))
    if rows.size == 0:
        return pl.DataFrame(schema=FACTS)
    work = pl.DataFrame({"slice": pl.Series(rows, dtype=pl.UInt32), "kind": kind[rows], "name": profile.slices["name"].gather(rows)})
    work = _joined(work, profile.links.select(slice="work", op="op"))
    work = _joined(work, profile.hlo.select("slice", hlo="op").unique("slice", keep="first"))
    work = _joined(work, _collectives(profile, work))
    ops = profile.ops.select(op="slice", signature="signature").unique("op", keep="first")
    work = work.join(ops, on="op", how="left", maintain_order="left").with_columns(op_name=profile.slices["name"].gather(work["op"]))
    work = work.join(_by_name(profile, work), on="name", how="left", maintain_order="left")
    work = work.join(_by_op(profile, work), on="op_name", how="left", maintain_order="left")
    work = work.join(_by_signature(profile, work), on="signature", how="left", maintain_order="left")
    work = work.join(_by_hlo(profile, work), on="hlo", how="left", maintain_order="left")
    return _decided(work).select(list(FACTS)).cast(FACTS)


def _decided(work: pl.DataFrame) -> pl.DataFrame:
    communication = pl.lit(int(Category.COMMUNICATION), dtype=pl.UInt8)
    by_kind = (
        pl.when(pl.col("kind") == int(Kind.COPY))
        .then(pl.lit(int(Category.COPY), dtype=pl.UInt8))
        .when(pl.col("kind") == int(Kind.MEMSET))
        .then(pl.lit(int(Category.MEMSET), dtype=pl.UInt8))
    )
    by_launch = pl.coalesce("hlo_category", "op_category")
    helper = pl.col("name_category").is_in(_HELPERS) & by_launch.is_in(_HELPED)
    by_args = pl.when(pl.col("collective").fill_null(False)).then(communication)
    # What stands under a collective's op may still be a copy; a kernel that is named a collective is one, whatever op is around it.
    named = pl.when((pl.col("name_category") == communication) & pl.col("hlo_category").is_null()).then(communication)
    category = pl.coalesce(by_kind, by_args, named, pl.when(helper).then("name_category"), by_launch, "name_category")
    evidence = (
        pl.when(by_kind.is_not_null() | by_args.is_not_null())
        .then(pl.lit("args"))
        .when(named.is_null() & by_launch.is_not_null() & ~helper)
        .then(pl.lit("op"))
        .otherwise(pl.lit("name"))
    )
    work = work.with_columns(category=category, evidence=evidence)
    tensor = pl.col("category").is_in([int(c) for c in TENSOR_CATEGORIES])
    op_dtype = pl.coalesce("collective_dtype", "hlo_dtype", "op_dtype")
    narrower = tensor & pl.col("name_dtype").is_in(_NARROW) & pl.col("name_tensor_core").fill_null(True)
    refined = pl.when((op_dtype == "fp32") & (pl.col("name_dtype") == "tf32") & tensor).then(pl.lit("tf32"))
    dtype = (
        pl.when(by_kind.is_not_null())
        .then(None)
        .otherwise(pl.coalesce(refined, pl.when(narrower).then("name_dtype"), op_dtype, "name_dtype"))
    )
    work = work.with_columns(dtype=dtype)
    flash = (
        (pl.col("category") == int(Category.ATTENTION)) & pl.col("dtype").is_in(["fp16", "bf16", "fp8"]) & pl.col("flash").fill_null(False)
    )
    return work.with_columns(tensor_core=pl.when(~tensor).then(False).otherwise(pl.coalesce("name_tensor_core", pl.when(flash).then(True))))


def _by_name(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    names = work["name"].unique()
    found = classify_texts(profile.names["text"].gather(names))
    return found.select(name_category="category", name_dtype="dtype", name_tensor_core="tensor_core").with_columns(name=names)


def _by_op(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    names = work["op_name"].drop_nulls().unique()
    texts = profile.names["text"].gather(names).to_list()
    return pl.DataFrame(
        {
            "op_name": names,
            "op_category": pl.Series([op_category(text) for text in texts], dtype=pl.UInt8),
            "flash": pl.Series(["flash" in text or "efficient" in text or "cudnn_attention" in text for text in texts], dtype=pl.Boolean),
        },
        schema_overrides={"op_name": pl.UInt32},
    )


def _by_signature(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    rows = work["signature"].drop_nulls().unique()
    signatures = profile.signatures[rows] if rows.len() else profile.signatures.clear()
    dtypes = [_math_dtype(dims, types) for dims, types in zip(signatures["dims"], signatures["types"], strict=True)]
    return pl.DataFrame({"signature": rows, "op_dtype": pl.Series(dtypes, dtype=pl.String)}, schema_overrides={"signature": pl.UInt32})


def _math_dtype(dims: str | None, types: str | None) -> str | None:
    """Type of the first input that says in which type an op computes: a floating tensor, else any tensor."""
    inputs = Inputs(dims, types)
    tensors = list(inputs.all_tensors)
    for slot in range(len(inputs)):
        tensors.extend(inputs.tensors(slot) or [])
    known = [tensor for tensor in tensors if tensor.dtype is not None]
    floating = [tensor for tensor in known if tensor.dtype is not None and tensor.dtype.startswith(("fp", "bf"))]
    for group in ([t for t in floating if t.dims], floating, [t for t in known if t.dims], known):
        if group:
            return group[0].dtype
    return None


def _by_hlo(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    rows = work["hlo"].drop_nulls().unique()
    ops = profile.hlo_ops[rows] if rows.len() else profile.hlo_ops.clear()
    facts = pl.DataFrame({"op": rows}, schema={"op": pl.UInt32}).join(
        profile.hlo_facts.select("op", "dtype").unique("op", keep="first"), on="op", how="left", maintain_order="left"
    )
    categories = [hlo_category_of(*row) for row in ops.select("category", "name", "text", "framework_op").iter_rows()]
    dtypes = [hlo_dtype(dtype, text) for dtype, text in zip(facts["dtype"], ops["text"], strict=True)]
    return pl.DataFrame(
        {"hlo": rows, "hlo_category": pl.Series(categories, dtype=pl.UInt8), "hlo_dtype": pl.Series(dtypes, dtype=pl.String)},
        schema_overrides={"hlo": pl.UInt32},
    )


def _collectives(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    """Work that carries a collective's arguments itself, or hangs on an op that does (record_param_comms)."""
    known = profile.collectives.select("slice", "dtype").unique("slice", keep="first")
    own = work.select("slice").join(known, on="slice", how="inner")
    by_op = work.select("slice", "op").join(known.rename({"slice": "op"}), on="op", how="inner").select("slice", "dtype")
    found = pl.concat([own, by_op]).unique("slice", keep="first", maintain_order=True)
    dtypes = [dtype_name(text) for text in found["dtype"].to_list()]
    return found.select("slice", collective=pl.lit(True)).with_columns(collective_dtype=pl.Series(dtypes, dtype=pl.String))


def _joined(work: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    return work.join(right, on="slice", how="left", maintain_order="left")
