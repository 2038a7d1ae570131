"""Every target of the fuzzer runs, on its seeds and on a few inputs made from them by chance."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from tests.fuzz.mutation import mutants
from tests.fuzz.targets import MOST_BYTES, TARGETS

TRIES = 60


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_holds_its_promise(name: str) -> None:
    target, seeds = TARGETS[name]
    for data in islice(mutants(seeds, Random(20240722), MOST_BYTES), TRIES):
        target(data)


def test_the_same_chance_makes_the_same_inputs() -> None:
    _, seeds = TARGETS["scanner"]
    first, second = (list(islice(mutants(seeds, Random(5), 999), 20)) for _ in range(2))
    assert first == second
    assert len(set(first)) > len(seeds)
    assert all(len(data) <= 999 for data in first[len(seeds) :])
