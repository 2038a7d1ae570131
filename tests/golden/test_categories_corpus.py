"""What the kernels of real traces are: by kernel time, nearly all must be told; what is not stands here with the reason."""

from __future__ import annotations

from functools import lru_cache

import polars as pl
import pytest

from roofterm.analysis.categories import TITLES, Category, kernel_facts, short_name
from roofterm.analysis.categories.short import WIDTH
from roofterm_parsers import open_profile
from roofterm_parsers.profile import Profile
from tests.reference import reference

TORCH = (
    "hta_a100_2gpu_resnet_nccl_meta.json.gz",
    "hta_a100_alexnet_critical_path.json.gz",
    "hta_a100_event_sync.json.gz",
    "hta_a100_event_sync_multi_stream.json.gz",
    "hta_a100_execution_trace_pair_kineto.json.gz",
    "hta_a100_rank3of8_train.json.gz",
    "hta_a100_simple_add_critical_path_overlaid.json.gz",
    "hta_a100_triton_torch_compiled_region.json.gz",
    "hta_gp100_gpu_user_annotation.json.gz",
    "hta_inference_rank1_old_schema.json.gz",
    "hta_mi250_minitoy_rocm62.json.gz",
    "hta_sampled_rank0of128.json.gz",
    "hta_sampled_rank1of128.json.gz",
    "hta_v100_resnet_ns_absolute_ts.pt.trace.json.gz",
    "kineto_gpu_metrics_expected.json.gz",
    "kineto_gpu_metrics_input.json.gz",
    "kineto_v100_resnet50_2021_list.pt.trace.json.gz",
    "kineto_v100_resnet50_2021_workers0.pt.trace.json.gz",
    "kineto_v100_resnet50_2021_workers4.pt.trace.json.gz",
    "param_2080ti_resnet.json.gz",
    "param_v100_dlrm_8ranks",
    "tracelens_h100_bert_small.json.gz",
    "tracelens_h100_qwen05b_chat.json.gz",
    "tracelens_h100_timesformer.json.gz",
    "tracelens_mi210_gpu_only.json.gz",
    "tracelens_mi300_vllm_prefilldecode_piecewise.json.gz",
    "tracelens_mi300x_bert_small.json.gz",
    "tracelens_mi300x_normalization_ops.json.gz",
    "tracelens_mi300x_owlv2.json.gz",
    "tracelens_mi300x_qwen05b_chat.json.gz",
    "tracelens_mi300x_resnet_act_ckpt_rank0of8.json.gz",
    "tracelens_mi300x_sglang_graph_capture_bs32.json.gz",
    "tracelens_mi300x_sglang_qwen3_8b_decode.json.gz",
    "tracelens_mi300x_sglang_qwen3_8b_prefilldecode.json.gz",
    "tracelens_mi300x_torch_compile_triton.json.gz",
    "tracelens_mi300x_xdit_flux1_aiter.json.gz",
)
WITHOUT_KERNELS = ("hta_a100_cupti_profiler_range.json.gz", "hta_cpu_only_gloo_rank34.pt.trace.json.gz")
XPLANE = (
    "gpu_mi300x_jax_attention",
    "gpu_mi300x_jax_conv",
    "gpu_mi300x_jax_conv_legacy",
    "gpu_mi300x_jax_elementwise",
    "gpu_mi300x_jax_gemm",
    "gpu_mi355x_jax_te_fused_attn",
    "gpu_v100x8_tf_multiworker",
    "tpu_v6e_inference",
    "tpu_v6e_pallas_matmul",
)

UNTOLD = {
    # kernel: why nothing can tell what it computes
    "merge": "MTIA's events name phases of the hardware, not what is computed",
    "pe_exe": "MTIA: a run of the processing elements",
    "remote": "MTIA: a transfer or an execution elsewhere, which is not said",
}

CLASSIFIED_PCT = 98.0
GEMM_DTYPE_PCT = 95.0


@lru_cache(maxsize=1)
def opened(name: str) -> Profile:
    return open_profile(str(reference(name)), cache=False)


def timed_facts(name: str) -> pl.DataFrame:
    """Facts of all work with its time and its kernel's name."""
    profile = opened(name)
    facts = kernel_facts(profile)
    return facts.with_columns(
        time_ps=profile.slices["dur_ps"].gather(facts["slice"]),
        text=profile.names["text"].gather(profile.slices["name"].gather(facts["slice"])),
    )


def share(part: pl.DataFrame, whole: pl.DataFrame) -> float:
    total = int(whole["time_ps"].sum())
    return 100.0 if total == 0 else 100 * int(part["time_ps"].sum()) / total


@pytest.mark.parametrize("name", [*(f"traces/torch/{trace}" for trace in TORCH), *(f"traces/xplane/{trace}.xplane.pb" for trace in XPLANE)])
def test_kernel_time_is_classified_and_gemms_have_their_type(name: str) -> None:
    facts = timed_facts(name)
    assert facts.height > 0
    told = facts.filter(pl.col("category") != int(Category.OTHER))
    assert share(told, facts) >= CLASSIFIED_PCT
    gemm = facts.filter(pl.col("category") == int(Category.GEMM))
    assert share(gemm.filter(pl.col("dtype").is_not_null()), gemm) >= GEMM_DTYPE_PCT
    assert facts["evidence"].null_count() == 0


def test_the_rest_has_a_reason() -> None:
    facts = timed_facts("traces/torch/hta_mtia_inference_rank0.json.gz")
    untold = facts.filter(pl.col("category") == int(Category.OTHER))
    assert set(untold["text"]) == set(UNTOLD)


@pytest.mark.parametrize("name", WITHOUT_KERNELS)
def test_traces_without_kernels_have_no_facts(name: str) -> None:
    assert kernel_facts(opened(f"traces/torch/{name}")).height == 0


# Read in the files: a kernel, and what its op, its arguments and its name say (the broadcast of 20 numbers is of type Long).
SEEN = [
    ("tracelens_mi300x_owlv2", "Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x32", {("gemm", "bf16", True)}),
    ("tracelens_h100_qwen05b_chat", "void pytorch_flash::flash_fwd_kernel", {("attention", "bf16", True)}),
    ("tracelens_h100_timesformer", "void (anonymous namespace)::softmax_warp_forward", {("softmax", "bf16", False)}),
    ("kineto_v100_resnet50_2021_workers0.pt", "volta_scudnn_128x64_relu_interior_nn_v1", {("conv", "fp32", False)}),
    ("hta_a100_rank3of8_train", "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_", {("gemm", "tf32", True)}),
    (
        "tracelens_mi300x_resnet_act_ckpt_rank0of8",
        "ncclDevKernel_Generic",
        {("communication", "bf16", False), ("communication", "int64", False)},
    ),
    ("tracelens_mi300_vllm_prefilldecode_piecewise", "_matmul_ogs_NNT_bf16xbf16xmxfp4", {("moe", "bf16", True)}),
    ("tracelens_mi300x_sglang_qwen3_8b_prefilldecode", "_ZN5aiter24add_rmsnorm_quant_kernel", {("norm", "bf16", False)}),
]


@pytest.mark.parametrize(("trace", "kernel", "wanted"), SEEN)
def test_what_some_kernels_are(trace: str, kernel: str, wanted: set[tuple[str, str, bool]]) -> None:
    name = f"traces/torch/{trace}.json.gz" if not trace.endswith(".pt") else f"traces/torch/{trace}.trace.json.gz"
    rows = timed_facts(name).filter(pl.col("text").str.starts_with(kernel)).drop_nulls("dtype")
    got = rows.select("category", "dtype", "tensor_core").unique()
    assert {(TITLES[category], dtype, tensor_core) for category, dtype, tensor_core in got.iter_rows()} == wanted


@pytest.mark.parametrize("name", ["traces/torch/hta_sampled_rank0of128.json.gz", "traces/torch/tracelens_mi300x_xdit_flux1_aiter.json.gz"])
def test_short_names_of_real_kernels(name: str) -> None:
    for text in timed_facts(name)["text"].unique():
        short = short_name(text)
        assert 0 < len(short) <= WIDTH
        assert short.isprintable()
        assert not short.startswith(("void ", "_Z", "at::native"))
