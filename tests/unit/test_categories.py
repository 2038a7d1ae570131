"""Categories, types and short names, on names and launches made by hand."""

from __future__ import annotations

import polars as pl
import pytest

from roofterm.analysis.categories import (
    DEVICE_CATEGORIES,
    HOST_CATEGORIES,
    TITLES,
    Category,
    classify,
    from_title,
    is_communication,
    kernel_facts,
    op_category,
    short_name,
)
from roofterm.analysis.categories.hlo import hlo_category_of, hlo_dtype
from roofterm.analysis.categories.kernel_names import classify_texts
from roofterm.analysis.categories.short import WIDTH
from roofterm_parsers.profile import Kind, Source
from roofterm_parsers.xplane.reader import read
from tests.build import Build
from tests.xspace import Plane, space, tpu_plane

BF16 = '["c10::BFloat16","c10::BFloat16"]'
FP32 = '["float","float"]'
MM = "[[64,64],[64,64]]"
TENSILE_BF16 = "Cijk_Ailk_Bljk_BBS_BH_MT64x64x64_MI16x16x16x1_SN"


def test_every_device_category_has_a_letter_of_its_own() -> None:
    letters = [category.letter for category in DEVICE_CATEGORIES]
    assert len(set(letters)) == len(letters)
    assert all(len(letter) == 1 and letter.islower() for letter in letters)


def test_titles_lead_back_to_their_category() -> None:
    for category in Category:
        assert TITLES[category] == category.title
        assert from_title(category.title.upper().replace("_", "-")) is category
    assert from_title("no such thing") is None


def test_every_kind_of_slice_that_is_no_work_has_a_category() -> None:
    assert set(HOST_CATEGORIES) == set(Kind) - {Kind.KERNEL, Kind.COPY, Kind.MEMSET}


KERNELS = [
    # name, category, type, tensor cores; what each name says is in reference/roofline.md 5.3
    ("nvjet_tst_256x128_64x4_v_bz_TNT", "gemm", "bf16", True),
    ("nvjet_sm90_hsh_128x256_64x4_2x1_v_bz_TNN", "gemm", "fp16", True),
    ("nvjet_qqtst_128x256_128x6_2x1_v_bz_TNT", "gemm", "fp8", True),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute", "gemm", "bf16", True),
    ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3", "gemm", "fp32", False),
    ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_tn", "gemm", "fp16", True),
    ("ampere_bf16_s1688gemm_bf16_128x128_ldg8_f2f_tn", "gemm", "bf16", True),
    ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1>(Params)", "gemm", "tf32", True),
    ("volta_sgemm_64x64_nt", "gemm", "fp32", False),
    ("volta_h884gemm_256x64_ldg8_tn", "gemm", "fp16", True),
    ("void splitKreduce_kernel<32, 16, int, float, float>(cublasSplitKParams<float>)", "gemm", "fp32", False),
    (TENSILE_BF16, "gemm", "bf16", True),
    ("Cijk_Ailk_Bjlk_SB_Bias_AS_SAV_UserArgs_MT64x16x16_MI16x16x1", "gemm", "fp32", True),
    ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16", "conv", "tf32", True),
    ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(Params<float, float>)", "conv", "fp32", False),
    ("cudnn_volta_scudnn_128x64_relu_xregs_large_nn_v1", "conv", "fp32", False),
    ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32", "conv", "bf16", True),
    ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, cutlass::bfloat16_t>>", "attention", "bf16", True),
    ("fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention)", "attention", "fp16", True),
    ("void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16>(__hip_bfloat16 const*)", "kv_cache", "bf16", None),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1", "moe", "bf16", True),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication", "bf16", None),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(RankData*)", "communication", "bf16", None),
    ("void deep_ep::internode_ll::dispatch<true, false, 7168>(void*)", "communication", None, None),
    ("Memcpy HtoD (Pageable -> Device)", "copy", None, None),
    ("__amd_rocclr_copyBuffer", "copy", None, None),
    ("Memset (Device)", "memset", None, None),
    ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(nchw2nhwc_params_t<float>)", "layout", "fp32", False),
    ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>(int)", "norm", "fp16", None),
    ("void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 9, false>", "softmax", "bf16", None),
    ("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>", "optimizer", "fp32", None),
    ("void rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "rope", "bf16", None),
    ("void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>", "embedding", "fp32", None),
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>>>", "reduction", "fp32", None),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>>", "elementwise", "fp16", None),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, Array<char*, 1>>", "fill", "fp32", None),
    ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)", "copy", "fp32", None),
    ("void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int)", "pooling", "fp32", None),
    ("void at::native::(anonymous namespace)::upsample_nearest2d_out_frame<float>", "pooling", "fp32", None),
    ("void cub::DeviceRadixSortOnesweepKernel<Policy, false, long, int, int, int>(int*)", "sort", None, None),
    ("void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>", "rng", "fp32", None),
    ("triton_poi_fused_addmm_gelu_view_18", "fused_elementwise", None, False),
    ("triton_red_fused_add_native_layer_norm_5", "fused_reduction", None, False),
    ("triton_tem_fused_addmm_gelu_3", "gemm", None, True),
    ("loop_convert_fusion.kd", "fused_elementwise", None, None),
    ("input_reduce_fusion_1", "fused_reduction", None, None),
    ("gemm_fusion_dot_general_1", "gemm", None, True),
    ("my_secret_kernel", "other", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "category", "dtype", "tensor_core"), KERNELS)
def test_what_a_kernels_name_tells(name: str, category: str, dtype: str | None, tensor_core: bool | None) -> None:
    row = classify(pl.DataFrame({"text": [name], "cat": ["kernel"]})).row(0, named=True)
    assert (TITLES[row["category"]], row["dtype"]) == (category, dtype)
    if Category(row["category"]) in (Category.GEMM, Category.CONV, Category.ATTENTION, Category.MOE):
        assert row["tensor_core"] is tensor_core


def test_names_of_the_host_are_not_read_as_kernels() -> None:
    texts, cats = ["gemm.py(12): softmax", "aten::mm", "ncclAllReduce"], ["python_function", "cpu_op", "cuda_runtime"]
    names = pl.DataFrame({"text": texts, "cat": cats})
    assert classify(names)["category"].to_list() == [int(Category.OTHER)] * 3


def test_collectives_are_told_from_look_alikes() -> None:
    assert is_communication("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
    assert is_communication("void multimem_all_reduce_kernel<float>")
    assert not is_communication("void at::native::reduce_kernel<512, 1>")
    assert not is_communication("hipMemcpyAsync")


def test_a_copying_kernel_tells_at_least_the_size_of_its_elements() -> None:
    names = pl.Series(["void CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int>", "vectorized_kernel<float>", "merge"])
    assert classify_texts(names)["stored"].to_list() == ["2byte", "fp32", None]


@pytest.mark.parametrize(
    ("op", "category"),
    [
        ("aten::addmm", Category.GEMM),
        ("aten::_scaled_mm", Category.GEMM),
        ("aten::cudnn_convolution", Category.CONV),
        ("aten::convolution_backward", Category.CONV),
        ("aten::_flash_attention_forward", Category.ATTENTION),
        ("vllm::unified_attention_with_output", Category.ATTENTION),
        ("_C_cache_ops::reshape_and_cache_flash", Category.KV_CACHE),
        ("_C::fused_add_rms_norm", Category.NORM),
        ("aten::native_layer_norm_backward", Category.NORM),
        ("aten::_foreach_add_", Category.OPTIMIZER),
        ("aten::_foreach_copy_", Category.COPY),
        ("aten::add_", Category.ELEMENTWISE),
        ("aten::threshold_backward", Category.ELEMENTWISE),
        ("aten::copy_", Category.COPY),
        ("aten::index_select", Category.EMBEDDING),
        ("record_param_comms", Category.COMMUNICATION),
        ("Torch-Compiled Region: 0/0", None),
        ("autograd::engine::evaluate_function: MmBackward0", None),
    ],
)
def test_what_an_ops_name_tells(op: str, category: Category | None) -> None:
    assert op_category(op) is category


SHORT = [
    ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>, Array<char*, 3> >(int, x)",
     "vectorized_elementwise add<Half>"),
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>, unsigned int> >(x)",
     "reduce mean<float>"),
    ("void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)"
     "::{lambda()#3}::operator()() const::{lambda(c10::BFloat16)#1}> >(int)", "elementwise direct_copy<BFloat16>"),
    ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_32x1_nn_align8>(P)",
     "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf..32x1_nn_align8"),  # 44 characters, "..", 14
    ("_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i",
     "act_and_mul_kernel<BFloat16>"),
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN", "Cijk BBS Alik Bljk MT128x256x32"),
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ncclKernel_AllReduce_RING_LL_Sum_float"),
    ("Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH (Device -> Pageable)"),
    ("loop_convert_fusion.kd", "loop_convert_fusion"),
    ("autograd::engine::evaluate_function: MmBackward0", "autograd::engine::evaluate_function: MmBackward0"),
    ("model.py(12): forward", "model.py(12): forward"),
    ("", "(no name)"),
    ("   ", "(no name)"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "short"), SHORT)
def test_short_names(name: str, short: str) -> None:
    assert short_name(name) == short
    assert len(short) <= WIDTH


ODD = ["<", ">", "((((", "a<b<c", "_Z", "_ZN", "_ZN99x", "void", "void <", "Cijk_", "x" * 5000, "f<" * 400, "std::enable_if<", "::<>::("]
ODD += ["_Z" + "9" * 5000, "a<>::" * 3000]


@pytest.mark.parametrize("name", ODD)
def test_a_short_name_of_anything(name: str) -> None:
    assert 0 < len(short_name(name)) <= WIDTH


def facts_of(build: Build) -> dict[str, tuple[str, str | None, bool | None, str]]:
    profile = build.profile()
    facts = kernel_facts(profile)
    names = profile.names["text"].gather(profile.slices["name"].gather(facts["slice"])).to_list()
    told = facts.select("category", "dtype", "tensor_core", "evidence")
    return {
        name: (TITLES[category], dtype, tensor_core, evidence)
        for name, (category, dtype, tensor_core, evidence) in zip(names, told.iter_rows(), strict=True)
    }


def test_the_launching_op_comes_before_the_kernels_name() -> None:
    build = Build()
    conv = build.host("aten::cudnn_convolution", 0, 20, dims="[[1,64,8,8],[64,64,3,3]]", types=BF16)
    call = build.call(5, 5)
    # MIOpen lowers a convolution to a Tensile GEMM: the op says what it is.
    build.kernel(TENSILE_BF16, 30, 10, launch=call, op=conv)
    assert facts_of(build)[TENSILE_BF16] == ("conv", "bf16", True, "op")


def test_helpers_keep_their_own_category() -> None:
    build = Build()
    conv = build.host("aten::cudnn_convolution", 0, 20, dims="[[1,64,8,8],[64,64,3,3]]", types=FP32)
    call = build.call(5, 5)
    build.kernel("void nchwToNhwcKernel<float, float>(int)", 30, 10, launch=call, op=conv)
    build.kernel("Memset (Device)", 40, 1, launch=call, op=conv, kind=Kind.MEMSET)
    facts = facts_of(build)
    assert facts["void nchwToNhwcKernel<float, float>(int)"] == ("layout", "fp32", False, "name")
    assert facts["Memset (Device)"] == ("memset", None, False, "args")


def test_a_name_refines_the_type_that_the_op_states() -> None:
    build = Build()
    for start, name in ((0, "cutlass_80_tensorop_s1688gemm_128x64"), (50, "ampere_sgemm_128x64_nn")):
        op = build.host("aten::mm", start, 20, dims=MM, types=FP32)
        build.kernel(name, start + 30, 10, launch=build.call(start + 5, 5), op=op)
    facts = facts_of(build)
    assert facts["cutlass_80_tensorop_s1688gemm_128x64"] == ("gemm", "tf32", True, "op")
    assert facts["ampere_sgemm_128x64_nn"] == ("gemm", "fp32", False, "op")


def test_without_an_op_the_name_decides() -> None:
    build = Build()
    build.kernel("nvjet_tst_128x64", 0, 10)
    assert facts_of(build)["nvjet_tst_128x64"] == ("gemm", "bf16", True, "name")


def test_a_collectives_arguments_come_before_names() -> None:
    build = Build()
    build.kernel("a_kernel_of_an_unknown_library", 0, 10)
    profile = build.profile()
    profile.collectives = pl.DataFrame(
        [{"slice": 0, "collective": "allreduce", "dtype": "BFloat16", "in_elements": 8, "out_elements": 8, "group_size": 2}],
        schema=profile.collectives.schema,
    )
    row = kernel_facts(profile).row(0, named=True)
    assert (TITLES[row["category"]], row["dtype"], row["evidence"]) == ("communication", "bf16", "args")


def test_a_profile_without_work_has_no_facts() -> None:
    build = Build()
    build.host("aten::mm", 0, 10)
    assert kernel_facts(build.profile()).height == 0


@pytest.mark.parametrize(
    ("category", "name", "text", "framework_op", "wanted"),
    [
        ("convolution fusion", "fusion.1", "%fusion.1 = bf16[8,8] fusion(...)", "jit(f)/dot_general", Category.GEMM),
        ("convolution", "convolution.2", "%convolution.2 = convolution(...)", "jit(f)/conv_general_dilated", Category.CONV),
        ("loop fusion", "add_fusion", None, None, Category.FUSED_ELEMENTWISE),
        ("loop fusion", "input_transpose_fusion", None, None, Category.LAYOUT),
        ("all-reduce fusion", "fusion.3", None, None, Category.COMMUNICATION),
        ("all-gather-start", "all-gather-start.1", None, None, Category.COMMUNICATION),
        ("copy-done", "copy-done.4", None, None, Category.COPY),
        ("outfeed", "outfeed.1", None, None, Category.HOST_IO),
        ("while", "while.2", None, None, Category.CONTROL),
        ("custom-call", "te_fused_attn_forward_ffi.10", None, None, Category.ATTENTION),
        ("custom-call", "custom-call.1", "custom_call_target=__cublas$gemm", None, Category.GEMM),
        ("custom-call", "my_call.1", "custom_call_target=foo", None, None),
        (None, None, None, "bert/self_attention/Einsum:Einsum", Category.GEMM),
        (None, None, None, "bert/self_attention/dropout:RandomUniform", None),
    ],
)
def test_categories_of_hlo(
    category: str | None, name: str | None, text: str | None, framework_op: str | None, wanted: Category | None
) -> None:
    assert hlo_category_of(category, name, text, framework_op) is wanted


def test_types_of_hlo() -> None:
    assert hlo_dtype(None, "%fusion.1 = (bf16[8,128]{1,0}, f32[8]) fusion(...)") == "bf16"
    assert hlo_dtype("f8e4m3fn", None) == "fp8"
    assert hlo_dtype(None, None) is None


def test_the_unit_of_an_op_of_a_tpu_is_unknown() -> None:
    """Its matrix and vector units work side by side in one op: neither yes nor no is told."""
    build = Build(format="xplane", device_name="TPU v6 lite", device_kind="tpu")
    build.kernel("fusion.1", 0, 10)
    build.kernel("ampere_bf16_s16816gemm", 10, 10)
    assert [told[2] for told in facts_of(build).values()] == [None, None]


def test_one_name_on_devices_of_several_kinds_is_told_for_each() -> None:
    tpu, gpu = tpu_plane(), Plane("/device:GPU:0")
    tpu.line("XLA Ops", [tpu.event("k", 0, 10), tpu.event("k", 20, 10)])
    gpu.line("Stream #1", [gpu.event("k", 0, 10)])
    profile = read(space(tpu, gpu), Source("t.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False)
    assert kernel_facts(profile)["tensor_core"].to_list() == [None, None, False]
