from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofterm.analysis import intervals as iv

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=25)


def merged(pairs: list[tuple[int, int]]) -> iv.Intervals:
    start = np.array([s for s, _ in pairs], np.int64)
    return iv.union(start, start + np.array([d for _, d in pairs], np.int64))


def points(pairs: list[tuple[int, int]]) -> set[int]:
    """The unit cells that intervals with whole ends cover: the slow and obvious set."""
    return {t for s, d in pairs for t in range(s, s + d)}


def cells(a: iv.Intervals) -> set[int]:
    return {t for s, e in zip(a.start.tolist(), a.end.tolist(), strict=True) for t in range(s, e)}


def is_merged(a: iv.Intervals) -> bool:
    return bool(np.all(a.end > a.start) and np.all(a.start[1:] > a.end[:-1]))


@given(spans)
def test_union_covers_the_same_points_once(a: list[tuple[int, int]]) -> None:
    assert cells(merged(a)) == points(a)
    assert is_merged(merged(a))
    assert merged(a).length == len(points(a))


@given(spans, spans)
def test_intersection_and_difference(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    assert cells(iv.both(merged(a), merged(b))) == points(a) & points(b)
    assert cells(iv.without(merged(a), merged(b))) == points(a) - points(b)


@given(spans, st.integers(0, 80), st.integers(0, 80))
def test_gaps_and_clip_share_a_window(a: list[tuple[int, int]], x: int, y: int) -> None:
    lo, hi = sorted((x, y))
    window = set(range(lo, hi))
    assert cells(iv.gaps(merged(a), lo, hi)) == window - points(a)
    assert cells(iv.clip(merged(a), lo, hi)) == window & points(a)


@given(spans, spans)
def test_cover_of_many_windows(a: list[tuple[int, int]], windows: list[tuple[int, int]]) -> None:
    start = np.array([s for s, _ in windows], np.int64)
    end = start + np.array([d for _, d in windows], np.int64)
    want = [len(points(a) & set(range(s, s + d))) for s, d in windows]
    assert iv.covered(merged(a), start, end).tolist() == want


@given(spans, spans)
def test_many_windows_are_cut_from_a_set_at_once_even_where_they_overlap(a: list[tuple[int, int]], windows: list[tuple[int, int]]) -> None:
    windows = [(start, length) for start, length in windows if length]
    start = np.array([s for s, _ in windows], np.int64)
    window, pieces = iv.cut(merged(a), start, start + np.array([d for _, d in windows], np.int64))
    for number, one in enumerate(windows):
        mine = window == number
        assert cells(iv.Intervals(pieces.start[mine], pieces.end[mine])) == points(a) & points([one])
    assert window.tolist() == sorted(window.tolist())


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("ascending", [True, False])
def test_borders_before_each_time(side: Literal["left", "right"], ascending: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        borders = np.sort(rng.integers(0, 40, rng.integers(0, 8)))
        times = rng.integers(0, 40, 30)
        times = np.sort(times) if ascending else times
        counted = [sum(border < time or (side == "right" and border == time) for border in borders) for time in times]
        assert iv.among(borders, times, side).tolist() == counted
