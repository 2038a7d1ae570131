"""What the name of a kernel, copy or memset tells: category, data type, tensor cores.

A name is the weakest evidence: `facts.py` prefers the launching op and the arguments of collectives.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from roofterm.analysis.categories.kernel_patterns import CATEGORY_PATTERNS, DTYPE_PATTERNS, TENSOR_CORE_PATTERNS, alternatives
from roofterm.analysis.categories.kinds import Category

_TEMPLATE_TYPE = (
    r"(?:^|[<,\s(*&:])((?:c10::)?BFloat16|__nv_bfloat16|__hip_bfloat16|hip_bfloat16|nv_bfloat16|(?:cutlass::)?bfloat16_t"
    r"|(?:c10::)?Half|__half2?|(?:cutlass::)?half_t|(?:c10::)?Float8_\w+|float2?|double)(?:[,\s>*&)]|$)"
)
_MANGLED_TYPE = r"(DF16b|DF16_|14__hip_bfloat16|13__nv_bfloat16|6__half)"
_TYPE_OF = {
    **dict.fromkeys(("bfloat16", "__nv_bfloat16", "__hip_bfloat16", "hip_bfloat16", "bfloat16_t", "nv_bfloat16"), "bf16"),
    **dict.fromkeys(("df16b", "14__hip_bfloat16", "13__nv_bfloat16"), "bf16"),
    **dict.fromkeys(("half", "__half", "__half2", "half_t", "df16_", "6__half"), "fp16"),
    **dict.fromkeys(("float", "float2"), "fp32"),
    "double": "fp64",
}

_READ_CHARS = 2000
"""Characters of a name that are read: C++ templates repeat themselves beyond."""


def classify_texts(texts: pl.Series) -> pl.DataFrame:
    """What each name tells, row for row: category (u8), dtype (str), tensor_core (bool), stored (str); null: unknown.

    `stored` is the type of the elements that a kernel of this name moves, or `2byte` where only their size is known: copying
    kernels are compiled for a size alone (`OpaqueType<2u>`).
    """
    head = texts.str.head(_READ_CHARS).alias("text")
    frame = head.to_frame()
    category = _first_match([(int(category), words) for category, words in CATEGORY_PATTERNS], pl.UInt8())
    dtype = pl.coalesce(_first_match(DTYPE_PATTERNS, pl.String()), _type_token(_TEMPLATE_TYPE), _type_token(_MANGLED_TYPE))
    tensor_core = _first_match(TENSOR_CORE_PATTERNS, pl.Boolean())
    size = pl.col("text").str.extract(r"OpaqueType<(\d+)u?[l]?>", 1) + "byte"
    told = frame.select(size=size, category=category.fill_null(int(Category.OTHER)), dtype=dtype, tensor_core=tensor_core)
    return told.select("category", "dtype", "tensor_core", stored=pl.coalesce("size", "dtype"))


def _first_match(rules: Sequence[tuple[object, str]], dtype: pl.DataType) -> pl.Expr:
    text = pl.col("text")
    return pl.coalesce(pl.when(text.str.contains(alternatives(words))).then(pl.lit(value, dtype=dtype)) for value, words in rules)


def _type_token(pattern: str) -> pl.Expr:
    token = pl.col("text").str.extract(pattern, 1).str.to_lowercase().str.replace(r"^(c10|cutlass)::", "")
    return (
        pl.when(token.str.starts_with("float8"))
        .then(pl.lit("fp8"))
        .otherwise(token.replace_strict(_TYPE_OF, default=None, return_dtype=pl.String))
    )
