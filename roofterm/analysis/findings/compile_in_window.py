"""Does something compile inside the window?"""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.findings.evidence import Evidence
from roofterm.analysis.findings.host_causes import Cause
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.intervals import NONE, Intervals, covered, union, without
from roofterm.analysis.steps import US
from roofterm.results import Finding
from roofterm.text.units import duration_us
from roofterm_parsers.occurring import occurring

LEAST_US = 1000.0
LEAST_PCT = 1.0


@rule(
    "compile-in-window",
    question="Does the window hold compilation or a new trace of the model?",
    definition="""
    Union of the host's compilation slices (TorchDynamo, AOTAutograd, Inductor, Triton, XLA) over the whole file, without
    the time in which a device of the same rank works. From 1 ms and 1 % of the steps that hold them, or of the file without
    steps; at stake once.
    """,
    source="reference definition of compilation: union of the (dynamo_timed) spans; torch.profiler guide",
    host_bound=True,
)
def compile_in_window(e: Evidence) -> Finding | None:
    rows = e.causes.slices(Cause.COMPILE)
    if rows.size == 0:
        return None
    source = e.profile.tracks["source"].to_numpy()[e.profile.slices["track"].to_numpy()[rows]]
    start, end = e.study.start_ps[rows], e.study.start_ps[rows] + e.study.dur_ps[rows]
    total = stake = whole = 0
    steps: list[str] = []
    for number in occurring(source).tolist():
        mine = source == number
        compiling = union(start[mine], end[mine])
        total += compiling.length
        stake += without(compiling, _busy(e, number)).length
        held, names = _steps_with(e, number, compiling)
        whole += held
        steps += names
    if total < LEAST_US * US or whole == 0 or 100 * stake < LEAST_PCT * whole:
        return None
    outer = _outermost(e, rows)
    evidence = {
        "compiling_us": total / US,
        "device_idle_meanwhile_us": stake / US,
        "steps": steps[:8],
        "compilations": outer.height,
        "longest": e.text(outer["name"][0]),
        "longest_us": int(outer["dur"][0]) / US,
    }
    where = f" in {', '.join(steps[:3])}{' ...' if len(steps) > 3 else ''}" if steps else ""
    title = f"Compilation inside the window: {duration_us(total / US)}{where}"
    advice = _IN_XLA if e.is_xla else _IN_TORCH
    return e.finding_once(title, stake, whole, evidence, advice, view="timeline", filter=f'name:"{evidence["longest"]}"')


_IN_TORCH = (
    "Compile before the window (call the model once for each shape), keep shapes static or mark them dynamic, and keep the cache "
    "(TORCHINDUCTOR_FX_GRAPH_CACHE=1, jax_compilation_cache_dir); if it comes again in later steps, look for recompilations with "
    "TORCH_LOGS=recompiles."
)
_IN_XLA = (
    "Compile before the window (call the function once for each shape), pad inputs to few shapes, and keep the cache "
    "(jax_compilation_cache_dir); if it comes again in later steps, jax_explain_cache_misses and jax_log_compiles say why."
)


def _busy(e: Evidence, source: int) -> Intervals:
    """When any device of a source works."""
    lines = [line.busy for device, line in e.lines.items() if e.profile.devices["source"][device] == source]
    if not lines:
        return NONE
    return union(np.concatenate([busy.start for busy in lines]), np.concatenate([busy.end for busy in lines]))


def _steps_with(e: Evidence, source: int, compiling: Intervals) -> tuple[int, list[str]]:
    """Length and names of a source's steps that hold some of it; without steps the length of the host's slices."""
    windows = e.study.windows.filter(pl.col("source") == source)
    if windows.height == 0:
        mine = (e.profile.tracks["source"] == source).to_numpy()[e.profile.slices["track"].to_numpy()]
        start = e.study.start_ps[mine]
        return int((start + e.study.dur_ps[mine]).max() - start.min()), []
    first, last = windows["start_ps"].to_numpy(), windows["end_ps"].to_numpy()
    held = covered(compiling, first, last) * 100 >= (last - first)
    names = e.profile.steps["name"][windows["step"].filter(pl.Series(held))].to_list()
    return int((last - first)[held].sum()), names


def _outermost(e: Evidence, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pl.DataFrame:
    """Compilation slices that lie in no other: name (row of names) and dur, longest first."""
    parent = e.profile.slices["parent"].to_numpy()
    marked = np.zeros(parent.size + 1, np.bool_)
    marked[rows] = True
    above = parent[rows].astype(np.int64)
    above = np.where(above < parent.size, above, parent.size)
    top = rows[~marked[above]]
    return pl.DataFrame({"name": e.profile.slices["name"][pl.Series(top)], "dur": e.study.dur_ps[top]}).sort("dur", descending=True)
