"""Which slices and which device work a scope speaks of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.host_steps import OUTSIDE, host_step
from roofterm.analysis.scope import Scope, ScopeError
from roofterm_parsers.profile import Profile

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Selection:
    """A part of a profile."""

    work: pl.DataFrame
    """device work of it, of schema `work.WORK`"""
    masked: Callable[[], Mask | None]
    """what tells `slices`, which few results need"""
    windows: pl.DataFrame
    """the steps of it, of schema `steps.WINDOWS`"""
    length_ps: int
    """time that it covers: its steps one after the other, else its window"""
    text: str
    """what it is, for people: "4 steady steps", "whole file" """

    @cached_property
    def slices(self) -> Mask | None:
        """Which slices belong to it; None: all."""
        return self.masked()


def select(profile: Profile, work: pl.DataFrame, windows: pl.DataFrame, scope: Scope) -> Selection:
    """The part of `profile` that `scope` names.

    With steps chosen, device work belongs to the step that launched it (or, on a device with a step line, to the one in
    which it starts) and host slices to the step in which they start. A profile without steps is taken whole. Raises
    ScopeError for a step or rank that is not there.
    """
    chosen, text = _chosen_steps(profile, windows, scope.step)
    whole = work
    if chosen is not None:
        work = work.filter(pl.col("step").is_in(chosen["step"].implode()))
    of_steps = work
    length = int((chosen["end_ps"] - chosen["start_ps"]).sum()) if chosen is not None else _span(profile)
    sources: list[int] | None = None
    if scope.rank is not None:
        sources = _sources_of_rank(profile, scope.rank)
        work = work.filter(profile.devices["source"][work["device"]].is_in(sources))
        text += f" of rank {scope.rank}"
    if scope.window_ps is not None:
        first, last = scope.window_ps
        work = work.filter((pl.col("start_ps") < last) & (pl.col("end_ps") > first))
        length = min(length, last - first)
        text += ", window"

    def masked() -> Mask | None:
        parts = []
        if chosen is not None:
            parts.append(_of_steps(profile, chosen, whole["slice"].to_numpy(), of_steps["slice"].to_numpy()))
        if sources is not None:
            parts.append(np.isin(profile.tracks["source"].to_numpy(), sources)[profile.slices["track"].to_numpy()])
        if scope.window_ps is not None:
            start = profile.slices["start_ps"].to_numpy()
            parts.append((start < last) & (start + profile.slices["dur_ps"].to_numpy() > first))
        return np.logical_and.reduce(parts) if parts else None

    return Selection(work, masked, windows if chosen is None else chosen, length, text)


def _of_steps(profile: Profile, chosen: pl.DataFrame, work: NDArray[np.uint32], mine: NDArray[np.uint32]) -> Mask:
    """Which slices belong to the chosen steps: of device work those that are `mine`, of all others what starts in them."""
    source = profile.tracks["source"].to_numpy()[profile.slices["track"].to_numpy()]
    windows = chosen.select("source", start_ps="host_start_ps", end_ps="host_end_ps")
    slices: Mask = host_step(profile.slices["start_ps"].to_numpy(), source, windows) != OUTSIDE
    slices[work] = False
    slices[mine] = True
    return slices


def _chosen_steps(profile: Profile, windows: pl.DataFrame, asked: str) -> tuple[pl.DataFrame | None, str]:
    if asked == "all":
        return None, "whole file"
    if windows.height == 0:
        if asked == "steady":
            return None, "whole file, no steps"
        raise ScopeError(f"--step {asked}: this profile has no steps")
    numbers = profile.steps["number"][windows["step"]]
    if asked == "steady":
        for column, name in (("steady", "steady"), ("complete", "complete")):
            taken = windows.filter(pl.col(column))
            if taken.height:
                return taken, _counted(taken["step"].n_unique(), name)
        return windows, _counted(windows.height, "incomplete")
    first, _, last = asked.partition("-")
    if not first.isdigit() or not (last or first).isdigit():
        raise ScopeError(f"--step {asked}: write steady, all, a number or A-B")
    taken = windows.filter(numbers.is_between(int(first), int(last or first)))
    if taken.height == 0:
        known = numbers.unique().sort().to_list()
        raise ScopeError(f"--step {asked}: no such step; there are {known[0]} to {known[-1]}")
    return taken, f"step {first}" if not last or last == first else f"steps {first} to {last}"


def _counted(count: int, name: str) -> str:
    return f"{count} {name} step{'s' if count != 1 else ''}"


def _sources_of_rank(profile: Profile, rank: int) -> list[int]:
    sources = [row for row, source in enumerate(profile.sources) if source.rank == rank]
    if not sources:
        known = sorted({s.rank for s in profile.sources if s.rank is not None})
        raise ScopeError(f"--rank {rank}: no such rank; " + (f"there are {known}" if known else "this profile names none"))
    return sources


def _span(profile: Profile) -> int:
    if profile.slices.height == 0:
        return 0
    end = (profile.slices["start_ps"] + profile.slices["dur_ps"]).max()
    return int(end) - int(profile.slices["start_ps"].min())  # type: ignore[arg-type]
