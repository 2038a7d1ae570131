"""Where the events of a file lie in time: one axis for those that lie together, and which lie too far off to be on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.chrome.times import PS_PER_US

I64 = NDArray[np.int64]

FAR_US = 50 * 24 * 3600 * 1_000_000
"""Farther than this (50 days) from the middle of the events is off the axis: 64 bits of picoseconds hold 106 days."""
NEAR_ZERO_US = 60_000_000
_SAMPLED = 10_000
EPOCH_US = 500_000_000_000_000
"""Times beyond this (November 1985) are counted from 1970, smaller ones from the writer's own zero."""


@dataclass(slots=True)
class Axis:
    zero_us: int
    zero_ps: int
    """part of the zero below a microsecond"""

    def place(self, us: I64, ps: NDArray[np.int32]) -> I64:
        """Times (ps) from the zero; what is off the axis is put at its near end."""
        away = np.clip(us - self.zero_us, -2 * FAR_US, 2 * FAR_US)
        return away * PS_PER_US + ps - self.zero_ps

    def place_in(self, us: I64, ps: NDArray[np.int32]) -> I64:
        """As `place`, of times that all lie on the axis; `us` is used for the result."""
        us -= self.zero_us
        us *= PS_PER_US
        us += ps
        us -= self.zero_ps
        return us

    def unix_ns(self, base_ns: int | None) -> int | None:
        """The zero on the wall clock (ns since 1970), by the file's base or because its times are such themselves."""
        own = self.zero_us * 1000 + self.zero_ps // 1000
        if base_ns:
            return base_ns + own
        return own if self.zero_us > EPOCH_US else None


def off_axis(us: I64, ps: NDArray[np.int32], dur_ps: I64) -> NDArray[np.bool_]:
    """Which slices lie too far off: days away from the rest, or at time 0 with length 0 while the rest is elsewhere."""
    if us.size == 0:
        return np.zeros(0, bool)
    lost = (us == 0) & (ps == 0) & (dur_ps == 0)
    rest = us[~lost] if lost.any() else us
    if rest.size == 0:
        return np.zeros(us.size, bool)
    sample = rest[:: max(1, rest.size // _SAMPLED)]
    middle = int(np.partition(sample, sample.size // 2)[sample.size // 2])
    lowest, highest = int(rest.min()), int(rest.max())
    far = np.zeros(us.size, bool)
    if lowest < middle - FAR_US or highest > middle + FAR_US:
        far = np.abs(us - middle) > FAR_US
        near = rest[np.abs(rest - middle) <= FAR_US]
        lowest, highest = int(near.min()), int(near.max())
    apart = min(abs(lowest), abs(highest)) if lowest * highest > 0 else 0
    return far | lost if apart > max(NEAR_ZERO_US, highest - lowest) else far


def axis_of(us: I64, ps: NDArray[np.int32]) -> Axis:
    """The axis whose zero is the earliest of these times."""
    first = int(us.min())
    return Axis(first, int(ps[us == first].min()))
