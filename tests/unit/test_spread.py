"""Student's t against printed tables, and the spread of means by hand."""

from __future__ import annotations

import numpy as np
import pytest

from roofterm.analysis.spread import CHANCE, chance_spread, outside, quantile


@pytest.mark.parametrize(
    ("freedom", "chance", "t"),
    [
        (1, 0.05, 12.706),
        (1, 0.001, 636.619),
        (2, 0.05, 4.303),
        (2, 0.001, 31.599),
        (3, 0.01, 5.841),
        (4, 0.05, 2.776),
        (5, 0.001, 6.869),
        (10, 0.05, 2.228),
        (10, 0.001, 4.587),
        (29, 0.01, 2.756),
        (120, 0.05, 1.980),
    ],
)
def test_quantiles_are_those_of_the_printed_tables(freedom: int, chance: float, t: float):
    assert quantile(freedom, chance) == pytest.approx(t, abs=6e-4)
    assert outside(t, freedom) == pytest.approx(chance, rel=2e-3)


def test_the_spread_of_two_means_by_hand():
    """1, 2, 3 and 3, 5, 7: variances 1 and 4, together 2.5, error sqrt(2.5 (1/3 + 1/3)) = 1.291; t of 4 degrees at 0.1 % is 8.610."""
    (spread,) = chance_spread(np.array([[1.0], [2.0], [3.0]]), np.array([[3.0], [5.0], [7.0]]), rows=1)
    assert spread == pytest.approx(8.610 * 1.29099, rel=1e-4)
    assert CHANCE == 0.001


def test_one_step_has_no_spread_and_equal_steps_have_none_to_speak_of():
    one, three = np.array([[1.0]]), np.array([[2.0], [2.0], [2.0]])
    assert np.isnan(chance_spread(one, three, 1)).all()
    assert chance_spread(three, three, 1).tolist() == [0.0]


def test_more_rows_ask_for_more():
    steps = np.arange(12.0).reshape(6, 2)
    assert (chance_spread(steps, steps, 100) > chance_spread(steps, steps, 1)).all()


def test_noise_alone_passes_no_more_often_than_promised():
    """20,000 pairs of 5 steps of the same normal distribution, judged one by one: about 0.1 % pass."""
    rng = np.random.default_rng(7)
    base, new = rng.normal(100, 1, (5, 20_000)), rng.normal(100, 1, (5, 20_000))
    passed = np.abs(base.mean(axis=0) - new.mean(axis=0)) > chance_spread(base, new, 1)
    assert passed.mean() < 0.002
