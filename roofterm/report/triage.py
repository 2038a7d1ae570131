"""The triage report as one record: what `report --format json` prints and every other format shows."""

from __future__ import annotations

import os

import msgspec
import polars as pl

from roofterm.analysis.categories.short_names import with_short_names
from roofterm.analysis.scope import Scope
from roofterm.analysis.study import Study
from roofterm.results import (
    DeviceInfo,
    Finding,
    GraphReplay,
    HostBalance,
    LaunchPath,
    MemoryReport,
    RankRow,
    Roofline,
    SourceInfo,
    StepRow,
    Summary,
    WarningInfo,
    XlaOverview,
)


class Report(msgspec.Struct):
    """Sections of contract.md section 3; `tables` are frames with the columns of `results.TABLES`."""

    source: SourceInfo
    summary: Summary
    warnings: list[WarningInfo]
    devices: list[DeviceInfo]
    steps: list[StepRow]
    tables: dict[str, pl.DataFrame]
    roofline: Roofline
    findings: list[Finding]
    recorded: list[str]
    """what the profiler was asked to record: shapes, stacks, memory, ..."""
    scope: str
    """what breakdown, tables and roofline speak of, in words"""
    steps_told_by: str | None = None
    """what tells the steps, where the file marks none (`iterations.ITERATIONS`); None: the file's own markers"""
    launch_path: LaunchPath | None = None
    graphs: list[GraphReplay] = []
    host_balance: HostBalance | None = None
    memory: MemoryReport | None = None
    ranks: list[RankRow] = []
    """one row a rank or host; empty where the profile is of one alone"""
    xla: XlaOverview | None = None
    """what XProf's overview and input pipeline analysis say of an XPlane profile"""


def triage(study: Study, scope: Scope, top: int) -> Report:
    """The report over `scope`: ops by their own device time, or by their own host time where no device worked; `summary` speaks of the
    whole file. `top` rows of each table, 0 for all.

    Raises FilterError for a wrong expression, ScopeError for a step or rank that is not there.
    """
    _ = study.bounded().tallies  # of the whole file, which its summary needs: what is made of it, the scope is then a part of
    ops = study.table("op", scope)
    on_device = ops["self_device_us"].sum() > 0
    ops = ops.sort("self_device_us" if on_device else "self_us", descending=True, nulls_last=True, maintain_order=True)
    tables = {"kernels": study.table("kernel", scope), "ops": ops, "categories": study.table("category", scope)}
    return Report(
        source=source_info(study),
        summary=study.summary(),
        warnings=[WarningInfo(w.code, w.message, w.count) for w in study.warnings()],
        devices=study.devices(),
        steps=study.steps(),
        tables={name: with_short_names(table.head(top) if top else table) for name, table in tables.items()},
        roofline=study.roofline(scope),
        findings=study.findings(scope),
        recorded=recorded(study),
        scope=study.selection(scope).text,
        steps_told_by=study.steps_told_by,
        launch_path=study.launch_path(scope),
        graphs=study.graph_replays(),
        host_balance=study.host_balance(scope),
        memory=study.memory_report(),
        ranks=study.ranks() if len(study.profile.sources) > 1 else [],
        xla=study.xla_overview(),
    )


def recorded(study: Study) -> list[str]:
    """Flags of torch.profiler that all sources were recorded with, in words."""
    flags = {
        "record_shapes": "shapes",
        "with_stack": "stacks",
        "profile_memory": "memory",
        "with_flops": "FLOPs",
        "with_modules": "modules",
    }
    sources = study.profile.sources
    return [word for flag, word in flags.items() if sources and all(source.metadata.get(flag) for source in sources)]


def source_info(study: Study) -> SourceInfo:
    """The input as one: sums over its files; `path` is that of the file, or the folder that holds all of them."""
    sources = study.profile.sources
    first = sources[0]
    return SourceInfo(
        path=first.path if len(sources) == 1 else _folder([source.path for source in sources]),
        format=first.format,
        container=first.container,
        producer=first.producer,
        bytes=sum(s.bytes for s in sources),
        bytes_expanded=sum(s.bytes_expanded for s in sources),
        events=sum(s.events for s in sources),
        seconds=study.profile.seconds,
        from_cache=study.profile.from_cache,
    )


def _folder(paths: list[str]) -> str:
    """What several paths have in common, or the first where they have nothing."""
    try:
        return os.path.commonpath(paths) or paths[0]
    except ValueError:
        return paths[0]
