from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofterm.analysis.lookup import ABSENT, codes_by_id, looked_up, rows_among

ids = st.lists(st.integers(0, 20), max_size=30)


@given(ids, st.lists(st.none() | st.integers(0, 20), max_size=30))
def test_a_value_is_that_of_the_first_row_with_the_id_and_null_where_there_is_none(keys: list[int], wanted: list[int | None]) -> None:
    values = pl.Series("v", [f"row {row}" for row in range(len(keys))], dtype=pl.String)
    found = looked_up(values, pl.Series(keys, dtype=pl.UInt32), 21, pl.Series(wanted, dtype=pl.UInt32))
    first = {key: f"row {row}" for row, key in reversed(list(enumerate(keys)))}
    assert found.to_list() == [None if one is None else first.get(one) for one in wanted]
    assert found.dtype == pl.String


def test_nothing_is_found_among_no_slices() -> None:
    nothing = pl.Series([], dtype=pl.UInt32)
    assert looked_up(nothing, nothing, 0, nothing).len() == 0
    assert looked_up(nothing, nothing, 0, pl.Series([None], dtype=pl.UInt32)).to_list() == [None]


def first_rows(ids: list[int], wanted: list[int]) -> list[int]:
    return [ids.index(one) if one in ids else ABSENT for one in wanted]


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ([1, 3, 5, 7, 9], [5, 7, 9]),  # a stretch
        ([1, 3, 5, 7, 9], [5, 6, 9]),
        ([9, 3, 3, 1], [3, 1, 2]),  # in any order, of two the first
        ([3, 1, 3], [3]),
        ([3, 3, 4], [3, 3]),
        ([3, 3, 4], [3, 4]),
        (list(range(0, 100, 2)), [98, 3]),  # few of many
        ([], [1]),
        ([1], []),
        ([4, 5], [3, 4, 5, 6]),
    ],
)
def test_rows_of_ids(held: list[int], wanted: list[int]) -> None:
    found = rows_among(pl.Series(held, dtype=pl.UInt32), pl.Series(wanted, dtype=pl.UInt32), 100)
    assert found.tolist() == first_rows(held, wanted)


@pytest.mark.parametrize("held", [[0, 2, 5], [5, 2, 2, 0]])
def test_codes_of_ids(held: list[int]) -> None:
    codes = list(range(10, 10 + len(held)))
    found = codes_by_id(pl.Series(codes, dtype=pl.UInt32), pl.Series(held, dtype=pl.UInt32), 6)
    assert found.tolist() == [codes[row] if row != ABSENT else ABSENT for row in first_rows(held, list(range(6)))]
    assert found.dtype == np.int32
