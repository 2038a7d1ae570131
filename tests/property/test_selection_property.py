"""In which window each slice starts, held to asking each window about each slice."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from roofterm.analysis.host_steps import OUTSIDE, host_step

TIMES = st.integers(0, 12)
SLICES = st.lists(st.tuples(TIMES, st.integers(0, 2)), max_size=20)
WINDOWS = st.lists(st.tuples(st.integers(0, 2), TIMES, st.integers(0, 6)), max_size=6)


@given(SLICES, WINDOWS)
def test_a_slice_is_inside_when_any_window_of_its_source_holds_its_start(slices, windows):
    frame = pl.DataFrame(
        {
            "source": [source for source, _, _ in windows],
            "start_ps": [start for _, start, _ in windows],
            "end_ps": [start + length for _, start, length in windows],
        },
        schema={"source": pl.UInt32, "start_ps": pl.Int64, "end_ps": pl.Int64},
    )
    found = host_step(np.array([at for at, _ in slices], np.int64), np.array([of for _, of in slices], np.uint32), frame)
    for row, (at, of) in zip(found.tolist(), slices, strict=True):
        holding = [i for i, (source, start, length) in enumerate(windows) if of == source and start <= at < start + length]
        assert row in holding if holding else row == OUTSIDE
        if holding:
            last = max(start for source, start, _ in windows if source == of and start <= at)
            began_last = [i for i in holding if windows[i][1] == last]
            assert row in began_last or not began_last
