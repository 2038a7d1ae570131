"""What each piece of device work is, by the best evidence: the launching op, a collective's arguments, the name.

The order is that of reference/roofline.md 5.1. A name never overrides an op; it refines one where it alone can know: the
tensor-core path of an fp32 product (tf32), a narrower type than the op's, and helpers (transposes, copies, fills) that a
library launches beside the op's own work.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.categories.hlo import hlo_category_of, hlo_dtype
from roofterm.analysis.categories.kernel_names import classify_texts
from roofterm.analysis.categories.kinds import TENSOR_CATEGORIES, Category
from roofterm.analysis.categories.op_names import op_category
from roofterm.analysis.costs.signature import Inputs, dtype_name
from roofterm.analysis.distinct import Alike, alike
from roofterm.analysis.lookup import ABSENT, I32, codes_by_id, index_of, looked_up, rows_by_id, rows_of, taken
from roofterm.analysis.work import work_rows
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import Kind, Profile

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
        "stored": pl.Categorical(),  # type of the elements that its name says it moves; "2byte": their size alone; null: unknown
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


def read_names(profile: Profile) -> pl.DataFrame:
    """What each name tells of device work that has it, row for row with `Profile.names`: columns of `classify_texts`.

    Names of the host that no device work has are not read: all of it is null.
    """
    read = ~_of_host(profile.names).to_numpy()
    read[profile.slices["name"].to_numpy()[work_rows(profile)]] = True
    told = classify_texts(profile.names["text"].filter(pl.Series(read)))
    rows = np.where(read, np.cumsum(read) - 1, ABSENT)
    return pl.DataFrame([taken(column, rows) for column in told])


def classify(names: pl.DataFrame, told: pl.DataFrame | None = None) -> pl.DataFrame:
    """What each name tells, row for row with `Profile.names`. `told`: what `read_names` gives for them.

    Columns: category (u8), dtype (str), tensor_core (bool). Names of host categories are not read as kernels: their category
    is OTHER.
    """
    found = (classify_texts(names["text"]) if told is None else told).with_columns(host=_of_host(names))
    return found.select(
        pl.when("host").then(pl.lit(int(Category.OTHER), dtype=pl.UInt8)).otherwise("category").alias("category"),
        *(pl.when("host").then(None).otherwise(pl.col(column)).alias(column) for column in ("dtype", "tensor_core")),
    )


def _of_host(names: pl.DataFrame) -> pl.Series:
    """Whether each name is one of the host's, by its category in the file."""
    return names["cat"].str.to_lowercase().is_in(_HOST_CATS)


def is_communication(text: str) -> bool:
    """Whether a kernel of this name is a collective or a transfer between devices' programs."""
    return bool((classify_texts(pl.Series([text]))["category"] == int(Category.COMMUNICATION))[0])


def kernel_facts(profile: Profile, told: pl.DataFrame | None = None) -> pl.DataFrame:
    """Category, type, unit and evidence of every kernel, copy and memset: frame of schema `FACTS`.

    `told`: what `read_names` gives for the profile.
    """
    rows = work_rows(profile)
    if rows.size == 0:
        return pl.DataFrame(schema=FACTS)
    told = read_names(profile) if told is None else told
    slices = pl.Series("slice", rows, dtype=pl.UInt32)
    hlo = codes_by_id(profile.hlo["op"], profile.hlo["slice"], profile.slices.height)[rows]
    same = _alike(profile, rows, hlo)
    if same is None:
        return _facts(profile, told, slices, hlo)
    facts = _facts(profile, told, slices[same.first], hlo[same.first])
    return facts.select(slices, pl.exclude("slice").gather(pl.Series(same.of_row)))


def _alike(profile: Profile, rows: NDArray[np.int64], hlo: I32) -> Alike | None:
    """Which pieces of work are of one name, kind and instruction, on devices of one kind, where nothing else tells them apart: no
    launch, no arguments."""
    if profile.links.height or profile.collectives.height:
        return None
    slices = profile.slices
    name, kind = slices["name"].to_numpy()[rows], slices["kind"].to_numpy()[rows]
    kinds = profile.devices["kind"].rank("dense").fill_null(0).to_numpy()
    codes = [(name, profile.names.height), (kind, 256), (hlo + 1, profile.hlo_ops.height + 1)]
    if occurring(kinds).size > 1:
        device = profile.tracks["device"].fill_null(0).to_numpy()[slices["track"].to_numpy()[rows]]
        codes.append((kinds[device], int(kinds.max()) + 1))
    return alike(*codes)


def _facts(profile: Profile, told: pl.DataFrame, slices: pl.Series, hlo: I32) -> pl.DataFrame:
    """Facts of these pieces of work. `hlo`: their rows of `hlo_ops`, ABSENT for none."""
    size = profile.slices.height
    op = looked_up(profile.links["op"], profile.links["work"], size, slices) if profile.links.height else _nothing(slices, "op")
    instruction = index_of(hlo.astype(np.int64)).alias("hlo")
    work = pl.DataFrame(
        {
            "slice": slices,
            "kind": profile.slices["kind"][slices],
            "name": profile.slices["name"][slices],
            "op": op,
            "hlo": instruction,
            "signature": looked_up(profile.ops["signature"], profile.ops["slice"], size, op) if profile.ops.height else None,
            "op_name": profile.slices["name"][op],
        },
        schema_overrides={"signature": pl.UInt32},
    )
    work = work.with_columns(
        *_collectives(profile, work),
        *(told[column][work["name"]].alias(f"name_{column}") for column in ("category", "dtype", "tensor_core")),
        *_by_op(profile, work["op_name"]),
        _by_signature(profile, work["signature"]),
        *_by_hlo(profile, instruction),
        stored=told["stored"][work["name"]],
    )
    return _without_units_of_tpus(profile, _decided(work)).select(pl.col(name).cast(kind) for name, kind in FACTS.items())


def _nothing(slices: pl.Series, name: str) -> pl.Series:
    return pl.Series(name, [None], dtype=pl.UInt32).new_from_index(0, slices.len())


def _without_units_of_tpus(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    """An XLA op of a TPU uses several units at once, its matrix unit too, and the profile does not tell which: unknown."""
    tpus = profile.devices.with_row_index("device").filter(pl.col("kind") == "tpu")["device"]
    if tpus.len() == 0:
        return work
    device = profile.tracks["device"][profile.slices["track"][work["slice"]]]
    return work.with_columns(tensor_core=pl.when(device.is_in(tpus.implode())).then(None).otherwise("tensor_core"))


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


def _by_op(profile: Profile, names: pl.Series) -> list[pl.Series]:
    """op_category and flash (an attention that is one kernel) of ops of these names."""
    return _of_each(
        names,
        profile.names.height,
        lambda distinct: _op_facts(profile.names["text"][distinct].to_list()),
    )


def _op_facts(texts: list[str]) -> list[pl.Series]:
    flash = ["flash" in text or "efficient" in text or "cudnn_attention" in text for text in texts]
    return [pl.Series("op_category", [op_category(text) for text in texts], dtype=pl.UInt8), pl.Series("flash", flash, dtype=pl.Boolean)]


def _by_signature(profile: Profile, signatures: pl.Series) -> pl.Series:
    """op_dtype: the type that ops with these inputs compute in."""

    def dtypes(distinct: pl.Series) -> list[pl.Series]:
        mine = profile.signatures[distinct] if distinct.len() else profile.signatures.clear()
        found = [_math_dtype(dims, types) for dims, types in zip(mine["dims"], mine["types"], strict=True)]
        return [pl.Series("op_dtype", found, dtype=pl.String)]

    return _of_each(signatures, profile.signatures.height, dtypes)[0]


def _of_each(rows: pl.Series, size: int, told: Callable[[pl.Series], list[pl.Series]]) -> list[pl.Series]:
    """What is told of each of these rows of a table of `size` rows, null for null: `told` is asked once for all that differ."""
    distinct = rows.drop_nulls().unique()
    at = rows_of(rows_by_id(distinct, size), rows)
    return [taken(values, at) for values in told(distinct)]


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


def _by_hlo(profile: Profile, rows: pl.Series) -> list[pl.Series]:
    """hlo_category and hlo_dtype of these rows of `hlo_ops`."""

    def facts(distinct: pl.Series) -> list[pl.Series]:
        ops = profile.hlo_ops[distinct] if distinct.len() else profile.hlo_ops.clear()
        stated = looked_up(profile.hlo_facts["dtype"], profile.hlo_facts["op"], profile.hlo_ops.height, distinct)
        categories = [hlo_category_of(*row) for row in ops.select("category", "name", "text", "framework_op").iter_rows()]
        dtypes = [hlo_dtype(dtype, text) for dtype, text in zip(stated, ops["text"], strict=True)]
        return [pl.Series("hlo_category", categories, dtype=pl.UInt8), pl.Series("hlo_dtype", dtypes, dtype=pl.String)]

    return _of_each(rows, profile.hlo_ops.height, facts)


def _collectives(profile: Profile, work: pl.DataFrame) -> list[pl.Series]:
    """collective (true or null) and its type: of work that carries a collective's arguments itself, or hangs on an op that does
    (record_param_comms)."""
    known = profile.collectives
    if known.height == 0:
        nothing = pl.Series([None]).new_from_index(0, work.height)
        return [nothing.cast(pl.Boolean).alias("collective"), nothing.cast(pl.String).alias("collective_dtype")]
    index = rows_by_id(known["slice"], profile.slices.height)
    own, through = rows_of(index, work["slice"]), rows_of(index, work["op"])
    at = np.where(own >= 0, own, through)
    distinct = known["dtype"].unique()
    dtypes = pl.Series([dtype_name(text) for text in distinct.to_list()], dtype=pl.String)
    named = known["dtype"].replace_strict(distinct, dtypes, return_dtype=pl.String)
    return [
        taken(pl.Series("collective", [True]).new_from_index(0, known.height), at),
        taken(named.alias("collective_dtype"), at),
    ]
