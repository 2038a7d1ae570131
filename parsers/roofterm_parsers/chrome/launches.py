"""What calls say of the kernels they launch (ROCm): the grid of kernels that have none, and work the file does not hold."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers import linking
from roofterm_parsers.chrome.arguments import SHAPE, shape_of, text_of
from roofterm_parsers.chrome.context import Context
from roofterm_parsers.chrome.events import NULL
from roofterm_parsers.chrome.frames import bounded, table
from roofterm_parsers.chrome.groups import Group
from roofterm_parsers.profile import LAUNCHES

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

MOST_U32 = (1 << 32) - 1
MOST_SHARED_BYTES = 1 << 40


class Launches:
    """Calls that hold the shape of what they launch."""

    def __init__(self, context: Context) -> None:
        rows = context.rows(Group.LAUNCH)
        self._context = context
        self.calls = rows.slices if rows is not None else np.zeros(0, np.int64)
        if rows is None:
            return
        self._correlation: I64 = rows.take("correlation")
        self._shape: U32 = rows.take("shape")
        self._shared: I64 = rows.take("shared")
        self._kernel: U32 = rows.take("kernel")
        self._call_of = linking.Lookup(context.ids(self.calls, self._correlation), np.zeros(context.lane.size, np.int64))

    def complete(self, slices: I64, correlation: I64, shape: U32, shared: I64) -> None:
        """Give work without a grid that of its call, in `shape` and `shared`."""
        missing = np.flatnonzero(shape == 0)
        if self.calls.size == 0 or missing.size == 0:
            return
        call = self._calls(slices[missing], correlation[missing])
        missing, call = missing[call != linking.NONE], call[call != linking.NONE]
        place = np.searchsorted(self.calls, call)
        shape[missing] = self._shape[place]
        unknown = shared[missing] == NULL
        shared[missing[unknown]] = self._shared[place[unknown]]

    def fill(self, slices: I64, correlation: I64) -> None:
        """Keep in `launches` what calls say of work that is not among the given."""
        if self.calls.size == 0:
            return
        lost = ~np.isin(self.calls, self._calls(slices, correlation))
        if not lost.any():
            return
        texts = list(self._context.gathered.texts)
        codes, place = np.unique(self._kernel[lost], return_inverse=True)
        self._context.profile.launches = table(
            LAUNCHES,
            {
                "slice": self.calls[lost],
                "kernel": pl.Series([text_of(texts[code]) for code in codes.tolist()], dtype=pl.String).gather(place),
                **shapes(self._context, self._shape[lost]),
                "shared_bytes": bounded(self._shared[lost], MOST_SHARED_BYTES),
            },
        )

    def _calls(self, slices: I64, correlation: I64) -> I64:
        """The call that launched each piece of work; NONE where there is none."""
        return np.where(correlation == NULL, linking.NONE, self._call_of(self._context.ids(slices, correlation)))


def shapes(context: Context, code: U32) -> dict[str, pl.Series]:
    """Grid and block of each kernel or call."""
    used = np.flatnonzero(np.bincount(code, minlength=1))
    texts = list(context.gathered.texts)
    known = np.array([shape_of(texts[number]) for number in used.tolist()], np.int64).reshape(-1, len(SHAPE))
    distinct = pl.DataFrame({name: bounded(known[:, i], MOST_U32).cast(pl.UInt32) for i, name in enumerate(SHAPE)})
    place = np.zeros(int(used.max(initial=0)) + 1, np.uint32)
    place[used] = np.arange(used.size)
    rows = distinct[place[code]]
    return {name: rows[name] for name in SHAPE}
