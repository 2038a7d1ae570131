"""A profile with every result that was asked of it: each computed once, by the modules beside this one, and kept.

The commands, the report and the explorer all show a Study's results, so a figure cannot differ between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

import msgspec
import polars as pl

from roofterm.analysis.bounded import Bounded, bounded
from roofterm.analysis.bounds import roofs_of
from roofterm.analysis.dispatch import dispatch_chain
from roofterm.analysis.filter_completion import Vocabulary, vocabulary
from roofterm.analysis.filters import Filter, parse
from roofterm.analysis.findings import Verdict, judge
from roofterm.analysis.full_steps import full_steps, full_summary, outlined_summary
from roofterm.analysis.graphs import replay_groups
from roofterm.analysis.groundwork import Groundwork
from roofterm.analysis.hardware_counters import counter_rows
from roofterm.analysis.hints import hints
from roofterm.analysis.host_work import with_host_work
from roofterm.analysis.launches import launch_path
from roofterm.analysis.memory import memory_by_op, memory_report
from roofterm.analysis.modules import module_rows, work_modules
from roofterm.analysis.next_command import NextCommand, next_command
from roofterm.analysis.other_tools import other_tools
from roofterm.analysis.overlap import hiding
from roofterm.analysis.phase_table import phase_breakdown, phase_rows, phase_times
from roofterm.analysis.phases import phase_names
from roofterm.analysis.rank_groups import rank_groups
from roofterm.analysis.rank_steps import rank_steps
from roofterm.analysis.ranks import rank_rows
from roofterm.analysis.roofline import above_roof, flops_total, roof_warnings, roofline
from roofterm.analysis.row_filter import row_predicate, split_by_columns
from roofterm.analysis.scope import ALL, STEADY, RoofChoice, Scope
from roofterm.analysis.slice_filter import split_for_slices
from roofterm.analysis.step_choice import chosen_steps
from roofterm.analysis.steps import step_rows
from roofterm.analysis.table_of import table_of
from roofterm.analysis.worked import modelled, of_kernels
from roofterm.hardware.roofs import device_infos, device_warnings
from roofterm.results import TABLES
from roofterm_parsers.profile import Profile, Warning

if TYPE_CHECKING:
    from roofterm import results
    from roofterm.analysis.clocks import Clocks
    from roofterm.analysis.model_config import ModelConfig


class Study(Groundwork):
    """Results over one profile. Not thread-safe: one thread asks at a time."""

    def __init__(
        self,
        profile: Profile,
        roofs: RoofChoice | None = None,
        captures: Sequence[Profile] = (),
        model: ModelConfig | None = None,
    ) -> None:
        """`captures`: traces of graph captures, for the ops of what `profile` replays; `model`: the language model that ran."""
        super().__init__(profile, captures)
        self.model = model
        self.roofs = roofs or RoofChoice()
        self.clocks: Clocks | None = None
        """how well the files of several ranks share an axis; None: one file, or nobody asked (`clocks.aligned_study`)"""

    @cached_property
    def roofed(self) -> Study:
        """The study whose work rooflines speak of: this one; where there is no accelerator, one in which the CPU's ops are work."""
        worked = with_host_work(self.given)
        return self if worked is self.given else Study(worked, self.roofs, model=self.model)

    def devices(self) -> list[results.DeviceInfo]:
        """Devices that worked, or all if none did, with their roofs."""
        return self._keep("devices", lambda: device_infos(self.profile, self.roofs))

    def warnings(self) -> list[Warning]:
        """What loading had to mend, and what the analysis doubts."""
        return self._keep(
            "warnings",
            lambda: [
                *self.profile.warnings,
                *self.captured.match.warnings,
                *device_warnings(self.devices()),
                *roof_warnings(above_roof(self.joined, self.bounded(), self.device)),
            ],
        )

    def summary(self) -> results.Summary:
        """Facts of the whole file."""
        return self._keep("summary", lambda: full_summary(self))

    @cached_property
    def flops_total(self) -> float | None:
        """FLOPs of all launches of the file, each counted once; None where no rule could count any."""
        return flops_total(self.bounded().tallies)

    def outline(self) -> results.Summary:
        """The summary, where it is known already; else of it what costs little: nothing of FLOPs, peaks and allocators."""
        return cast("results.Summary", self._kept["summary"]) if "summary" in self._kept else outlined_summary(self)

    def plain_steps(self) -> list[results.StepRow]:
        """The steps, where they are known already; else without what the devices' peaks say of them, which costs more."""
        if "steps" in self._kept:
            return self.steps()
        return self._keep("plain_steps", lambda: step_rows(self.profile, self.windows, self.device_lines))

    def steps(self) -> list[results.StepRow]:
        """One row a step and rank, with the breakdown that adds up."""
        return self._keep("steps", lambda: full_steps(self))

    def table(self, by: str, scope: Scope = ALL, group: str | None = None) -> pl.DataFrame:
        """The `ops --by` table: columns of `results.TABLES[by]`, most total time first, all rows that the filter lets through.

        What of the filter the table's columns cannot answer is asked of the slices that it is made of: `phase:backward`
        leaves the kernels of the backward pass. Raises FilterError for a wrong expression, ScopeError for a step or rank
        that is not there.
        """
        wanted, of_slices = parse(scope.where), Filter("", ())
        if wanted and by in ("kernel", "category", "op", "module", "hlo", "launch", "framework"):
            answered, rest = split_by_columns(wanted, TABLES[by])
            of_slices, unknown = split_for_slices(rest)
            wanted = Filter(wanted.text, (*answered.terms, *unknown.terms))
        part = self._as_kept(Scope(step=scope.step, window_ps=scope.window_ps, rank=scope.rank, where=of_slices.text))
        table = self._keep(("table", by, part, group), lambda: table_of(self, by, part, group))
        return table.filter(row_predicate(wanted, table.schema)) if wanted else table

    def roofline(self, scope: Scope = STEADY, top: int = 1000) -> results.Roofline:
        """Rooflines of the program, its steps and its ops."""
        part = Scope(step=scope.step, window_ps=scope.window_ps, rank=scope.rank, infeed=scope.infeed)
        return self._keep(("roofline", part, top), lambda: self._roofline(part, top))

    def launch_path(self, scope: Scope = STEADY) -> results.LaunchPath | None:
        """How a scope's device work was launched; None where no device worked."""
        part = self.selection(scope)
        return launch_path(self.profile, part.work, part.windows.filter(pl.col("pieces") > 0).height)

    def graph_replays(self) -> list[results.GraphReplay]:
        """The graphs that the file replays, most device time first."""
        paths = [graph and self.captures[graph.capture].sources[0].path for graph in self.captured.match.graph_of]
        return self._keep("graphs", lambda: replay_groups(self.profile, paths))

    def phase_of_work(self) -> pl.Series:
        """Phase of each piece of device work as text, row for row with `work`; null: nothing tells it."""
        return phase_names(self.work_phase)

    def phase_breakdown(self) -> pl.DataFrame:
        """Device and host time of each step by phase, schema `phase_table.BREAKDOWN`."""
        return self._keep(
            "phases", lambda: phase_breakdown(self.profile, self.work, self.windows, self.work_phase, self.host_phase, self.self_ps)
        )

    def phase_times(self, rows: Sequence[int]) -> list[results.PhaseTime]:
        """The mean by phase of some steps, by their places in `steps()`."""
        return phase_times(self.phase_breakdown(), self.windows["step"][list(rows)].to_list())

    def other_tools(self) -> results.OtherTools | None:
        """Step breakdown and device figures as torch-tb-profiler and HTA define them; None of a profile that they do not read."""
        return self._keep("other_tools", lambda: other_tools(self.profile, self.work, self.windows) if self.is_torch else None)

    def xla_overview(self) -> results.XlaOverview | None:
        """What XProf's overview and input pipeline analysis say; None of a profile without an XPlane file."""
        if not any(source.format == "xplane" for source in self.profile.sources):
            return None
        from roofterm.analysis.xla_overview import xla_overview  # much of XProf's, of which other profiles need nothing

        return self._keep("xla_overview", lambda: xla_overview(self.given))

    def phase_rows(self, scope: Scope = STEADY) -> list[results.RooflineRow]:
        """The roofline of each phase, most time first."""
        chosen = self.work["slice"].is_in(self.selection(scope).work["slice"].implode())
        return phase_rows(self.bounded(scope), self.work.filter(chosen), self.work_phase[chosen.to_numpy()], self.device)

    def module_rows(self, scope: Scope = STEADY) -> list[results.RooflineRow]:
        """The roofline of each module of the model, most time first."""
        work = self.captured.hung(self.selection(scope).work)
        return module_rows(self.bounded(scope), work, work_modules(self.joined, work), self.device)

    def vocabulary(self) -> Vocabulary:
        """What a filter can ask for in this profile."""
        return self._keep("vocabulary", lambda: vocabulary(self))

    def next_command(self, kind: str, name: str, slice_id: int | None = None) -> NextCommand | None:
        """What to run to know more about what is selected; None where nothing fits."""
        return next_command(self, kind, name, slice_id)

    def hints(self, slice_id: int) -> list[str]:
        """What the torch.profiler guide's reading table says of a slice, one sentence a row that fits."""
        return hints(self, slice_id)

    def dispatch_chain(self, slice_id: int) -> list[results.ChainLink]:
        """What led to a slice: annotation, module, Python line, op, call, work."""
        return dispatch_chain(self, slice_id)

    def ranks(self, scope: Scope = STEADY) -> list[results.RankRow]:
        """One row a rank or host: means of its steady steps, or of those that a scope's step and window name; the late ones marked."""
        part = Scope(step=scope.step, window_ps=scope.window_ps)
        chosen = None if part == STEADY else chosen_steps(self, part)
        calls, matched = self.collective_calls, self.matched_calls
        return self._keep(
            ("ranks", part), lambda: rank_rows(self.profile, self.windows, self.steps(), self.device_lines, calls, matched, chosen)
        )

    def rank_groups(self, scope: Scope = STEADY) -> list[results.RankGroup]:
        """The process groups that collectives ran in, most time first; means over the steps that a scope's step and window name."""
        part = Scope(step=scope.step, window_ps=scope.window_ps)
        return self._keep(("rank_groups", part), lambda: self._rank_groups(part))

    def _rank_groups(self, scope: Scope) -> list[results.RankGroup]:
        part = self.selection(scope)
        calls = self.collective_calls.filter(pl.col("slice").is_in(part.work["slice"].implode()))
        steps = self.profile.steps["number"][part.windows["step"]].n_unique() if part.windows.height else 1
        return rank_groups(self.profile.sources, calls, self.matched_calls, max(steps, 1))

    def rank_steps(self) -> pl.DataFrame:
        """Each step of each rank, schema `rank_steps.RANK_STEPS`."""
        return self._keep(
            "rank_steps", lambda: rank_steps(self.profile, self.windows, self.steps(), self.collective_calls, self.matched_calls)
        )

    def memory_ops(self, window_ps: tuple[int, int] | None = None) -> pl.DataFrame:
        """What each op allocated and freed (in a window), and held at the peak of each allocator, schema `memory.OPS`."""
        return self._keep(("memory_ops", window_ps), lambda: memory_by_op(self.memory, window_ps))

    def memory_report(self) -> results.MemoryReport | None:
        """Peaks, holders, steps and pressure; None where the file holds nothing of memory."""
        return self._keep("memory", lambda: memory_report(self.profile, self.windows, self.memory))

    def hiding(self, scope: Scope = STEADY) -> pl.DataFrame:
        """Kernels that ran under collectives against the same ones alone, schema `overlap.HIDING`."""
        communication = {device: line.communication for device, line in self.device_lines.items()}
        return hiding(self.profile, self.selection(scope).work, communication)

    def findings(self, scope: Scope = STEADY) -> list[results.Finding]:
        """What to fix first, most time at stake first. Raises ScopeError for a step or rank that is not there."""
        return self._verdict(scope).findings

    def host_balance(self, scope: Scope = STEADY) -> results.HostBalance | None:
        """The host's own time against the device's: overhead-bound or compute-bound. None where no device worked."""
        return self._verdict(scope).host_balance

    def _verdict(self, scope: Scope) -> Verdict:
        part = Scope(step=scope.step, window_ps=scope.window_ps, rank=scope.rank)
        return self._keep(("findings", part), lambda: judge(self, part))

    @property
    def is_torch(self) -> bool:
        """Whether PyTorch's profiler wrote the profile, so that `ops --by op` is its table."""
        return any(source.format == "kineto" for source in self.profile.sources)

    def modelled(self, part: Scope) -> pl.DataFrame:
        """Pieces of a scope's work whose costs are known (`worked.modelled`), its filter of slices included."""
        part = self._as_kept(part)
        return self._keep(("modelled", part), lambda: modelled(self.joined, self.filtered_bounds(part), self.facts))

    def modelled_kernels(self, part: Scope) -> pl.DataFrame:
        """The same added up by kernel and category."""
        part = self._as_kept(part)
        return self._keep(("kernels", part), lambda: of_kernels(self.modelled(part)))

    def bounded(self, scope: Scope = ALL) -> Bounded:
        """The costs and bounds of a scope's device work: what every roofline row is a sum of."""
        return self.filtered_bounds(Scope(step=scope.step, window_ps=scope.window_ps, rank=scope.rank))

    def filtered_bounds(self, part: Scope) -> Bounded:
        """As `bounded`, of the work that passes the scope's filter of slices."""
        part = self._as_kept(part)
        return self._keep(("bounded", part), lambda: self._bounds_of(part))

    def _bounds_of(self, part: Scope) -> Bounded:
        profile, work = self.joined, self.captured.hung(self.filtered(part).work)
        whole = self._kept.get(("bounded", Scope(step=ALL.step)))
        return bounded(profile, work, self.facts, self.device, self.step_facts, self.owners, cast(Bounded | None, whole))

    def _as_kept(self, part: Scope) -> Scope:
        """The scope under which what is computed of a part is kept: without steps, the steady ones are the whole file."""
        return msgspec.structs.replace(part, step=ALL.step) if part.step == STEADY.step and not self.windows.height else part

    def _roofline(self, scope: Scope, top: int) -> results.Roofline:
        if self.roofed is not self:
            return self.roofed.roofline(scope, top)
        part = self.selection(scope)
        launch_s = self.device.launch_s if self.device is not None else None
        found = roofline(self.joined, self.bounded(scope), part.work, self.device, part.windows, scope, top, launch_s)
        if self.profile.counted.height:
            device = next(iter(self.devices()), None)
            found.program += counter_rows(self.profile, part.work, device, part.slices)
            found.roofs = found.roofs or roofs_of(device)
        return found

    @property
    def device(self) -> results.DeviceInfo | None:
        """The device whose roofs hold for the profile: the first that worked."""
        infos = self.devices()
        return infos[0] if infos and self.work.height else None
