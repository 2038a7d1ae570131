"""A profile with every result that was asked of it: each computed once, by the modules beside this one, and kept.

The commands, the report and the explorer all show a Study's results, so a figure cannot differ between them.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.scope import ALL, STEADY, RoofChoice, Scope
from roofterm_parsers.nesting import self_times
from roofterm_parsers.profile import Profile

if TYPE_CHECKING:
    from roofterm import results


class Study:
    """Results over one profile. Not thread-safe: one thread asks at a time."""

    def __init__(self, profile: Profile, roofs: RoofChoice | None = None) -> None:
        self.profile = profile
        self.roofs = roofs or RoofChoice()

    # Arrays over slices (index: slice id)

    @cached_property
    def start_ps(self) -> NDArray[np.int64]:
        return self.profile.slices["start_ps"].to_numpy()

    @cached_property
    def dur_ps(self) -> NDArray[np.int64]:
        return self.profile.slices["dur_ps"].to_numpy()

    @cached_property
    def kind(self) -> NDArray[np.uint8]:
        return self.profile.slices["kind"].to_numpy()

    @cached_property
    def self_ps(self) -> NDArray[np.int64]:
        """Slice self time, ps: never negative (nasty/README.md rules 6 and 7)."""
        return self_times(self.profile.slices["parent"].to_numpy(), self.start_ps, self.dur_ps)

    @cached_property
    def category(self) -> NDArray[np.uint8]:
        """`categories.Category` of each slice: what it computes, or for the host what it is."""
        raise NotImplementedError

    # Results

    def devices(self) -> list[results.DeviceInfo]:
        """Devices that worked, or all if none did, with their roofs."""
        raise NotImplementedError

    def summary(self) -> results.Summary:
        """Facts of the whole file."""
        raise NotImplementedError

    def steps(self) -> list[results.StepRow]:
        """One row a step and rank, with the breakdown that adds up."""
        raise NotImplementedError

    def table(self, by: str, scope: Scope = ALL, group: str | None = None) -> pl.DataFrame:
        """The `ops --by` table: columns of `results.TABLES[by]`, most total time first, all rows."""
        raise NotImplementedError

    def roofline(self, scope: Scope = STEADY, top: int = 1000) -> results.Roofline:
        raise NotImplementedError

    def findings(self, scope: Scope = STEADY) -> list[results.Finding]:
        raise NotImplementedError
