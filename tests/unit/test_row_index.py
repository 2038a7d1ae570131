"""Orders and masks that are kept, against the slow obvious way: Python's own sort, and each condition asked of each row."""

from __future__ import annotations

import math
import random
from threading import Thread

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofterm.analysis import row_index
from roofterm.analysis.filters import FilterError, parse
from roofterm.analysis.row_filter import row_predicate
from roofterm.analysis.row_index import RowIndex
from roofterm.analysis.row_order import row_order

WORDS = ("gemm", "copy", "Memory", "compute", "hbm", "hbm?", "l2", "é", "", "Straße")
NAMES = st.text(st.sampled_from("abAB \u017f\u212aKs.*[(é"), max_size=5)


def obvious(values: list, descending: bool) -> list[int]:
    """Row numbers by value: Python's sort keeps equal ones in their order, also backwards; None last either way."""
    known = [row for row, value in enumerate(values) if value is not None]
    largest = lambda row: (isinstance(values[row], float) and math.isnan(values[row]), values[row])  # noqa: E731
    known.sort(key=largest, reverse=descending)
    return known + [row for row, value in enumerate(values) if value is None]


def values_of(kind: st.SearchStrategy, most: int = 40) -> st.SearchStrategy:
    return st.lists(st.none() | kind, max_size=most)


COLUMNS = st.one_of(
    st.tuples(st.just(pl.Int64()), values_of(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1))),
    st.tuples(st.just(pl.UInt8()), values_of(st.integers(0, 3))),
    st.tuples(st.just(pl.Float64()), values_of(st.sampled_from([0.0, 1.5, -1.5, math.inf, -math.inf]) | st.floats(allow_nan=False))),
    st.tuples(st.just(pl.Float64()), values_of(st.sampled_from([0.0, 1.5, math.nan]))),
    st.tuples(st.just(pl.Boolean()), values_of(st.booleans())),
    st.tuples(st.just(pl.String()), values_of(st.sampled_from(["a", "B", "", "é"]) | st.text(max_size=4))),
)


@given(COLUMNS, st.booleans())
def test_rows_are_in_the_order_of_their_values_ties_as_they_stood_and_unknown_ones_last(column, descending):
    kind, values = column
    if kind == pl.String():
        values = [value and value.encode("utf-8", "ignore").decode() for value in values]
    series = pl.Series("v", values, dtype=kind)
    if kind == pl.String():  # polars compares texts by their bytes
        expected = obvious([None if value is None else value.encode() for value in values], descending)
    else:
        expected = obvious(values, descending)
    assert row_order(series).rows(descending).tolist() == expected
    assert RowIndex(series.to_frame()).order("v", descending).tolist() == expected


@pytest.mark.parametrize("distinct", [3, 70_000, 200_000])
@pytest.mark.parametrize("descending", [False, True])
def test_many_rows_keep_their_ties_in_order(distinct, descending):
    """Either side of what two bytes count: the two ways in which equal values are put back into their order."""
    chosen = np.random.default_rng(1).integers(0, distinct, 150_000)
    found = row_order(pl.Series(chosen)).rows(descending)
    assert found.tolist() == np.lexsort((np.arange(len(chosen)), -chosen if descending else chosen)).tolist()


FRAME = pl.DataFrame(
    {
        "name": [f"Kernel_{random.Random(n).choice('abc')}x{n % 7}" for n in range(60)],
        "category": [WORDS[n % len(WORDS)] or None for n in range(60)],
        "bound_by": [[None, "hbm", "l2", "compute"][n % 4] for n in range(60)],
        "total_us": [float(n % 11) for n in range(60)],
        "pct": [n / 2 for n in range(60)],
        "stream_ids": [[n % 3, 7] for n in range(60)],
    }
)
EXPRESSIONS = (
    "", "kernel", "KERNEL_A", "a|b", "!a", "!a|b", "/x[13]$/", "cat:gemm", "cat:mem|cop", "cat:stra", "cat:É", "!cat:gemm a",
    "bound:memory", "bound:unknown", "bound:comp", "time>4", "time>3%", "stream:1", "name=Kernel_ax0", "kernel time<5 cat:gemm|copy",
)  # fmt: skip


@pytest.mark.parametrize("most_words", [0, 4096], ids=["many texts", "few texts"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_mask_is_what_the_predicate_says_of_each_row(monkeypatch, expression, most_words):
    monkeypatch.setattr(row_index, "MOST_WORDS", most_words)
    wanted = parse(expression)
    expected = FRAME.with_row_index("row").filter(row_predicate(wanted, FRAME.schema))["row"].to_list()
    index = RowIndex(FRAME)
    for _ in range(2):  # the second time from what is kept
        assert np.flatnonzero(index.mask(wanted)).tolist() == expected


@given(st.lists(st.none() | NAMES, max_size=30), st.lists(NAMES.map(str.strip).filter(bool), min_size=1, max_size=4))
def test_letters_typed_one_after_another_find_what_the_whole_word_finds(names, words):
    """Growing, shrinking and other words on one index: each answer is that of the expression alone."""
    frame = pl.DataFrame({"name": pl.Series(names, dtype=pl.String)})
    kept = row_index.MOST_WORDS
    row_index.MOST_WORDS = 0
    try:
        index = RowIndex(frame)
        for word in words:
            for end in (*range(1, len(word) + 1), *range(len(word) - 1, 0, -1)):
                wanted = parse('"' + word[:end] + '"')
                if wanted:
                    expected = frame.select(held=row_predicate(wanted, frame.schema))["held"].to_list()
                    assert index.mask(wanted).tolist() == expected
    finally:
        row_index.MOST_WORDS = kept


def test_rows_pass_the_filter_and_are_in_order():
    found = RowIndex(FRAME).rows(parse("cat:gemm|copy"), ("total_us", True))
    expected = [row for row in obvious(FRAME["total_us"].to_list(), True) if FRAME["category"][row] in ("gemm", "copy")]
    assert found.tolist() == expected
    assert RowIndex(FRAME).rows(parse(""), None).tolist() == list(range(60))
    assert RowIndex(FRAME).rows(parse("cat:gemm"), None).tolist() == [row for row in range(60) if row % 10 == 0]


def test_rows_with_a_value_are_found_again():
    index = RowIndex(FRAME)
    for column, value in (("category", "gemm"), ("category", "gemm"), ("bound_by", "hbm"), ("category", "nothing")):
        assert index.holding(column, value).tolist() == [row for row in range(60) if FRAME[column][row] == value]


def test_a_field_without_a_column_is_refused():
    with pytest.raises(FilterError, match="no dtype"):
        RowIndex(FRAME).mask(parse("dtype:bf16"))


def test_only_the_newest_conditions_are_kept():
    index = RowIndex(FRAME)
    for number in range(3 * row_index.MOST_MASKS):
        index.mask(parse(f"time>{number}"))
    assert len(index._masks) == row_index.MOST_MASKS


def test_what_a_thread_prepares_is_the_same_as_what_is_asked():
    frame = pl.DataFrame({"name": [f"n{n * 7919 % 30_000}" for n in range(30_000)], "a": [n % 13 for n in range(30_000)]})
    index = RowIndex(frame)
    thread = Thread(target=index.prepare, args=(["name", "a"],))
    thread.start()
    asked = [index.order(column, True).tolist() for column in ("a", "name")]
    thread.join()
    assert asked == [obvious(frame[column].to_list(), True) for column in ("a", "name")]
    assert index.missing(["name", "a", "b"]) == ["b"]
