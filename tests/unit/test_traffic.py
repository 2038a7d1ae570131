"""Bytes by role: weights, KV cache, activations, gradients, an optimizer's state, by what the ops are and what stands around them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs import cost
from roofterm.analysis.costs.signature import Inputs
from roofterm.analysis.op_roles import Circumstances, Roles
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm.analysis.surroundings import Place
from roofterm.analysis.told_shapes import Product, Shapes
from roofterm.analysis.training_roles import roles
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
    ],
)
def test_a_second_operand_with_evidence_is_a_weight(strides: list[Any] | None, around: Circumstances) -> None:
    assert of(*MM, around, strides=strides) == WEIGHTED


@pytest.mark.parametrize(
    ("strides", "around"),
    [
        (None, FORWARD),  # once, dense, no linear: it may be anything
        ([[4096, 1], [1024, 1]], FORWARD),
        ([[4096, 1], [1, 4096]], Circumstances(Place.BACKWARD, calls=9)),  # a gradient's products
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


# Training: the same product [32, 4096] by [4096, 1024] told by the forward pass

TOLD = Shapes(frozenset({Product(32, 4096, 1024)}), frozenset({(4096, 1024), (1024, 4096)}), frozenset({32}))
BACKWARD = Circumstances(Place.BACKWARD, told=TOLD)


def test_the_gradient_of_an_input_reads_the_weight() -> None:
    assert of("aten::mm", [[32, 1024], [1024, 4096]], BACKWARD) == Roles(weight_read=W, activation_read=XW, activation_write=X)


@pytest.mark.parametrize("dims", [[[1024, 32], [32, 4096]], [[4096, 32], [32, 1024]]])
def test_the_gradient_of_a_weight_is_written_from_activations(dims: list[Any]) -> None:
    assert of("aten::mm", dims, BACKWARD) == Roles(activation_read=X + XW, gradient_write=W)


SQUARE = 2 * 512 * 512


@pytest.mark.parametrize(
    ("strides", "expected"),
    [
        ([[1, 512], [512, 1]], Roles(activation_read=2 * SQUARE, gradient_write=SQUARE)),  # x transposed
        ([[512, 1], [512, 1]], Roles(weight_read=SQUARE, activation_read=SQUARE, activation_write=SQUARE)),
        ([[512, 1], [1, 512]], Roles(weight_read=SQUARE, activation_read=SQUARE, activation_write=SQUARE)),
        ([[1, 512], [1, 512]], None),
        (None, None),
    ],
)
def test_where_all_sizes_are_alike_the_transposed_operand_tells(strides: list[Any] | None, expected: Roles | None) -> None:
    told = Shapes(frozenset({Product(512, 512, 512)}), frozenset({(512, 512)}), frozenset({512}))
    assert of("aten::mm", [[512, 512], [512, 512]], Circumstances(Place.BACKWARD, told=told), strides=strides) == expected


CONV_X, CONV_W, CONV_Y = 2 * 8 * 64 * 56 * 56, 2 * 128 * 64 * 9, 2 * 8 * 128 * 56 * 56


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("[True, True, True]", Roles(CONV_W, 0, 0, 0, CONV_Y + CONV_X, CONV_X, 0, CONV_W + 2 * 128)),
        ("[True, False, False]", Roles(CONV_W, 0, 0, 0, CONV_Y, CONV_X, 0, 0)),
        ("[False, True, False]", Roles(0, 0, 0, 0, CONV_Y + CONV_X, 0, 0, CONV_W)),
    ],
)
def test_a_convolutions_backward_moves_what_its_mask_asks_for(mask: str, expected: Roles) -> None:
    dims = [[8, 128, 56, 56], [8, 64, 56, 56], [128, 64, 3, 3], *([[]] * 8)]
    concrete = ["", "", "", "[128]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", mask]
    assert of("aten::convolution_backward", dims, BACKWARD, concrete=concrete) == expected


def test_a_norms_backward_writes_the_gradients_of_scale_and_shift() -> None:
    x, c = 2 * 32 * 4096, 2 * 4096
    dims = [[2, 16, 4096], [2, 16, 4096], [], [2, 16, 1], [2, 16, 1], [4096], [4096], []]
    made = of("aten::native_layer_norm_backward", dims, BACKWARD, types=[BF16, BF16, "", "float", "float", BF16, BF16, ""])
    assert made == Roles(weight_read=c, activation_read=2 * x, activation_write=x, gradient_write=2 * c)


def test_a_fused_adam_reads_and_writes_weights_and_states() -> None:
    # 1000 parameters in fp32: p, g, m, v read, p, m, v written, 28 bytes a parameter
    dims: list[Any] = [[[1000]]] * 4 + [[], []]
    made = of("aten::_fused_adamw_", dims, Circumstances(Place.OPTIMIZER), types=[["float"]] * 4 + ["", ""])
    assert made == Roles(weight_read=4000, weight_write=4000, gradient_read=4000, optimizer_read=8000, optimizer_write=8000)


def test_single_ops_of_an_optimizer_are_its_own() -> None:
    made = of("aten::mul_", [[4096, 1024], []], Circumstances(Place.OPTIMIZER, told=TOLD))
    assert made == Roles(optimizer_read=W, optimizer_write=W)


def test_what_autograd_adds_up_is_a_gradient() -> None:
    made = of("aten::add_", [[1024, 4096], [1024, 4096], []], Circumstances(Place.GRADIENT, told=TOLD))
    assert made == Roles(gradient_read=2 * W, gradient_write=W)


def test_a_tables_gradient_is_written() -> None:
    made = of("aten::embedding_dense_backward", [[2, 16, 4096], [2, 16], [], [], []], BACKWARD, types=[BF16, INT, "", "", ""])
    assert made == Roles(activation_read=2 * 32 * 4096 + 8 * 32, gradient_write=2 * 32 * 4096)


def test_a_copy_of_a_weight_is_one_and_a_matrix_of_other_size_is_an_activation() -> None:
    around = Circumstances(told=TOLD)
    cast = of("aten::copy_", [[1024, 4096], [1024, 4096], []], around, types=[BF16, "float", ""])  # autocast
    assert cast == Roles(weight_read=2 * W, weight_write=W)
    assert of("aten::copy_", [[32, 4096], [32, 4096], []], around) == Roles(activation_read=X, activation_write=X)
    assert of("aten::copy_", [[32, 4096], [32, 4096], []]) is None  # nothing tells the rows of this profile


def test_attention_in_single_products_is_told_by_its_softmax() -> None:
    told = Shapes(scores=frozenset({(16, 128, 256)}))  # 2 sequences of 8 heads, 128 queries, 256 keys
    for place in (Place.FORWARD, Place.BACKWARD):
        around = Circumstances(place, told=told)
        assert of("aten::bmm", [[16, 128, 64], [16, 64, 256]], around) == Roles(
            activation_read=2 * 16 * 64 * (128 + 256), activation_write=2 * 16 * 128 * 256
        )
        assert of("aten::bmm", [[16, 128, 256], [16, 256, 64]], around) is not None
        assert of("aten::bmm", [[16, 64, 128], [16, 128, 256]], around) is not None  # gradient of the keys
        assert of("aten::bmm", [[16, 128, 64], [16, 64, 200]], around) is None


# In a profile


def test_places_by_the_innermost_mark() -> None:
    """A training step of one layer: forward, backward with recomputation, gradients added up, SGD."""
    node = "autograd::engine::evaluate_function: MmBackward0"
    build = Build()
    called(build, "aten::mm", 10, [[32, 4096], [4096, 1024]], "aten::linear")
    called(build, "aten::mm", 60, [[32, 4096], [4096, 1024]], node, "CheckpointFunctionBackward", "aten::linear")
    called(build, "aten::mm", 110, [[32, 1024], [1024, 4096]], node, "MmBackward0")
    called(build, "aten::mm", 160, [[1024, 32], [32, 4096]], node, "MmBackward0")
    called(build, "aten::add_", 210, [[1024, 4096], [1024, 4096]], "torch::autograd::AccumulateGrad")
    called(build, "aten::add_", 260, [[1024, 4096], [1024, 4096]], "Optimizer.step#SGD.step")
    total = Study(build.profile()).roofline(ALL).program[0]
    assert total.bytes_by_role == {
        "weight": {"read": 3 * W, "write": 0},
        "activation": {"read": 2 * X + XW + (X + XW), "write": 2 * XW + X},
        "gradient": {"read": 2 * W, "write": W + W},
        "optimizer": {"read": 2 * W, "write": W},
    }
    assert not any(flag.startswith("roles") for flag in total.flags)


def called(build: Build, name: str, start: float, dims: list[Any], *inside: str, strides: list[Any] | None = None) -> None:
    for depth, around in enumerate(inside):
        build.host(around, start - len(inside) + depth, 28 + 2 * (len(inside) - depth), external_id=1)
    facts: dict[str, Any] = {"strides": json.dumps(strides)} if strides else {}
    made = build.host(name, start, 20, dims=json.dumps(dims), types=json.dumps([BF16] * len(dims)), **facts)
    build.kernel("nvjet_tst_256x128", start + 100, 40, launch=build.call(start + 5, 5), op=made)


def test_rows_add_the_roles_of_their_calls_and_say_how_much_is_known() -> None:
    build = Build()
    called(build, "aten::mm", 10, [[32, 4096], [4096, 1024]], "aten::linear")
    called(build, "aten::mm", 60, [[1000, 32], [32, 4096]], "autograd::engine::evaluate_function: MmBackward0")
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


def test_the_gradients_of_a_real_resnet_are_its_parameters() -> None:
    """ResNet-50: 25,557,032 parameters, 2,049,000 of them in the last layer and 53,120 in norms; 6 steps in fp32."""
    study = Study(open_profile(str(reference("traces/torch/kineto_v100_resnet50_2021_workers4.pt.trace.json.gz")), cache=False))
    items = study.bounded(ALL).items
    parameters = 25_557_032 - 2_049_000 - 53_120
    of_convolutions = items.filter(pl.col("category") == int(Category.CONV))
    assert of_convolutions["gradient_write"].sum() == 6 * 4 * parameters
    of_norms = items.filter(pl.col("category") == int(Category.NORM))
    assert of_norms["gradient_write"].sum() == 6 * 4 * 53_120
    classifier = items.filter(pl.col("text") == "aten::mm")
    assert classifier["gradient_write"].sum() == classifier["weight_read"].sum() == 6 * 4 * 2_048_000
