"""The roofline of a profile: how close its device work came to the hardware's limits, at every level.

The model is Williams 2009 in its time form (Wang 2020): work cannot take less than the longest of its FLOPs over the peak
of its type, its bytes over the bandwidth of each memory, its messages over the link; the difference to the time it took
is what can be won. Definitions: definitions.md; practice: reference/roofline.md 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from roofterm import results
from roofterm.analysis.bounded import Bounded
from roofterm.analysis.bounds import LAUNCH_S, PS, level_rates, roofs_of
from roofterm.analysis.categories import Category
from roofterm.analysis.costed import LEVELS
from roofterm.analysis.hlo_costs import on_device_clock
from roofterm.analysis.host_work import CPU
from roofterm.analysis.levels import TALLIED, category_rows, kernel_rows, op_rows, over_roof, records, summed, with_shares
from roofterm.analysis.op_roles import ROLE_COLUMNS
from roofterm.analysis.scope import ALL, Scope
from roofterm.analysis.work import busy, by_device
from roofterm_parsers.profile import Profile, Warning


def roofline(
    profile: Profile,
    found: Bounded,
    work: pl.DataFrame,
    device: results.DeviceInfo | None,
    windows: pl.DataFrame | None = None,
    scope: Scope = ALL,
    top: int = 1000,
    launch_s: float | None = None,
) -> results.Roofline:
    """The roofline of a part of a profile.

    `found`: its items; `work`: its device work (schema `work.WORK`); `device`: whose roofs, None: no roof is known;
    `windows`: its steps (schema `steps.WINDOWS`), which the program's time is then made of; `top`: ops at most, 0: all;
    `launch_s`: measured time of a launch.
    """
    work = on_device_clock(profile, work)
    items = _without_infeed(found.tallies) if not scope.infeed else found.tallies
    chosen = windows if windows is not None and windows.height and scope.step != "all" else None
    ops = op_rows(profile, items)
    launch_time = 0.0 if device is None or device.kind == CPU else launch_s or LAUNCH_S
    rows = records(ops.head(top) if top else ops, "op", device)
    of_steps = summed(items, ["step"])
    return results.Roofline(
        coverage=coverage(items, tuple(source.format for source in profile.sources)),
        roofs=_drawn(roofs_of(device, launch_s), ops, device),
        program=_program(profile, of_steps, work, chosen, windows, device, launch_time),
        steps=_steps(profile, of_steps, items.select("step", "device"), work, windows, device, launch_time),
        ops=rows,
    )


def level_records(
    profile: Profile, found: Bounded, facts: pl.DataFrame, device: results.DeviceInfo | None, level: str, top: int = 1000
) -> list[results.RooflineRow]:
    """Rows of one level: op, kernel or category, most time first. Raises ValueError for another level."""
    if level == "op":
        rows = op_rows(profile, found.tallies)
    elif level == "kernel":
        rows = kernel_rows(profile, found.costed, found.items, facts)
    elif level == "category":
        rows = category_rows(found.tallies)
    else:
        raise ValueError(f"no roofline level {level}")
    return records(rows.head(top) if top else rows, level, device)


def flops_total(items: pl.DataFrame) -> float | None:
    """FLOPs of all launches of these items, each counted once; None where no rule could count any."""
    known = items["flops"].drop_nulls()
    return float(known.sum()) if known.len() else None


def above_roof(profile: Profile, found: Bounded, device: results.DeviceInfo | None) -> list[results.RooflineRow]:
    """The op rows of which any call lies above its roof."""
    all_items = found.tallies
    items = all_items.filter(pl.col("above") > 0 if TALLIED in all_items.columns else over_roof())
    if items.height == 0:
        return []
    alike = all_items.filter(pl.col("text").is_in(items["text"].unique().implode()))
    return records(op_rows(profile, alike).filter(pl.col("above") > 0), "op", device)


def roof_warnings(rows: Sequence[results.RooflineRow]) -> list[Warning]:
    """A warning where work lies above its roof and no cache explains it: the device, a type or a time is wrong."""
    above = [row for row in rows if any(flag.startswith("above-roof") and not _explained(flag, row) for flag in row.flags)]
    if not above:
        return []
    worst = max(above, key=lambda row: row.pct_of_roof or 0.0)
    at = f" (on average {worst.pct_of_roof:,.0f} % of it)" if worst.pct_of_roof is not None else ""
    count = f"{len(above)} ops lie" if len(above) > 1 else "1 op lies"
    message = f"{count} above the roof of the device in some calls, most of all {worst.name}{at}: suspicious times or types"
    return [Warning("above-roof", message, len(above))]


def _explained(flag: str, row: results.RooflineRow) -> bool:
    """Whether a point above its roof has a harmless cause: a cache, another algorithm, an asynchronous end, a cost that is a bound."""
    return any(word in flag for word in ("a cache", "Winograd", "asynchronous op", "an estimate", "too coarse")) or row.bound_by is None


def coverage(items: pl.DataFrame, formats: Sequence[str] = ()) -> results.Coverage:
    """Shares of busy time of work with FLOPs, with bytes only, with neither; None where nothing ran. `formats`: of the files."""
    table = coverage_table(items)
    if table.height == 0:
        return results.Coverage(None, None, None)
    share = {str(known): float(pct) for known, pct in table.group_by("known").agg(pl.col("pct").sum()).iter_rows()}
    unknown = {str(origin): float(pct) for origin, known, _, pct in table.iter_rows() if known == "unknown"}
    modelled, bytes_only, unknown_pct = (share.get(known, 0.0) for known in ("modelled", "bytes only", "unknown"))
    return results.Coverage(modelled, bytes_only, unknown_pct, unknown, _missing(items, set(formats)) if unknown else None)


def _missing(items: pl.DataFrame, formats: set[str]) -> str | None:
    """Which of torch.profiler's options left no op with shapes to take costs from."""
    if formats != {"kineto"} or items["signature"].count() or items["hlo"].count():
        return None
    if (items["origin"] == "no shapes").any():
        return "FLOPs and bytes need the ops' shapes: record with record_shapes=True"
    return "FLOPs and bytes need the ops: record with ProfilerActivity.CPU beside the device's, and record_shapes=True"


def coverage_table(items: pl.DataFrame) -> pl.DataFrame:
    """Time by what is known of it and what it hangs on: columns origin (`costed.ORIGINS`), known (modelled, bytes only,
    unknown), time_ps, pct (of all busy time). Orphans, graph replays and ops without shapes stand apart so."""
    items = _without_infeed(items)  # waiting is no busy time
    total = int(items["time_ps"].sum()) if items.height else 0
    if total == 0:
        return pl.DataFrame(schema={"origin": pl.String, "known": pl.String, "time_ps": pl.Int64, "pct": pl.Float64})
    some_bytes = pl.any_horizontal(pl.col(f"{level}_bytes").is_not_null() for level in LEVELS)
    known = pl.when(pl.col("flops") > 0).then(pl.lit("modelled")).when(some_bytes).then(pl.lit("bytes only")).otherwise(pl.lit("unknown"))
    table = items.group_by(pl.col("origin").cast(pl.String), known.alias("known")).agg(pl.col("time_ps").sum())
    return table.with_columns(pct=100 * pl.col("time_ps") / total).sort("time_ps", descending=True)


def _program(
    profile: Profile,
    of_steps: pl.DataFrame,
    work: pl.DataFrame,
    chosen: pl.DataFrame | None,
    windows: pl.DataFrame | None,
    device: results.DeviceInfo | None,
    launch_s: float,
) -> list[results.RooflineRow]:
    """Total over the window (idle time included), the same over busy time alone, and the average of the complete steps.

    `of_steps`: the items of each step, and those of none, added up.
    """
    if of_steps.height == 0:
        return []
    devices = work["device"].n_unique()
    if chosen is not None:
        seconds = _seconds(chosen, _devices(profile, work))
    else:
        spans = work.group_by("device").agg(span=pl.col("end_ps").max() - pl.col("start_ps").min())
        seconds = float(spans["span"].sum()) / PS
    total = summed(of_steps.with_columns(step_name=pl.lit("Total")), ["step_name"])
    rows = _totalled(total, [_Time("Total", seconds, devices, _launches(work) * launch_s)], "Program", device)
    rows += _totalled(total, [_Time("Total", _busy_s(work), devices, 0.0)], "Busy", device)
    complete = windows.filter(pl.col("complete")) if windows is not None and windows.height else None
    if complete is not None and complete.height:
        numbers = profile.steps["number"][complete["step"]].n_unique()
        steps = complete["step"].implode()
        mine = of_steps.filter(pl.col("step").is_in(steps)).with_columns(step_name=pl.lit("Average"))
        launching_s = _launches(work.filter(pl.col("step").is_in(steps))) * launch_s
        average = _Time("Average", _seconds(complete, _devices(profile, work)), devices, launching_s, numbers)
        rows += _totalled(summed(mine, ["step_name"]), [average], "Program", device)
    return rows


def _steps(
    profile: Profile,
    of_steps: pl.DataFrame,
    devices_of: pl.DataFrame,
    work: pl.DataFrame,
    windows: pl.DataFrame | None,
    device: results.DeviceInfo | None,
    launch_s: float,
) -> list[results.RooflineRow]:
    """One row a step number, ranks together, in order of time. `devices_of`: step and device of each item."""
    if windows is None or windows.height == 0 or of_steps.height == 0:
        return []
    numbers = profile.steps["number"].cast(pl.String)
    labels = pl.DataFrame({"step": windows["step"], "step_name": numbers[windows["step"]]})
    mine = of_steps.join(labels, on="step", how="inner", maintain_order="left")
    working_in = devices_of.unique().join(labels, on="step", how="inner")
    devices = dict(working_in.group_by("step_name").agg(pl.col("device").n_unique()).iter_rows())
    calls = (
        work.select("step", "launch")
        .drop_nulls()
        .join(labels, on="step", how="inner")
        .group_by("step_name")
        .agg(pl.col("launch").n_unique())
    )
    launches = dict(calls.iter_rows())
    working = _devices(profile, work)
    lengths = windows.select(step_name=labels["step_name"], length_ps=_lengths(windows, working))
    lengths = lengths.group_by("step_name", maintain_order=True).agg(pl.col("length_ps").sum())
    times = [
        _Time(label, length / PS, devices[label], launches.get(label, 0) * launch_s)
        for label, length in lengths.iter_rows()
        if label in devices
    ]
    return _totalled(summed(mine, ["step_name"]), times, "Program", device)


class _Time(NamedTuple):
    """The time that a program row is held against."""

    step_name: str
    seconds: float
    """of all devices together"""
    devices: int
    launching_s: float
    """what its launches take at least"""
    parts: int = 1
    """steps that it is the average of"""


def _totalled(sums: pl.DataFrame, times: Sequence[_Time], name: str, device: results.DeviceInfo | None) -> list[results.RooflineRow]:
    """One row for each step name's items (`levels.summed`), in the order of `times`; those without any time are left out."""
    table = pl.DataFrame([time for time in times if time.seconds > 0], schema=_TIMES, orient="row")
    if sums.height == 0 or table.height == 0:
        return []
    rows = table.join(sums, on="step_name", how="inner", maintain_order="left")
    rows = rows.with_columns(
        launch_s="launching_s",
        bound_s=pl.when(pl.col("bound_s").is_not_null()).then(pl.max_horizontal("bound_s", "launching_s")),
    )
    rows = with_shares(rows, pl.col("seconds"), ("launch",) if rows["launching_s"].max() else ())
    divided = ["flops", "model_flops", "bound_s", "seconds", *(f"{level}_bytes" for level in LEVELS)]
    divided += [column for column in ROLE_COLUMNS if column in rows.columns]
    rows = rows.with_columns(
        *(pl.col(one) / pl.col("parts") for one in divided),
        text=pl.lit(name),
        time_per_unit_us=pl.col("seconds") / pl.col("parts") / pl.col("devices") * 1e6,
        estimate=pl.lit(None, dtype=pl.String),
        recomputed=pl.lit(False),
        largest_bytes=pl.lit(None, dtype=pl.Float64),
    )
    return records(rows.drop("category", strict=False), "program", device)


_TIMES = {"step_name": pl.String, "seconds": pl.Float64, "devices": pl.Int64, "launching_s": pl.Float64, "parts": pl.Int64}


def _devices(profile: Profile, work: pl.DataFrame) -> dict[int, int]:
    """How many devices of each source worked."""
    sources = profile.devices["source"][work["device"].unique()]
    return {int(source): int(count) for source, count in sources.value_counts().iter_rows()}


def _seconds(windows: pl.DataFrame, devices: dict[int, int]) -> float:
    """Length of these steps, a host's counted for each of its devices that worked (`_devices`), a device's own for itself."""
    return int(_lengths(windows, devices).sum()) / PS


def _lengths(windows: pl.DataFrame, devices: dict[int, int]) -> pl.Series:
    """Length (ps) of each of these steps, as `_seconds` adds them up."""
    of_host = windows["source"].cast(pl.Int64).replace_strict(devices, default=1, return_dtype=pl.Int64)
    length = pl.col("end_ps") - pl.col("start_ps")
    return windows.select(pl.when(pl.col("device").is_null()).then(length * of_host).otherwise(length)).to_series()


def _launches(work: pl.DataFrame) -> int:
    """Calls that launched this work: a graph's whole work is one."""
    return work["launch"].drop_nulls().n_unique()


def _busy_s(work: pl.DataFrame) -> float:
    return sum(busy(group).length for group in by_device(work)) / PS


def _without_infeed(items: pl.DataFrame) -> pl.DataFrame:
    return items.filter(pl.col("category") != int(Category.HOST_IO))


def _drawn(roofs: Sequence[results.Roof], ops: pl.DataFrame, device: results.DeviceInfo | None) -> list[results.Roof]:
    """The roofs, of which a memory's or link's is drawn only if an op is bound there (as XProf does), a type's if an op has it."""
    rates = level_rates(device) if device is not None else {}
    bound = {rates[level][0] for level in ops["bound_by"].drop_nulls().unique() if level in rates}
    used = set(ops["roof"].drop_nulls().unique())
    for roof in roofs:
        roof.drawn = (roof.level in bound) if roof.kind in ("memory", "link") else (roof.dtype in used) if roof.kind == "compute" else False
    return list(roofs)
