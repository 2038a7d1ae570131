"""The triage report as text for a person: health first, then device, steps, busy time, and where the time went."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from statistics import fmean, median
from typing import TYPE_CHECKING

from roofterm.report.breakdown import breakdown_lines, mean_breakdown
from roofterm.report.memory_text import memory_lines
from roofterm.report.ops_columns import table_columns
from roofterm.report.plain_table import plain_table
from roofterm.report.ranks_text import ranks_lines
from roofterm.report.xla_text import xla_lines
from roofterm.results import DeviceInfo, GraphReplay, HostBalance, LaunchPath, RooflineRow, StepRow, Summary
from roofterm.text.safe import safe_text
from roofterm.text.units import UNKNOWN, bytes_text, count, duration_us, figures, pct, si

if TYPE_CHECKING:
    from roofterm.report.triage import Report

LITTLE_PCT = 1.0
"""with less of the busy time modelled the program's rates would say nothing"""

TOLD_BY = {
    "engine": "the engine's annotations",
    "range": "a range that repeats",
    "optimizer": "the optimizer's steps",
    "graph": "graph launches that repeat",
}
"""What tells iterations (`iterations.ITERATIONS`), in words"""

_READINGS = {
    "overhead-bound": "overhead-bound",
    "compute-bound": "compute-bound",
    "neither": "neither overhead-bound nor compute-bound",
}

_USES = {"tensor_core_pct": "tensor cores", "sm_efficiency_pct": "estimated SM efficiency", "host_busy_pct": "host busy"}

_GRAPHS_SHOWN = 3

LABEL = 11
"""cells of the labels at the left"""


def report_text(report: Report, width: int) -> list[str]:
    """Lines of the report, made for `width` cells."""
    lines = [safe_text(report.source.path, width), ""]
    for label, text in _head(report, width):
        lines += _wrapped(label, text, width)
    steps = [s for s in report.steps if s.steady] or [s for s in report.steps if s.complete] or report.steps
    shares = mean_breakdown(steps)
    if shares:
        lines += ["", *breakdown_lines(shares, width)]
    for name, title in (("kernels", "kernel"), ("ops", "op")):
        table = report.tables[name]
        if table.height:
            lines += [
                "",
                f"top {name} {_ordered_by(name, report)}({report.scope})",
                *plain_table(table, table_columns(title, table), width),
            ]
    lines += _roofline(report, width)
    for finding in report.findings:
        lines += [
            "",
            *_wrapped(finding.severity, f"{finding.title}: {duration_us(finding.time_at_stake_us)} at stake. {finding.advice}", width),
        ]
    if report.warnings:
        lines += ["", "warnings"]
        for warning in report.warnings:
            lines += _wrapped("", safe_text(warning.message), width)
    return lines


def _labelled(label: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The lines, the first behind its label."""
    for at, line in enumerate(lines):
        yield label if at == 0 else "", line


def _head(report: Report, width: int) -> Iterator[tuple[str, str]]:
    summary, source = report.summary, report.source
    state = "whole" if not report.warnings else f"{len(report.warnings)} warning{'s' if len(report.warnings) > 1 else ''}, see below"
    size = f"{count(source.events)} events, {count(summary.slices)} slices, {bytes_text(source.bytes)}"
    load = "from the cache" if source.from_cache else f"read in {duration_us(source.seconds * 1e6)}"
    yield "health", f"{state}; {safe_text(source.format)}, {size}, {load}"
    if report.recorded:
        yield "recorded", ", ".join(report.recorded)
    if summary.kernels:
        lost = f", {count(summary.unlinked_kernels)} without a launch in the file" if 0 < summary.unlinked_kernels < summary.kernels else ""
        yield (
            "kernels",
            f"{count(summary.kernels)} ({count(summary.distinct_kernels)} distinct), {duration_us(summary.kernel_us)} in all{lost}",
        )
    for line, number in Counter(map(device_line, report.devices)).items():
        yield "device", line if number == 1 else f"{number} x {line}"
    if len(report.ranks) > 1:
        yield from _labelled("ranks", ranks_lines(report.ranks))
    elif summary.ranks and summary.ranks > 1:
        yield "ranks", str(summary.ranks)
    if summary.hosts and summary.hosts > 1:
        yield "hosts", str(summary.hosts)
    told = f", told by {TOLD_BY[report.steps_told_by]}" if report.steps_told_by else ""
    yield (
        ("iterations" if len(report.steps) > 1 else "iteration") if told else "steps",
        steps_line(report.steps) + told if report.steps else f"none marked; the file spans {duration_us(summary.span_us)}",
    )
    if summary.gpu_busy_pct is not None:
        used = f", MFU {pct(summary.mfu_pct)}, HFU {pct(summary.hfu_pct)}" if summary.mfu_pct is not None else ""
        yield "busy", f"{pct(summary.gpu_busy_pct)} of the file, compute {pct(summary.compute_busy_pct)}{used}"
    if used := use_line(report.steps):
        yield "use", used
    if report.launch_path is not None and report.launch_path.launches:
        yield "launches", launches_line(report.launch_path)
    for graph in report.graphs[:_GRAPHS_SHOWN]:
        yield "graphs", graph_line(graph)
    if summary.comm_us:
        yield "comm", f"{duration_us(summary.comm_us)} in collectives, {duration_us(summary.exposed_comm_us)} of it exposed"
    if summary.sync_us:
        yield "sync", f"the host waits {duration_us(summary.sync_us)} in synchronising calls"
    if report.xla is not None:
        yield from xla_lines(report.xla)
    if summary.counter_series:
        yield "counters", f"{count(len(summary.counter_series))} series recorded (ops --by counter)"
    if report.memory is not None:
        yield from _labelled("memory", memory_lines(report.memory, width - LABEL))
    if summary.self_cpu_us is not None:
        yield "totals", totals_line(summary, report.host_balance)
        if report.host_balance is not None:
            yield "host", balance_line(report.host_balance)


def device_line(device: DeviceInfo) -> str:
    """A device with its size and roofs, in one line."""
    parts = [safe_text(device.name or f"device {device.id}, name unknown")]
    size = [f"{device.units} units"] if device.units else []
    size += [bytes_text(device.memory_bytes)] if device.memory_bytes else []
    if size:
        parts.append(f"({', '.join(size)})")
    roofs = [f"{name} {si(device.peaks[name], 'FLOP/s')}" for name in ("bf16", "fp16") if name in device.peaks][:1]
    roofs += [f"fp32 {si(device.peaks['fp32'], 'FLOP/s')}"] if "fp32" in device.peaks else []
    roofs += [f"{level.upper()} {si(device.bandwidths[level], 'B/s')}" for level in ("hbm",) if level in device.bandwidths]
    parts.append(f"{', '.join(roofs)} [{device.roofs_from}]" if roofs else "no roof known")
    return " ".join(parts)


def steps_line(steps: list[StepRow]) -> str:
    """How many steps, how long, how steady."""
    steady = [s for s in steps if s.steady]
    shown = steady or steps
    times = [s.dur_us for s in shown]
    slowest = max(shown, key=lambda s: s.dur_us)
    spread = f", {duration_us(min(times))} to {duration_us(max(times))}, slowest {safe_text(slowest.name, 40)}" if len(shown) > 1 else ""
    return f"{len(steps)}, {len(steady)} steady: median {duration_us(median(times))}{spread}"


def use_line(steps: list[StepRow]) -> str:
    """How the steps use tensor cores, the device's units and the host, as means of the steady ones; empty where nothing is known."""
    shown = [s for s in steps if s.steady] or steps
    parts = []
    for name, title in _USES.items():
        known = [value for step in shown if (value := getattr(step, name)) is not None]
        if known:
            parts.append(f"{title} {pct(fmean(known))}")
    return f"{', '.join(parts)} of the step" if parts else ""


def totals_line(summary: Summary, balance: HostBalance | None) -> str:
    """The two totals below the profiler's own table, and the guide's ratio of them."""
    totals = f"Self CPU time total {duration_us(summary.self_cpu_us)}"
    if not summary.kernels:
        return totals
    ratio = f" ({figures(balance.raw_ratio)} to 1)" if balance is not None and balance.raw_ratio is not None else ""
    return f"{totals}, Self CUDA time total {duration_us(summary.self_device_us)}{ratio}"


def balance_line(balance: HostBalance) -> str:
    """The host's own time against the device's, synchronisation apart, and what that says."""
    ratio = f" ({figures(balance.host_to_device_ratio)} to 1)" if balance.host_to_device_ratio is not None else ""
    times = f"{duration_us(balance.host_self_us)} of own work against {duration_us(balance.device_busy_us)} of the device's{ratio}"
    per = "a step" if balance.per == "step" else "in the window"
    waits = f"the device waits for dispatch {pct(balance.dispatch_wait_pct)} of the time"
    reading = f": {_READINGS[balance.reading]}" if balance.reading in _READINGS else ""
    return f"{times} {per}, synchronisation apart; {waits}{reading}"


def launches_line(path: LaunchPath) -> str:
    """How often and how far ahead the host launches, and how short what it launches is."""
    often = f"{figures(path.launches_per_step)} a step" if path.launches_per_step is not None else f"{count(path.launches)} in all"
    parts = [often, f"work begins {duration_us(path.delay_p50_us)} after the call (p99 {duration_us(path.delay_p99_us)})"]
    if path.short_kernels:
        parts.append(f"{pct(path.short_kernels_pct)} of kernels under 10 us, {pct(path.short_time_pct)} of their time")
    if path.queue_max is not None:
        parts.append(f"up to {count(path.queue_max)} waiting on a stream")
    if path.orphans:
        parts.append(f"{count(path.orphans)} pieces launched before the window")
    if path.clock_faults:
        parts.append(f"{count(path.clock_faults)} begin before their call: clocks at fault")
    return ", ".join(parts)


def graph_line(graph: GraphReplay) -> str:
    """A graph's replays, what repeats in them, and where their ops come from."""
    layers = f", layers {graph.layers}" if graph.layers else ""
    joined = f"; ops from {safe_text(os.path.basename(graph.capture), 60)}" if graph.capture else "; no capture trace tells their ops"
    return f"{count(graph.launches)} x {count(graph.pieces)} pieces of {duration_us(graph.device_us)}{layers}{joined}"


def _roofline(report: Report, width: int) -> list[str]:
    coverage = report.roofline.coverage
    if coverage.modelled_pct is None:
        return []
    shares = f"{pct(coverage.modelled_pct)} of busy time modelled, {pct(coverage.bytes_only_pct)} bytes only"
    lines = ["", *_wrapped("roofline", f"{report.scope}: {shares}, {pct(coverage.unknown_pct)} unknown", width)]
    if coverage.modelled_pct < LITTLE_PCT and coverage.missing:
        return [*lines, *_wrapped("", coverage.missing, width)]
    for row in report.roofline.program:
        label = "busy" if row.name == "Busy" else row.step.lower()
        lines += _wrapped(label, _roof_facts(row), width)
    return lines


def _ordered_by(name: str, report: Report) -> str:
    if name != "ops":
        return ""
    return "by own device time " if report.tables["ops"]["self_device_us"].sum() > 0 else "by own host time "


def _roof_facts(row: RooflineRow) -> str:
    return (
        f"{si(row.flops_per_s, 'FLOP/s')} ({pct(row.pct_of_peak_flops)} of peak), "
        f"{si(row.bytes_per_s.get('hbm'), 'B/s')} ({pct(row.pct_of_peak_bw)} of peak), bound by {row.bound_by or UNKNOWN}"
    )


def _wrapped(label: str, text: str, width: int) -> list[str]:
    """`text` behind a label, folded at blanks."""
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width - LABEL:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    lines.append(line)
    return [f"{label if at == 0 else '':{LABEL}}{part}" for at, part in enumerate(lines)]
