"""The order of slices: by track, start, longer first, then as in the file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]


def slice_order(track: U32, start_ps: I64, dur_ps: I64) -> I64:
    """Rows in order. Tracks are taken one by one: most are written in order, or nearly, and a sort of those is quick."""
    by_track = np.argsort(track.astype(np.uint16) if track.size and int(track.max()) < 1 << 16 else track, kind="stable")
    bounds = np.flatnonzero(np.diff(track[by_track])) + 1
    order = np.empty(track.size, np.int64)
    for a, b in zip([0, *bounds.tolist()], [*bounds.tolist(), track.size], strict=True):
        rows = by_track[a:b]
        start = start_ps[rows]
        if np.any(start[1:] < start[:-1]):
            within = np.argsort(start, kind="stable")
            rows, start = rows[within], start[within]
        order[a:b] = _longer_first(rows, start, dur_ps)
    return order


def _longer_first(rows: I64, start: I64, dur_ps: I64) -> I64:
    """Rows sorted by start, put in order of length where they start together."""
    same = start[1:] == start[:-1]
    if not same.any():
        return rows
    dur = dur_ps[rows]
    if not np.any(same & (dur[1:] > dur[:-1])):
        return rows
    tied = np.zeros(rows.size, bool)
    tied[1:] = same
    tied[:-1] |= same
    places = np.flatnonzero(tied)
    sorted_places = places[np.lexsort((places, -dur[places], start[places]))]
    out = rows.copy()
    out[places] = rows[sorted_places]
    return out
