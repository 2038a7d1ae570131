"""What every result over a profile is made from: arrays over its slices, its device work, its steps, and parts of them.

Each is computed once, when it is first asked for, by the modules beside this one, and kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis import profiler_tree, steps
from roofterm.analysis.categories import HOST_CATEGORIES, Category, classify, kernel_facts, read_names
from roofterm.analysis.collective_calls import collective_calls
from roofterm.analysis.filters import Filter, parse
from roofterm.analysis.iterations import as_steps, engine_iterations, facts_of_steps, find_iterations
from roofterm.analysis.joining import Joined, with_captures
from roofterm.analysis.matching import match_calls
from roofterm.analysis.memory import Memory, memory_of
from roofterm.analysis.occupancy import occupancies
from roofterm.analysis.owners import Owners, find_owners
from roofterm.analysis.phases import host_phases, work_phases
from roofterm.analysis.scope import Scope
from roofterm.analysis.selection import Selection, select
from roofterm.analysis.slice_filter import slice_mask
from roofterm.analysis.work import device_work
from roofterm.analysis.work_classes import work_classes
from roofterm_parsers.nesting import self_times
from roofterm_parsers.profile import Profile

T = TypeVar("T")


class Groundwork:
    """Arrays and frames over one profile. Not thread-safe: one thread asks at a time."""

    def __init__(self, profile: Profile, captures: Sequence[Profile] = ()) -> None:
        """`captures`: traces of graph captures, for the ops of what `profile` replays."""
        self.given = profile
        """the profile as it was read"""
        self.iterations = find_iterations(profile) if profile.steps.height == 0 else engine_iterations(profile)
        """what is told of iterations beside the file's step markers, schema `iterations.ITERATIONS`"""
        told = profile.steps.height == 0 and self.iterations.height > 0
        self.profile = dataclasses.replace(profile, steps=as_steps(self.iterations)) if told else profile
        """the profile, with iterations for steps where the file marks none"""
        self.steps_told_by = str(self.iterations["told_by"][0]) if told else None
        """what tells the iterations that stand for steps; None: the file marks its steps itself, or has none"""
        self.captures = captures
        self._kept: dict[object, object] = {}

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
    def _told_by_names(self) -> pl.DataFrame:
        return read_names(self.profile)

    @cached_property
    def names(self) -> pl.DataFrame:
        """Row for row with `profile.names`: category by name, dtype, tensor_core."""
        return classify(self.profile.names, self._told_by_names)

    @cached_property
    def facts(self) -> pl.DataFrame:
        """One row a kernel, copy or memset: category (u8), dtype, tensor_core, evidence, stored."""
        return kernel_facts(self.profile, self._told_by_names)

    @cached_property
    def category(self) -> NDArray[np.uint8]:
        """`Category` of each slice: what device work computes, what a host slice is."""
        codes = np.full(256, int(Category.HOST_OTHER), np.uint8)
        for kind, category in HOST_CATEGORIES.items():
            codes[int(kind)] = int(category)
        categories = codes[self.kind]
        categories[self.facts["slice"].to_numpy()] = self.facts["category"].to_numpy()
        return categories

    @cached_property
    def host_phase(self) -> NDArray[np.uint8]:
        """`phases.Phase` of each host slice."""
        return host_phases(self.profile)

    @cached_property
    def phase(self) -> NDArray[np.uint8]:
        """`phases.Phase` of each slice: that of device work by its launch."""
        phase = self.host_phase.copy()
        phase[self.work["slice"].to_numpy()] = self.work_phase
        return phase

    # Frames

    @cached_property
    def work(self) -> pl.DataFrame:
        """Device work, schema `work.WORK`."""
        return device_work(self.profile, self.self_ps, work_classes(self.profile, self.facts))

    @cached_property
    def nests(self) -> bool:
        """Whether ops of a device lie inside others on its line (a TPU's loops): their own time then says where time went."""
        return bool((self.work["own_ps"] != self.work["end_ps"] - self.work["start_ps"]).any())

    @cached_property
    def owners(self) -> Owners:
        """Which op each piece of device work counts for, and what that costs."""
        return find_owners(self.joined, self.captured.hung(self.work), self.facts)

    @cached_property
    def occupancy(self) -> pl.DataFrame:
        """How well each kernel fills its device, schema `occupancy.OCCUPANCY`."""
        return occupancies(self.profile)

    @cached_property
    def device_lines(self) -> dict[int, steps.DeviceLine]:
        """The work of each device, by its row, with the unions that windows are cut from."""
        return steps.device_lines(self.profile, self.work)

    @cached_property
    def collective_calls(self) -> pl.DataFrame:
        """Every collective, schema `collective_calls.CALLS`."""
        return collective_calls(self.profile, self.work, {device: line.compute for device, line in self.device_lines.items()})

    @cached_property
    def order_matched(self) -> pl.DataFrame:
        """Collectives matched over ranks by their order, schema `matching.MATCHED`, also those that never ran at the same time."""
        return match_calls(self.profile, self.collective_calls, {device: line.compute for device, line in self.device_lines.items()})

    @cached_property
    def matched_calls(self) -> pl.DataFrame:
        """Collectives matched over ranks, schema `matching.MATCHED`: those that met."""
        return self.order_matched.filter("meets")

    @cached_property
    def memory(self) -> Memory:
        """Allocators and their events."""
        return memory_of(self.profile)

    @cached_property
    def windows(self) -> pl.DataFrame:
        """Windows of the steps, schema `steps.WINDOWS`."""
        return steps.step_windows(self.profile, self.work)

    @cached_property
    def work_phase(self) -> NDArray[np.uint8]:
        """`phases.Phase` of each piece of device work, row for row with `work`."""
        return work_phases(self.profile, self.work, self.host_phase, self.step_facts["phase"])

    @cached_property
    def step_facts(self) -> pl.DataFrame:
        """For each row of `profile.steps` what is told of its batch: columns of `iterations.ITERATIONS` from `phase` on."""
        return facts_of_steps(self.profile.steps, self.iterations)

    @cached_property
    def captured(self) -> Joined:
        """The profile with what the capture traces tell of its graph replays."""
        return with_captures(self.profile, self.captures, self.iterations)

    @property
    def joined(self) -> Profile:
        """The profile with captured ops behind its own slices; the profile itself where nothing was captured."""
        return self.captured.profile

    @cached_property
    def profiler_events(self) -> pl.DataFrame:
        """The profiler's function events, schema `profiler_tree.EVENTS`."""
        return profiler_tree.profiler_events(self.profile, self.work, self.function_tree)

    @cached_property
    def function_tree(self) -> profiler_tree.FunctionTree:
        """What calls what on the host, as the profiler sees it."""
        return profiler_tree.function_tree(self.profile)

    def selection(self, scope: Scope) -> Selection:
        """The part of the profile that a scope names; its filter plays no part. Raises ScopeError."""
        return self.filtered(Scope(step=scope.step, window_ps=scope.window_ps, rank=scope.rank))

    def filtered(self, scope: Scope) -> Selection:
        """The part that a scope names, its filter included, which must speak of what slices answer."""
        whole = Scope(step=scope.step, window_ps=scope.window_ps, rank=scope.rank)
        part = self._keep(("selection", whole), lambda: select(self.profile, self.work, self.windows, whole))
        return self._masked(part, parse(scope.where)) if scope.where else part

    def _masked(self, part: Selection, wanted: Filter) -> Selection:
        """Of a part the slices and the work that pass a filter of slices."""
        mask = slice_mask(wanted, self)
        work = part.work.filter(pl.Series(mask[part.work["slice"].to_numpy()], dtype=pl.Boolean))

        def masked() -> NDArray[np.bool_]:
            return mask if part.slices is None else mask & part.slices

        return dataclasses.replace(part, work=work, masked=masked, text=f"{part.text}, {wanted.text}")

    def _keep(self, key: object, make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        return cast(T, self._kept[key])
