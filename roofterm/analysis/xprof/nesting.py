"""Self times by XProf's rule: an event is another's child if it lies inside it altogether; one that sticks out is no child."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


def self_ps(start: I64, dur: I64) -> I64:
    """Self times (ps) of a line's events, in its order: length less that of the direct children, who come after their parent."""
    end = start + dur
    own = dur.copy()
    later = start[1:] < end[:-1]
    if not later.any():
        return own
    # Only runs of events that touch one another can nest; the rest keep their length.
    reach = np.maximum.accumulate(end)
    cuts = np.flatnonzero(start[1:] >= reach[:-1]) + 1
    bounds = np.concatenate(([0], cuts, [start.size]))
    for run in np.flatnonzero(np.diff(bounds) > 1).tolist():
        a, b = int(bounds[run]), int(bounds[run + 1])
        own[a:b] = _stack(start[a:b].tolist(), end[a:b].tolist())
    return own


def _stack(starts: list[int], ends: list[int]) -> list[int]:
    own = [end - start for start, end in zip(starts, ends, strict=True)]
    lengths = list(own)
    above: list[int] = []
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        while above and not (starts[above[-1]] <= start and end <= ends[above[-1]]):
            above.pop()
        if above:
            own[above[-1]] -= lengths[i]
        above.append(i)
    return own
