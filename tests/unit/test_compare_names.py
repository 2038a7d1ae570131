"""Which names of two builds are one row of a comparison."""

from __future__ import annotations

import pytest

from roofterm.analysis.compare_names import host_key, kernel_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
            "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_32x5_tn",
        ),
        ("volta_sgemm_128x64_tn", "volta_sgemm_32x32_tn"),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(Params)",
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_64x6_tn_align8>(Params)",
        ),
        (
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        ),
        (
            "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x64_MI16x16x1_SN_LDSB1",
            "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x512_MI16x16x1_SN_LDSB1",
        ),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NTN", "nvjet_tst_64x256_64x5_1x2_v_bz_coopA_NTN"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)",
            "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)",
        ),
        ("triton_poi_fused_silu_30", "triton_poi_fused_silu_2"),
    ],
)
def test_tuning_does_not_keep_kernels_apart(one: str, other: str):
    assert kernel_key(one) == kernel_key(other)
    assert kernel_key(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("volta_sgemm_128x64_tn", "volta_sgemm_128x64_nn"),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn", "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_tn"),
        ("triton_poi_fused_silu_2", "triton_poi_fused_gelu_2"),
        ("fusion.12", "fusion.13"),
        ("loop_add_fusion_3", "loop_add_fusion_4"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)",
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>, std::array<char*, 3ul> >(int)",
        ),
    ],
)
def test_what_is_computed_keeps_them_apart(one: str, other: str):
    assert kernel_key(one) != kernel_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("torch/nn/modules/module.py(1743): _call_impl", "torch/nn/modules/module.py(1755): _call_impl"),
        ("<built-in method linear of type object at 0x7d6af4f5f4e0>", "<built-in method linear of type object at 0x7f00>"),
        ("cudaLaunchKernelExC", "hipLaunchKernel"),
        (
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        ),
    ],
)
def test_lines_addresses_and_vendors_do_not_keep_host_ops_apart(one: str, other: str):
    assert host_key(one) == host_key(other)


def test_other_host_ops_keep_their_names():
    assert [host_key(name) for name in ("aten::mm", "cuda kernel time", "hipster")] == ["aten::mm", "cuda kernel time", "hipster"]
