"""Ticks of both axes: known windows, and what must hold in any."""

from __future__ import annotations

from math import log10

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofterm.tui.widgets.axis import engineering, exact_time, log_ticks, time_ticks


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.01, "0.01"), (0.1, "0.1"), (1, "1"), (10, "10"), (1e3, "1k"), (2.5e6, "2.5M"), (1e10, "10G"), (1e11, "100G"), (1e12, "1T")),
        *((989.4e12, "989.4T"), (999.96e12, "1P"), (1e15, "1P"), (1e-5, "1e-5"), (1e24, "1e24"), (0.001, "0.001")),
    ],
)
def test_engineering_labels(value: float, text: str) -> None:
    assert engineering(value) == text


def test_a_roofline_window_has_a_tick_a_decade() -> None:
    assert [label for _, label in log_ticks(-2, 4, 8)] == ["0.01", "0.1", "1", "10", "100", "1k", "10k"]
    assert [label for _, label in log_ticks(9.7, 15.2, 8)] == ["10G", "100G", "1T", "10T", "100T", "1P"]


def test_crowded_decades_keep_every_third_at_the_prefixes() -> None:
    assert [label for _, label in log_ticks(8.5, 15.2, 3)] == ["1G", "1T", "1P"]


def test_within_two_decades_ticks_are_1_2_5() -> None:
    assert log_ticks(12, 13, 8) == [(12.0, "1T"), (pytest.approx(log10(2e12)), "2T"), (pytest.approx(log10(5e12)), "5T"), (13.0, "10T")]


def test_within_less_than_a_factor_of_two_steps_are_even() -> None:
    assert [label for _, label in log_ticks(log10(1.25e12), log10(1.75e12), 6)] == ["1.3T", "1.4T", "1.5T", "1.6T", "1.7T"]


@given(st.floats(-30, 30), st.floats(1e-3, 60), st.integers(1, 12))
def test_log_ticks_lie_inside_in_order_and_are_not_too_many(low: float, span: float, most: int) -> None:
    ticks = log_ticks(low, low + span, most)
    places = [at for at, _ in ticks]
    assert len(ticks) <= most
    assert places == sorted(set(places))
    assert all(low - 1e-6 <= at <= low + span + 1e-6 for at in places)
    assert len({label for _, label in ticks}) == len(ticks)


def test_a_step_of_218_ms_has_ticks_every_50_ms() -> None:
    axis = time_ticks(0, 218_400_000_000, 60)
    # 50 ms of 218.4 ms over 60 cells: cell 13.7; 100 ms: 27.5; 150 ms: 41.2; 200 ms: 54.9.
    assert axis.ticks == [(0, "0 ms"), (13, "50 ms"), (27, "100 ms"), (41, "150 ms"), (54, "200 ms")]
    assert axis.base == ""


def test_deep_in_a_profile_labels_count_from_a_base() -> None:
    axis = time_ticks(123_456_789_000, 60_000, 60)
    # The first multiple of 10 ns is 123,456,790 ns, one cell (1 ns) in.
    assert axis.base == "123.45679 ms"
    assert axis.ticks == [(1, "+0 ns"), (11, "+10 ns"), (21, "+20 ns"), (31, "+30 ns"), (41, "+40 ns"), (51, "+50 ns")]


def test_times_count_from_the_given_zero() -> None:
    axis = time_ticks(10_000_000, 100_000_000, 50, zero_ps=20_000_000)
    assert (5, "0 us") in axis.ticks  # the zero lies 10 of 100 us in: cell 5 of 50
    assert axis.base == ""


@given(st.integers(-(10**13), 10**15), st.integers(1, 10**15), st.integers(1, 240), st.integers(0, 10**13))
def test_time_labels_never_touch_and_are_true(start: int, span: int, cells: int, zero: int) -> None:
    axis = time_ticks(start, span, cells, zero)
    units = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
    previous_end = -1
    base = None
    for cell, label in axis.ticks:
        assert 0 <= cell < cells
        assert cell > previous_end
        previous_end = cell + len(label)
        number, unit = label.split(" ")
        time = round(float(number) * units[unit]) + zero
        if axis.base:
            base = time if base is None else base
            continue  # relative to a base: the distance is checked by the step below
        assert abs((time - start) * cells // span - cell) <= (1 if abs(time) > 2**52 else 0)
    distances = {b - a for (a, _), (b, _) in zip(axis.ticks, axis.ticks[1:], strict=False)}
    assert max(distances, default=0) - min(distances, default=0) <= 1


@pytest.mark.parametrize(
    ("time_ps", "text"),
    [(0, "0 us"), (7, "7 ps"), (1_500, "1.5 ns"), (-1_500, "-1.5 ns"), (12_345_678_000, "12.345678 ms"), (10**12, "1 s")],
)
def test_exact_times(time_ps: int, text: str) -> None:
    assert exact_time(time_ps) == text
