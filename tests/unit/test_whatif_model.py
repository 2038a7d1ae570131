"""The step of a language model from its configuration, by hand: Llama 2 7B on an H100 SXM (989.4 TFLOP/s fp16, 3.352 TB/s, 450 GB/s)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from roofterm.analysis.batch_limits import limits
from roofterm.analysis.bounds import LAUNCH_S
from roofterm.analysis.model_config import ModelConfig, load_config, parse_config, storage
from roofterm.analysis.model_workload import model_parts
from roofterm.analysis.whatif import what_if
from roofterm.analysis.whatif_base import model_bases
from roofterm.analysis.whatif_state import Base, Change, expected_tokens, state_of
from roofterm.analysis.workload import Machine, Part, Shape, WhatIfError, least
from roofterm.hardware.choice import RoofChoice
from roofterm.hardware.roofs import named_device
from roofterm.results import WhatIf
from roofterm_parsers.errors import ProfileError

LLAMA_7B: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
    "vocab_size": 32000, "torch_dtype": "float16",
}  # fmt: skip
PEAK, HBM, LINK = 989.4e12, 3.352e12, 450e9
VECTOR = 66.9e12

# Weights that a step multiplies by: q, k, v, o of 4096 x 4096, gate, up and down of 4096 x 11008, 32 layers, and the head
ATTENTION_WEIGHTS = 4 * 4096 * 4096
MLP_WEIGHTS = 3 * 4096 * 11008
HEAD_WEIGHTS = 4096 * 32000
WEIGHTS = 32 * (ATTENTION_WEIGHTS + MLP_WEIGHTS) + HEAD_WEIGHTS
KV_TOKEN = 32 * 2 * 32 * 128 * 2
"""bytes: 32 layers, keys and values, 32 heads of 128, fp16"""


@pytest.fixture(autouse=True)
def no_user_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))


def model(**changes: Any) -> ModelConfig:
    return parse_config({**LLAMA_7B, **changes})


def machine(name: str = "h100-sxm5-80gb", **choice: Any) -> Machine:
    return Machine(named_device(name, RoofChoice(**choice)))


def decode(batch: int, context: int = 2048, of: ModelConfig | None = None, on: Machine | None = None) -> Base:
    return model_bases(of or model(), on or machine(), batch, None, context)[0]


def asked(base: Base, **change: Any) -> WhatIf:
    return what_if(base, Change(**change), bare=True)


def named(parts: list[Part]) -> dict[str, Part]:
    return {part.name: part for part in parts}


def test_sizes_follow_from_the_configuration() -> None:
    found = model()
    assert (found.kv_heads, found.head_dim, found.dtype, found.gated) == (32, 128, "fp16", True)
    assert found.weight_bytes == 2 * (WEIGHTS + HEAD_WEIGHTS)  # the embedding is as large as the head: 6.74e9 weights in all
    assert found.kv_token_bytes() == KV_TOKEN == 524_288


def test_a_step_of_decode_at_batch_1_reads_every_weight_and_the_cache_once() -> None:
    state = asked(decode(1)).base
    assert state.bytes_by_role["weight"]["read"] == pytest.approx(2 * WEIGHTS + 2 * 4096)  # and one row of the embedding
    assert state.bytes_by_role["kv"] == {"read": 2048 * KV_TOKEN, "write": KV_TOKEN}
    # 13.21 GB of weights and 1.07 GB of cache at 3.352 TB/s: 4.26 ms. Activations add less than 0.1 %.
    by_hand = (2 * WEIGHTS + 2048 * KV_TOKEN) / HBM
    assert by_hand * 1e3 == pytest.approx(4.262, abs=0.001)
    assert state.bound_us == pytest.approx(by_hand * 1e6, rel=1e-3)
    assert state.bound_by == "hbm"
    # 2 FLOPs a weight and token, 4 for each element of a key and query in every head
    assert state.flops == pytest.approx(2 * WEIGHTS + 32 * 4 * 32 * 128 * 2048, rel=1e-3)
    assert state.tokens_per_s == pytest.approx(1 / by_hand, rel=1e-3)
    assert state.itl_us == state.bound_us


def test_at_batch_64_the_cache_takes_most_of_the_time() -> None:
    state = asked(decode(64)).base
    weights, cache = 2 * WEIGHTS / HBM, 64 * 2048 * KV_TOKEN / HBM
    # what lies between: per token and layer, in elements of 2 bytes, what goes in and out of each product
    q_k_v, output, up, down = 4096 + 3 * 4096, 2 * 4096, 4096 + 2 * 11008, 11008 + 4096
    attention, rope, norms, gate, write = 2 * 4096, 2 * 2 * 4096, 2 * 4 * 4096, 3 * 11008, 2 * 2 * 4096
    between = 64 * 2 * (32 * (q_k_v + output + up + down + attention + rope + norms + gate + write) + 4096 + 32000) / HBM
    assert weights * 1e3 == pytest.approx(3.942, abs=0.001)
    assert cache * 1e3 == pytest.approx(20.501, abs=0.001)
    assert state.bound_us == pytest.approx((weights + cache + between) * 1e6, rel=1e-4)
    assert state.flops == pytest.approx(64 * (2 * WEIGHTS + 32 * 4 * 32 * 128 * 2048), rel=1e-3)
    assert state.arithmetic_us < state.memory_us / 20


def test_grouped_queries_read_fewer_keys() -> None:
    llama3 = model(intermediate_size=14336, num_key_value_heads=8, vocab_size=128256, torch_dtype="bfloat16")
    assert llama3.kv_token_bytes() == 32 * 2 * 8 * 128 * 2 == 131_072
    state = asked(decode(16, 8192, llama3)).base
    assert state.bytes_by_role["kv"]["read"] == 16 * 8192 * 131_072
    # queries of all 32 heads multiply them: 4 x 32 x 128 FLOPs a key
    assert named(model_parts(llama3, Shape(16, 1, 8192)))["attention"].flops == 32 * 16 * 4 * 32 * 128 * 8192


def test_a_prompt_counts_its_visible_pairs() -> None:
    base = model_bases(model(), machine(), 2, 1000, None)[0]
    state = asked(base).base
    products = 2 * 2000 * (WEIGHTS - HEAD_WEIGHTS) + 2 * 2 * HEAD_WEIGHTS  # the head for the last token of each
    pairs = 2 * 1000 * 1001 / 2
    attention = 32 * 4 * 32 * 128 * pairs
    assert state.flops == pytest.approx(products + attention, rel=2e-3)
    assert state.bytes_by_role["kv"] == {"read": 0.0, "write": 2000 * KV_TOKEN}
    assert state.ttft_us == state.bound_us
    assert state.itl_us is None
    assert state.bound_by == "compute"
    assert state.arithmetic_us == pytest.approx((products + attention) / PEAK * 1e6, rel=1e-2)  # norms and the like: half a percent


def test_prompt_and_context_are_apart() -> None:
    prefill, step = model_bases(model(), machine(), 4, 512, 4096)
    assert (prefill.phase, prefill.shape) == ("prefill", Shape(4, 512, 512))
    assert (step.phase, step.shape) == ("decode", Shape(4, 1, 4096))
    assert [base.phase for base in model_bases(model(), machine(), 4, 512, None)] == ["prefill"]
    (only,) = model_bases(model(), machine(), None, None, None)
    assert only.shape == Shape(1, 1, 2048)
    assert any("2,048" in line for line in only.held)


def test_a_piece_of_a_prompt_reads_the_cache_of_the_pieces_before() -> None:
    piece = named(model_parts(model(), Shape(3, 512, 2048)))
    assert Shape(3, 512, 2048).phase == "prefill"
    assert piece["attention"].kv_read == 3 * (2048 - 512) * KV_TOKEN
    assert piece["attention"].flops == 32 * 3 * 4 * 32 * 128 * (512 * 2048 - 512 * 511 / 2)
    assert piece["head"].flops == 2 * 3 * HEAD_WEIGHTS


def test_layers_with_a_window_read_no_more_than_it() -> None:
    kinds = ["sliding_attention", "full_attention"] * 16
    mixed = model(sliding_window=128, layer_types=kinds)
    assert (mixed.window, mixed.window_layers) == (128, 16)
    layer = KV_TOKEN / 32
    part = named(model_parts(mixed, Shape(2, 1, 5000)))["attention"]
    assert part.kv_read == 2 * 16 * (5000 + 128) * layer
    assert part.flops == 2 * 16 * (5000 + 128) * 4 * 32 * 128
    (base,) = model_bases(mixed, machine(), 2, None, 5000)
    assert any("16 of 32 layers attend to 128 tokens" in line for line in base.held)
    assert model(model_type="mistral", sliding_window=4096).window_layers == 32
    assert model(model_type="qwen2", sliding_window=4096, use_sliding_window=False).window_layers == 0


# Tensor parallelism


def test_eight_devices_share_weights_and_heads_and_reduce_twice_a_layer() -> None:
    alone, split = named(model_parts(model(), Shape(64, 1, 2048))), named(model_parts(model(), Shape(64, 1, 2048), 8))
    for name in ("attention q k v", "attention output", "mlp gate and up", "mlp down", "head"):
        assert split[name].weight_bytes == alone[name].weight_bytes / 8
        assert split[name].flops == alone[name].flops / 8
    assert split["attention"].kv_read == alone["attention"].kv_read / 8
    assert split["norms"] == alone["norms"]
    reduce = split["all-reduce"]
    message = 64 * 4096 * 2
    assert reduce.calls == 64
    assert reduce.wire_bytes == 64 * 2 * 7 / 8 * message
    one = LAUNCH_S + 2 * 7 / 8 * message / LINK  # 2 us, and 917,504 bytes at 450 GB/s: 2.04 us
    assert one * 1e6 == pytest.approx(4.039, abs=0.001)
    assert least(reduce, machine()).bound_s == pytest.approx(64 * one)
    assert least(reduce, Machine(machine().device, 8e-6)).bound_s == pytest.approx(64 * (one + 6e-6))


def test_the_split_step_adds_its_collectives() -> None:
    found = asked(decode(64), tp=8)
    assert found.whatif.tp == 8
    # logits are gathered too: 7 of 8 parts of [64, 32000]
    on_wire = 64 * (LAUNCH_S + 2 * 7 / 8 * 64 * 4096 * 2 / LINK) + LAUNCH_S + 7 / 8 * 64 * 32000 * 2 / LINK
    assert found.whatif.link_us == pytest.approx(on_wire * 1e6)
    assert found.whatif.memory_us == pytest.approx(found.base.memory_us / 8, rel=0.05)
    assert any("8 devices" in line for line in found.held)


def test_fewer_key_heads_than_devices_are_kept_on_several() -> None:
    few = model(num_key_value_heads=2)
    assert named(model_parts(few, Shape(1, 1, 100), 8))["attention"].kv_read == 32 * 100 * 2 * 1 * 128 * 2


def test_heads_must_divide() -> None:
    with pytest.raises(WhatIfError, match="32 heads cannot be split among 3"):
        asked(decode(1), tp=3)


# Types


def test_int4_weights_are_read_with_their_scales_and_turned_into_fp16() -> None:
    found = asked(decode(1), weights=storage("int4"))
    quantised = WEIGHTS - HEAD_WEIGHTS
    bytes_read = quantised / 2 + quantised / 128 * 2 + 2 * HEAD_WEIGHTS + 2 * 4096
    assert found.whatif.bytes_by_role["weight"]["read"] == pytest.approx(bytes_read)
    assert found.whatif.dtype == "fp16"
    # at batch 1 turning them is less than reading them: 2 FLOPs each at 66.9 TFLOP/s, 0.194 ms, against 1.00 ms
    assert 2 * quantised / VECTOR < quantised / 2 / HBM
    assert found.whatif.memory_us == pytest.approx((bytes_read + 2048 * KV_TOKEN) / HBM * 1e6, rel=4e-3)
    assert found.whatif.arithmetic_us >= 2 * quantised / VECTOR * 1e6
    assert any("turned into" in line for line in found.held)
    assert any("embedding and head" in line for line in found.held)


def test_a_smaller_group_has_more_scales() -> None:
    assert storage("int4:32").bytes(1024, 8) == 512 + 32 * 2
    assert storage("int8").bytes(1024, 8) == 1024 + 8 * 2
    assert storage("mxfp4").bytes(1024, 8) == 512 + 32
    with pytest.raises(ValueError, match="choose"):
        storage("int3")


def test_fp8_products_have_twice_the_peak_and_half_the_weights() -> None:
    base = model_bases(model(), machine(), 1, 8192, None)[0]
    found = asked(base, dtype="fp8")
    quantised = WEIGHTS - HEAD_WEIGHTS
    saved = 2 * 8192 * quantised * (1 / PEAK - 1 / 1979e12)
    assert found.base.arithmetic_us - found.whatif.arithmetic_us == pytest.approx(saved * 1e6, rel=1e-3)
    assert found.whatif.bytes_by_role["weight"]["read"] == pytest.approx(quantised + 2 * HEAD_WEIGHTS + 2 * 8192 * 4096)
    assert found.whatif.bytes_by_role["kv"] == found.base.bytes_by_role["kv"]


def test_a_peak_that_the_device_lacks_is_not_borrowed() -> None:
    with pytest.raises(WhatIfError, match="no known peak for fp8"):
        asked(decode(1, on=machine("a100-sxm4-80gb")), dtype="fp8")
    given = asked(decode(1, on=machine("a100-sxm4-80gb", peaks={"fp8": 1e15})), dtype="fp8")
    assert given.whatif.dtype == "fp8"


def test_an_fp8_cache_is_half_as_large() -> None:
    found = asked(decode(64), kv_dtype="fp8")
    assert found.whatif.bytes_by_role["kv"]["read"] == 64 * 2048 * KV_TOKEN / 2
    assert found.base.bound_us - found.whatif.bound_us == pytest.approx(64 * 2049 * KV_TOKEN / 2 / HBM * 1e6, rel=1e-3)
    assert found.kv_token_bytes == KV_TOKEN / 2


# Speculation


def test_drafts_share_the_reading_of_weights_and_cache() -> None:
    # four drafts, each accepted with 0.7: 1 + 0.7 + 0.7^2 + 0.7^3 + 0.7^4 tokens
    assert expected_tokens(4, 0.7) == pytest.approx(2.7731)
    assert expected_tokens(4, 1.0) == 5
    assert expected_tokens(0, 0.3) == 1
    found = asked(decode(1), drafts=4, accept=0.7)
    assert found.whatif.bytes_by_role["weight"]["read"] == pytest.approx(2 * WEIGHTS + 5 * 2 * 4096)
    assert found.whatif.bytes_by_role["kv"]["read"] == 2052 * KV_TOKEN
    assert found.whatif.flops == pytest.approx(5 * 2 * WEIGHTS + 32 * 4 * 32 * 128 * (5 * 2052 - 10), rel=1e-3)
    assert found.whatif.itl_us == pytest.approx(found.whatif.bound_us / 2.7731)
    assert found.whatif.tokens_per_step == pytest.approx(2.7731)
    assert any("draft model takes no time" in line for line in found.held)


# Limits


def by_name(base: Base, change: Change | None = None, itl_us: float | None = None) -> dict[str, int | None]:
    change = change or Change()
    then = state_of(base, change, base.machine)
    return {limit.name: limit.batch for limit in limits(base, change, base.machine, then, itl_us)}


def test_the_batch_at_the_ridge_of_the_products() -> None:
    # Each product [B, K] x [K, N]: 2 B K N / peak = 2 (K N + B K + B N) / bandwidth where they need as long. Summed over all of
    # them the sizes of what goes in and out shift it from peak / bandwidth = 295 upwards.
    ends = 32 * ((4096 + 12288) + 2 * 4096 + (4096 + 22016) + (11008 + 4096)) + 4096 + 32000
    batch = 2 * WEIGHTS / HBM / (2 * WEIGHTS / PEAK - 2 * ends / HBM)
    ratio = PEAK / HBM
    assert ratio == pytest.approx(295.2, abs=0.1)
    assert by_name(decode(1))["ridge_products"] == math.ceil(batch) == 327


def test_the_step_never_crosses_the_ridge_where_each_sequence_brings_its_own_cache() -> None:
    # each sequence adds more time for its bytes than for its FLOPs
    assert 2048 * KV_TOKEN / HBM > (2 * WEIGHTS + 32 * 4 * 32 * 128 * 2048) / PEAK
    assert by_name(decode(1))["ridge_step"] is None
    assert by_name(decode(1, 2))["ridge_step"] is not None


def test_the_largest_batch_in_memory() -> None:
    memory = 84.94e9  # of an H100 SXM as drivers report it, GB
    found = by_name(decode(1))["memory"]
    assert found is not None
    assert found == pytest.approx((memory - 2 * (WEIGHTS + HEAD_WEIGHTS)) / (2048 * KV_TOKEN), abs=1)


def test_the_largest_batch_that_keeps_a_time_between_tokens() -> None:
    found = by_name(decode(1), itl_us=50_000)["slo_itl"]
    assert found is not None
    # 3.94 ms of weights, and for each sequence 0.320 ms of cache and a little between: at most (50 - 3.94) / 0.320 = 143
    assert 130 < found <= (0.050 - 2 * WEIGHTS / HBM) / (2048 * KV_TOKEN / HBM)
    assert asked(decode(found)).base.bound_us <= 50_000 < asked(decode(found + 1)).base.bound_us
    assert by_name(decode(1), itl_us=1_000)["slo_itl"] is None  # the weights alone take longer


# Mixtures of experts


def test_experts_that_a_batch_reaches() -> None:
    mixtral = model(intermediate_size=14336, num_key_value_heads=8, num_local_experts=8, num_experts_per_tok=2)
    assert mixtral.experts_read(1) == pytest.approx(2)
    assert mixtral.experts_read(4) == pytest.approx(8 * (1 - 0.75**4))
    assert mixtral.experts_read(10_000) == pytest.approx(8)
    one = named(model_parts(mixtral, Shape(1, 1, 100)))
    assert one["expert down"].weight_bytes == pytest.approx(32 * 2 * 4096 * 14336 * 2)
    assert one["expert down"].flops == pytest.approx(32 * 2 * 2 * 4096 * 14336)


# What cannot be answered


def test_models_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="latent attention"):
        model(kv_lora_rank=512)
    with pytest.raises(ProfileError, match="num_hidden_layers"):
        parse_config({"hidden_size": 4, "num_attention_heads": 2, "intermediate_size": 8})
    with pytest.raises(ProfileError, match="cannot read"):
        load_config(str(tmp_path / "none.json"))


def test_a_folder_and_nested_text_parts_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llava", "text_config": LLAMA_7B}))
    assert load_config(str(tmp_path)).hidden == 4096


def test_the_configurations_own_quantisation_is_the_base() -> None:
    gptq = model(quantization_config={"quant_method": "gptq", "bits": 4, "group_size": 64})
    quantised = WEIGHTS - HEAD_WEIGHTS
    read = asked(decode(1, of=gptq)).base.bytes_by_role["weight"]["read"]
    assert read == pytest.approx(quantised / 2 + quantised / 64 * 2 + 2 * HEAD_WEIGHTS + 2 * 4096)


def test_another_device() -> None:
    found = what_if(decode(1), Change(), machine("mi300x"), bare=True)
    assert found.whatif.device == "mi300x"
    assert found.whatif.bound_us == pytest.approx(found.base.bound_us * HBM / 5.3e12, rel=1e-3)
