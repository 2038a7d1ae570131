"""How well a part of a profile used its devices: idle time, and work and bytes over what could have been done, as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roofterm.analysis.scope import Scope
from roofterm.analysis.utilisation import mfu, work_of
from roofterm.hardware.roofs import mfu_peak
from roofterm.results import ScopeUse

if TYPE_CHECKING:
    from roofterm.analysis.study import Study


def scope_use(study: Study, scope: Scope) -> ScopeUse | None:
    """Times of all its devices together, MFU and HFU over them, MBU of its steps of decode; None where no device worked."""
    program = {row.name: row for row in study.roofline(scope, 0).program if row.step == "Total"}
    whole, busy = program.get("Program"), program.get("Busy")
    if whole is None or busy is None:
        return None
    peak = mfu_peak(study.device) if study.device is not None else None
    used = mfu(work_of(study.bounded(scope).tallies), whole.time_us / 1e6, 1, peak[1] if peak else None)
    return ScopeUse(
        time_us=whole.time_us,
        busy_us=busy.time_us,
        idle_us=max(0.0, whole.time_us - busy.time_us),
        busy_pct=100 * busy.time_us / whole.time_us if whole.time_us else None,
        mfu_pct=used.mfu_pct,
        hfu_pct=used.hfu_pct,
        at_least=used.at_least,
        mbu_pct=_mbu(study, scope),
    )


def _mbu(study: Study, scope: Scope) -> float | None:
    """The mean of the steps of decode among those chosen, by their length."""
    if study.model is None and not study.bounded(scope).tallies["kv_read"].sum():
        return None  # no step reads a cache, and the steps need not be counted for it
    rows = study.steps()
    chosen = set(study.selection(scope).windows["step"].to_list())
    of = dict(zip(study.windows["step"].to_list(), rows, strict=True))
    decode = [row for step, row in of.items() if step in chosen and row.mbu_pct is not None]
    length = sum(row.dur_us for row in decode)
    return sum((row.mbu_pct or 0.0) * row.dur_us for row in decode) / length if length else None
