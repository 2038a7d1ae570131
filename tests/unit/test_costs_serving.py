"""Costs of the custom ops of vLLM, SGLang and aiter against hand calculations."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cost_of import BF16, FP8, FP32, found


def test_paged_attention_of_one_sequence_reads_its_context() -> None:
    # out, query [1, 32, 128], caches, 8 key heads, longest context 4000
    dims: list[Any] = [[1, 32, 128], [1, 32, 128], [1000, 8, 16, 16, 8], [1000, 8, 128, 16], [], [], [1, 250], [1], [], [], []]
    types = [BF16] * 4 + ["Scalar", "Scalar", "int", "int", "Scalar", "Scalar", ""]
    concrete = ["", "", "", "", "8", "0.088", "", "", "16", "4000", ""]
    got = found("_C::paged_attention_v1", dims, types=types, concrete=concrete)
    assert got.flops == 4 * 32 * 128 * 4000
    assert got.read_bytes == 2 * 32 * 128 + 2 * (2 * 4000 * 8 * 128)  # the query; keys and values of 8 heads


def test_fused_experts_count_the_experts_that_can_be_used() -> None:
    # 4 tokens, 2 of 8 experts each, H 64, I 128
    dims: list[Any] = [[4, 64], [8, 256, 64], [8, 64, 128], [4, 2], [4, 2]]
    types = [BF16, BF16, BF16, "float", "int"]
    got = found("vllm::outplace_fused_experts", dims, types=types)
    assert got.flops == 2 * (4 * 2) * 64 * (256 + 128)
    weights = 2 * (8 * 256 * 64 + 8 * 64 * 128)
    assert got.read_bytes == 2 * 4 * 64 + 4 * 8 + 4 * 8 + weights  # min(8, 4 * 2) = all 8
    assert got.estimate


def test_reshape_and_cache_writes_the_caches_type() -> None:
    dims: list[Any] = [[64, 8, 128], [64, 8, 128], [100, 16, 8, 128], [100, 16, 8, 128], [64], [], [], []]
    types = [BF16, BF16, "unsigned char", "unsigned char", "long int", "", "float", "float"]
    got = found("_C_cache_ops::reshape_and_cache_flash", dims, types=types)
    n = 64 * 8 * 128
    assert (got.read_bytes, got.write_bytes) == (2 * 2 * n + 8 * 64, 2 * n)


def test_rotary_embedding_takes_a_row_of_its_table_a_position() -> None:
    dims: list[Any] = [[100], [100, 4096], [100, 1024], [], [40000, 128], []]
    types = ["long int", BF16, BF16, "Scalar", BF16, "Scalar"]
    got = found("sgl_kernel::rotary_embedding", dims, types=types)
    moved = 2 * 100 * (4096 + 1024)
    assert (got.read_bytes, got.write_bytes) == (8 * 100 + moved + 2 * 100 * 128, moved)


def test_add_rms_norm_of_vllm_reads_and_writes_both_streams() -> None:
    got = found("_C::fused_add_rms_norm", [[64, 4096], [64, 4096], [4096], []])
    assert (got.read_bytes, got.write_bytes) == (2 * (2 * 64 * 4096 + 4096), 2 * 2 * 64 * 4096)


# Engines: a product of [32, 4096] by [4096, 1024]


M, K, N = 32, 4096, 1024
U8, I32 = "unsigned char", "int"


def test_fp8_products_of_sglang_read_a_byte_a_value() -> None:
    types = [FP8, FP8, FP32, FP32, "Scalar", ""]
    got = found("sgl_kernel::fp8_scaled_mm", [[M, K], [K, N], [M, 1], [N, 1], [], []], types=types, concrete=["", "", "", "", "15", ""])
    assert (got.flops, got.dtype) == (2 * M * N * K, "fp8")
    assert (got.read_bytes, got.write_bytes) == (M * K + K * N + 4 * (M + N), 2 * M * N)


def test_fp4_products_read_two_values_a_byte() -> None:
    dims: list[Any] = [[M, N], [M, K // 2], [N, K // 2], [M, K // 16], [N, K // 16], []]
    got = found("_C::cutlass_scaled_fp4_mm", dims, types=[BF16, U8, U8, FP8, FP8, FP32])
    assert (got.flops, got.dtype) == (2 * M * N * K, "fp4")
    assert (got.read_bytes, got.write_bytes) == ((M + N) * K / 2 + (M + N) * K / 16, 2 * M * N)


MARLIN = {
    # a, weights [K / 16, N 16 / 8] of int32, scales [K / 128, N], zeros, g_idx, perm, workspace
    "of 2024": ([[M, K], [K // 16, 2 * N], [K // 128, N], [], [], [], [512]], [BF16, I32, BF16, "", "", "", I32]),
    # a, c, weights, bias, scales, global scale, zeros, g_idx, perm, workspace
    "of 2025": (
        [[M, K], [], [K // 16, 2 * N], [N], [K // 128, N], [], [], [], [], [512]],
        [BF16, "", I32, BF16, BF16, "", "", "", "", I32],
    ),
}


@pytest.mark.parametrize("version", MARLIN)
def test_a_marlin_product_is_told_by_its_scales_whatever_the_version(version: str) -> None:
    dims, types = MARLIN[version]
    got = found("_C::gptq_marlin_gemm", dims, types=types)
    assert (got.flops, got.dtype) == (2 * M * N * K, "bf16")
    assert got.read_bytes == 2 * M * K + K * N / 2 + 2 * (K // 128) * N  # four bits a weight
    assert got.write_bytes == 2 * M * N


def test_quantisation_by_groups_writes_a_byte_and_a_scale() -> None:
    dims: list[Any] = [[M, K], [M, K], [M, K // 128], []]
    for name in ("_C::per_token_group_fp8_quant", "sgl_kernel::sgl_per_token_group_quant_8bit"):
        got = found(name, dims, types=[BF16, FP8, FP32, "Scalar"])
        assert (got.read_bytes, got.write_bytes) == (2 * M * K, M * K + 4 * M * K // 128)
    four = found("_C::scaled_fp4_quant", [[M, K // 2], [M, K], [M, K // 16], []], types=[U8, BF16, FP8, FP32])
    assert (four.read_bytes, four.write_bytes) == (2 * M * K + 4, M * K / 2 + M * K / 16)


def test_a_latent_cache_keeps_one_key_a_token() -> None:
    # DeepSeek: 512 latent and 64 rotary values a token
    dims: list[Any] = [[7, 512], [7, 64], [900, 64, 576], [7], [], []]
    got = found("_C_cache_ops::concat_and_cache_mla", dims, types=[BF16, BF16, FP8, "long int", "", FP32])
    assert (got.read_bytes, got.write_bytes) == (2 * 7 * 576 + 8 * 7, 7 * 576)


def test_flash_attention_of_engines_counts_queries_and_results_over_pages() -> None:
    q, out = 2 * 6 * 32 * 128, 2 * 6 * 32 * 128
    paged = found("_vllm_fa3_C::fwd", [[6, 32, 128], [900, 16, 8, 128], [900, 16, 8, 128]])
    assert (paged.flops, paged.read_bytes, paged.write_bytes) == (None, q, out)
    packed = found("_vllm_fa2_C::varlen_fwd", [[6, 32, 128], [6, 8, 128], [6, 8, 128]])
    assert packed.read_bytes == q + 2 * 2 * 6 * 8 * 128
    assert packed.estimate is not None


def test_rope_of_sglang_writes_anew() -> None:
    dims: list[Any] = [[100, 4096], [100, 1024], [100, 4096], [100, 1024], [40000, 128], [100]]
    got = found("sgl_kernel::apply_rope_pos_ids_cos_sin_cache", dims, types=[BF16, BF16, BF16, BF16, FP32, "long int"])
    moved = 2 * 100 * (4096 + 1024)
    assert (got.read_bytes, got.write_bytes) == (8 * 100 + moved + 4 * 100 * 128, moved)


def test_routing_of_experts() -> None:
    # 64 tokens, 8 of 128 experts each
    got = found("sgl_kernel::topk_softmax", [[64, 8], [64, 8], [64, 128]], types=[FP32, I32, FP32])
    assert (got.read_bytes, got.write_bytes) == (4 * 64 * 128, 2 * 4 * 64 * 8)
    aligned = found("_moe_C::moe_align_block_size", [[64, 8], [], [], [2000], [40], [1]], types=[I32, "Scalar", "Scalar", I32, I32, I32])
    assert (aligned.read_bytes, aligned.write_bytes) == (4 * 512, 4 * 2041)


def test_functional_collectives_by_their_group() -> None:
    gathered = found("_c10d_functional::all_gather_into_tensor", [[1000], [], []], concrete=["", "8", "g"])
    assert (gathered.read_bytes, gathered.write_bytes) == (2000, 16000)
    scattered = found("_c10d_functional::reduce_scatter_tensor", [[1000], [], [], []], concrete=["", "sum", "8", "g"])
    assert (scattered.read_bytes, scattered.write_bytes) == (2000, 250)
    custom = found("_C_custom_ar::all_reduce", [[], [8, 4096], [8, 4096], [], []], types=["Scalar", BF16, BF16, "Scalar", "Scalar"])
    assert (custom.read_bytes, custom.write_bytes) == (2 * 8 * 4096, 2 * 8 * 4096)
