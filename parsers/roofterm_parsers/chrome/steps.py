"""Steps of a trace: distinct numbers of `ProfilerStep#N` on the host, of a device's line of steps, of `step_num`."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from roofterm_parsers.chrome.categories import STEP_NAME
from roofterm_parsers.chrome.context import XlaStep
from roofterm_parsers.profile import STEPS, Kind, Profile

LARGEST_NUMBER = 1 << 62


def steps_of(profile: Profile, xla: list[XlaStep]) -> pl.DataFrame:
    """STEPS, in order of start; of a number that several threads have the first, the longest of those that start together."""
    start = profile.slices["start_ps"].to_numpy()
    dur = profile.slices["dur_ps"].to_numpy()
    found = xla or _profiler_steps(profile)
    found.sort(key=lambda step: (int(start[step.slice]), -int(dur[step.slice]), step.slice))
    if any(step.device is not None for step in found):  # a device's own line of steps goes before the host's marks
        found = [step for step in found if step.device is not None]
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    for step in found:
        rows.setdefault(
            (step.number, step.name),
            {
                "source": 0,
                "number": step.number,
                "name": step.name,
                "start_ps": int(start[step.slice]),
                "dur_ps": int(dur[step.slice]),
                "slice": step.slice,
                "device": step.device,
            },
        )
    return pl.DataFrame(list(rows.values()), schema=STEPS)


def _profiler_steps(profile: Profile) -> list[XlaStep]:
    rows = np.flatnonzero(profile.slices["kind"].to_numpy() == Kind.STEP)
    names = profile.slices["name"].to_numpy()[rows]
    texts = profile.names["text"]
    found = []
    for row, name in zip(rows.tolist(), names.tolist(), strict=True):
        match = STEP_NAME.match(texts[name])
        if match and int(match[1]) < LARGEST_NUMBER:
            found.append(XlaStep(row, int(match[1]), texts[name], None))
    return found
