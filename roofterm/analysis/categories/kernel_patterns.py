"""The patterns by which kernels' names tell what they do.

They began as the table of public detectors (TraceLens' classes, HTA's and vLLM's regexes; the naming of cuBLAS, cuDNN,
Tensile, CK, NCCL, Triton and XLA) and were fitted to the names of real traces; the tests run them over all of those.

Each rule holds alternatives separated by blanks (a blank itself is written \\s), in Rust's regex syntax, read with respect
to letter case unless they begin with (?i). Rules are tried in order: the first that fits decides.
"""

from __future__ import annotations

import re

from roofterm.analysis.categories.kinds import Category

_C = Category


def alternatives(words: str) -> str:
    """One regular expression of alternatives separated by blanks."""
    flag, *rest = words.split()
    return _ascii(flag + "|".join(rest) if flag == "(?i)" else "|".join([flag, *rest]))


_ASCII = {r"\w": "0-9A-Za-z_", r"\d": "0-9", r"\s": r" \t\n\v\f\r"}


def _ascii(pattern: str) -> str:
    r"""The pattern with \w, \d and \s of ASCII: names of kernels are, and the letters of all scripts make half the cost of a pattern."""
    parts, inside = [], False
    for part in re.findall(r"\\.|[^\\]", pattern):
        inside = part == "[" or (inside and part != "]")
        known = _ASCII.get(part)
        parts.append(part if known is None else known if inside else f"[{known}]")
    return "".join(parts)


CATEGORY_PATTERNS: tuple[tuple[Category, str], ...] = (
    # Communication: NCCL, RCCL, MSCCL, custom all-reduce, NVSHMEM, DeepEP, XLA
    (_C.COMMUNICATION, r"(?i) ^(void\s)?(nccl|rccl) ncclDevKernel ncclKernel rcclGenericKernel msccl nvshmem rocshmem"),
    (
        _C.COMMUNICATION,
        r"""
        cross_device_reduce_ multimem_all_reduce allreduce_fusion lamport (two|one)_?shot_?all_?reduce [Aa]ll_?[Rr]educe_?kernel
        """,
    ),
    (_C.COMMUNICATION, r"deep_ep:: intranode:: internode(_ll)?:: quickreduce custom_all_?reduce"),
    (
        _C.COMMUNICATION,
        r"""
        ^(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all)(-start|-done)?[.\d]*$
        ^(collective-permute|collective-broadcast|send|recv)(-start|-done)?[.\d]*$
        """,
    ),
    (_C.COMMUNICATION, r"all_reduce_perf oneccl sycl.*allreduce hcom_ hccl"),
    # Copies and fills
    (
        _C.COPY,
        r"""
        ^\[?(Memcpy|CUDA\smemcpy|hipMemcpy|CopyDeviceToDevice|CopyHostTo|CopyDeviceToHost)
        ^\[?(MemcpyD2H|MemcpyH2D|MemcpyD2D|MemcpyP2P|zeCommandListAppendMemoryCopy)
        """,
    ),
    (_C.COPY, r"__amd_rocclr_copyBuffer ^dma_request ^copy(-start|-done)?[.\d]*$ ^wrapped_copy"),
    (_C.MEMSET, r"^\[?(Memset|CUDA\smemset|hipMemset|zeCommandListAppendMemoryFill) __amd_rocclr_fillBuffer"),
    # Fusions name what they hold, so they come before the rules for those words
    (
        _C.FUSED_ELEMENTWISE,
        r"""
        triton_poi_ ^loop_\w*fusion
        ^wrapped_(add|subtract|multiply|divide|convert|maximum|minimum|select|exponential|log|negate|compare)
        ^wrapped_(tanh|and|or|not|sqrt|rsqrt|power|abs|sine|cosine)
        """,
    ),
    (
        _C.FUSED_REDUCTION,
        r"""
        triton_(red|per)_ ^input_reduce ^input_\w*reduce\w*fusion ^row_reduce ^column_reduce ^wrapped_reduce
        """,
    ),
    (_C.FUSED_ELEMENTWISE, r"triton_(for|split_scan)_"),
    (_C.ROPE, r"(?i) rotary rope_ apply_rope mrope"),
    (
        _C.EMBEDDING,
        r"""
        indexSelect vectorized_gather embedding compute_cuda_kernel repeat_interleave index_elementwise scatter_gather indexFunc
        index_kernel gather_kernel scatter_kernel index_put index_copy permute_pooled_embs recat_copy permute_2D permute_indices
        bounds_check_indices linearize_index offsets_range to_dense_representation segment_sum jagged take_kernel masked_scatter
        indexing_backward lengths_range sum_and_scatter krn_partial compute_grad_weight expand_into_jagged
        """,
    ),
    # Attention and what belongs to it
    (
        _C.KV_CACHE,
        r"""
        reshape_and_cache concat_and_cache store_kv_?cache set_mla_kv copy_blocks_kernel gather_and_maybe_dequant_cache
        create_flashinfer_kv_indices kv_cache_update
        """,
    ),
    (_C.ATTENTION, r"(?i) flash_?(fwd|bwd|attn|attention|infer) flashinfer fmha [_:]sdpa mha_(fwd|bwd|varlen) FlashAttn"),
    (
        _C.ATTENTION,
        r"""
        unified_attention paged_attention attention_[23]d kernel_paged Batch(Decode|Prefill)With SinglePrefill SingleDecode
        sage_(fwd|bwd|attn) qk_int_sv
        """,
    ),
    (
        _C.ATTENTION,
        r"""
        attn_(fwd|bwd) ^_?(fwd|bwd)_(kernel_)?(stage|grouped|dq|dkdv|preprocess) flex_attention splash _attention_(fwd|bwd)
        (?i:attn.*(decode|prefill)) mla_(decode|prefill) merge_attn_states merge_state
        """,
    ),
    (
        _C.ATTENTION,
        r"""
        chunk_\w*delta fused_recurrent gated_delta_rule selective_scan mamba chunk_(scan|state|fwd|bwd)_ lightning_attn causal_conv1d
        wkv
        """,
    ),
    # Mixture of experts
    (
        _C.MOE,
        r"""
        fused_moe moe_gemm _matmul_ogs fmoe_ moe_align_block_size topkGating topk_gating MoeSorting moe_sorting finalize\w*[Mm]oe
        expandInputRows moe_sum [Mm]oe[A-Z_]
        """,
    ),
    (
        _C.MOE,
        r"""
        _combined_routing _finalize_matmul_scatter _sum_bitmatrix _topk_forward _topk_kernel routing_ permute_kernel$ ^_permute
        grouped_topk biased_grouped
        """,
    ),
    # Norms before the elementwise rules, since their names carry both words
    (
        _C.NORM,
        r"""
        (?i) batch_?norm rms_?norm layer_?norm group_?norm instance_?norm bn_(fw|bw)_ MIOpenBatchNorm RowwiseMoments
        ComputeFusedParams GammaBeta ComputeInternalGradients ComputeBackwardFusedParams LayerNormF cuApplyLayerNorm weight_norm
        """,
    ),
    (
        _C.NORM,
        r"""
        (?i) Compute1dBackwardFusedParams GroupNorm cuComputePartGradGammaBeta cuComputeGradInput
        batch_norm_(backward|collect|transform) L2_?Norm l2norm_
        """,
    ),
    # Quantization
    (
        _C.QUANTIZATION,
        r"""
        (?i) scaled_(fp8|int8|fp4)_quant per_token_(group_)?quant quantize_kernel dynamic_(scaled|per_token) FP8rowwise _hfp8_ hfp8_
        sage_quant get_FP8_q _fp8_quant mxfp[48]_quant
        """,
    ),
    (_C.QUANTIZATION, r"cvt_\w*fp(4|8) dequant Dequant _quant_kernel int8_quant"),
    # Optimizers
    (_C.OPTIMIZER, r"(?i) multi_tensor_apply_kernel FusedOptimizer fused_adam adamw?_kernel LpNormFunctor lamb_kernel"),
    # Triton and XLA fusions by their own prefixes
    (_C.ATTENTION, r"triton_tem_\w*(attention|flex) triton_flex"),
    (_C.CONV, r"triton_tem_\w*conv"),
    (_C.GEMM, r"triton_tem_ triton_mm ^gemm_fusion _gemm_fusion_dot ^triton_gemm ^cublas cublas-?[gG]emm"),
    (_C.LAYOUT, r"^input_transpose_fusion ^wrapped_transpose ^transpose_\w*fusion ^loop_transpose"),
    (_C.FILL, r"^wrapped_(broadcast|iota) ^broadcast[.\d]*$ ^iota[.\d]*$"),
    (
        _C.COPY,
        r"""
        ^wrapped_(concatenate|slice|dynamic|pad|reverse) ^input_concatenate
        ^(concatenate|slice|pad|dynamic-slice|dynamic-update-slice|reverse)[.\d]*$
        """,
    ),
    (_C.EMBEDDING, r"^wrapped_(scatter|gather) ^(gather|scatter)[.\d]*$ scatter_fusion gather_fusion"),
    # Convolutions: before GEMMs, whose words they share
    (
        _C.CONV,
        r"""
        (?i) implicit_gemm implicit_convolve explicit_convolve winograd [df]grad wgrad [_\s]fprop cudnn.*conv miopen.*conv
        igemm_(fwd|bwd|wrw) naive_conv scudnn hcudnn conv(olution)?_?depthwise conv2d conv3d ConvolutionBwd
        """,
    ),
    (
        _C.CONV,
        r"""
        (?i) im[23]d2?col im2d2col col2im im2col grouped_conv kernel_\w*conv\w*_(fwd|bwd) conv_fwd conv_bwd ImplicitGemmConvolution
        direct_group first_layer_wgrad conv1x1 _conv_
        """,
    ),
    (
        _C.CONV,
        r"""
        fft2d_ regular_fft vector_fft computeOffsetsKernel compute\w*OffsetsKernel computeWgrad scalePackedTensor bwd_weight bwd_data
        SubTensorOp(WithScalar|WithCast) cudnn::cnn:: cudnn-conv gcgemm
        """,
    ),
    (_C.CONV, r"^convolution[.\d]*$ convolution_\w*fusion"),
    # GEMMs
    (
        _C.GEMM,
        r"""
        Cijk_A nvjet_ xmma_gemm xmma_sparse_gemm cutlass.*gemm gemm_?kernel kernel_gemm s?gemmSN gemmk1 gemv splitK_?[rR]educe
        split_k_reduce dot_kernel reduce_1Block deep_gemm _gemm_ gemm_ Gemm[A-Z<_] GemmUniversal
        """,
    ),
    (
        _C.GEMM,
        r"""
        (volta|ampere|turing|hopper|maxwell|pascal|sm\d+)_\w*gemm [sdhc]gemm wvSplitK LLGemm LLMM1 bmm_ _bmm [_\s]mm_kernel matmul
        ck_tile::.*[Gg]emm epilogue::impl::globalKernel scal_kernel trsm syrk getrf potrf
        """,
    ),
    (
        _C.GEMM,
        r"""
        device_kernel<.*(wgmma|Sm90|Sm100) cutlass3x cutlass_\d+_tensorop tensorop_ gemm dot_general ampere_bf16_s16816
        """,
    ),
    (_C.GEMM, r"^dot[.\d]*$ ^custom-call\S*(gemm|matmul)"),
    # Softmax
    (_C.SOFTMAX, r"(?i) softmax cross_?entropy"),
    (
        _C.POOLING,
        r"""
        (?i) pool(ing)?_?(fw|bw|forward|backward|2d|3d) max_pool avg_pool average_?pool upsample reflection_pad replication_pad
        grid_sampler interpolate adaptive_a
        """,
    ),
    # Sort, scan, sampling
    (
        _C.SORT,
        r"""
        (?i) DeviceRadixSort radixSort bitonic DeviceScan segmented_sort DeviceReduceByKey DeviceCompactInit DeviceSelect DeviceUnique
        DeviceRunLength DeviceHistogram scan_kernel wrapped_scan tensor_kernel_scan cumsum onesweep
        rocprim.*(scan|sort|partition|unique) ^sort[.\d]*$ DeviceMerge unique_by_key histogram nonzero searchsorted
        """,
    ),
    (_C.SORT, r"(?i) sbtopk mbtopk gatherTopK top_?k ^_topk radixFindKth"),
    (
        _C.RNG,
        r"""
        (?i) top_?p sampl(e|ing) apply_penalt distribution_ multinomial Philox fused_dropout bernoulli ^rng curand rocrand random_
        randperm populate_rng
        """,
    ),
    # Layout
    (_C.LAYOUT, r"(?i) nchwTo nhwcTo transpose permute tensor_?trans nchw2 nhwc2 layout_transform relayout"),
    # Elementwise: copies and fills among them first
    (
        _C.COPY,
        r"""
        CatArrayBatchedCopy direct_copy_kernel bfloat16_copy_kernel float16_copy_kernel copy_device_to_device multi_tensor\w*copy
        copy_kernel CopyFunctor chunk_cat split_with_sizes_copy CopyKernel
        """,
    ),
    (
        _C.FILL,
        r"""
        FillFunctor ^fill_kernel ::fill_kernel arange elementwise_kernel_with_index eye_kernel linspace range_cuda _memset zero_kernel
        init_kernel
        """,
    ),
    (
        _C.REDUCTION,
        r"""
        (?i) nll_?loss ClassNLLCriterion mse_loss reduce_kernel DeviceReduce reduction_ row_?reduce block_?reduce argmax argmin
        norm_kernel ReduceOp segmented_reduce reduce\d?d Reduce[A-Z<] _reduce_
        """,
    ),
    (
        _C.ELEMENTWISE,
        r"""
        elementwise_kernel elementwise act_and_mul silu gelu swiglu sigmoid relu CUDAFunctor TensorEvaluator EigenMetaKernel
        BroadcastOp op_tensor OpTensor Op2dTensor activation bias_add BiasNCHW BiasNHWC dropout masked_fill tril triu where_ lerp
        clamp_position ActivFwd ActivBwd
        """,
    ),
    (_C.EMBEDDING, r"(?i) resolve_future_token compute_position assign_req write_req prepare_ advance_step"),
    (_C.FUSED_ELEMENTWISE, r"_fusion[._\d]*(\.kd)?$ ^fusion[._\d]*(\.kd)?$"),
    (_C.COPY, r"(?i) copy"),
    (
        _C.CONTROL,
        r"""
        spin_kernel event_wait event_record ^nop semaphore ^after-all async-(start|update|done) ^(while|conditional|call)[.\d]*$
        """,
    ),
    (_C.HOST_IO, r"(?i) ^(infeed|outfeed)"),
    (_C.REDUCTION, r"(?i) reduce"),
)
"""Category of a kernel; none fits: OTHER."""

TENSOR_CORE_PATTERNS: tuple[tuple[bool, str], ...] = (
    (False, r"^triton_(poi|red|per)_"),
    (
        False,
        r"""
        f32f32_f32f32 ffma simt [_\s]sgemm ^sgemm volta_scudnn turing_scudnn maxwell_scudnn ampere_scudnn implicit_convolve_sgemm
        explicit_convolve_sgemm
        """,
    ),
    (
        False,
        r"""
        splitK_?[rR]educe gemv gemmSN gemmk1 dot_kernel reduce_1Block scal_kernel wvSplitK LLGemm gcgemm winograd(Forward|Wgrad)
        cutlass.*Reduce reduction::kernel
        """,
    ),
    (
        False,
        r"""
        (wgrad|dgrad)_(alg\d_)?engine computeOffsets compute\w*OffsetsKernel scalePacked im[23]d2 Im[23]d2 im2col transpose nchwTo
        nhwcTo SubTensorOp
        """,
    ),
    (
        True,
        r"""
        nvjet_ xmma_\w*(gemm|fprop|dgrad|wgrad) wgmma tensorop 16816 161616 1688 s884 h884 16832 i8816 hmma [_:]xdl _MI\d mfma wmma
        Sm90 Sm100 sm90_ sm100_ Umma tcgen05
        """,
    ),
    (True, r"dgrad_1x1_stride_2x2 first_layer_wgrad conv2d_c1_k1 direct_group gtc[x_] deep_gemm bmm_(E4m3|E2m1|Bfloat16)"),
    (
        True,
        r"""
        (?i) flash_?(fwd|bwd) fmha FlashAttn attn_fwd attn_bwd sage_fwd unified_attention ^_?matmul_ogs fused_moe_kernel triton_tem
        triton_mm flex_attention gemm_fusion CudnnFlash sdpa.*flash
        """,
    ),
)
"""Whether a kernel runs on tensor or matrix units; none fits: unknown."""

DTYPE_PATTERNS: tuple[tuple[str, str], ...] = (
    ("bf16", r"_(bf16)x(bf16|fp16)x _(bf16)xbf16"),
    ("fp16", r"_fp16xfp16 _f16xf16"),
    ("tf32", r"tf32 TF32 xf32"),
    ("fp8", r"(?i) mxfp8 hfp8_ FP8_q FP8rowwise e4m3 e5m2 float_?8 fp8_gemm _F8 _fp8 qqtst"),
    ("fp4", r"(?i) mxfp4 nvfp4 e2m1 float4_ _F4 fp4_gemm"),
    ("bf16", r"Cijk_A\w{3}_B\w{3}_(BBS|B_BS|BSS|BBH)"),
    ("fp16", r"Cijk_A\w{3}_B\w{3}_(HHS|H_HS|HSS|HHH|H_HH|HB)"),
    ("fp32", r"Cijk_A\w{3}_B\w{3}_(SB|S_B|S_S|SS)"),
    ("fp64", r"Cijk_A\w{3}_B\w{3}_(DB|D_B|DD)"),
    ("int8", r"Cijk_A\w{3}_B\w{3}_(I8|I_8|4xi8)"),
    ("bf16", r"bf16bf16_bf16 nvjet_(sm\d+_)?tst_ _bf16_s\d gemm_bf16 bf16_s?16816 _bf16_ ^_?\w*bf16_bx"),
    (
        "fp16",
        r"""
        f16f16_f16 nvjet_(sm\d+_)?hs[hs]_ h884 h1688 s884 fp16_s\d gemm_f16 f16_s?16816 tensorop_f16 tensorop_h\d _hcudnn _fp16_
        """,
    ),
    ("fp32", r"f32f32_f32f32 simt_sgemm [_\s]sgemm ^sgemm scudnn convolve_sgemm"),
    ("tf32", r"s1688gemm s1688(fprop|dgrad|wgrad) tensorop_s1688"),
    ("fp64", r"dgemm d884"),
    ("int8", r"i8i32 i16832 i8816 igemm_int8 int8"),
    ("bf16", r"ncclKernel_\w*_(bfloat|__nv_bfloat16) _Sum_bf16 _bf16_"),
    ("fp16", r"ncclKernel_\w*_half _Sum_f16 fmha_cutlass[FB]_f16 _sdpa_\w*_f16"),
    ("fp32", r"ncclKernel_\w*_float _Sum_f32 fmha_cutlass[FB]_f32"),
    ("int8", r"ncclKernel_\w*_int8"),
)
"""The type that its arithmetic runs in."""
