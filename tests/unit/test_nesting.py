"""Nesting against a plain stack, on slices that nest, stick out, touch and have no length."""

from __future__ import annotations

import random

import numpy as np
import pytest

from roofterm_parsers.nesting import cut_ends, nest, self_times
from roofterm_parsers.profile import ROOT

Row = tuple[int, int, int]
"""track, start, length"""


def arrays(rows: list[Row]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    track, start, dur = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(track, np.uint32), np.array(start, np.int64), np.array(dur, np.int64)


def slow(rows: list[Row]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Parent, depth, end and self time by the two rules, one slice after the other."""
    parents: list[int] = []
    depths: list[int] = []
    ends: list[int] = []
    stack: list[int] = []
    for i, (track, start, dur) in enumerate(rows):
        if i and rows[i - 1][0] != track:
            stack = []
        while stack and ends[stack[-1]] <= start:
            stack.pop()
        parents.append(stack[-1] if stack else ROOT)
        depths.append(len(stack))
        ends.append(min(start + dur, ends[stack[-1]]) if stack else start + dur)
        stack.append(i)
    own = [end - start for end, (_, start, _) in zip(ends, rows, strict=True)]
    for i, parent in enumerate(parents):
        if parent != ROOT:
            own[parent] -= ends[i] - rows[i][1]
    return parents, depths, ends, own


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row[0], row[1], -row[2]))


def test_nothing_nests_in_nothing() -> None:
    parent, depth = nest(*arrays([]))
    assert parent.size == depth.size == 0


@pytest.mark.parametrize(
    ("rows", "parents", "depths"),
    [
        ([(0, 0, 10), (0, 2, 3), (0, 3, 1), (0, 6, 4)], [ROOT, 0, 1, 0], [0, 1, 2, 1]),
        ([(0, 0, 10), (0, 10, 5)], [ROOT, ROOT], [0, 0]),  # touching is not overlapping
        ([(0, 0, 10), (0, 6, 10), (0, 12, 2)], [ROOT, 0, ROOT], [0, 1, 0]),  # what sticks out holds nothing behind its parent
        ([(0, 5, 9), (0, 5, 9), (0, 5, 0)], [ROOT, 0, 1], [0, 1, 2]),
        ([(0, 5, 0), (0, 5, 0), (0, 5, 0)], [ROOT, ROOT, ROOT], [0, 0, 0]),
        ([(0, 0, 10), (1, 2, 3)], [ROOT, ROOT], [0, 0]),  # tracks have nothing to do with each other
    ],
)
def test_parents_and_depths_follow_the_rules(rows: list[Row], parents: list[int], depths: list[int]) -> None:
    parent, depth = nest(*arrays(rows))
    assert (parent.tolist(), depth.tolist()) == (parents, depths)


def test_self_time_is_never_negative_where_a_child_sticks_out() -> None:
    _, start, dur = arrays([(0, 0, 10), (0, 6, 10)])
    parent, _ = nest(np.zeros(2, np.uint32), start, dur)
    assert self_times(parent, start, dur).tolist() == [6, 4]


def test_a_cut_travels_down() -> None:
    rows = [(0, 0, 10), (0, 5, 20), (0, 6, 15), (0, 7, 1)]
    track, start, dur = arrays(rows)
    parent, _ = nest(track, start, dur)
    assert cut_ends(parent, start, dur).tolist() == [10, 10, 10, 8]


@pytest.mark.parametrize("share_sticking_out", [0.0, 0.02, 0.3, 1.0])
def test_many_random_slices_nest_as_with_a_stack(share_sticking_out: float) -> None:
    rng = random.Random(7)
    for _ in range(150):
        rows: list[Row] = []
        for track in range(rng.randint(1, 3)):
            open_ends = [rng.choice([30, 1000])]
            for start in sorted(rng.randint(0, 200) for _ in range(rng.randint(0, 40))):
                open_ends = [end for end in open_ends if end > start] or [start + 200]
                free = rng.random() < share_sticking_out
                dur = rng.choice([0, 1, 2, rng.randint(0, 60)]) if free else rng.randint(0, open_ends[-1] - start)
                open_ends.append(start + dur)
                rows.append((track, start, dur))
        rows = in_order(rows)
        track_, start_, dur_ = arrays(rows)
        parent, depth = nest(track_, start_, dur_)
        parents, depths, ends, own = slow(rows)
        assert (parent.tolist(), depth.tolist()) == (parents, depths)
        assert cut_ends(parent, start_, dur_).tolist() == ends
        assert self_times(parent, start_, dur_).tolist() == own
        assert min(own, default=0) >= 0


def test_depth_stops_at_what_its_type_holds() -> None:
    n = 70_000
    start = np.arange(n, dtype=np.int64)
    _, depth = nest(np.zeros(n, np.uint32), start, 2 * n - 2 * start)
    assert depth.max() == 0xFFFF
    assert depth[5] == 5
