"""Which numbers occur in an array: as numpy's `unique` says."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from roofterm_parsers.occurring import NARROW, occurring

INTEGERS = [np.dtype(kind) for kind in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8")]


@given(st.sampled_from(INTEGERS).flatmap(lambda dtype: arrays.arrays(dtype, st.integers(0, 60))))
def test_each_number_is_given_once_in_order(numbers):
    found = occurring(numbers)
    assert found.dtype == numbers.dtype
    assert found.tolist() == sorted(set(numbers.tolist()))


@pytest.mark.parametrize("far", [NARROW, NARROW + 1])
def test_numbers_that_lie_far_apart_are_found_as_well(far):
    assert occurring(np.array([7 + far, 7, 7 + far, 7])).tolist() == [7, 7 + far]


def test_masked_arrays_are_not_imported():
    code = "import sys, numpy; from roofterm_parsers.occurring import occurring; occurring(numpy.arange(3)); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert "numpy.ma" not in loaded
