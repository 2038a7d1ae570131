"""Sentences below the table of steps: where their time goes by phase, and by the definitions of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import polars as pl

from roofterm.results import HtaRank, OtherTools, PluginDevice, PluginStep
from roofterm.text.units import duration_us, pct

_ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu_exec", "other")
_SHOWN = 3
_TITLES = {"dataloader": "DataLoader", "cpu_exec": "CPU exec"}


def step_notes(phases: pl.DataFrame, tools: OtherTools | None) -> list[str]:
    """`phases`: schema `phase_table.BREAKDOWN`."""
    said = _phases(phases)
    if tools is not None:
        said += _plugin(tools.torch_tb_profiler_steps, tools.torch_tb_profiler_devices)
        said += _hta(tools.hta)
    return said


def _phases(phases: pl.DataFrame) -> list[str]:
    """Means of a step; nothing where no phase is told."""
    if phases.height == 0 or (phases["phase"] == "other").all():
        return []
    steps = phases["step"].n_unique()
    sums = phases.group_by("phase", maintain_order=True).agg(pl.col("device_us", "exposed_us", "host_us").sum() / steps)
    device = [
        f"{phase} {duration_us(worked)}{f' ({duration_us(alone)} alone)' if alone < 0.995 * worked else ''}"
        for phase, worked, alone in sums.filter(pl.col("device_us") > 0).select("phase", "device_us", "exposed_us").iter_rows()
    ]
    host = [f"{phase} {duration_us(own)}" for phase, own in sums.filter(pl.col("host_us") > 0).select("phase", "host_us").iter_rows()]
    said = [f"by phase, a step on the device: {', '.join(device)}"] if device else []
    return said + ([f"on the host, all threads: {', '.join(host)}"] if host else [])


def _plugin(steps: Sequence[PluginStep], devices: Sequence[PluginDevice]) -> list[str]:
    if not steps:
        return []
    means = [(role, fmean(getattr(step, f"{role}_us") for step in steps)) for role in _ROLES]
    parts = [f"{_TITLES.get(role, role)} {duration_us(mean)}" for role, mean in means if mean > 0]
    count = f"{len(steps)} steps" if len(steps) > 1 else "1 step"
    said = [f"torch-tb-profiler's step breakdown, mean of {count}: {', '.join(parts)}"]
    for one in devices[:_SHOWN]:
        facts = [f"utilization {pct(one.utilization_pct)}"]
        facts += [f"est. SM efficiency {pct(one.est_sm_efficiency_pct)}"] if one.est_sm_efficiency_pct is not None else []
        facts += [f"est. achieved occupancy {pct(one.est_achieved_occupancy_pct)}"] if one.est_achieved_occupancy_pct is not None else []
        said.append(f"torch-tb-profiler's summary of GPU {one.id}: {', '.join(facts)}")
    return said


def _hta(ranks: Sequence[HtaRank]) -> list[str]:
    said = []
    for one in ranks:
        if one.kernel_us <= 0:
            continue
        shares = [("idle", one.idle_us), ("compute", one.compute_us), ("non-compute", one.non_compute_us)]
        parts = ", ".join(f"{name} {pct(100 * us / one.kernel_us)}" for name, us in shares)
        causes = ", ".join(f"{cause.replace('_', ' ')} {duration_us(us)}" for cause, us in one.idle_by_cause_us.items())
        idle = f"; idle of its streams: {causes}" if causes else ""
        overlap = f"; overlap {pct(one.overlap_pct)}" if one.overlap_pct is not None else ""
        rank = f"rank {one.rank}, " if len(ranks) > 1 and one.rank is not None else ""
        said.append(f"HTA's temporal breakdown, {rank}without the last of several steps: {parts}{idle}{overlap}")
    return said if len(said) <= _SHOWN else [*said[:_SHOWN], f"and of {len(said) - _SHOWN} more ranks (--format json)"]
