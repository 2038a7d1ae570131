"""The filter language: what is understood, what is refused and where the fault is pointed at."""

from __future__ import annotations

import polars as pl
import pytest

from roofterm.analysis.filters import FilterError, parse, pointer, term_value, with_term
from roofterm.analysis.row_filter import row_predicate, split_by_columns

TABLE = pl.DataFrame(
    {
        "name": ["nvjet_tst_128x256", "ncclDevKernel_AllReduce", "flash_fwd", "aten::mm", "Memcpy DtoD (a b)"],
        "category": ["gemm", "communication", "attention", "gemm", "copy"],
        "calls": [12, 86, 49, 3, 7],
        "total_us": [412_338.0, 213_756.0, 296_883.0, 5.0, 80_000.0],
        "pct": [40.0, 21.0, 29.0, 0.0005, 7.9],
        "flops": [2.5e14, None, 1.2e14, 1.0e6, None],
        "bytes": [6.4e8, 2.0e8, 7.0e8, 68_000_000.0, None],
        "bound_by": ["compute", "link", "hbm", None, "hbm"],
        "pct_of_roof": [72.0, 81.0, 46.0, None, 79.0],
        "stream_ids": [[7], [7, 20], [7], [], [22]],
    },
    schema_overrides={"stream_ids": pl.List(pl.Int64)},
)


def kept(expression: str) -> list[int]:
    """Row numbers of TABLE that pass."""
    return TABLE.with_row_index("row").filter(row_predicate(parse(expression), TABLE.schema))["row"].to_list()


@pytest.mark.parametrize(
    ("expression", "rows"),
    [
        ("", [0, 1, 2, 3, 4]),
        ("NVJET", [0]),  # a bare word is found in the name, any letter case
        ("nvjet|nccl", [0, 1]),
        ("/^n.*(256|Reduce)$/", [0, 1]),
        ("!nvjet", [1, 2, 3, 4]),
        ("!nvjet|nccl", [2, 3, 4]),  # not (a or b)
        ("aten::mm", [3]),  # a colon inside a name is no field
        ('"a b"', [4]),
        ("(a", [4]),  # a word is no pattern
        ("cat:gemm", [0, 3]),
        ("cat:comm|copy", [1, 4]),
        ("cat:gemm nvjet", [0]),
        ("cat:gemm|name:flash", [0, 2, 3]),
        ("stream:20", [1]),
        ("stream:20-22", [1, 4]),
        ("time>100ms", [0, 1, 2]),
        ("time<=5", [3]),  # a bare time is in microseconds
        ("time>1%", [0, 1, 2, 4]),
        ("calls=49", [2]),
        ("calls>=12 calls<86", [0, 2]),
        ("flops>1T", [0, 2]),  # an unknown quantity passes no comparison
        ("bytes>64MiB", [0, 1, 2, 3]),  # 64 MiB = 67,108,864 B < 68,000,000 B
        ("bytes>65MiB", [0, 1, 2]),  # 65 MiB = 68,157,440 B
        ("bytes>0.2GB", [0, 2]),  # 200,000,000 B is not more than itself
        ("roof>=79%", [1, 4]),
        ("bound:mem", [2, 4]),
        ("bound:comp", [0]),
        ("bound:unknown", [3]),
        ("!bound:mem", [0, 1, 3]),
    ],
)
def test_rows_that_pass(expression, rows):
    assert kept(expression) == rows


@pytest.mark.parametrize(
    ("expression", "at", "word"),
    [
        ("nccl dur>10x", 11, "not a time"),
        ("nccl foo>3", 5, "no field"),
        ("tiem>3", 0, "did you mean time"),
        ("a || b", 2, "alternative"),
        ("gemm !", 5, "missing"),
        ("/abc", 0, "does not end"),
        ("x /ab(/", 5, "regular expression"),
        ("cat>3", 3, "not a quantity"),
        ("time>", 5, "value is missing"),
        ("calls>many", 6, "not a number"),
        ("flops>3MiB", 7, "unit of flops"),
        ("step:9-3", 5, "before it begins"),
        ("step:last", 5, "number N or a range"),
        ("/a/b", 3, "nothing may follow"),
    ],
)
def test_fault_is_pointed_at(expression, at, word):
    with pytest.raises(FilterError, match=word) as caught:
        parse(expression)
    assert caught.value.at == at
    assert pointer(caught.value) == " " * at + "^"


def test_field_that_the_table_lacks_is_refused_at_its_place():
    with pytest.raises(FilterError) as caught:
        row_predicate(parse("nccl dur>10us"), TABLE.schema)
    assert caught.value.at == 5


def test_terms_are_split_between_table_and_slices():
    rows, slices = split_by_columns(parse("nccl dur>10us !stream:7 step:3|4"), TABLE.columns)
    assert rows.text == "nccl !stream:7"
    assert slices.text == "dur>10us step:3|4"
    assert parse(rows.text).fields() == {"name", "stream"}


def test_a_term_is_set_replaced_and_removed():
    assert with_term("nccl", "cat", "gemm") == "nccl cat:gemm"
    assert with_term("cat:gemm nccl", "cat", "copy") == "nccl cat:copy"
    assert with_term("cat:gemm nccl", "cat", None) == "nccl"
    assert with_term("", "cat", "data formatting") == 'cat:"data formatting"'
    assert term_value('x cat:"data formatting"', "cat") == "data formatting"
    assert term_value("x", "cat") is None
