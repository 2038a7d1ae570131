"""Where a what-if starts from: the mean step of a profile, or a model's configuration with a batch that is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from roofterm.analysis.bounds import LAUNCH_S
from roofterm.analysis.cache_traffic import cache_layout
from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.host_work import CPU
from roofterm.analysis.model_config import ModelConfig
from roofterm.analysis.phases import Phase
from roofterm.analysis.profile_workload import Measured, ProfileStep
from roofterm.analysis.scope import Scope
from roofterm.analysis.whatif_state import Base, Change, ModelStep
from roofterm.analysis.workload import DECODE, PREFILL, Machine, Shape, WhatIfError

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

DEFAULT_TOKENS = 2048
"""Context and prompt where neither is given."""

_TRAINING = (Phase.BACKWARD, Phase.OPTIMIZER, Phase.RECOMPUTE)


def model_bases(model: ModelConfig, machine: Machine, batch: float | None, prompt: float | None, context: float | None) -> list[Base]:
    """The steps of a model: prefill of the prompts if they are given, and decode if a context is, or neither is."""
    sequences = batch or 1
    held = [f"{model.name}: weights, heads and layers by its config.json", "all sequences are as long as one another"]
    if model.window_layers and model.window is not None:
        held.append(f"{model.window_layers} of {model.layers} layers attend to {model.window:,} tokens at most")
    if batch is None:
        held.append("batch 1, since none is given")
    bases = []
    if prompt is not None:
        bases.append(_of_model(model, machine, Shape(sequences, prompt, prompt), PREFILL, held))
    if context is not None or prompt is None:
        tokens = context if context is not None else DEFAULT_TOKENS
        said = held if context is not None else [*held, f"context {DEFAULT_TOKENS:,} tokens, since none is given"]
        bases.append(_of_model(model, machine, Shape(sequences, 1, max(tokens, 2)), DECODE, said))
    return bases


def profile_base(study: Study, scope: Scope, machine: Machine, change: Change) -> Base:
    """The mean of the steps that a scope names, on one device; if the study has a model, parts by the model, batch by the profile.

    Raises ScopeError, and WhatIfError where the steps have no work, or no batch that a model's step could have.
    """
    selection = study.selection(scope)
    items = study.bounded(scope).items
    if not scope.infeed:
        items = items.filter(pl.col("category") != int(Category.HOST_IO))
    steps, work = selection.windows, selection.work
    phase, length_us, annotated = None, None, None
    held: list[str] = []
    if steps.height:
        steps, phase, held = _of_one_phase(study, steps, change)
        mine = pl.col("step").is_in(steps["step"].implode())
        items, work = items.filter(mine), work.filter(mine)
        length_us = int((steps["end_ps"] - steps["start_ps"]).sum()) / steps.height / 1e6
        annotated = _annotated(study, steps)
    if items.height == 0:
        raise WhatIfError("no device work is in these steps, so there is nothing to ask about")
    # Devices and steps side by side: the parts are those of one step of one device.
    count = items.select("step", "device").n_unique() if steps.height else items["device"].n_unique()
    launches = work["launch"].drop_nulls().n_unique() / count
    step = ProfileStep(study.joined, items, Measured(count, length_us, launches, annotated))
    shape = step.shape if step.shape is not None else annotated
    phase = phase or _phase(study, shape, work)
    mean = "one step" if count == 1 else f"the mean of {count:,} steps, each device's counted"
    held.append(mean if steps.height else "the whole profile, which has no steps, as one step")
    model = study.model
    if model is not None:
        if shape is None:
            raise WhatIfError("how many sequences and tokens these steps work on is not known, so the model has no batch")
        held.append(f"{model.name}: every part by its config.json; only the batch is the profile's")
        return _of_model(model, machine, shape, phase or shape.phase, held, step.devices, length_us)
    layout = cache_layout(study.joined)
    return Base(
        source=step,
        shape=step.shape,
        machine=machine,
        devices=step.devices,
        launches=launches if launches and machine.device.kind != CPU else None,
        launch_s=machine.device.launch_s or LAUNCH_S,
        measured_us=length_us,
        rows=step.rows,
        kv_dtype=layout.dtype if layout is not None else None,
        phase=phase,
        held=tuple(held),
    )


def _of_model(
    model: ModelConfig, machine: Machine, shape: Shape, phase: str, held: list[str], devices: int = 1, measured_us: float | None = None
) -> Base:
    return Base(
        source=ModelStep(model),
        shape=shape,
        machine=machine,
        devices=devices,
        model=model,
        phase=phase,
        held=tuple(held),
        measured_us=measured_us,
    )


def _of_one_phase(study: Study, steps: pl.DataFrame, change: Change) -> tuple[pl.DataFrame, str | None, list[str]]:
    """The steps of the phase that is asked about; of several, that of the most time."""
    phases = study.step_facts["phase"][steps["step"]]
    table = steps.with_columns(phase=phases, length=pl.col("end_ps") - pl.col("start_ps"))
    known = table.drop_nulls("phase").group_by("phase").agg(pl.col("length").sum(), pl.len().alias("count")).sort("length", descending=True)
    if known.height == 0:
        return steps, None, []
    names = known["phase"].to_list()
    wanted = DECODE if change.context is not None or change.drafts else PREFILL if change.prompt is not None else names[0]
    if wanted not in names:
        raise WhatIfError(f"none of these steps is one of {wanted}: they are of {', '.join(names)}")
    if len(names) == 1:
        return steps, wanted, []
    mine = table.filter(pl.col("phase") == wanted)
    return steps.filter(steps["step"].is_in(mine["step"].implode())), wanted, [f"{mine.height:,} {wanted} steps of {steps.height:,}"]


def _annotated(study: Study, steps: pl.DataFrame) -> Shape | None:
    """Sequences, new tokens and context by the engine's annotations, means over the steps."""
    facts = study.step_facts[steps["step"]]
    tokens = (facts["prompt_tokens"].fill_null(0) + facts["generated_tokens"].fill_null(0)).mean()
    sequences, context = facts["sequences"].mean(), facts["context_tokens"].mean()
    if not sequences or not tokens or not context:
        return None
    return Shape(float(sequences), float(tokens) / float(sequences), float(context) / float(sequences))  # type: ignore[arg-type]


def _phase(study: Study, shape: Shape | None, work: pl.DataFrame) -> str | None:
    if shape is None:
        return None
    if shape.phase == DECODE:
        return DECODE
    mine = study.work["slice"].is_in(work["slice"].implode()).to_numpy()
    training = bool(pl.Series(study.work_phase[mine]).is_in([int(phase) for phase in _TRAINING]).any())
    return None if training else PREFILL
