"""What XProf's overview and input pipeline analysis say, in the triage report and on the Overview."""

from __future__ import annotations

from collections.abc import Iterator

from roofterm.results import InputPipeline, XlaOverview
from roofterm.text.safe import safe_text
from roofterm.text.units import count, duration_us, pct

_OPS_SHOWN = 2
_NAME = 40
_PARTS = {"other": "unexplained", "sparsecore_v0": "SparseCore", "host_transfer": "host transfers"}
"""Activities that are not called as in the JSON"""


def xla_lines(xla: XlaOverview) -> Iterator[tuple[str, str]]:
    """Label and sentence of each line of the report."""
    if use := use_parts(xla):
        yield "xprof", f"{', '.join(use)} (by the rules of XProf {xla.version})"
    yield "input", input_line(xla.input_pipeline)
    if steps := steps_line(xla.input_pipeline):
        yield "", steps
    if host := host_line(xla.input_pipeline):
        yield "", host


def use_parts(xla: XlaOverview) -> list[str]:
    """How the device was used; nothing of hardware that XProf says nothing of."""
    waits = {"infeed": xla.infeed_us, "outfeed": xla.outfeed_us, "host transfers": xla.host_transfer_us}
    parts = [f"duty cycle {pct(xla.duty_cycle_pct)}, idle {pct(xla.device_idle_pct)}"] if xla.duty_cycle_pct is not None else []
    if waits["infeed"] is not None:
        spent = [f"{name} {duration_us(us)}" for name, us in waits.items() if us]
        parts.append(f"a core spends in {', '.join(spent)}" if spent else "no infeed, outfeed or host transfer")
    if xla.compute_16bit_pct is not None:
        parts.append(f"{pct(xla.compute_16bit_pct)} of the steps' compute in 16 bits, {pct(xla.compute_32bit_pct)} in 32")
    if xla.mxu_pct is not None:
        parts.append(f"matrix units {pct(xla.mxu_pct)}")
    if xla.hbm_pct is not None:
        parts.append(f"HBM {pct(xla.hbm_pct)}")
    if xla.device_op_pct is not None:
        parts.append(f"{pct(xla.device_op_pct)} of the framework's ops ran on the device")
    return parts


def input_line(pipeline: InputPipeline) -> str:
    return safe_text(pipeline.statement)


def steps_line(pipeline: InputPipeline) -> str:
    """XProf's steps with their spread, and what a mean step consists of; empty where it knows none."""
    if not pipeline.steps:
        return ""
    spread = f" +- {duration_us(pipeline.step_sd_us)}" if pipeline.step_sd_us is not None else ""
    ends = f", {duration_us(pipeline.step_min_us)} to {duration_us(pipeline.step_max_us)}" if pipeline.steps > 1 else ""
    parts = [f"{_PARTS.get(name, name.replace('_', ' '))} {duration_us(us)}" for name, us in _longest_first(pipeline)]
    number = f"{count(pipeline.steps)} step{'s' if pipeline.steps > 1 else ''}"
    return f"XProf counts {number}: mean {duration_us(pipeline.step_mean_us)}{spread}{ends}; of a step {', '.join(parts)}"


def _longest_first(pipeline: InputPipeline) -> list[tuple[str, float]]:
    spent = [(name, us) for name, us in pipeline.by_activity_us.items() if us > 0]
    return sorted(spent, key=lambda part: -part[1])


def host_line(pipeline: InputPipeline) -> str:
    """What the host did for the input, and its longest ops; empty where no op of an input pipeline ran."""
    if not pipeline.ops:
        return ""
    spent = [f"{name.replace('_', ' ')} {duration_us(us)}" for name, us in pipeline.host_input_us.items() if us >= 1e-3]
    ops = [f"{safe_text(op.name, _NAME)} {duration_us(op.self_us)} in {count(op.calls)} calls" for op in pipeline.ops[:_OPS_SHOWN]]
    return f"the host's input: {', '.join(spent)}; most of all {', '.join(ops)}"
