"""Costs of ops against hand calculations; b is the bytes of an element."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofterm.analysis.categories import Category
from roofterm.analysis.costs import REGISTRY, Cost, bus_factor, collective_cost, collective_kind, cost
from roofterm.analysis.costs.attention import BOTTOM_RIGHT, TOP_LEFT, visible_pairs
from roofterm.analysis.costs.signature import Inputs, Tensor, dtype_name
from tests.unit.cost_of import BF16, FP8, FP32, found

# Products


def test_mm() -> None:
    got = found("aten::mm", [[128, 256], [256, 512]])
    assert got.flops == got.model_flops == 2 * 128 * 512 * 256
    assert got.read_bytes == 2 * (128 * 256 + 256 * 512)
    assert got.write_bytes == 2 * 128 * 512
    assert (got.dtype, got.category, got.is_gemm_or_attention) == ("bf16", Category.GEMM, True)
    assert got.source


def test_addmm_reads_its_bias_at_its_own_size_and_not_at_all_for_beta_0() -> None:
    dims = [[512], [128, 256], [256, 512], [], []]
    got = found("aten::addmm", dims, FP32, ["", "", "", "1", "1"])
    assert got.flops == 2 * 128 * 512 * 256
    assert got.read_bytes == 4 * (512 + 128 * 256 + 256 * 512)
    without = found("aten::addmm", dims, FP32, ["", "", "", "0", "1"])
    assert without.read_bytes == 4 * (128 * 256 + 256 * 512)


def test_an_expanded_operand_counts_its_unique_elements() -> None:
    dims, types = "[[16,64,32],[16,32,64]]", json.dumps([BF16, BF16])
    strides = "[[0,32,1],[2048,64,1]]"  # the first is one matrix, expanded over the batch
    got = cost("aten::bmm", dims, types, strides)
    assert got is not None
    assert got.flops == 2 * 16 * 64 * 64 * 32
    assert got.read_bytes == 2 * (64 * 32 + 16 * 32 * 64)


def test_linear_and_matmul_have_the_cost_of_their_product() -> None:
    product = 2 * (8 * 100) * 64 * 32
    assert found("aten::linear", [[8, 100, 32], [64, 32], [64]]).flops == product
    assert found("aten::matmul", [[8, 100, 32], [32, 64]]).flops == product
    assert found("aten::matmul", [[5, 1, 3, 4], [7, 4, 6]]).flops == 2 * 5 * 7 * 3 * 6 * 4
    assert found("aten::matmul", [[4], [4, 6]]).flops == 2 * 4 * 6


def test_scaled_mm_reads_8_bit_operands_and_writes_its_out_dtype() -> None:
    types = [FP8, FP8, FP32, FP32, "", "", "Scalar", "Scalar"]
    dims: list[Any] = [[128, 256], [256, 512], [], [], [], [], [], []]
    got = found("aten::_scaled_mm", dims, types=types, concrete=["", "", "", "", "", "", "15", "True"])
    assert got.flops == 2 * 128 * 512 * 256
    assert got.read_bytes == 128 * 256 + 256 * 512 + 4 + 4  # and one fp32 scale each
    assert got.write_bytes == 2 * 128 * 512  # 15: bfloat16
    assert got.dtype == "fp8"


def test_scaled_mm_with_lists_of_scales() -> None:
    dims: list[Any] = [[32, 64], [64, 48], [[32, 1]], [], [], [[1, 48]], [], [], [], [], [], []]
    types = [FP8, FP8, ["float"], "", "", ["float"], "", "", "", "Scalar", "", "Scalar"]
    got = found("aten::_scaled_mm_v2", dims, types=types, concrete=["", "", "", "", "", "", "", "", "", "15", "", "False"])
    assert got.flops == 2 * 32 * 64 * 48
    assert (got.read_bytes, got.write_bytes) == (32 * 64 + 64 * 48 + 4 * (32 + 48), 2 * 32 * 48)


def test_int_mm_writes_int32() -> None:
    got = found("aten::_int_mm", [[32, 64], [64, 16]], "signed char")
    assert (got.read_bytes, got.write_bytes, got.dtype) == (32 * 64 + 64 * 16, 4 * 32 * 16, "int8")


def test_grouped_mm_splits_rows_among_the_groups() -> None:
    got = found("aten::_grouped_mm", [[1000, 64], [8, 64, 32], [8]])
    assert got.flops == 2 * 1000 * 64 * 32
    assert got.read_bytes == 2 * (1000 * 64 + 8 * 64 * 32)


def test_scaled_grouped_mm_reads_a_scale_for_each_row_and_column() -> None:
    dims: list[Any] = [[1000, 64], [8, 64, 32], [1000], [8, 32], [8], [], [], [], []]
    types = [FP8, FP8, "float", "float", "int", "", "", "Scalar", "Scalar"]
    got = found("aten::_scaled_grouped_mm", dims, types=types, concrete=["", "", "", "", "", "", "", "6", "False"])
    assert got.flops == 2 * 1000 * 64 * 32
    assert got.read_bytes == 1000 * 64 + 8 * 64 * 32 + 4 * (1000 + 8 * 32)
    assert (got.write_bytes, got.dtype) == (4 * 1000 * 32, "fp8")  # 6: float


# Convolutions


def test_conv2d_with_stride_groups_and_dilation() -> None:
    # 4 x 16 x 32 x 32 by 32 x 8 x 3 x 3 in 2 groups, stride 2, dilation 2: out (32 - 2 * 2 - 1) // 2 + 1 = 14
    dims = [[4, 16, 32, 32], [32, 8, 3, 3], [32], [], [], [], []]
    got = found("aten::conv2d", dims, FP32, ["", "", "", "[2, 2]", "[0, 0]", "[2, 2]", "2"])
    assert got.flops == 2 * 4 * 14 * 14 * 3 * 3 * 16 * 32 // 2
    assert got.read_bytes == 4 * (4 * 16 * 32 * 32 + 32 * 8 * 3 * 3 + 32)
    assert got.write_bytes == 4 * 4 * 32 * 14 * 14


def test_all_names_of_one_convolution_agree() -> None:
    x, w = [1, 64, 56, 56], [64, 64, 3, 3]
    flops = 231211008  # 2 * 1 * 64 * 56 * 56 * 64 * 3 * 3
    one, no = "[1, 1]", "[0, 0]"
    convolution = ["", "", "", one, one, one, "False", no, "1"]
    assert found("aten::conv2d", [x, w, [], [], [], [], []], concrete=["", "", "", one, one, one, "1"]).flops == flops
    assert found("aten::convolution", [x, w, [], [], [], [], [], [], []], concrete=convolution).flops == flops
    assert found("aten::_convolution", [x, w, *[[]] * 11], concrete=[*convolution, *["False"] * 4]).flops == flops
    cudnn = ["", "", one, one, one, "1", "False", "False", "True"]
    assert found("aten::cudnn_convolution", [x, w, *[[]] * 7], concrete=cudnn).flops == flops
    assert found("aten::miopen_convolution", [x, w, *[[]] * 6], concrete=["", "", "", one, one, one, "1", "False"]).flops == flops


def test_transposed_convolution_counts_the_inputs_positions() -> None:
    # out = (8 - 1) * 2 - 2 * 1 + 1 * (4 - 1) + 1 = 16
    concrete = ["", "", "", "[2, 2]", "[1, 1]", "[0, 0]", "1", "[1, 1]"]
    got = found("aten::conv_transpose2d", [[2, 6, 8, 8], [6, 3, 4, 4], [], [], [], [], [], []], FP32, concrete)
    assert got.flops == 2 * (2 * 8 * 8) * (6 * 3 * 4 * 4)
    assert got.write_bytes == 4 * 2 * 3 * 16 * 16


CONV_GRADIENTS = {
    # mask: FLOPs in units of the forward's, tensors read, tensors written (of dy, x, w; bias apart)
    "[True, True, False]": (2, "dy x w", "x w"),
    "[False, True, False]": (1, "dy x", "w"),
    "[True, False, False]": (1, "dy w", "x"),
}


@pytest.mark.parametrize("mask", CONV_GRADIENTS)
def test_convolution_backward_does_what_its_mask_asks_for(mask: str) -> None:
    elements = {"dy": 4 * 32 * 14 * 14, "x": 4 * 16 * 32 * 32, "w": 32 * 8 * 3 * 3}
    forward = 2 * 4 * 14 * 14 * 3 * 3 * 16 * 32 // 2
    concrete = ["", "", "", "[32]", "[2, 2]", "[0, 0]", "[2, 2]", "False", "[0, 0]", "2", mask]
    dims = [[4, 32, 14, 14], [4, 16, 32, 32], [32, 8, 3, 3], *[[]] * 8]
    got = found("aten::convolution_backward", dims, FP32, concrete)
    times, read, written = CONV_GRADIENTS[mask]
    assert got.flops == times * forward
    assert got.read_bytes == 4 * sum(elements[name] for name in read.split())
    assert got.write_bytes == 4 * sum(elements[name] for name in written.split())


def test_a_convolution_without_recorded_strides_has_bytes_only() -> None:
    got = found("aten::cudnn_convolution", [[32, 3, 224, 224], [64, 3, 7, 7], *[[]] * 7], FP32)
    assert (got.flops, got.read_bytes, got.write_bytes) == (None, 4 * (32 * 3 * 224 * 224 + 64 * 3 * 7 * 7), None)
    assert got.estimate


# Attention


@pytest.mark.parametrize(("queries", "keys"), [(4, 4), (3, 5), (1, 7), (128, 512), (5, 3)])
def test_visible_pairs_are_those_of_the_mask_drawn_out(queries: int, keys: int) -> None:
    for align, shift in ((TOP_LEFT, 0), (BOTTOM_RIGHT, keys - queries)):
        drawn = sum(1 for i in range(queries) for j in range(keys) if j <= i + shift)
        assert visible_pairs(queries, keys, True, align) == drawn
    assert visible_pairs(queries, keys, False) == queries * keys


def test_visible_pairs_by_their_formulas() -> None:
    # definitions.md, for Sq <= Sk
    assert visible_pairs(100, 300, True, TOP_LEFT) == 100 * 101 // 2
    assert visible_pairs(100, 300, True, BOTTOM_RIGHT) == 100 * 300 - 100 * 99 // 2


def test_a_window_is_counted() -> None:
    drawn = sum(1 for i in range(50) for j in range(50) if i - 7 <= j <= i)
    assert visible_pairs(50, 50, True, BOTTOM_RIGHT, (7, 0)) == drawn


def gqa(name: str, q: list[int], k: list[int], concrete: list[str], slots: int) -> Cost:
    return found(name, [q, k, k, *[[]] * (slots - 3)], concrete=concrete)


def test_gqa_attention_with_a_causal_mask_in_both_alignments() -> None:
    # 2 sequences, 32 query heads on 8 key heads, 100 queries on 300 keys, 128 wide
    b, hq, hk, sq, sk, d = 2, 32, 8, 100, 300, 128
    size = 2 * (b * hq * sq * d + 2 * b * hk * sk * d)
    top = gqa("aten::_scaled_dot_product_flash_attention", [b, hq, sq, d], [b, hk, sk, d], ["", "", "", "0.", "True", "False", ""], 7)
    assert top.flops == 4 * b * hq * d * (sq * (sq + 1) // 2)
    assert (top.read_bytes, top.write_bytes) == (size, 2 * b * hq * sq * d)
    concrete = ["", "", "", "0.", "", "True", "-1", "-1", "0.", "", ""]
    bottom = gqa("flash_attn::_flash_attn_forward", [b, sq, hq, d], [b, sk, hk, d], concrete, 11)
    assert bottom.flops == 4 * b * hq * d * (sq * sk - sq * (sq - 1) // 2)
    assert bottom.read_bytes == size
    assert bottom.whole_flops == 4 * b * hq * d * sq * sk


def test_flash_backward_is_two_and_a_half_forwards_of_which_two_are_the_models() -> None:
    b, h, s, d = 2, 16, 256, 64
    forward = gqa("aten::_scaled_dot_product_flash_attention", [b, h, s, d], [b, h, s, d], ["", "", "", "0.", "False", "False", ""], 7)
    shape, stats = [b, h, s, d], [b, h, s]
    dims: list[Any] = [shape, shape, shape, shape, shape, stats, *[[]] * 9]
    concrete = ["", "", "", "", "", "", "", "", str(s), str(s), "0.", "False", "", "", ""]
    got = found("aten::_scaled_dot_product_flash_attention_backward", dims, concrete=concrete)
    assert forward.flops is not None
    assert got.flops == 2.5 * forward.flops
    assert got.model_flops == 2 * forward.flops
    one = 2 * b * h * s * d
    assert (got.read_bytes, got.write_bytes) == (5 * one, 3 * one)  # dO, q, k, v, O; dq, dk, dv


def test_packed_sequences_count_only_where_their_lengths_are_known() -> None:
    def packed(tokens: int, sequences: int, longest: int) -> Cost:
        dims: list[Any] = [[tokens, 8, 64], [tokens, 8, 64], [tokens, 8, 64], [sequences + 1], [sequences + 1], *[[]] * 10]
        concrete = ["", "", "", "", "", str(longest), str(longest), "0.", "True", "False", "", "-1", "-1", "", ""]
        types = [BF16, BF16, BF16, "int", "int", *["Scalar"] * 10]
        return found("aten::_flash_attention_forward", dims, types=types, concrete=concrete)

    assert packed(400, 4, 100).flops == 4 * 8 * 64 * 4 * (100 * 101 // 2)  # all equally long
    assert packed(400, 1, 400).flops == 4 * 8 * 64 * (400 * 401 // 2)
    assert packed(400, 7, 100).flops is None
    assert packed(400, 7, 100).read_bytes == 2 * 3 * 400 * 8 * 64


# Memory-bound families


def test_layer_norm() -> None:
    got = found("aten::native_layer_norm", [[8, 100, 512], [], [512], [512], []])
    n = 8 * 100 * 512
    assert (got.read_bytes, got.write_bytes) == (2 * (n + 2 * 512), 2 * n)
    assert got.flops == 8 * n  # mean 1, variance 3, centring and scaling 2, weight and bias 2


def test_layer_norm_backward() -> None:
    got = found("aten::native_layer_norm_backward", [[8, 512], [8, 512], [], [8, 1], [8, 1], [512], [512], []], FP32)
    assert (got.read_bytes, got.write_bytes) == (4 * (2 * 8 * 512 + 512), 4 * (8 * 512 + 2 * 512))


def test_a_broadcast_input_counts_at_its_own_size() -> None:
    got = found("aten::add", [[64, 1, 128], [256, 128], []], FP32)
    assert got.flops == 64 * 256 * 128
    assert got.read_bytes == 4 * (64 * 128 + 256 * 128)
    assert got.write_bytes == 4 * 64 * 256 * 128


def test_mixed_types_promote_and_comparisons_write_a_byte() -> None:
    mixed = found("aten::mul", [[1000], [1000]], types=[BF16, FP32])
    assert (mixed.read_bytes, mixed.write_bytes, mixed.dtype) == (1000 * (2 + 4), 4000, "fp32")
    compared = found("aten::gt", [[1000], [1000]], FP32)
    assert (compared.read_bytes, compared.write_bytes) == (8000, 1000)
    scalar = found("aten::mul", [[1000], []], types=[BF16, "double"])
    assert scalar.write_bytes == 2000  # a number does not widen a tensor


def test_an_op_in_place_writes_its_first_input() -> None:
    got = found("aten::add_", [[1000], [1000], []], types=[BF16, FP32, "Scalar"])
    assert (got.read_bytes, got.write_bytes) == (6000, 2000)


def test_a_copy_reads_the_unique_source() -> None:
    got = cost("aten::copy_", "[[64,128],[64,128],[]]", json.dumps([BF16, FP32, "Scalar"]), "[[128,1],[0,1],[]]")
    assert got is not None
    assert (got.flops, got.read_bytes, got.write_bytes) == (0, 4 * 128, 2 * 64 * 128)


def test_cat_of_lists_whose_types_are_not_recorded_takes_the_kernels() -> None:
    dims, types = "[[[8,32],[8,96]],[]]", '["TensorList","Scalar"]'
    got = cost("aten::cat", dims, types, fallback="2byte")
    assert got is not None
    assert (got.read_bytes, got.write_bytes) == (2 * 8 * 128, 2 * 8 * 128)
    assert cost("aten::cat", dims, types) is None


def test_softmax_in_half_to_float_writes_floats() -> None:
    got = found("aten::_softmax", [[8, 1000], [], []], types=["c10::Half", "Scalar", "Scalar"], concrete=["", "1", "True"])
    assert (got.read_bytes, got.write_bytes) == (2 * 8000, 4 * 8000)


@pytest.mark.parametrize(("dims", "left"), [("[1]", 4 * 6), ("[-1, 0]", 5), ("[]", 1)])
def test_sum_writes_what_its_dimensions_leave(dims: str, left: int) -> None:
    got = found("aten::sum", [[4, 5, 6], [], [], []], FP32, ["", dims, "False", ""])
    assert (got.flops, got.read_bytes, got.write_bytes) == (120, 480, 4 * left)


def test_embedding_reads_rows_and_not_the_table() -> None:
    got = found("aten::embedding", [[50000, 512], [64, 128], [], [], []], types=[BF16, "long int", "Scalar", "Scalar", "Scalar"])
    rows = 2 * 64 * 128 * 512
    assert (got.read_bytes, got.write_bytes) == (8 * 64 * 128 + rows, rows)


def test_bags_of_embeddings_read_their_rows_and_write_a_sum_each() -> None:
    # 100 rows of 64 in 10 bags
    got = found("aten::_embedding_bag", [[5000, 64], [100], [10], [], [], [], [], [], []], types=[FP32, "long int", "long int", *[""] * 6])
    assert (got.flops, got.read_bytes, got.write_bytes) == (100 * 64, 8 * 110 + 4 * 100 * 64, 4 * 10 * 64)


def test_max_pool_with_indices() -> None:
    # out = (112 + 2 - 2 - 1) // 2 + 1 = 56
    concrete = ["", "[3, 3]", "[2, 2]", "[1, 1]", "[1, 1]", "False"]
    got = found("aten::max_pool2d_with_indices", [[8, 64, 112, 112], *[[]] * 5], FP32, concrete)
    out = 8 * 64 * 56 * 56
    assert (got.flops, got.write_bytes) == (9 * out, (4 + 8) * out)


def test_adam_moves_seven_values_a_parameter() -> None:
    sizes = [[1000, 100], [500]]
    n = 100500
    dims: list[Any] = [sizes, sizes, sizes, sizes, [], [[1], [1]], *[[]] * 8]
    got = found("aten::_fused_adamw_", dims, fallback="fp32")
    assert got.flops == 12 * n
    assert (got.read_bytes, got.write_bytes) == (4 * 4 * n, 3 * 4 * n)  # 28 N bytes together
    assert got.category is Category.OPTIMIZER


def test_foreach_ops_read_their_lists_and_write_the_first() -> None:
    sizes = [[128, 128], [128]]
    got = found("aten::_foreach_addcdiv_", [sizes, sizes, sizes, []], fallback="fp32")
    n = 128 * 129
    assert (got.flops, got.read_bytes, got.write_bytes) == (3 * n, 12 * n, 4 * n)


# Serving


def test_a_triton_kernel_is_bounded_by_its_arguments() -> None:
    got = found("triton_poi_fused_add_3", [[8, 64], [8, 64], []], FP32)
    assert (got.flops, got.bytes) == (None, 2 * 4 * 512)
    assert got.estimate is not None
    assert "upper bound" in got.estimate


def test_a_gather_in_a_triton_kernel_is_no_more_than_its_elements() -> None:
    """32 rows of 2,880 out of a table of 201,088: the table is listed whole, the kernel works on 92,160 elements."""
    dims: list[Any] = [[201088, 2880], [32], [32, 2880], []]
    got = found("triton_poi_fused_embedding_0", dims, types=[BF16, "long int", BF16, "Scalar"], concrete=["", "", "", "92160"])
    assert got.bytes == 2 * 92160 + 8 * 32 + 2 * 92160
    reduced = found("triton_red_fused_mean_1", [[32768, 2048], [2048], [32768], [], []], FP32, concrete=["", "", "", "32768", "2048"])
    assert reduced.bytes == 4 * (32768 * 2048 + 2048 + 32768)
    template = found("triton_tem_fused_mm_2", [[64, 4096], [4096, 64], [64, 64], []], FP32, concrete=["", "", "", "16"])
    assert template.bytes == 4 * (2 * 64 * 4096 + 64 * 64)


# Collectives


@pytest.mark.parametrize(
    ("kind", "factor"),
    [("all_reduce", 2 * 7 / 8), ("all_gather", 7 / 8), ("reduce_scatter", 7 / 8), ("all_to_all", 7 / 8), ("broadcast", 1)],
)
def test_bus_factors_of_nccl_tests_on_8_ranks(kind: str, factor: float) -> None:
    assert bus_factor(kind, 8) == factor


def test_all_reduce_on_8_gpus() -> None:
    got = collective_cost("allreduce", "BFloat16", 1 << 20, 1 << 20, 8)
    assert got is not None
    size = 2 << 20
    assert (got.read_bytes, got.write_bytes, got.message_bytes) == (size, size, size)
    assert got.wire_bytes == size * 2 * 7 / 8


def test_all_gather_counts_its_larger_buffer() -> None:
    got = collective_cost("_allgather_base", "Float", 1000, 8000, 8)
    assert got is not None
    assert (got.message_bytes, got.wire_bytes) == (32000, 32000 * 7 / 8)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ALLREDUCE", "all_reduce"), ("reduce_scatter_tensor_coalesced", "reduce_scatter"), ("all-gather-start", "all_gather"),
        ("alltoallv", "all_to_all"), ("wait", "wait"), ("SendRecv", "send_recv"), (None, None), ("matmul", None),
    ],
)  # fmt: skip
def test_kinds_of_collectives(name: str | None, kind: str | None) -> None:
    assert collective_kind(name) == kind


def test_a_wait_and_unknown_types_have_no_cost() -> None:
    assert collective_cost("wait", "Float", 1, 1, 8) is None
    assert collective_cost("allreduce", "no type", 1, 1, 8) is None


# What cannot be told is None


@pytest.mark.parametrize(
    ("dims", "types"),
    [
        ("[[0,128],[128,64]]", '["float","float"]'),
        ("[]", None),
        (None, None),
        ("[[5],[7,8]]", '["float","float"]'),
        ('"[[4,4],[4,4]]"', None),
        ("[[-1,128],[128,64]]", '["float",""]'),
        ("[[4,4],[5,4]]", '["float","float"]'),
        ("[[4,4]]", '["float"]'),
        ("not json", None),
        ("[[1.5,4],[4,4]]", '["float","float"]'),
        ("[[true,4],[4,4]]", '["float","float"]'),
    ],
)
def test_shapes_that_are_none_have_no_cost(dims: str | None, types: str | None) -> None:
    assert cost("aten::mm", dims, types) is None


def test_an_unknown_op_has_no_cost() -> None:
    assert cost("my::op", "[[4,4]]", '["float"]') is None


def test_an_unknown_type_leaves_bytes_unknown_and_flops_known() -> None:
    got = cost("aten::mm", "[[4,4],[4,4]]", '["strange","strange"]')
    assert got is not None
    assert (got.flops, got.bytes, got.dtype) == (128, None, None)


NESTED = st.recursive(
    st.one_of(st.integers(-2, 9), st.text(max_size=3), st.none(), st.floats(allow_nan=False), st.booleans()),
    lambda inner: st.lists(inner, max_size=5),
    max_leaves=12,
)
SIZES = st.lists(st.integers(0, 9), max_size=5)
SHAPES = st.lists(st.one_of(SIZES, st.lists(SIZES, max_size=3), NESTED), max_size=12)
TYPES = st.lists(st.sampled_from([FP32, BF16, FP8, "long int", "Scalar", "TensorList", "", "bool", "?"]), max_size=12)
CONCRETE = ["", "1", "0", "2", "-1", "[1, 1]", "[0, 0]", "[2]", "True", "False", "[True, False, True]", "same", "[1, 2", "x"]
VALUES = st.lists(st.sampled_from(CONCRETE), max_size=12)


@settings(max_examples=1500, deadline=None)
@given(name=st.sampled_from(sorted(REGISTRY)), dims=SHAPES, types=TYPES, concrete=VALUES)
def test_no_recording_makes_a_rule_fail_or_say_nothing_is_something(name: str, dims: Any, types: Any, concrete: Any) -> None:
    got = cost(name, dims, types, None, concrete)
    if got is not None:
        known = [value for value in (got.flops, got.read_bytes, got.write_bytes) if value is not None]
        assert known
        assert all(value >= 0 for value in known)
        assert sum(known) > 0


def test_types_and_slots() -> None:
    assert dtype_name("c10::Float8_e5m2fnuz") == "fp8"
    assert dtype_name("unsigned char") == "int8"
    assert dtype_name("GenericList") is None
    inputs = Inputs([[2, 3], [], [[1], [2, 2]]], [FP32, "Scalar", "TensorList"], None, ["", "[1, 2]", ""])
    assert inputs.tensor(0) == Tensor((2, 3), "fp32", None)
    assert inputs.tensor(1) is None
    assert inputs.tensors(2) == [Tensor((1,), None), Tensor((2, 2), None)]
    assert inputs.ints(1) == [1, 2]


def test_a_loss_gradient_is_written_where_its_targets_are() -> None:
    """8 rows of 100 classes: 8 targets of 8 bytes read, 8 values of 4 bytes written; the 800 zeros belong to the fill inside."""
    found = cost("aten::nll_loss_backward", "[[],[8,100],[8]]", '["float","float","long int"]', None, '["","",""]')
    assert found is not None
    assert (found.read_bytes, found.write_bytes) == (64, 32)


def test_an_embedding_gradient_is_added_where_its_rows_are() -> None:
    """16 tokens of width 4 into a table of 1000 rows: 16 x 4 values and 16 indices read, at most 16 x 4 values written."""
    found = cost(
        "aten::embedding_dense_backward", "[[16,4],[16],[],[],[]]", '["float","long int","","",""]', None, '["","","1000","-1","False"]'
    )
    assert found is not None
    assert (found.read_bytes, found.write_bytes) == (16 * 4 * 4 + 16 * 8, 16 * 4 * 4)
