"""Where attention is made of products: the kernels between a batched product, its softmax and the next product."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.categories import Category
from roofterm.analysis.intervals import I64
from roofterm_parsers.occurring import occurring

if TYPE_CHECKING:
    from roofterm.analysis.findings.evidence import Evidence

REACH = 6
"""A softmax of attention has its two products within so many kernels before and after it on the stream."""

BATCHED = r"^aten::(bmm|baddbmm|matmul|einsum)|attention"


class Places(NamedTuple):
    pairs: int
    """pairs of products with a softmax between"""
    between: pl.DataFrame
    """the device work between them, rows of `Evidence.by_stream`"""


def attention_places(e: Evidence) -> Places:
    """Softmaxes between two batched products on one stream, at most `REACH` kernels from each."""
    rows = e.by_stream
    category, track = rows["category"].to_numpy(), rows["track"].to_numpy()
    batched = (category == int(Category.GEMM)) & _batched(e, rows)
    before, after = _nearest(batched, track)
    softmax = np.flatnonzero((category == int(Category.SOFTMAX)) & (before >= 0) & (after >= 0))
    near = softmax[(softmax - before[softmax] <= REACH) & (after[softmax] - softmax <= REACH)]
    opened = np.zeros(rows.height + 1, np.int64)
    np.add.at(opened, before[near] + 1, 1)
    np.add.at(opened, after[near], -1)
    inside = np.cumsum(opened[:-1]) > 0
    return Places(int(occurring(before[near]).size), rows.filter(pl.Series(inside & (category != int(Category.GEMM)))))


def _batched(e: Evidence, rows: pl.DataFrame) -> NDArray[np.bool_]:
    """Which pieces are launched by a batched product, or by an op that is not known."""
    ops = e.profile.names["text"].str.contains(BATCHED)
    found: NDArray[np.bool_] = ops[rows["op_name"]].fill_null(True).to_numpy()
    return found


def _nearest(marked: NDArray[np.bool_], track: NDArray[np.uint32]) -> tuple[I64, I64]:
    """For each row the last marked row up to it and the next from it on, on its track; -1 for none."""
    at = np.arange(marked.size)
    if marked.size == 0:
        return at, at
    before = np.maximum.accumulate(np.where(marked, at, -1))
    after = np.minimum.accumulate(np.where(marked, at, marked.size)[::-1])[::-1]
    inside = after < marked.size
    before = np.where((before >= 0) & (track[np.maximum(before, 0)] == track), before, -1)
    return before, np.where(inside & (track[np.minimum(after, marked.size - 1)] == track), after, -1)
