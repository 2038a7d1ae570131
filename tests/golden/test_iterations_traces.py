"""Iterations and phases of real traces against what their raw JSON says, counted here by hand."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from tests.golden.raw_events import is_work, raw_events, union_ps
from tests.reference import reference

PREFILL = "traces/torch/tracelens_mi300x_sglang_qwen3_8b_prefilldecode.json.gz"
DECODE = "traces/torch/tracelens_mi300x_sglang_qwen3_8b_decode.json.gz"
PIECEWISE = "traces/torch/tracelens_mi300_vllm_prefilldecode_piecewise.json.gz"
CHECKPOINTED = "traces/torch/tracelens_mi300x_resnet_act_ckpt_rank0of8.json.gz"


def study(name: str) -> Study:
    return Study(open_profile(reference(name), cache=False))


# Each trace holds one iteration, whose annotation is named `execute_...` (shown). Causal pairs by the formula of
# definitions.md: of 15 fresh prompts of 1,024 tokens each 1,024 x 1,025 / 2, of a decode step its context.
@pytest.mark.parametrize(
    ("name", "phase", "sequences", "prompt", "generated", "context", "pairs"),
    [
        # execute_15360_context_15(sq15360sk15360sqsq15728640sqsk15728640)_generation_0(sq0sk0sqsq0sqsk0)
        (PREFILL, "prefill", 15, 15360, 0, 15360, 15 * 1024 * 1025 // 2),
        # execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)
        (DECODE, "decode", 32, 0, 32, 32785, 32785),
        # execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)
        (PIECEWISE, "mixed", 46, 8155, 37, 42919, 3_937_495 + 34_489),
    ],
)
def test_the_engine_s_annotation_is_the_iteration(
    name: str, phase: str, sequences: int, prompt: int, generated: int, context: int, pairs: int
) -> None:
    (row,) = study(name).table("iteration").rows(named=True)
    assert (row["phase"], row["sequences"], row["prompt_tokens"], row["generated_tokens"]) == (phase, sequences, prompt, generated)
    assert (row["context_tokens"], row["causal_pairs"], row["calls"]) == (context, pairs, 1)


@pytest.mark.parametrize("name", [PREFILL, DECODE, PIECEWISE])
def test_an_iteration_lasts_until_the_last_work_that_was_launched_in_it(name: str) -> None:
    """By the raw events: the annotation's start and length, the end of the last piece whose call lies within it, the union of
    the work until then. No work before it is known, so it begins with its annotation."""
    events = raw_events(reference(name))
    annotation = next(event for event in events if event["name"].startswith("execute_"))
    calls = {
        event["args"]["correlation"]
        for event in events
        if event.get("cat") == "cuda_runtime" and annotation["start"] <= event["start"] and event["end"] <= annotation["end"]
    }
    launched = [event for event in events if is_work(event) and event["args"]["correlation"] in calls]
    end = max([annotation["end"], *(event["end"] for event in launched)])
    (row,) = study(name).steps()
    assert row.start_us == annotation["start"] / 1e6
    assert row.dur_us == (end - annotation["start"]) / 1e6
    assert row.host_dur_us == (annotation["end"] - annotation["start"]) / 1e6
    assert row.launched_device_us == pytest.approx(union_ps(launched) / 1e6, rel=1e-9)
    assert row.busy_pct == pytest.approx(
        100 * union_ps([e for e in events if is_work(e) and e["end"] <= end]) / (end - annotation["start"])
    )


def test_tokens_per_second_are_new_tokens_over_the_iteration() -> None:
    (row,) = study(PIECEWISE).table("iteration").rows(named=True)
    assert row["tokens_per_s"] == pytest.approx(8192 / row["total_us"] * 1e6)
    assert row["inter_token_p50_us"] is None  # one iteration has no time between tokens


def test_thirty_optimizer_steps_are_thirty_iterations() -> None:
    """param_2080ti_resnet marks no step; its 30 `Optimizer.step#SGD.step` end the iterations."""
    name = "traces/torch/param_2080ti_resnet.json.gz"
    ends = [event["end"] for event in raw_events(reference(name)) if event["name"] == "Optimizer.step#SGD.step"]
    found = study(name)
    assert len(found.steps()) == len(ends) == 30
    steps = found.profile.steps
    assert (steps["start_ps"] + steps["dur_ps"]).to_list() == sorted(ends)
    assert steps["start_ps"].to_list()[1:] == sorted(ends)[:-1]


def test_phases_of_a_checkpointed_training_step_by_python_frames_and_threads() -> None:
    """By the raw events: work whose call begins within a `recompute_fn` frame of torch's checkpoint is recomputation; else
    what the autograd thread launched is backward, as is the gradient's seed of `Tensor.backward` on the main thread; what is
    launched within `Optimizer.step` optimizer; collectives communication; what else has a call the model's forward and the
    loss."""
    events = raw_events(reference(CHECKPOINTED))
    calls = {event["args"]["correlation"]: event for event in events if event.get("cat") == "cuda_runtime"}
    again = [event for event in events if event["name"].endswith(": recompute_fn")]
    seeds = [event for event in events if event["name"].startswith("torch/_tensor.py") and event["name"].endswith(": backward")]
    updates = [event for event in events if event["name"].startswith("Optimizer.step#") and event["cat"] == "user_annotation"]
    autograd = next(event["tid"] for event in again)
    counted: dict[str, list[int]] = {}
    for piece in filter(is_work, events):
        call = calls.get(piece["args"].get("correlation"))
        phase = (
            "communication"
            if piece["name"].startswith("nccl")
            else None
            if call is None
            else "recompute"
            if within(call, again)
            else "backward"
            if call["tid"] == autograd or within(call, seeds)
            else "optimizer"
            if within(call, updates)
            else "forward"
        )
        count = counted.setdefault(str(phase), [0, 0])
        count[0] += 1
        count[1] += piece["end"] - piece["start"]
    assert counted["recompute"][0] == 615
    assert counted["optimizer"][0] == 3
    found = study(CHECKPOINTED)
    phases = found.phase_of_work().fill_null("None").to_list()
    lengths = (found.work["end_ps"] - found.work["start_ps"]).to_list()
    got: dict[str, list[int]] = {}
    for phase, length in zip(phases, lengths, strict=True):
        count = got.setdefault(phase, [0, 0])
        count[0] += 1
        count[1] += length
    assert got == counted


def within(call: dict[str, Any], ranges: list[dict[str, Any]]) -> bool:
    return any(one["tid"] == call["tid"] and one["start"] <= call["start"] < one["end"] for one in ranges)


@pytest.mark.parametrize("name", ["hta_a100_2gpu_resnet_nccl_meta", "hta_v100_resnet_ns_absolute_ts.pt"])
def test_phases_agree_with_the_ranges_that_the_job_set_itself(name: str) -> None:
    """These jobs wrap their parts in `## forward ##`, `## backward ##` and `## optimizer ##`: what the main thread launched
    within each, and what autograd's thread launched meanwhile, are the same pieces as ours; collectives aside."""
    path = reference(f"traces/torch/{name}.{'trace.' if name.endswith('.pt') else ''}json.gz")
    events = raw_events(path)
    ranges = [event for event in events if event.get("cat") == "user_annotation" and event["name"].startswith("## ")]
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_runtime" and "correlation" in e["args"]}
    expected: dict[str, int] = {}
    for piece in filter(is_work, events):
        call = calls[piece["args"]["correlation"]]
        around = next((one["name"].strip("# ") for one in ranges if one["start"] <= call["start"] < one["end"]), "None")
        if not piece["name"].startswith("nccl"):
            expected[around] = expected.get(around, 0) + 1
    found = Study(open_profile(path, cache=False)).phase_of_work().fill_null("None").value_counts().rows()
    assert {phase: count for phase, count in found if phase != "communication"} == expected


def test_the_phases_of_a_step_add_up_to_its_breakdown() -> None:
    """Exposed times never exceed the step's busy time, and each phase's union holds its exposed part."""
    found = study(CHECKPOINTED)
    table = found.phase_breakdown()
    for number, row in enumerate(found.steps()):
        mine = table.filter(table["step"] == number)
        assert row.idle_us is not None
        assert mine["exposed_us"].sum() <= row.dur_us - row.idle_us + 1e-6
        assert mine["device_us"].sum() >= row.dur_us - row.idle_us - 1e-6
        assert (mine["device_us"] >= mine["exposed_us"]).all()
