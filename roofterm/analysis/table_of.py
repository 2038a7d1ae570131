"""Each `ops --by` table of a study, put together out of what the modules beside this one compute."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from roofterm.analysis import profiler_tree, tables
from roofterm.analysis.categories import TITLES
from roofterm.analysis.collectives import collective_table
from roofterm.analysis.costs.profiler import profiler_flops
from roofterm.analysis.counter_table import counter_table
from roofterm.analysis.framework_table import both_sides, device_side, framework_keys, host_side
from roofterm.analysis.gaps import gap_table
from roofterm.analysis.iteration_table import iteration_table
from roofterm.analysis.launch_places import launch_places
from roofterm.analysis.launch_table import launch_keys
from roofterm.analysis.lookup import looked_up
from roofterm.analysis.modules import work_modules
from roofterm.analysis.op_groups import split_by
from roofterm.analysis.scope import Scope
from roofterm.analysis.selection import Selection
from roofterm.analysis.work_tables import hlo_keys, module_keys, work_table
from roofterm.analysis.worked import by_category, by_kernel, by_key, by_op
from roofterm.analysis.xprof.host_ops import host_ops
from roofterm_parsers.profile import Profile

if TYPE_CHECKING:
    from roofterm.analysis.study import Study


def table_of(study: Study, by: str, scope: Scope, group: str | None) -> pl.DataFrame:
    """All rows of a table: columns of `results.TABLES[by]`, most total time first. The scope's filter speaks of slices alone.

    `group` splits the rows of `op` (`op_groups.split_by`). Raises ScopeError for a step or rank that is not there.
    """
    part = study.filtered(scope)
    if by == "iteration":
        return _iteration_table(study, scope)
    if by == "counter":
        return counter_table(study.profile, part, scope.window_ps, scope.rank)
    if by == "gap":
        return gap_table(study, scope)
    if by == "collective":
        calls = study.collective_calls.filter(pl.col("slice").is_in(part.work["slice"].implode()))
        return collective_table(calls, study.matched_calls, study.device)
    if by in ("kernel", "category"):
        return _work_table(study, by, scope, part)
    if by in KEYED:
        return _keyed_table(study, by, scope, part).drop("key")
    if by == "framework":
        return _framework_table(study, scope, part)
    if study.is_torch:
        return _profiler_table(study, part, scope, group)
    slices = study.profile.slices if part.slices is None else study.profile.slices.filter(pl.Series(part.slices))
    own = study.self_ps if part.slices is None else study.self_ps[part.slices]
    return tables.host_op_table(study.profile, slices, pl.Series(own))


KEYED: dict[str, Callable[[Profile, pl.DataFrame], pl.DataFrame]] = {
    "module": lambda profile, work: module_keys(work, work_modules(profile, work)),
    "hlo": hlo_keys,
    "launch": launch_keys,
}
"""Tables of device work whose rows are told by a key: what gives each piece its key (`work_tables.work_table`)"""


def _keyed_table(study: Study, by: str, scope: Scope, part: Selection, keys: pl.DataFrame | None = None) -> pl.DataFrame:
    """With its `key`, and what the roofline knows of the work of each."""
    work = study.captured.hung(part.work)
    keys = KEYED[by](study.joined, work) if keys is None else keys
    table = work_table(study.joined, work, _titled_facts(study), keys, by)
    worked = by_key(study.modelled(scope), keys, study.device)
    return table.update(worked, on="key", how="left") if worked.height else table


def _framework_table(study: Study, scope: Scope, part: Selection) -> pl.DataFrame:
    if not study.profile.hlo_ops.height:
        return tables.finished(pl.DataFrame({"name": pl.Series([], dtype=pl.String)}), "framework", most="name")
    keys = framework_keys(study.joined, study.captured.hung(part.work))
    device = _keyed_table(study, "framework", scope, part, keys.drop("instruction"))
    return both_sides(device_side(device, keys), host_side(host_ops(study.profile, part.slices)))


def _titled_facts(study: Study) -> pl.DataFrame:
    """`facts` with categories by their titles."""
    return study.facts.with_columns(category=pl.Series(TITLES, dtype=pl.Categorical)[study.facts["category"]])


def _work_table(study: Study, by: str, scope: Scope, part: Selection) -> pl.DataFrame:
    titles, named = dict(enumerate(TITLES)), _titled_facts(study)
    if by == "kernel":
        work = study.captured.hung(part.work)
        places = launch_places(study.joined, work)
        table = tables.kernel_table(study.joined, work, named, study.occupancy, places)
        worked = by_kernel(study.modelled_kernels(scope), study.device)
    else:
        table = tables.category_table(study.profile, part.work, named)
        worked = by_category(study.modelled_kernels(scope), study.device)
        worked = worked.with_columns(name=pl.col("name").replace_strict(titles, return_dtype=pl.String))
    return table.update(worked, on="name", how="left") if worked.height else table


def _iteration_table(study: Study, scope: Scope) -> pl.DataFrame:
    if study.given.steps.height and study.iterations.height:
        # The engine's iterations lie inside the profiler's steps, or across them.
        unmarked = dataclasses.replace(study.given, steps=study.given.steps[:0])
        return _iteration_table(type(study)(unmarked, study.roofs, study.captures), scope)
    chosen = study.selection(scope).windows["step"]
    taken = study.windows["step"].is_in(chosen.implode())
    if scope.rank is not None:
        taken &= pl.Series([row.rank == scope.rank for row in study.steps()], dtype=pl.Boolean)
    facts = study.step_facts[study.windows["step"]]
    return iteration_table(facts, study.windows, study.steps(), study.bounded().items, taken.to_list())


def _profiler_table(study: Study, part: Selection, scope: Scope, group: str | None) -> pl.DataFrame:
    events = study.profiler_events
    memory = profiler_tree.top_level_memory(study.profile, events)
    if part.slices is not None:
        events = events.filter(pl.Series(part.slices[events["slice"].to_numpy()]))
        memory = profiler_tree.TopMemory(0, 0, 0)
    split = partial(split_by, study.joined, group=group) if group is not None else None
    parts = split(events["slice"]) if split is not None else None
    table = tables.profiler_op_table(study.profile, events, _profiler_flops(study, events), memory, parts)
    worked = by_op(study.filtered_bounds(scope), study.device, split).drop("flops")
    if worked.height == 0:
        return table
    if parts is None:
        return table.update(worked, on="name", how="left")
    unknown = pl.col(parts.name).fill_null("")  # what is unknown must meet its like too
    table = table.with_columns(unknown).update(worked.with_columns(unknown), on=["name", parts.name], how="left")
    return table.with_columns(pl.when(pl.col(parts.name) != "").then(parts.name))


def _profiler_flops(study: Study, events: pl.DataFrame) -> pl.Series:
    """The profiler's FLOPs of each event: one evaluation for each distinct op and signature."""
    profile = study.profile
    name = profile.slices["name"][events["slice"]].to_numpy().astype(np.int64)
    signature = looked_up(profile.ops["signature"], profile.ops["slice"], profile.slices.height, events["slice"])
    signed = signature.is_not_null().to_numpy()
    keys, back = np.unique(name[signed] << 32 | signature.drop_nulls().to_numpy(), return_inverse=True)
    texts = profile.names["text"][keys >> 32].to_list()
    shapes = profile.signatures[keys & 0xFFFFFFFF]
    found = map(profiler_flops, texts, shapes["dims"].to_list(), shapes["concrete"].to_list())
    flops = np.zeros(name.size, np.int64)
    flops[signed] = np.array([one or 0 for one in found], np.int64)[back]
    return pl.Series("flops", flops)
