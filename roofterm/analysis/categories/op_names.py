"""What an op of the host computes, by its name: the evidence that comes before a kernel's own name.

Only ops that say it are listed; a wrapper (`Torch-Compiled Region`, an autograd node) tells nothing of the kernels it
launches and stays out, so that the kernel's name decides.
"""

from __future__ import annotations

import re
from functools import lru_cache

from roofterm.analysis.categories.kernel_patterns import alternatives
from roofterm.analysis.categories.kinds import Category

_C = Category


@lru_cache(maxsize=1 << 14)
def op_category(name: str) -> Category | None:
    """Category of the work that an op launches itself; None if its name does not tell."""
    for pattern, category in _PATTERNS:
        if pattern.search(name):
            return category
    namespace, _, plain = name.rpartition("::")
    if namespace == "aten":
        base = plain.removesuffix("_")
        if base.startswith("_foreach_"):
            return _C.COPY if "copy" in base else _C.OPTIMIZER
        return _ATEN.get(base) or _ATEN.get(base.removesuffix("_backward"))
    return None


# Ordered; the first that fits decides.
_PATTERNS = tuple(
    (re.compile(alternatives(words)), category)
    for category, words in (
        (
            _C.COMMUNICATION,
            r"""
            ^record_param_comms ^(c10d|nccl|gloo|symm_mem|_c10d_functional)::? _all_reduce all_reduce_ custom_ar allreduce reduce_scatter
            all_gather all_to_all alltoall
            """,
        ),
        (_C.KV_CACHE, r"reshape_and_cache concat_and_cache store_cache kv_cache_update _cache_ops::"),
        (_C.ROPE, r"rotary _rope rope_ mrope"),
        (
            _C.ATTENTION,
            r"""
            ^aten::_?scaled_dot_product ^aten::_(flash|efficient|cudnn|flex|fused_sdp)\w*attention ^aten::_?transformer_encoder
            native_multi_head
            """,
        ),
        (
            _C.ATTENTION,
            r"""
            flash_attn flash_attention FlashAttn fmha ::mha_ _mha_ unified_attention paged_attention attention_with_output flashinfer::
            sage_attn xformers.*attention mla_decode efficient_attention
            """,
        ),
        (_C.ATTENTION, r"selective_scan mamba gated_delta causal_conv1d chunk_scan"),
        (_C.MOE, r"fused_moe moe_forward grouped_topk topk_softmax moe_align moe_sum moe_wna16 ::moe_ fused_experts _moe_"),
        (
            _C.CONV,
            r"""
            ^aten::(_?convolution\w*|conv\w*|_conv\w*|cudnn_convolution\w*|miopen_(depthwise_)?conv\w*|mkldnn_convolution\w*|slow_conv\w*|thnn_conv\w*|_slow_conv\w*|_nnpack\w*|_mps_convolution\w*)$
            """,
        ),
        (
            _C.GEMM,
            r"""
            ^aten::(mm|addmm|bmm|baddbmm|addbmm|mv|addmv|addr|ger|outer|dot|vdot|linear|matmul|einsum|tensordot|_scaled_mm\w*|_int_mm\w*|_grouped_mm|_scaled_grouped_mm\w*|_weight_int\w+|_addmm_activation|_sparse_\w*mm|mkldnn_linear\w*|hspmm|addmm_\w*|_trilinear|bilinear)_?(\.\w+)?$
            """,
        ),
        (
            _C.GEMM,
            r"""
            ^mkl:: ^mkldnn::_linear cutlass_(scaled_)?mm _gemm$ gemm_a8w8 ::gemm scaled_mm gptq marlin awq_gemm machete _linear$ int4_mm
            wvSplitK LLMM1 deep_gemm hipb_mm tgemm
            """,
        ),
        (
            _C.NORM,
            r"""
            ^aten::\w*(batch_norm|layer_norm|group_norm|rms_norm|instance_norm|local_response_norm|renorm|weight_norm)\w* rms_?norm
            layer_?norm groupnorm batch_?norm Norm2d add_norm
            """,
        ),
        (
            _C.QUANTIZATION,
            r"""
            scaled_(fp8|int8|fp4)_quant per_token_(group_)?quant dynamic_(scaled|per_token) quantize FP8RowwiseQuantized HFP8
            ^aten::(fake_)?quantize\w* dequantize silu_and_mul_quant
            """,
        ),
        (_C.ELEMENTWISE, r"silu_and_mul gelu_and_mul gelu_(new|fast|quick|tanh_and_mul) act_and_mul relu2 swiglu"),
        (_C.SOFTMAX, r"^aten::(_log)?_?(log_)?softmax\w* softmax cross_entropy _masked_softmax"),
        (_C.OPTIMIZER, r"^aten::_fused_(adam|adamw|sgd|adagrad)_? fused_adam FusedAdam multi_tensor_adam multi_tensor_lamb"),
        (
            _C.EMBEDDING,
            r"""
            split_embedding embedding_codegen SplitLookupFunction embedding_bag
            fbgemm::(permute|bounds_check|asynchronous|jagged|dense|block_bucketize|recat|offsets|index_select|lengths|expand|segment|invert|keyed|pack|group_index)
            PermutePooled lengths_range PooledEmbs
            """,
        ),
        (
            _C.EMBEDDING,
            r"""
            ^aten::(embedding\w*|_embedding_bag\w*|index\w*|_index_put_impl_?|_unsafe_index\w*|gather\w*|scatter\w*|take\w*|put_?|masked_select|masked_scatter\w*|index_select\w*|repeat_interleave|nonzero\w*|one_hot|bincount)$
            """,
        ),
        (
            _C.POOLING,
            r"""
            ^aten::\w*(pool|upsample|interpolate|grid_sampler|reflection_pad|replication_pad|im2col|col2im|pixel_(un)?shuffle)\w*
            """,
        ),
        (
            _C.SORT,
            r"""
            ^aten::(sort|argsort|topk|kthvalue|median|cumsum|cumprod|logcumsumexp|cummax|cummin|unique\w*|_unique\w*|searchsorted|bucketize|msort|histc)_?\w*$
            """,
        ),
        (
            _C.RNG,
            r"""
            ^aten::(uniform|normal|randn?|rand_like|randint|random|bernoulli|multinomial|exponential|native_dropout\w*|dropout\w*|_fused_dropout|randperm|geometric|cauchy|log_normal)_?\w*$
            _sampl(e|ing) top_k_top_p apply_penalt
            """,
        ),
    )
)

_GROUPS: dict[Category, str] = {
    _C.COPY: """
        copy _to_copy clone contiguous to cat _cat stack hstack vstack concat concatenate repeat roll flip constant_pad_nd
        split_with_sizes_copy _chunk_cat unfold_backward slice_backward select_backward item _local_scalar_dense resolve_conj
        narrow_copy slice_scatter select_scatter diagonal_copy as_strided_copy record_stream
    """,
    _C.FILL: """
        fill zero zeros ones full empty zeros_like ones_like full_like new_zeros new_ones arange linspace eye scalar_tensor
        range tril_indices
    """,
    _C.REDUCTION: """
        sum mean prod nansum var std var_mean std_mean max min amax amin argmax argmin all any norm linalg_vector_norm
        linalg_norm nll_loss_forward nll_loss2d_forward nll_loss nll_loss_nd count_nonzero logsumexp aminmax cosine_similarity
        _linalg_check_errors trace equal _amp_foreach_non_finite_check_and_unscale
    """,
    _C.ELEMENTWISE: """
        add sub mul div rsub neg abs exp exp2 expm1 log log1p log2 log10 sqrt rsqrt pow square reciprocal sin cos tan asin
        acos atan atan2 sinh cosh tanh sigmoid relu gelu silu mish elu selu celu leaky_relu hardtanh hardswish hardsigmoid
        softplus softshrink threshold clamp clamp_min clamp_max where masked_fill eq ne lt le gt ge logical_and logical_or
        logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor maximum minimum fmod remainder floor ceil round
        trunc sign sgn erf erfc erfinv lerp addcmul addcdiv isnan isinf isfinite nan_to_num mse_loss l1_loss smooth_l1_loss
        huber_loss binary_cross_entropy binary_cross_entropy_with_logits tril triu floor_divide true_divide divide multiply
        subtract glu log_sigmoid log_sigmoid_forward prelu polar complex conj real imag angle heaviside hypot xlogy __and__
        __or__ __xor__ __lshift__ __rshift__ frac rot90 cross logit logaddexp lgamma digamma deg2rad rad2deg native_dropout
        fmax fmin nll_loss nll_loss2d kl_div special_erf masked_scale
    """,
    _C.LAYOUT: """
        transpose permute view_as_complex channel_shuffle transpose_copy permute_copy t_copy
    """,
}
_ATEN = {op: category for category, ops in _GROUPS.items() for op in ops.split()}
