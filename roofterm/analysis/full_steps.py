"""Steps and summary of a study with what the devices' peaks say of them: MFU, HFU and MBU, tensor cores and SM efficiency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roofterm.analysis import steps
from roofterm.analysis.batches import DECODE
from roofterm.analysis.model_workload import model_parts
from roofterm.analysis.scope import STEADY
from roofterm.analysis.step_use import step_use
from roofterm.analysis.summary import summarise
from roofterm.analysis.utilisation import Utilisation, WorkSums, decode_bytes, mbu, mfu, work_by_step, work_of
from roofterm.analysis.workload import Shape, total
from roofterm.hardware.roofs import mbu_bandwidth, mfu_peak

if TYPE_CHECKING:
    from roofterm import results
    from roofterm.analysis.study import Study


def full_steps(study: Study) -> list[results.StepRow]:
    """One row a step and rank, in the order of `study.windows`: its breakdown, and how it uses the device."""
    rows = steps.step_rows(study.profile, study.windows, study.device_lines)
    works = work_by_step(study.bounded().tallies, study.profile.steps.height)
    for row, step in zip(rows, study.windows["step"], strict=True):
        used = _utilisation(study, works[step], row.dur_us / 1e6, works[step].devices)
        row.mfu_pct, row.hfu_pct = used.mfu_pct, used.hfu_pct
        row.mbu_pct = _mbu(study, step, works[step], row.dur_us / 1e6)
    use = step_use(study.profile, study.work, study.windows, study.facts.select("slice", "tensor_core"), study.occupancy)
    for row, step in zip(rows, study.windows["step"], strict=True):
        row.phase = study.step_facts["phase"][step]
    for row, shares in zip(rows, use.iter_rows(named=True), strict=True):
        for name, share in shares.items():
            setattr(row, name, share)
    return rows


def _utilisation(study: Study, work: WorkSums, seconds: float, devices: int) -> Utilisation:
    """MFU and HFU of work over a time on so many devices."""
    peak = mfu_peak(study.device) if study.device is not None else None
    return mfu(work, seconds, devices, peak[1] if peak else None)


def _mbu(study: Study, step: int, work: WorkSums, seconds: float) -> float | None:
    """MBU of a step of decode, by its work or, with a model, by that and the engine's annotation."""
    bandwidth = mbu_bandwidth(study.device) if study.device is not None else None
    facts = study.step_facts.row(step, named=True)
    sequences, context = facts["sequences"], facts["context_tokens"]
    if study.model is not None and facts["phase"] == DECODE and sequences and context and work.devices == 1:
        parts = model_parts(study.model, Shape(sequences, 1, context / sequences))
        return mbu(total(parts, "weight_bytes") + total(parts, "kv_read"), seconds, 1, bandwidth)
    return mbu(decode_bytes(work, facts["phase"]), seconds, work.devices, bandwidth)


def outlined_summary(study: Study) -> results.Summary:
    """Of the facts of the whole file those that costs, peaks and allocators tell nothing of."""
    marked = study.plain_steps() if study.given.steps.height else []
    return summarise(study.given, study.work, study.device_lines, study.self_ps, marked, None, None)


def full_summary(study: Study) -> results.Summary:
    """Facts of the whole file; shares of peaks are those of the steady steps."""
    marked = study.steps() if study.given.steps.height else []
    summary = summarise(study.given, study.work, study.device_lines, study.self_ps, marked, study.flops_total, study.memory)
    part = study.selection(STEADY)
    if part.windows.height:
        # Ranks work side by side: each device counts the time of its own steps.
        devices = part.work["device"].n_unique()
        sources = max(part.windows["source"].n_unique(), 1)
        used = _utilisation(study, work_of(study.bounded(STEADY).tallies), part.length_ps / 1e12 / sources, devices)
        summary.mfu_pct, summary.mfu_palm_pct, summary.hfu_pct = used.mfu_pct, used.mfu_palm_pct, used.hfu_pct
        decode = [row for row in study.steps() if row.mbu_pct is not None and row.steady]
        length = sum(row.dur_us for row in decode)
        summary.mbu_pct = sum((row.mbu_pct or 0.0) * row.dur_us for row in decode) / length if length else None
    if study.is_torch:
        summary.self_cpu_us = study.function_tree.self_ps / steps.US
    return summary
