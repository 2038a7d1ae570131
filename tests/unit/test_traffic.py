"""Bytes by role: weights, KV cache and activations, by what the ops are and what stands around them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from roofterm.analysis.costs import cost
from roofterm.analysis.costs.signature import Inputs
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm.analysis.traffic import Circumstances, Roles, roles
from roofterm_parsers import open_profile
from tests.build import Build
from tests.reference import reference

BF16, INT = "c10::BFloat16", "long int"
FORWARD = Circumstances()


def of(
    name: str,
    dims: list[Any],
    around: Circumstances = FORWARD,
    types: list[Any] | None = None,
    strides: list[Any] | None = None,
    concrete: list[Any] | None = None,
) -> Roles | None:
    types = types or [BF16 if isinstance(shape, list) and shape else "" for shape in dims]
    found = cost(name, dims, types, strides, concrete)
    assert found is not None
    made = roles(name, Inputs(dims, types, strides, concrete), found, around)
    if made is not None:  # the roles of a call are its compulsory traffic, nothing more and nothing less
        assert sum(made) == pytest.approx((found.read_bytes or 0) + (found.write_bytes or 0))
    return made


# Products: x [32, 4096] by a weight [4096, 1024], bf16

X, W, XW = 2 * 32 * 4096, 2 * 4096 * 1024, 2 * 32 * 1024
WEIGHTED = Roles(weight_read=W, activation_read=X, activation_write=XW)
MM = ("aten::mm", [[32, 4096], [4096, 1024]])


@pytest.mark.parametrize(
    ("strides", "around"),
    [
        ([[4096, 1], [1, 4096]], FORWARD),  # a parameter [1024, 4096], transposed
        (None, Circumstances(linear=True)),
        (None, Circumstances(calls=2)),
        (None, Circumstances(forward=False, linear=True)),  # only a recomputed forward runs aten::linear
    ],
)
def test_a_second_operand_with_evidence_is_a_weight(strides: list[Any] | None, around: Circumstances) -> None:
    assert of(*MM, around, strides=strides) == WEIGHTED


@pytest.mark.parametrize(
    ("strides", "around"),
    [
        (None, FORWARD),  # once, dense, no linear: it may be anything
        ([[4096, 1], [1024, 1]], FORWARD),
        ([[4096, 1], [1, 4096]], Circumstances(forward=False, calls=9)),  # a gradient's products
    ],
)
def test_a_second_operand_without_evidence_has_no_role(strides: list[Any] | None, around: Circumstances) -> None:
    assert of(*MM, around, strides=strides) is None


def test_a_bias_is_evidence_and_a_weight() -> None:
    assert of("aten::addmm", [[1024], [32, 4096], [4096, 1024]]) == Roles(W + 2 * 1024, 0, 0, 0, X, XW)


def test_products_of_activations_have_no_role() -> None:
    assert of("aten::bmm", [[8, 32, 64], [8, 64, 32]], Circumstances(calls=96)) is None


def test_a_quantised_weight_is_read_with_its_scales() -> None:
    # 8 int4 values in an int32: [4096 / 8, 1024], scales [4096 / 128, 1024] in bf16
    dims = [[32, 4096], [512, 1024], [32, 128], [32, 1024], []]
    made = of("_C::gptq_gemm", dims, types=[BF16, "int", "int", BF16, ""])
    assert made is not None
    assert made.weight_read == 4 * 512 * 1024 + 4 * 32 * 128 + 2 * 32 * 1024
    assert made.activation_read == X


def test_a_convolution_reads_its_filters_and_bias() -> None:
    dims = [[8, 64, 56, 56], [128, 64, 3, 3], [128], [], [], [], []]
    made = of("aten::conv2d", dims, concrete=["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"])
    assert made is not None
    assert made.weight_read == 2 * (128 * 64 * 9 + 128)
    assert made.activation_read == 2 * 8 * 64 * 56 * 56
    assert made.activation_write == 2 * 8 * 128 * 56 * 56


def test_a_looked_up_row_is_a_weight() -> None:
    made = of("aten::embedding", [[32000, 4096], [2, 16], [], [], []], types=[BF16, INT, "", "", ""])
    assert made == Roles(weight_read=2 * 32 * 4096, activation_read=8 * 32, activation_write=2 * 32 * 4096)


def test_a_norm_reads_its_scale() -> None:
    made = of("aten::native_layer_norm", [[2, 16, 4096], [], [4096], [4096], []])
    assert made == Roles(weight_read=2 * 2 * 4096, activation_read=2 * 32 * 4096, activation_write=2 * 32 * 4096)


# Attention: 2 sequences, 32 query heads, 8 key heads of 128

FLASH = "aten::_scaled_dot_product_flash_attention"


def test_keys_beyond_the_queries_come_from_a_cache() -> None:
    made = of(FLASH, [[2, 32, 1, 128], [2, 8, 1024, 128], [2, 8, 1024, 128], [], []], concrete=["", "", "", "0.", "False"])
    assert made is not None
    assert made.kv_read == 2 * 2 * (2 * 8 * 1024 * 128)
    assert made.activation_read == made.activation_write == 2 * 2 * 32 * 128


def test_keys_of_the_same_tokens_are_activations() -> None:
    made = of(FLASH, [[2, 32, 64, 128], [2, 8, 64, 128], [2, 8, 64, 128], [], []], concrete=["", "", "", "0.", "True"])
    assert made is not None
    assert made.kv_read == 0
    assert made.activation_read == 2 * (2 * 32 * 64 * 128 + 2 * 2 * 8 * 64 * 128)


def test_new_keys_are_written_in_the_type_of_the_cache() -> None:
    dims = [[7, 8, 128], [7, 8, 128], [900, 16, 8, 128], [900, 16, 8, 128], [7], [], []]
    made = of("_C_cache_ops::reshape_and_cache_flash", dims, types=[BF16, BF16, "unsigned char", "unsigned char", INT, "", ""])
    assert made is not None
    assert made.kv_write == 2 * 7 * 8 * 128
    assert made.activation_read == 2 * 2 * 7 * 8 * 128 + 8 * 7


def test_attention_over_listed_pages_reads_them_from_the_cache() -> None:
    dims: list[Any] = [[6, 32, 128], [5000, 8, 128], [5000, 8, 128], [3], [3], [700]]
    made = of("aiter::mha_batch_prefill", dims, types=[BF16, BF16, BF16, "int", "int", "int"])
    assert made is not None
    assert made.kv_read == pytest.approx(2 * 2 * 700 * 8 * 128 + 4 * 700)  # the list of pages with them
    assert made.activation_read == 2 * 6 * 32 * 128


# In a profile


def called(build: Build, name: str, start: float, dims: list[Any], inside: str | None = None, strides: list[Any] | None = None) -> None:
    if inside is not None:
        build.host(inside, start - 1, 30, external_id=1)
    facts: dict[str, Any] = {"strides": json.dumps(strides)} if strides else {}
    made = build.host(name, start, 20, dims=json.dumps(dims), types=json.dumps([BF16] * len(dims)), **facts)
    build.kernel("nvjet_tst_256x128", start + 100, 40, launch=build.call(start + 5, 5), op=made)


def test_rows_add_the_roles_of_their_calls_and_say_how_much_is_known() -> None:
    build = Build()
    called(build, "aten::mm", 10, [[32, 4096], [4096, 1024]], inside="aten::linear")
    called(build, "aten::mm", 60, [[1024, 32], [32, 4096]], inside="autograd::engine::evaluate_function: MmBackward0")
    study = Study(build.profile())
    forward, backward = sorted(study.roofline(ALL).ops, key=lambda row: str(row.shapes), reverse=True)
    assert forward.bytes_by_role == {"weight": {"read": W, "write": 0}, "activation": {"read": X, "write": XW}}
    assert backward.bytes_by_role is None
    total = study.roofline(ALL).program[0]
    assert total.bytes_by_role == forward.bytes_by_role
    known = W + X + XW
    assert f"roles: known for {100 * known / total.bytes['hbm']:.0f} % of the bytes" in total.flags
    assert not any(flag.startswith("roles") for flag in forward.flags)


def test_the_weights_and_the_cache_of_a_real_prefill() -> None:
    """15 prompts of 1,024 tokens through Qwen3-8B under SGLang: 36 layers of 4 products, and the head for the last tokens."""
    study = Study(open_profile(str(reference("traces/torch/tracelens_mi300x_sglang_qwen3_8b_prefilldecode.json.gz")), cache=False))
    moved = study.roofline(ALL).program[0].bytes_by_role
    assert moved is not None
    layer = 4096 * 6144 + 4096 * 4096 + 4096 * 24576 + 12288 * 4096
    norms = 2 * (2 * 128 + 2 * 4096) * 36 + 2 * 4096
    assert moved["weight"]["read"] == 2 * (36 * layer + 4096 * 151936) + norms
    assert moved["kv"]["write"] == 36 * 15360 * 2 * 8 * 128 * 2
