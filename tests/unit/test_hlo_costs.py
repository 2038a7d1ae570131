"""FLOPs and bytes of HLO instructions, each against the count worked out beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from roofterm_parsers.xplane.hlo_costs import Cost, CostAnalysis, Rules
from roofterm_parsers.xplane.hlo_proto import Module, read_module
from roofterm_parsers.xplane.hlo_rules import OURS, XPROF
from tests.xspace import Hlo, conv_dims_nchw, dot_dims, window


def module_of(hlo: Hlo) -> Module:
    data = hlo.encode()
    return read_module(memoryview(data), 0, len(data))


def cost_of(hlo: Hlo, name: str, rules: Rules = OURS) -> Cost:
    module = module_of(hlo)
    found = CostAnalysis(module, rules).of(module.by_name[name])
    assert found is not None
    return found


def entry(*parameters: str) -> Hlo:
    """A module whose entry takes arrays p0, p1, ... of these shapes."""
    hlo = Hlo()
    hlo.computation("main")
    for i, shape in enumerate(parameters):
        hlo.op(f"p{i}", "parameter", shape, parameter=i)
    return hlo


def binary(hlo: Hlo, opcode: str, dtype: str = "f32") -> int:
    """A computation of two scalars, for a reduction."""
    made = hlo.computation(f"scalar_{opcode}")
    hlo.op(f"{opcode}_a", "parameter", f"{dtype}[]", parameter=0)
    hlo.op(f"{opcode}_b", "parameter", f"{dtype}[]", parameter=1)
    hlo.op(f"{opcode}_r", opcode, f"{dtype}[]", (f"{opcode}_a", f"{opcode}_b"))
    return made


@pytest.mark.parametrize("rules", [OURS, XPROF])
def test_a_dot_is_two_flops_a_multiply_add(rules: Rules) -> None:
    hlo = entry("bf16[4,128,64]", "bf16[4,64,32]")
    hlo.op("dot.1", "dot", "f32[4,128,32]", ("p0", "p1"), dot=dot_dims((2,), (1,), (0,), (0,)))
    cost = cost_of(hlo, "dot.1", rules)
    assert cost.flops == 2 * 4 * 128 * 32 * 64
    assert cost.bytes == 2 * (4 * 128 * 64) + 2 * (4 * 64 * 32) + 4 * (4 * 128 * 32)


def test_a_convolution_counts_the_places_where_kernel_and_input_meet() -> None:
    # 1 image, 3 channels of 5x5, 8 filters of 3x3, padding 1: an output of 5 has 3 + 3 + 3 pairs less the two that fall on padding.
    hlo = entry("f32[1,3,5,5]", "f32[8,3,3,3]")
    padded = {"size": 3, "low": 1, "high": 1}
    hlo.op("conv", "convolution", "f32[1,8,5,5]", ("p0", "p1"), conv=conv_dims_nchw(), window=window(padded, padded))
    meetings = 5 * 3 - 2
    assert cost_of(hlo, "conv").flops == 2 * 3 * 8 * meetings * meetings
    assert cost_of(hlo, "conv").bytes == 4 * (1 * 3 * 25 + 8 * 3 * 9 + 8 * 25)


def test_a_strided_convolution_without_padding_meets_everywhere() -> None:
    # Stride 2 over 8: outputs at 0, 2, 4; each meets all 3 of the kernel.
    hlo = entry("bf16[2,4,8,8]", "bf16[16,4,3,3]")
    strided = {"size": 3, "stride": 2}
    hlo.op("conv", "convolution", "bf16[2,16,3,3]", ("p0", "p1"), conv=conv_dims_nchw(), window=window(strided, strided))
    assert cost_of(hlo, "conv").flops == 2 * 2 * 16 * 4 * (3 * 3) * (3 * 3)


def fused_scale_and_sum() -> Hlo:
    """y = sum over columns of (x * broadcast(s)) converted from bf16."""
    hlo = Hlo()
    add = binary(hlo, "add")
    body = hlo.computation("fused")
    hlo.op("x", "parameter", "bf16[64,1024]", parameter=0)
    hlo.op("s", "parameter", "f32[]", parameter=1)
    hlo.op("wide", "convert", "f32[64,1024]", ("x",))
    hlo.op("all", "broadcast", "f32[64,1024]", ("s",))
    hlo.op("scaled", "multiply", "f32[64,1024]", ("wide", "all"))
    hlo.op("zero", "constant", "f32[]")
    hlo.op("sum", "reduce", "f32[64]", ("scaled", "zero"), calls=(add,), dimensions=(1,))
    hlo.computation("main")
    hlo.op("p0", "parameter", "bf16[64,1024]", parameter=0)
    hlo.op("p1", "parameter", "f32[]", parameter=1)
    hlo.op("fusion.1", "fusion", "f32[64]", ("p0", "p1"), calls=(body,), kind="kInput")
    return hlo


def test_a_fusion_is_the_work_inside_and_the_memory_outside() -> None:
    # Inside: 65,536 multiplications, and 1,023 additions for each of 64 sums; conversion and broadcast are no FLOPs.
    cost = cost_of(fused_scale_and_sum(), "fusion.1")
    assert cost.flops == 64 * 1024 + 64 * 1023
    assert cost.bytes == 2 * 64 * 1024 + 4 + 4 * 64


def test_xprof_counts_cycles_of_a_fusions_elementwise_operations() -> None:
    # Three cycles each for conversion, multiplication and addition.
    assert cost_of(fused_scale_and_sum(), "fusion.1", XPROF).flops == 3 * (64 * 1024 + 64 * 1024 + 64 * 1023)


def test_a_fusion_reads_of_a_sliced_parameter_what_the_slice_takes() -> None:
    hlo = Hlo()
    body = hlo.computation("fused")
    hlo.op("x", "parameter", "f32[100,64]", parameter=0)
    hlo.op("part", "slice", "f32[10,64]", ("x",))
    hlo.op("negated", "negate", "f32[10,64]", ("part",))
    hlo.computation("main")
    hlo.op("p0", "parameter", "f32[100,64]", parameter=0)
    hlo.op("fusion.1", "fusion", "f32[10,64]", ("p0",), calls=(body,), kind="kLoop")
    cost = cost_of(hlo, "fusion.1")
    assert (cost.flops, cost.bytes) == (640, 4 * 640 + 4 * 640)


def test_a_fusion_that_updates_a_slice_in_place_writes_the_update() -> None:
    hlo = Hlo()
    body = hlo.computation("fused")
    hlo.op("cache", "parameter", "bf16[4096,128]", parameter=0)
    hlo.op("new", "parameter", "bf16[1,128]", parameter=1)
    hlo.op("at", "parameter", "s32[]", parameter=2)
    hlo.op("updated", "dynamic-update-slice", "bf16[4096,128]", ("cache", "new", "at", "at"))
    hlo.computation("main")
    for i, shape in enumerate(("bf16[4096,128]", "bf16[1,128]", "s32[]")):
        hlo.op(f"p{i}", "parameter", shape, parameter=i)
    hlo.op("fusion.1", "fusion", "bf16[4096,128]", ("p0", "p1", "p2"), calls=(body,), kind="kLoop")
    # Nothing of the cache, the update and the index read; the update written.
    assert cost_of(hlo, "fusion.1").bytes == 2 * 128 + 4 + 2 * 128


def test_a_fusion_with_several_results_writes_them_all() -> None:
    hlo = Hlo()
    body = hlo.computation("fused")
    hlo.op("x", "parameter", "f32[16]", parameter=0)
    hlo.op("e", "exponential", "f32[16]", ("x",))
    hlo.op("n", "negate", "f32[16]", ("x",))
    hlo.op("both", "tuple", "(f32[16], f32[16])", ("e", "n"))
    hlo.computation("main")
    hlo.op("p0", "parameter", "f32[16]", parameter=0)
    hlo.op("fusion.1", "fusion", "(f32[16], f32[16])", ("p0",), calls=(body,), kind="kLoop")
    cost = cost_of(hlo, "fusion.1")
    assert (cost.flops, cost.bytes) == (32, 64 + 64 + 64)


def test_a_fused_dot_is_a_dot() -> None:
    hlo = Hlo()
    body = hlo.computation("gemm")
    hlo.op("a", "parameter", "bf16[256,512]", parameter=0)
    hlo.op("b", "parameter", "s8[512,64]", parameter=1)
    hlo.op("wide", "convert", "bf16[512,64]", ("b",))
    hlo.op("dot.1", "dot", "bf16[256,64]", ("a", "wide"), dot=dot_dims((1,), (0,)))
    hlo.computation("main")
    hlo.op("p0", "parameter", "bf16[256,512]", parameter=0)
    hlo.op("p1", "parameter", "s8[512,64]", parameter=1)
    hlo.op("gemm_fusion", "fusion", "bf16[256,64]", ("p0", "p1"), calls=(body,), kind="kCustom")
    cost = cost_of(hlo, "gemm_fusion")
    assert (cost.flops, cost.bytes) == (2 * 256 * 512 * 64, 2 * 256 * 512 + 512 * 64 + 2 * 256 * 64)


MOVES = [
    ("copy", "f32[8,4]", ("f32[8,4]",), {}, 4 * 32 * 2),
    ("broadcast", "f32[8,4]", ("f32[4]",), {"dimensions": (1,)}, 4 * 4 + 4 * 32),
    ("pad", "f32[10]", ("f32[8]", "f32[]"), {}, 4 * 10 + 4 * 8 + 4),
    ("slice", "f32[2]", ("f32[8]",), {}, 4 * 2 * 2),
    ("dynamic-slice", "f32[2]", ("f32[8]", "s32[]"), {}, 4 * 2 * 2 + 4),
    ("dynamic-update-slice", "f32[8]", ("f32[8]", "f32[2]", "s32[]"), {}, 4 * 2 * 2 + 4),
    ("gather", "f32[3,16]", ("f32[100,16]", "s32[3]"), {}, 4 * 48 * 2 + 4 * 3),
    ("concatenate", "f32[8]", ("f32[4]", "f32[4]"), {"dimensions": (0,)}, 4 * 8 * 2),
    ("transpose", "f32[4,8]{1,0}", ("f32[8,4]{1,0}",), {"dimensions": (1, 0)}, 4 * 32 * 2),
    ("transpose", "f32[4,8]{0,1}", ("f32[8,4]{1,0}",), {"dimensions": (1, 0)}, 0),
    ("bitcast", "f32[32]", ("f32[8,4]",), {}, 0),
    ("get-tuple-element", "f32[8]", ("(f32[8], f32[4])",), {"index": 0}, 0),
    ("all-gather", "f32[16]", ("f32[4]",), {"groups": ((0, 1, 2, 3),), "dimensions": (0,)}, 4 * 16 + 4 * 4),
    ("all-to-all", "f32[16]", ("f32[16]",), {"groups": ((0, 1),)}, 4 * 16 * 2),
    ("collective-permute", "f32[16]", ("f32[16]",), {}, 4 * 16 * 2),
]


@pytest.mark.parametrize(("opcode", "result", "operands", "rest", "size"), MOVES)
def test_moving_costs_memory_alone(opcode: str, result: str, operands: tuple[str, ...], rest: dict[str, Any], size: int) -> None:
    hlo = entry(*operands)
    hlo.op("op.1", opcode, result, tuple(f"p{i}" for i in range(len(operands))), **rest)
    cost = cost_of(hlo, "op.1")
    assert (cost.flops, cost.bytes) == (0, size)


@pytest.mark.parametrize(("opcode", "flops"), [("add", 32), ("tanh", 32), ("convert", 0), ("compare", 0), ("and", 0)])
def test_arithmetic_is_one_flop_an_element_and_conversion_none(opcode: str, flops: int) -> None:
    hlo = entry("f32[32]", "f32[32]")
    hlo.op("op.1", opcode, "f32[32]", ("p0",) if opcode in ("tanh", "convert") else ("p0", "p1"))
    assert cost_of(hlo, "op.1").flops == flops


def test_a_scatter_combines_its_updates_where_they_go() -> None:
    hlo = Hlo()
    add = binary(hlo, "add")
    hlo.computation("main")
    for i, shape in enumerate(("f32[100,16]", "s32[3]", "f32[3,16]")):
        hlo.op(f"p{i}", "parameter", shape, parameter=i)
    hlo.op("scatter.1", "scatter", "f32[100,16]", ("p0", "p1", "p2"), calls=(add,))
    # Places read and written, updates and indices read; one addition an update.
    assert (cost_of(hlo, "scatter.1").flops, cost_of(hlo, "scatter.1").bytes) == (48, 3 * 4 * 48 + 4 * 3)


def test_an_all_reduce_adds_each_element_once() -> None:
    hlo = Hlo()
    add = binary(hlo, "add", "bf16")
    hlo.computation("main")
    hlo.op("p0", "parameter", "bf16[1024]", parameter=0)
    hlo.op("all-reduce.1", "all-reduce", "bf16[1024]", ("p0",), calls=(add,), groups=((0, 1),))
    assert (cost_of(hlo, "all-reduce.1").flops, cost_of(hlo, "all-reduce.1").bytes) == (1024, 2 * 2 * 1024)


def gemm_config(**rest: object) -> bytes:
    numbers = {
        "lhs_contracting_dimensions": ["1"],
        "rhs_contracting_dimensions": ["0"],
        "lhs_batch_dimensions": [],
        "rhs_batch_dimensions": [],
    }
    return json.dumps({"gemm_backend_config": {"dot_dimension_numbers": numbers, "beta": 0, **rest}}).encode()


@pytest.mark.parametrize("target", ["__cublas$gemm", "__cublas$lt$matmul"])
def test_a_cublas_call_is_a_dot_whose_workspace_is_no_traffic(target: str) -> None:
    hlo = entry("bf16[128,64]", "bf16[64,32]")
    hlo.op("call.1", "custom-call", "(bf16[128,32], s8[4194304])", ("p0", "p1"), target=target, config=gemm_config())
    cost = cost_of(hlo, "call.1")
    assert (cost.flops, cost.bytes) == (2 * 128 * 64 * 32, 2 * (128 * 64 + 64 * 32 + 128 * 32))


def test_xprof_sees_cublaslt_and_not_legacy_cublas() -> None:
    hlo = entry("bf16[128,64]", "bf16[64,32]")
    hlo.op("old", "custom-call", "(bf16[128,32], s8[64])", ("p0", "p1"), target="__cublas$gemm", config=gemm_config())
    hlo.op("new", "custom-call", "(bf16[128,32], s8[64])", ("p0", "p1"), target="__cublas$lt$matmul", config=gemm_config())
    assert (cost_of(hlo, "old", XPROF).flops, cost_of(hlo, "old", XPROF).bytes) == (0, 0)
    assert cost_of(hlo, "new", XPROF).flops == 2 * 128 * 64 * 32


def test_all_directions_of_a_cudnn_convolution_have_the_forward_multiply_adds() -> None:
    image, kernel, output = "f32[2,3,8,8]", "f32[16,3,3,3]", "f32[2,16,8,8]"
    padded = {"size": 3, "low": 1, "high": 1}
    meetings = 8 * 3 - 2
    calls = {
        "__cudnn$convForward": (image, kernel, output),
        "__cudnn$convBackwardInput": (output, kernel, image),
        "__cudnn$convBackwardFilter": (image, output, kernel),
    }
    for target, (lhs, rhs, result) in calls.items():
        hlo = entry(lhs, rhs)
        rest: dict[str, Any] = {"conv": conv_dims_nchw(), "window": window(padded, padded), "target": target}
        hlo.op("conv", "custom-call", f"({result}, u8[0])", ("p0", "p1"), **rest)
        assert cost_of(hlo, "conv").flops == 2 * 2 * 3 * 16 * meetings * meetings, target


def te_config(mask: int, queries: int = 256, keys: int = 256) -> bytes:
    attributes = f"attn_heads = 16 : i64, input_batch = 2 : i64, kv_max_seqlen = {keys} : i64, mask_type = {mask} : i64, "
    attributes += f"num_gqa_groups = 16 : i64, q_max_seqlen = {queries} : i64, qk_head_dim = 128 : i64, v_head_dim = 64 : i64, "
    return f"{{{attributes}scaling_factor = 8.838835e-02 : f64, window_size_left = -1 : i64}}".encode()


@pytest.mark.parametrize(
    ("mask", "queries", "keys", "pairs"),
    [
        (0, 256, 256, 256 * 256),
        (2, 256, 256, 256 * 257 // 2),  # causal, top left
        (2, 128, 256, 128 * 129 // 2),
        (4, 128, 256, 128 * 256 - 128 * 127 // 2),  # causal, bottom right
    ],
)
def test_fused_attention_counts_visible_pairs(mask: int, queries: int, keys: int, pairs: int) -> None:
    hlo = entry("bf16[2,256,3,16,128]")
    for direction, factor in (("forward", 1.0), ("backward", 2.5)):
        hlo.op(
            direction,
            "custom-call",
            "(bf16[2,256,16,64], u8[512])",
            ("p0",),
            target=f"te_fused_attn_{direction}_ffi",
            config=te_config(mask, queries, keys),
        )
        assert cost_of(hlo, direction).flops == factor * 2 * (2 * 16 * pairs) * (128 + 64)
        assert cost_of(hlo, direction).bytes == 2 * (2 * 256 * 3 * 16 * 128) + 2 * (2 * 256 * 16 * 64)


def test_cudnn_attention_is_two_products_over_the_scores() -> None:
    hlo = entry("bf16[2,16,128,64]", "bf16[2,16,128,64]", "bf16[2,16,128,64]")
    numbers = {"lhs_contracting_dimensions": ["3"], "rhs_contracting_dimensions": ["3"]}
    config = {
        "cudnn_fmha_backend_config": {
            "bmm1_dot_dimension_numbers": numbers,
            "intermediate_tensor_shape": {"element_type": "BF16", "dimensions": ["2", "16", "128", "128"]},
            "mask_type": "CAUSAL",
        }
    }
    result = "(bf16[2,16,128,64], u8[64])"
    hlo.op("fmha", "custom-call", result, ("p0", "p1", "p2"), target="__cudnn$fmhaSoftmax", config=json.dumps(config).encode())
    assert cost_of(hlo, "fmha").flops == 2 * (2 * 16 * 128 * 129 // 2) * (64 + 64)


def test_a_custom_call_without_a_rule_is_unknown_and_named() -> None:
    hlo = entry("f32[8]")
    hlo.op("mine", "custom-call", "f32[8]", ("p0",), target="my_kernel")
    module = module_of(hlo)
    analysis = CostAnalysis(module, OURS)
    cost = analysis.of(module.by_name["mine"])
    assert cost is not None
    assert (cost.flops, cost.bytes) == (None, None)
    assert analysis.unknown == {"custom-call my_kernel": 1}


def test_an_opcode_without_a_rule_makes_its_callers_unknown() -> None:
    hlo = Hlo()
    body = hlo.computation("body")
    hlo.op("x", "parameter", "f32[8]", parameter=0)
    hlo.op("strange", "from-the-future", "f32[8]", ("x",))
    hlo.computation("main")
    hlo.op("p0", "parameter", "f32[8]", parameter=0)
    hlo.op("call.1", "call", "f32[8]", ("p0",), calls=(body,))
    assert cost_of(hlo, "call.1").flops is None
    assert CostAnalysis(module_of(hlo), OURS).unknown == {"from-the-future": 1}


def test_a_conditional_costs_its_costliest_branch() -> None:
    hlo = Hlo()
    branches = []
    for name, opcodes in (("cheap", ("copy",)), ("dear", ("add", "multiply"))):
        branches.append(hlo.computation(name))
        last = hlo.op(f"{name}_x", "parameter", "f32[8]", parameter=0)
        for opcode in opcodes:
            last = hlo.op(f"{name}_{opcode}", opcode, "f32[8]", (last,) if opcode == "copy" else (last, last))
    hlo.computation("main")
    hlo.op("which", "parameter", "s32[]", parameter=0)
    hlo.op("p1", "parameter", "f32[8]", parameter=1)
    hlo.op("conditional.1", "conditional", "f32[8]", ("which", "p1", "p1"), calls=tuple(branches))
    assert cost_of(hlo, "conditional.1").flops == 16


@pytest.mark.parametrize(("layout", "size"), [("{1,0:E(4)}", 8), ("{1,0}", 15)])
def test_four_bit_elements_are_packed_where_the_layout_says_so(layout: str, size: int) -> None:
    hlo = entry(f"s4[3,5]{layout}")
    hlo.op("copy.1", "copy", f"s4[3,5]{layout}", ("p0",))
    assert cost_of(hlo, "copy.1").bytes == 2 * size  # 15 elements


COLLECTIVES = [
    ("all-gather", "bf16[4096]", {}, 0, 2048 * (4 + 7)),
    ("all-gather-start", "(bf16[1024], bf16[4096])", {}, 0, 2048 * (4 + 7)),
    ("reduce-scatter", "bf16[256]", {"calls": True}, 3 * 256, 512 * (4 + 7)),
    ("all-reduce", "bf16[1024]", {"calls": True}, 3 * 1024, 2 * 2048),
    ("all-reduce-start", "bf16[1024]", {"calls": True}, 3 * 1024, 2048),
    ("collective-permute", "bf16[1024]", {}, 0, 2 * 2048),
]


@pytest.mark.parametrize(("opcode", "result", "rest", "flops", "size"), COLLECTIVES)
def test_xprofs_costs_of_collectives(opcode: str, result: str, rest: dict[str, Any], flops: int, size: int) -> None:
    """Of 1,024 elements a rank among four, as XProf 2.24.2 gives them: a gather's ring moves a part 4 + 7 times."""
    hlo = Hlo()
    add = binary(hlo, "add", "bf16")
    hlo.computation("main")
    hlo.op("p0", "parameter", "bf16[1024]", parameter=0)
    hlo.op("one", opcode, result, ("p0",), calls=(add,) if rest else (), groups=((0, 1, 2, 3),), dimensions=(0,))
    cost = cost_of(hlo, "one", XPROF)
    assert (cost.flops, cost.bytes) == (flops, size)


def test_a_collective_that_starts_writes_its_result_alone() -> None:
    hlo = entry("bf16[1024]")
    hlo.op("start", "all-gather-start", "(bf16[1024], bf16[4096])", ("p0",), groups=((0, 1, 2, 3),), dimensions=(0,))
    hlo.op("copy", "copy-start", "(bf16[1024], bf16[1024], u32[])", ("p0",))
    assert cost_of(hlo, "start").bytes == 2048 + 8192
    assert cost_of(hlo, "copy").bytes == 2 * 2048


@pytest.mark.parametrize(
    ("opcode", "dtype", "cycles"),
    [
        ("cbrt", "f64", 6339),
        ("power", "f16", 975),
        ("divide", "s8", 370),
        ("divide", "f32", 3),
        ("log", "bf16", 3),
        ("bitcast-convert", "f32", 3),
    ],
)
def test_xprof_counts_an_elements_cycles(opcode: str, dtype: str, cycles: int) -> None:
    hlo = entry(f"{dtype}[32]", f"{dtype}[32]")
    hlo.op("op.1", opcode, f"{dtype}[32]", ("p0", "p1") if opcode in ("power", "divide") else ("p0",))
    assert cost_of(hlo, "op.1", XPROF).flops == 32 * cycles


@pytest.mark.parametrize("rules", [OURS, XPROF])
def test_all_arrays_of_a_result_are_written(rules: Rules) -> None:
    hlo = entry("u64[2]")
    hlo.op("op.1", "rng-bit-generator", "(u64[2], u32[64,32])", ("p0",))
    assert cost_of(hlo, "op.1", rules).bytes == 16 + 16 + 4 * 64 * 32


@pytest.mark.parametrize(("first", "cycles"), [(32, 6), (33, 400)])
def test_xprof_charges_a_concatenation_by_its_first_operand(first: int, cycles: int) -> None:
    hlo = entry(f"f32[64,{first}]", "f32[64,7]")
    hlo.op("op.1", "concatenate", f"f32[64,{first + 7}]", ("p0", "p1"), dimensions=(1,))
    assert cost_of(hlo, "op.1", XPROF).flops == 64 * (first + 7) * cycles
