"""What-ifs, KV caches and MBU of real profiles, against figures from the models' public configurations, by hand.

Qwen3-8B: 36 layers, hidden 4096, 32 query heads and 8 key heads of 128, MLP 12288, 151,936 tokens in its vocabulary. Its decode
under SGLang on an MI300X replays one graph for 32 sequences; the ops of that graph stand in the trace of its capture.
"""

from __future__ import annotations

from functools import lru_cache

import polars as pl
import pytest

from roofterm.analysis.batches import parse_batch
from roofterm.analysis.cache_traffic import BY_ANNOTATION, cache_layout
from roofterm.analysis.model_config import ModelConfig, parse_config
from roofterm.analysis.scope import ALL, STEADY
from roofterm.analysis.study import Study
from roofterm.analysis.whatif import what_if
from roofterm.analysis.whatif_base import profile_base
from roofterm.analysis.whatif_state import Change
from roofterm.analysis.workload import Machine
from roofterm_parsers import open_profile
from tests.reference import reference

DECODE = "traces/torch/tracelens_mi300x_sglang_qwen3_8b_decode.json.gz"
CAPTURE = "traces/torch/tracelens_mi300x_sglang_graph_capture_bs32.json.gz"
PREFILL = "traces/torch/tracelens_mi300x_sglang_qwen3_8b_prefilldecode.json.gz"
VLLM = "traces/torch/tracelens_mi300_vllm_prefilldecode_piecewise.json.gz"

QWEN3_8B = {
    "model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip

PRODUCTS = 36 * (4096 * 6144 + 4096 * 4096 + 4096 * 24576 + 12288 * 4096) + 4096 * 151936
"""weights that each token is multiplied by"""
NORMS = 36 * (2 * 128 + 2 * 4096) + 4096
KV_LAYER = 2 * 8 * 128 * 2
"""bytes of a token's keys and values in one layer"""
CONTEXT = 32_785
"""tokens attended to, by the annotation of the iteration"""
BANDWIDTH = 5.3e12


@lru_cache(maxsize=4)
def study_of(name: str, capture: str | None = None, model: bool = False) -> Study:
    captures = [open_profile(str(reference(capture)), cache=False)] if capture else []
    return Study(open_profile(str(reference(name)), cache=False), captures=captures, model=config() if model else None)


def config() -> ModelConfig:
    return parse_config(QWEN3_8B)


def test_what_a_replayed_decode_reads_is_told_by_its_capture_and_its_annotation() -> None:
    row = study_of(DECODE, CAPTURE).roofline(STEADY).program[0]
    assert row.bytes_by_role is not None
    assert row.bytes_by_role["weight"]["read"] == 2 * (PRODUCTS + NORMS)
    assert row.bytes_by_role["kv"] == {"read": 36 * CONTEXT * KV_LAYER, "write": 36 * 32 * KV_LAYER}


def test_mbu_of_a_replayed_decode() -> None:
    (step,) = study_of(DECODE, CAPTURE).steps()
    seconds = step.dur_us / 1e6
    expected = 100 * (2 * (PRODUCTS + NORMS) + 36 * CONTEXT * KV_LAYER) / seconds / BANDWIDTH
    assert step.mbu_pct == pytest.approx(expected)
    assert study_of(DECODE, CAPTURE).summary().mbu_pct == pytest.approx(expected)
    assert study_of(DECODE, CAPTURE).table("iteration")["mbu_pct"].to_list() == [pytest.approx(expected)]


def test_mbu_by_the_models_configuration_is_the_same_but_for_norms_and_embedding() -> None:
    (by_ops,) = study_of(DECODE, CAPTURE).steps()
    (by_model,) = study_of(DECODE, None, True).steps()
    assert by_ops.mbu_pct is not None
    assert by_model.mbu_pct == pytest.approx(by_ops.mbu_pct, rel=1e-4)


def test_without_capture_and_model_nothing_tells_the_mbu() -> None:
    (step,) = study_of(DECODE).steps()
    assert step.mbu_pct is None


def test_the_attention_of_a_replayed_decode_has_its_pairs() -> None:
    study = study_of(DECODE, CAPTURE)
    rows = [row for row in study.roofline(STEADY).ops if row.category == "attention" and any(BY_ANNOTATION in flag for flag in row.flags)]
    (row,) = rows
    assert row.calls == 36
    assert row.flops == 36 * 4 * 32 * 128 * CONTEXT  # every sequence's one query sees all of its tokens
    assert row.bytes["hbm"] == pytest.approx(36 * CONTEXT * KV_LAYER, rel=0.02)  # and queries and results


def test_the_step_of_the_ops_and_the_step_of_the_model_take_the_same_time_at_least() -> None:
    change = Change()
    bounds = []
    for study in (study_of(DECODE, CAPTURE), study_of(DECODE, None, True)):
        assert study.device is not None
        base = profile_base(study, STEADY, Machine(study.device), change)
        assert base.shape is not None
        assert (base.shape.sequences, base.shape.queries, base.shape.context) == (32, 1, CONTEXT / 32)
        bounds.append(what_if(base, change, bare=True).base)
    by_ops, by_model = bounds
    assert by_ops.memory_us == pytest.approx((2 * PRODUCTS + 36 * CONTEXT * KV_LAYER) / BANDWIDTH * 1e6, rel=0.04)
    assert by_ops.memory_us == pytest.approx(by_model.memory_us, rel=0.01)
    assert by_ops.flops == pytest.approx(by_model.flops, rel=0.01)


def test_twice_the_batch_of_a_replayed_decode() -> None:
    study = study_of(DECODE, CAPTURE)
    assert study.device is not None
    change = Change(batch=64, kv_dtype="fp8")
    found = what_if(profile_base(study, STEADY, Machine(study.device), change), change, bare=True)
    assert found.whatif.bytes_by_role["weight"]["read"] == 2 * (PRODUCTS + NORMS)
    assert found.whatif.bytes_by_role["kv"] == {"read": 36 * CONTEXT * KV_LAYER, "write": 36 * 32 * KV_LAYER}  # 2 times, at half
    assert found.whatif.flops == pytest.approx(2 * found.base.flops, rel=1e-6)
    assert found.whatif.bound_us < 2 * found.base.bound_us


def test_a_prefill_is_told_with_its_batch() -> None:
    study = study_of(PREFILL)
    assert study.device is not None
    base = profile_base(study, STEADY, Machine(study.device), Change())
    assert base.phase == "prefill"
    assert base.shape is not None
    assert (base.shape.sequences, base.shape.queries, base.shape.context) == (15, 1024, 1024)
    flops = 2 * 15360 * (PRODUCTS - 4096 * 151936) + 2 * 15 * 4096 * 151936
    assert what_if(base, Change(), bare=True).base.flops == pytest.approx(flops, rel=0.02)  # attention, norms and activations besides


def test_the_pairs_and_the_cache_of_the_annotation_in_the_definitions() -> None:
    batch = parse_batch("execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk12345sqsq37sqsk12345)")
    assert batch is not None
    assert batch.prefill.causal_pairs == 7671310 - (7475785 - 8155) // 2 == 3_937_495
    assert batch.context_tokens == 8430 + 12345


def test_the_cache_of_a_mixed_iteration_under_vllm() -> None:
    """gpt-oss under vLLM: 24 layers, 64 query heads and 8 key heads of 64. Its attention is outside of the graphs."""
    study = study_of(VLLM)
    layout = cache_layout(study.joined)
    assert layout is not None
    assert layout.token_bytes == 2 * 8 * 64 * 2
    facts = study.step_facts
    items = study.bounded(ALL).items.filter(pl.col("estimate").fill_null("") == BY_ANNOTATION)
    assert items.height == 24
    assert facts.height == 1
    context, pairs = facts["context_tokens"][0], facts["causal_pairs"][0]
    assert items["kv_read"].unique().to_list() == [context * layout.token_bytes]
    assert items["flops"].unique().to_list() == [4 * 64 * 64 * pairs]
    (step,) = study.steps()
    assert step.mbu_pct is None  # it is no decode
