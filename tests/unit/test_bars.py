"""Small charts: heights worked out by hand, peaks that must not be lost, and exact maxima of memory in each cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofterm.tui.themes import palette
from roofterm.tui.widgets.bars import column_chart, memory_curve, most_in_cells
from roofterm.tui.widgets.glyphs import Look
from roofterm.tui.widgets.raster import Window

UNICODE, ASCII = Look(), Look("ascii", colour=False)
DARK = palette("dark")


def test_columns_are_eighths_of_a_line() -> None:
    # Two lines of eight eighths: 16 for the largest, so 8 of 16 is one full line, 1 of 16 the lowest eighth.
    assert column_chart([16, 8, 1, 0, None], 5, 2, UNICODE) == ["█    ", "██▁  "]


def test_columns_in_ascii_are_thirds_of_a_line() -> None:
    assert column_chart([6, 3, 2, 1, 0], 5, 2, ASCII) == ["#    ", "##:. "]


def test_any_value_above_nothing_shows() -> None:
    assert column_chart([1e9, 1e-9], 2, 1, UNICODE) == ["█▁"]


def test_few_values_make_wide_columns() -> None:
    assert column_chart([2, 1], 8, 1, UNICODE) == ["████▄▄▄▄"]


def test_a_peak_among_many_values_is_not_lost() -> None:
    values = [1.0] * 100
    values[57] = 8.0
    assert column_chart(values, 10, 1, UNICODE) == ["▁▁▁▁▁█▁▁▁▁"]


def test_a_chart_of_nothing_is_blank() -> None:
    assert column_chart([], 8, 2, UNICODE) == ["", ""]
    assert column_chart([0, 0], 2, 1, UNICODE) == ["  "]
    assert column_chart([None], 2, 1, UNICODE) == ["  "]


def test_memory_holds_between_its_events() -> None:
    # 100 until 30, then 50 until 70, then 200 for one picosecond, then 10. Cells of 20 ps.
    time = np.array([0, 30, 70, 71], np.int64)
    held = np.array([100, 50, 200, 10], np.int64)
    assert most_in_cells(time, held, Window(0, 100, 5)) == [100, 100, 50, 200, 10]
    assert memory_curve(time, held, Window(0, 100, 5), 1, UNICODE) == ["▄▄▂█▁"]  # 4, 4, 2, 8 and 0.4 eighths


def test_before_the_first_event_memory_is_unknown() -> None:
    assert most_in_cells(np.array([50], np.int64), np.array([7], np.int64), Window(0, 100, 4)) == [None, None, 7, 7]
    assert most_in_cells(np.zeros(0, np.int64), np.zeros(0, np.int64), Window(0, 100, 2)) == [None, None]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 99)), max_size=10, unique_by=lambda e: e[0]),
    st.integers(-5, 60),
    st.integers(1, 70),
    st.integers(1, 17),
)
def test_the_most_in_each_cell_is_exact(events: list[tuple[int, int]], start: int, span: int, cells: int) -> None:
    events = sorted(events)
    window = Window(start, span, cells)
    edges = window.edges().tolist()

    def held(time: int) -> int | None:
        return next((value for at, value in reversed(events) if at <= time), None)

    time, values = (np.array(column, np.int64) for column in (zip(*events, strict=True) if events else ([], [])))
    for cell, most in enumerate(most_in_cells(time, values, window)):
        inside = [value for t in range(edges[cell], edges[cell + 1]) if (value := held(t)) is not None]
        if edges[cell + 1] > edges[cell]:
            assert most == (max(inside) if inside else None)


@pytest.mark.parametrize("look", [UNICODE, ASCII])
def test_every_line_has_the_asked_width_and_characters(look: Look) -> None:
    for line in column_chart([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 7, 3, look):
        assert len(line) == 7
        assert not look.ascii or line.isascii()
