"""When the host is in an optimizer's step, and which device work is launched from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.intervals import Intervals, covered, union
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import TrackKind

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

OPTIMIZER_STEP = r"^Optimizer\.step#|^## optimizer ##$|^torch/optim/\w+\.py\(\d+\): step$"


def optimizer_times(study: Study) -> dict[int, Intervals]:
    """The time of each source's host in an optimizer's step, by row of sources; those without one are absent."""
    profile = study.profile
    names = profile.names["text"].str.contains(OPTIMIZER_STEP).to_numpy()
    host = (profile.tracks["kind"] == int(TrackKind.HOST)).to_numpy()  # devices repeat the annotations
    mine = names[profile.slices["name"].to_numpy()] & host[profile.slices["track"].to_numpy()] if names.any() else None
    rows = np.flatnonzero(mine) if mine is not None else np.zeros(0, np.int64)
    source = profile.tracks["source"].to_numpy()[profile.slices["track"].to_numpy()[rows]]
    start = study.start_ps[rows]
    end = start + study.dur_ps[rows]
    return {int(number): union(start[source == number], end[source == number]) for number in occurring(source)}


def launched_within(study: Study, pieces: pl.DataFrame, when: dict[int, Intervals]) -> NDArray[np.bool_]:
    """Which pieces of device work (columns launch, device) were launched by a call that began within their source's intervals."""
    launch = pieces["launch"].fill_null(0).to_numpy()
    at = study.start_ps[launch] if study.start_ps.size else np.zeros(launch.size, np.int64)
    source = study.profile.devices["source"][pieces["device"]].to_numpy()
    found = np.zeros(launch.size, np.bool_)
    for number, times in when.items():
        found |= (source == number) & (covered(times, at, at + 1) > 0)
    launched: NDArray[np.bool_] = pieces["launch"].is_not_null().to_numpy()
    return found & launched
