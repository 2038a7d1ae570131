"""What other tools say of the same steps and devices, under their names: where they mean something else by a word, both can be read."""

from __future__ import annotations

import polars as pl

from roofterm.analysis import hta, tb_plugin
from roofterm.analysis.steps import US
from roofterm.results import HtaRank, OtherTools, PluginDevice, PluginStep
from roofterm_parsers.profile import Profile


def other_tools(profile: Profile, work: pl.DataFrame, windows: pl.DataFrame) -> OtherTools:
    """torch-tb-profiler's steps and devices, and HTA's breakdown of each rank; `work`: schema `work.WORK`, `windows`: `steps.WINDOWS`.

    The plugin's rules speak of one file: of several ranks its lists are empty.
    """
    if len(profile.sources) > 1:
        return OtherTools([], [], _hta_ranks(profile))
    return OtherTools(_plugin_steps(profile, work, windows), _plugin_devices(profile, work, windows), _hta_ranks(profile))


def _plugin_steps(profile: Profile, work: pl.DataFrame, windows: pl.DataFrame) -> list[PluginStep]:
    roles = tb_plugin.step_roles(profile, work, windows)
    names = profile.steps["name"]
    return [
        PluginStep(names[row.pop("step")], **{role.replace("_ps", "_us"): ps / US for role, ps in row.items()})
        for row in roles.iter_rows(named=True)
    ]


def _plugin_devices(profile: Profile, work: pl.DataFrame, windows: pl.DataFrame) -> list[PluginDevice]:
    kept = windows.filter("complete")
    if kept.height == 0:
        return []
    found = tb_plugin.gpu_metrics(profile, work, int(kept["start_ps"].min()), int(kept["end_ps"].max()))  # type: ignore[arg-type]
    return [
        PluginDevice(
            id=profile.devices["id"][row["device"]],
            utilization_pct=_pct(row["utilization"]),
            est_sm_efficiency_pct=_pct(row["est_sm_efficiency"]),
            est_achieved_occupancy_pct=row["est_achieved_occupancy_pct"],
        )
        for row in found.iter_rows(named=True)
    ]


def _hta_ranks(profile: Profile) -> list[HtaRank]:
    found = hta.events(profile)
    overlap = dict(hta.comm_comp_overlap(found).iter_rows())
    idle = hta.idle_breakdown(profile, found).group_by("source", "idle_category").agg(pl.col("idle_ps").sum())
    causes: dict[int, dict[str, float]] = {}
    for source, cause, ps in idle.sort("source", "idle_category").iter_rows():
        causes.setdefault(source, {})[cause] = ps / US
    return [
        HtaRank(
            rank=profile.sources[row["source"]].rank,
            kernel_us=row["kernel_ps"] / US,
            idle_us=row["idle_ps"] / US,
            compute_us=row["compute_ps"] / US,
            non_compute_us=row["non_compute_ps"] / US,
            overlap_pct=overlap.get(row["source"]),
            idle_by_cause_us=causes.get(row["source"], {}),
        )
        for row in hta.temporal_breakdown(found).iter_rows(named=True)
    ]


def _pct(share: float | None) -> float | None:
    return None if share is None else 100 * share
