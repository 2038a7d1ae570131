from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from roofterm.analysis.lookup import looked_up

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
