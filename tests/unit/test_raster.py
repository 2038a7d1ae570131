"""Cells of a timeline against a reference that looks at every picosecond, and against figures worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofterm.tui.widgets.glyphs import NO_CATEGORY
from roofterm.tui.widgets.pieces import disjoint, union
from roofterm.tui.widgets.raster import Lane, Pieces, Window, busy_ps, longest_gaps
from roofterm_parsers.nesting import nest
from roofterm_parsers.profile import ROOT

HORIZON = 60

Intervals = list[tuple[int, int]]

some_intervals = st.lists(st.tuples(st.integers(0, HORIZON - 1), st.integers(0, 25)), max_size=12)


def ordered(intervals: Intervals) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends sorted as the profile sorts slices: by start, longer first."""
    rows = sorted(((start, start + dur) for start, dur in intervals), key=lambda i: (i[0], -i[1]))
    return np.array([a for a, _ in rows], np.int64), np.array([b for _, b in rows], np.int64)


def parents(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    parent, _ = nest(np.zeros(start.size, np.uint32), start, end - start)
    return np.where(parent == ROOT, -1, parent.astype(np.int64))


def owner_by_picosecond(start: np.ndarray, end: np.ndarray) -> list[int]:
    """For each picosecond the running slice that began last (the later one in the order if two did), -1 for none."""
    return [max((i for i in range(start.size) if start[i] <= t < end[i]), default=-1) for t in range(HORIZON + 30)]


def painted(pieces: tuple[np.ndarray, np.ndarray, np.ndarray]) -> list[int]:
    owner = [-1] * (HORIZON + 30)
    for begin, until, row in zip(*(column.tolist() for column in pieces), strict=True):
        for t in range(begin, until):
            assert owner[t] == -1, "two pieces hold one picosecond"
            owner[t] = row
    return owner


@given(some_intervals)
def test_pieces_give_each_picosecond_to_the_slice_that_began_last(intervals: Intervals) -> None:
    start, end = ordered(intervals)
    assert painted(disjoint(start, end)) == owner_by_picosecond(start, end)


@given(some_intervals)
def test_pieces_with_parents_cover_the_same_picoseconds_and_prefer_the_innermost(intervals: Intervals) -> None:
    start, end = ordered(intervals)
    assert painted(disjoint(start, end, parents(start, end))) == owner_by_picosecond(start, end)


@given(some_intervals)
def test_no_slice_is_lost(intervals: Intervals) -> None:
    """Every slice that is the last to begin at some moment has a piece, and so has every slice with a length of zero."""
    start, end = ordered(intervals)
    found = set(disjoint(start, end, parents(start, end))[2].tolist())
    assert found == (set(owner_by_picosecond(start, end)) - {-1}) | set(np.flatnonzero(start == end).tolist())


@given(some_intervals)
def test_union_covers_each_picosecond_once(intervals: Intervals) -> None:
    start, end = ordered(intervals)
    covered = [any(a <= t < b for a, b in zip(start, end, strict=True)) for t in range(HORIZON + 30)]
    first, last = union(start, end)
    assert [any(a <= t < b for a, b in zip(first, last, strict=True)) for t in range(HORIZON + 30)] == covered
    assert (first[1:] > last[:-1]).all()


windows = st.builds(Window, st.integers(-5, HORIZON), st.integers(1, 80), st.integers(1, 23))


@given(windows)
def test_edges_split_the_window_and_agree_with_the_cell_of_each_time(window: Window) -> None:
    edges = window.edges()
    assert edges[0] == window.start_ps
    assert edges[-1] == window.end_ps
    for time in range(window.start_ps, window.end_ps):
        cell = window.cell(time)
        assert edges[cell] <= time < edges[cell + 1]
        assert window.edge(cell) == edges[cell]


@given(some_intervals, windows)
def test_busy_time_of_every_cell_is_exact(intervals: Intervals, window: Window) -> None:
    start, end = ordered(intervals)
    edges = window.edges()
    expected = [
        sum(any(a <= t < b for a, b in zip(start, end, strict=True)) for t in range(edges[c], edges[c + 1])) for c in range(window.cells)
    ]
    assert busy_ps(Pieces.of(*union(start, end)), edges).tolist() == expected


@given(some_intervals, windows, st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_a_cell_shows_the_category_with_most_time_and_hides_no_slice(intervals: Intervals, window: Window, codes: list[int]) -> None:
    start, end = ordered(intervals)
    category = np.array(codes[: start.size], np.uint8)
    first, last, of = disjoint(start, end)
    cells = Lane.of(first, last, of.astype(np.uint32), category[of]).cells(window.edges())
    owner = owner_by_picosecond(start, end)
    edges = window.edges().tolist()
    for cell, (a, b) in enumerate(pairwise(edges)):
        inside = [codes[owner[t]] for t in range(max(a, 0), min(b, len(owner))) if owner[t] >= 0]
        shown = int(cells.category[cell])
        assert cells.filled_ps[cell] == len(inside)
        if inside:
            assert inside.count(shown) == max(map(inside.count, range(4)))
        else:
            empty_here = {codes[i] for i in range(start.size) if start[i] == end[i] and a <= start[i] < b}
            assert shown in empty_here if empty_here else shown == NO_CATEGORY


def lane_of(*slices: tuple[int, int, int]) -> Lane:
    """(start, end, category) of disjoint slices, numbered from 0."""
    start, end, code = (np.array(column) for column in zip(*slices, strict=True))
    return Lane.of(start.astype(np.int64), end.astype(np.int64), np.arange(len(slices), dtype=np.uint32), code.astype(np.uint8))


def test_a_long_slice_that_began_left_of_the_window_is_found() -> None:
    lane = lane_of((0, 1_000_000, 2), (1_000_000, 1_000_010, 1))
    assert lane.cells(Window(500_000, 100, 4).edges()).category.tolist() == [2, 2, 2, 2]


def test_a_slice_of_one_picosecond_is_visible_in_a_window_of_a_hundred_seconds() -> None:
    lane = lane_of((50 * 10**12, 50 * 10**12 + 1, 3))
    assert lane.cells(Window(0, 100 * 10**12, 80).edges()).category.tolist() == [255] * 40 + [3] + [255] * 39


def test_the_fuller_category_wins_the_cell() -> None:
    # Cell 0 is 0..100: category 1 holds 30 + 30, category 2 holds 40 of it.
    lane = lane_of((0, 30, 1), (30, 70, 2), (70, 100, 1), (150, 160, 2))
    cells = lane.cells(Window(0, 200, 2).edges())
    assert cells.category.tolist() == [1, 2]
    assert cells.filled_ps.tolist() == [100, 10]


def test_hit_names_the_slice_that_fills_most_of_a_stretch() -> None:
    lane = lane_of((0, 30, 1), (30, 70, 2), (70, 100, 1))
    hit = lane.hit(20, 80)
    assert hit is not None
    assert (hit.slice, hit.category, hit.pieces) == (1, 2, 3)
    of_category_1 = lane.hit(25, 80, category=1)
    assert of_category_1 is not None
    assert of_category_1.slice == 2  # 70..80 is longer than 25..30
    assert lane.hit(100, 200) is None


def test_steps_to_the_next_and_the_previous_piece() -> None:
    lane = lane_of((0, 30, 1), (30, 70, 2), (90, 100, 1))
    assert lane.next_start(30) == 90
    assert lane.next_start(90) is None
    assert lane.previous_start(30) == 0
    assert lane.previous_start(0) is None


def test_wide_pieces_are_those_of_so_many_cells() -> None:
    # 10 cells of 10 ps: four cells are 40 ps.
    lane = lane_of((0, 30, 1), (30, 70, 2), (70, 100, 1))
    assert list(lane.wide(Window(0, 100, 10), 4)) == [(2, 30, 70, 1)]


def test_gaps_come_longest_first() -> None:
    parts = Pieces.of(np.array([0, 15, 100], np.int64), np.array([10, 40, 110], np.int64))
    assert longest_gaps(parts) == [(40, 100), (10, 15)]
    assert longest_gaps(Pieces.of(np.zeros(0, np.int64), np.zeros(0, np.int64))) == []


@pytest.mark.parametrize("window", [Window(0, 10, 3), Window(0, 10**15 + 7, 180)])
def test_an_empty_lane_shows_nothing(window: Window) -> None:
    cells = Lane().cells(window.edges())
    assert cells.category.tolist() == [NO_CATEGORY] * window.cells
    assert not cells.filled_ps.any()
