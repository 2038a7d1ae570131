"""How far two means lie apart by chance: the spread of the steps themselves, as Student's t judges it."""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

CHANCE = 0.001
"""Of all rows of a table together: how likely one of them passes for a change where nothing changed."""

MOST_FREEDOM = 200
"""Beyond so many degrees of freedom the quantile hardly falls any more."""


def chance_spread(base: F64, new: F64, rows: int) -> F64:
    """By how much the means of `base` and `new` may differ by chance alone, for each column; NaN where that is not known.

    Both have a row a step and a column a figure, in one unit, which is that of the answer; `rows` is the number of figures
    that are judged together (Bonferroni). Student's two samples with a common variance: with the few steps of a profile, each
    side's own would leave too few degrees of freedom to find anything. With one step on either side nothing is known.
    """
    steps = base.shape[0], new.shape[0]
    if min(steps) < 2:
        return np.full(base.shape[1], np.nan)
    freedom = sum(steps) - 2
    variance = ((steps[0] - 1) * base.var(axis=0, ddof=1) + (steps[1] - 1) * new.var(axis=0, ddof=1)) / freedom
    factor = quantile(min(freedom, MOST_FREEDOM), CHANCE / max(rows, 1))
    spread: F64 = factor * np.sqrt(variance * (1 / steps[0] + 1 / steps[1]))
    return spread


@lru_cache(maxsize=1024)
def quantile(freedom: int, chance: float) -> float:
    """The t that is passed on either side with this probability, by bisection."""
    low, high = 0.0, 1.0
    while outside(high, freedom) > chance:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if outside(middle, freedom) > chance else (low, middle)
    return high


def outside(t: float, freedom: int) -> float:
    """Probability that |T| > t for Student's distribution: the finite series of Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle = atan(t / sqrt(freedom))
    square = cos(angle) ** 2
    term, total = (1.0, 1.0) if freedom % 2 == 0 else (cos(angle), cos(angle))
    first = 1 if freedom % 2 == 0 else 2
    for at in range(first, freedom - 2, 2):
        term *= square * at / (at + 1)
        total += term
    if freedom == 1:
        return 1 - 2 * angle / pi
    if freedom % 2:
        return 1 - 2 / pi * (angle + sin(angle) * total)
    return 1 - sin(angle) * total
