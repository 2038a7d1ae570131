"""Which numbers occur in an array.

`np.unique` imports numpy's masked arrays first, which takes longer than what it is asked for here.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.integer[Any])

NARROW = 1 << 16
"""Numbers that lie within so many, or within as many as there are of them, are counted."""


def occurring(numbers: NDArray[Number]) -> NDArray[Number]:
    """The integers in an array, each once, ascending."""
    if numbers.size == 0:
        return numbers.reshape(-1)[:0]
    numbers = numbers.reshape(-1)
    low, high = int(numbers.min()), int(numbers.max())
    if high - low < max(NARROW, numbers.size):
        above = numbers - numbers.dtype.type(low) if numbers.dtype.kind == "u" else numbers.astype(np.int64) - low
        counted = np.bincount(above.astype(np.int64)).nonzero()[0]
        return cast(NDArray[Number], counted.astype(numbers.dtype) + numbers.dtype.type(low))
    ordered = np.sort(numbers)
    first = np.ones(ordered.size, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
