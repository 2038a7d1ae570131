"""Which slices start inside windows, held to asking each window about each slice."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from roofterm.analysis.selection import starts_inside

TIMES = st.integers(0, 12)
SLICES = st.lists(st.tuples(TIMES, st.integers(0, 2)), max_size=20)
WINDOWS = st.lists(st.tuples(st.integers(0, 2), TIMES, st.integers(0, 6)), max_size=6)


@given(SLICES, WINDOWS)
def test_a_slice_is_inside_when_any_window_of_its_source_holds_its_start(slices, windows):
    frame = pl.DataFrame(
        {
            "source": [source for source, _, _ in windows],
            "host_start_ps": [start for _, start, _ in windows],
            "host_end_ps": [start + length for _, start, length in windows],
        },
        schema={"source": pl.UInt32, "host_start_ps": pl.Int64, "host_end_ps": pl.Int64},
    )
    inside = starts_inside(np.array([at for at, _ in slices], np.int64), np.array([of for _, of in slices], np.uint32), frame)
    assert inside.tolist() == [any(of == source and start <= at < start + length for source, start, length in windows) for at, of in slices]
