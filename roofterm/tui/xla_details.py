"""Everything that XProf's overview and input pipeline analysis say of a profile, as details."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from roofterm.results import InputPipeline, XlaOverview
from roofterm.text.safe import safe_text
from roofterm.text.units import count, duration_us, pct
from roofterm.tui.columns import definition
from roofterm.tui.widgets.detail import Details, Fact

_SHARES = {
    "duty_cycle_pct": "duty cycle",
    "device_idle_pct": "device idle",
    "host_idle_pct": "host idle",
    "device_op_pct": "ops on device",
    "host_op_pct": "ops on host",
    "compute_16bit_pct": "in 16 bits",
    "compute_32bit_pct": "in 32 bits",
    "mxu_pct": "matrix units",
    "hbm_pct": "HBM",
}
_TIMES = {"infeed_us": "infeed", "outfeed_us": "outfeed", "host_transfer_us": "host transfers"}
_STEP = {"step_mean_us": "mean", "step_sd_us": "std deviation", "step_min_us": "shortest", "step_max_us": "longest"}
_OF_STEPS = {"input_pct": "input", "output_pct": "output", "other_pct": "unexplained"}
_OPS = 8


def xla_details(xla: XlaOverview) -> Details:
    """Figures that do not apply to the hardware are left out."""
    pipeline = xla.input_pipeline
    facts = [
        Fact("hardware", f"{xla.hardware}, {count(xla.cores)} cores" if xla.cores else xla.hardware),
        Fact("rules", f"XProf {xla.version}"),
        *_known(xla, _SHARES, pct),
        *_known(xla, _TIMES, duration_us),
        Fact("Input"),
        Fact("verdict", safe_text(pipeline.statement), definition("verdict")),
        *_known(pipeline, _OF_STEPS, pct),
        *_steps(pipeline),
        *_host(pipeline),
    ]
    return Details("XProf's overview and input pipeline", facts)


def _known(record: XlaOverview | InputPipeline, names: dict[str, str], text: Callable[[float], str]) -> Iterator[Fact]:
    for name, label in names.items():
        value = getattr(record, name)
        if value is not None:
            yield Fact(label, text(value), definition(name))


def _steps(pipeline: InputPipeline) -> Iterator[Fact]:
    if pipeline.steps:
        yield Fact("Steps as XProf counts them")
        yield Fact("steps", count(pipeline.steps), definition("input_pipeline"))
        yield from _known(pipeline, _STEP, duration_us)
        for name, us in pipeline.by_activity_us.items():
            if us > 0:
                yield Fact(name.replace("_", " "), duration_us(us), "of a mean step")


def _host(pipeline: InputPipeline) -> Iterator[Fact]:
    if pipeline.ops:
        yield Fact("Input on the host")
        for name, us in pipeline.host_input_us.items():
            yield Fact(name.replace("_", " "), duration_us(us), definition("host_input_us"))
        for op in pipeline.ops[:_OPS]:
            spent = f"{duration_us(op.self_us)} ({pct(op.pct)}), {count(op.calls)} calls"
            yield Fact(op.category.lower(), f"{safe_text(op.name)}: {spent}")
