"""Custom ops of vLLM, SGLang and aiter, as far as their shapes tell.

Lengths of the sequences in a batch are values, not shapes: attention over a paged cache has bytes of what its shapes
hold (queries, results, listed pages), FLOPs only for a single sequence.
"""

from __future__ import annotations

import math

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.model import Work, sized, stored
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import Inputs, Tensor

_EXPERTS = "experts used are not recorded: as many as there can be"
_LENGTHS = "lengths of the sequences are not recorded: bytes of queries and results only"


@register(Category.ROPE, "q and k read and written, a table row a position; 3 FLOPs an element", "_C::rotary_embedding")
@register(
    Category.ROPE, "as _C::rotary_embedding", "vllm::rotary_embedding", "sgl_kernel::rotary_embedding", "_C::batched_rotary_embedding"
)
def _rotary(inputs: Inputs) -> Work | None:
    positions, q, k, table = inputs.tensor(0), inputs.tensor(1), inputs.tensor(2), inputs.tensor(4)
    if positions is None or q is None or q.elements == 0:
        return None
    rows = sized(positions.elements * table.dims[-1], table) if table is not None and table.dims else 0.0
    read = stored((positions, q, k))
    moved = q.elements + (k.elements if k is not None else 0)
    written = stored((q, k))
    return Work(3 * moved, None if read is None or rows is None else read + rows, written, q.dtype)


@register(
    Category.KV_CACHE,
    "new keys, values and slots read, keys and values written in the cache's type",
    "_C_cache_ops::reshape_and_cache_flash",
)
@register(
    Category.KV_CACHE, "as reshape_and_cache_flash", "_C_cache_ops::reshape_and_cache", "sglang::store_cache", "aiter::reshape_and_cache"
)
def _store_cache(inputs: Inputs) -> Work | None:
    key, value, key_cache, value_cache, slots = (inputs.tensor(slot) for slot in range(5))
    if key is None or value is None or key_cache is None or value_cache is None or key.elements == 0:
        return None
    keys, values = sized(key.elements, key_cache), sized(value.elements, value_cache)
    written = None if keys is None or values is None else keys + values
    return Work(0, stored((key, value, slots)), written, key.dtype)


@register(
    Category.ROPE,
    "q and k read, both written anew, a table row a position; 3 FLOPs an element",
    "sgl_kernel::apply_rope_pos_ids_cos_sin_cache",
)
def _rotary_anew(inputs: Inputs) -> Work | None:
    q, k, new_q, new_k, table, positions = (inputs.tensor(slot) for slot in range(6))
    if q is None or k is None or positions is None or q.elements == 0:
        return None
    rows = sized(positions.elements * table.dims[-1], table) if table is not None and table.dims else 0.0
    read = stored((positions, q, k))
    written = stored((new_q or q, new_k or k))
    return Work(3 * (q.elements + k.elements), None if read is None or rows is None else read + rows, written, q.dtype)


@register(
    Category.KV_CACHE, "compressed and rotary keys and slots read, both written in the cache's type", "_C_cache_ops::concat_and_cache_mla"
)
def _store_latent(inputs: Inputs) -> Work | None:
    latent, rotary, cache, slots = (inputs.tensor(slot) for slot in range(4))
    if latent is None or rotary is None or cache is None or latent.elements == 0:
        return None
    return Work(0, stored((latent, rotary, slots)), sized(latent.elements + rotary.elements, cache), latent.dtype)


@register(Category.ATTENTION, "queries, and keys and values where they are no pages; the result", "_vllm_fa2_C::varlen_fwd")
@register(Category.ATTENTION, "as _vllm_fa2_C::varlen_fwd", "_vllm_fa3_C::fwd", "_vllm_fa2_C::fwd_kvcache", "sgl_kernel::fwd")
def _flash_of_engines(inputs: Inputs) -> Work | None:
    """[T, Hq, D] queries; keys and values [T, Hkv, D], or those of a cache (four dimensions), of which lengths are not recorded."""
    q, k, v = (inputs.tensor(slot) for slot in range(3))
    if q is None or k is None or v is None or len(q.dims) < 3 or q.elements == 0:
        return None
    paged = len(q.dims) == 3 and len(k.dims) == 4
    return Work(None, q.bytes if paged else stored((q, k, v)), sized(math.prod(q.dims[:-1]) * v.dims[-1], q), q.dtype, estimate=_LENGTHS)


@register(Category.ATTENTION, "queries, new keys and values read, the result written", "vllm::unified_attention_with_output")
@register(Category.ATTENTION, "queries, latent and rotary keys read, the result written", "vllm::unified_mla_attention_with_output")
def _unified_attention(inputs: Inputs) -> Work | None:
    q, k, v, out = (inputs.tensor(slot) for slot in range(4))
    if q is None or out is None or q.elements == 0:
        return None
    return Work(None, stored((q, k, v)), sized(out.elements, out), q.dtype, estimate=_LENGTHS)


@register(Category.ATTENTION, "queries read, the result written", "vllm::unified_attention")
def _unified_attention_without_output(inputs: Inputs) -> Work | None:
    q, k, v = (inputs.tensor(slot) for slot in range(3))
    if q is None or q.elements == 0:
        return None
    return Work(None, stored((q, k, v)), sized(q.elements, q), q.dtype, estimate=_LENGTHS)


@register(Category.ATTENTION, "4 Hq D context FLOPs, its keys and values if one sequence", "_C::paged_attention_v1")
def _paged_attention_v1(inputs: Inputs) -> Work | None:
    return _paged(inputs, out_at=0, query_at=1, cache_at=2, heads_at=4, longest_at=9)


@register(Category.ATTENTION, "as _C::paged_attention_v1", "_C::paged_attention_v2", "_rocm_C::paged_attention")
def _paged_attention_v2(inputs: Inputs) -> Work | None:
    return _paged(inputs, out_at=0, query_at=4, cache_at=5, heads_at=7, longest_at=12)


@register(Category.ATTENTION, "queries, the listed pages of the cache and the result; page size 1", "aiter::mha_batch_prefill")
def _batch_prefill(inputs: Inputs) -> Work | None:
    q, k, v, pages = inputs.tensor(0), inputs.tensor(1), inputs.tensor(2), inputs.tensor(5)
    if q is None or k is None or v is None or pages is None or len(k.dims) != 3 or len(v.dims) != 3 or q.elements == 0:
        return None
    keys = sized(pages.elements * k.dims[1] * k.dims[2], k)
    values = sized(pages.elements * v.dims[1] * v.dims[2], v)
    read = stored((q, pages))
    total = None if read is None or keys is None or values is None else read + keys + values
    return Work(None, total, sized(math.prod(q.dims[:-1]) * v.dims[2], q), q.dtype, estimate=_LENGTHS)


@register(
    Category.MOE,
    "2 (2 I + I) H FLOPs for each token and expert chosen; hidden states, result and the weights of min(E, T k) experts",
    "vllm::inplace_fused_experts",
    "vllm::outplace_fused_experts",
    "sglang::inplace_fused_experts",
    "sglang::outplace_fused_experts",
)
def _fused_experts(inputs: Inputs) -> Work | None:
    hidden, up, down, chosen = (inputs.tensor(slot) for slot in range(4))
    if hidden is None or up is None or down is None or chosen is None:
        return None
    if len(hidden.dims) != 2 or len(up.dims) != 3 or len(down.dims) != 3 or len(chosen.dims) != 2 or hidden.elements == 0:
        return None
    tokens, width = hidden.dims
    if up.dims[2] != width or down.dims[1] != width or up.dims[0] == 0:
        return None
    calls = tokens * chosen.dims[1]
    used = min(up.dims[0], calls)
    weights = stored((up, down))
    read = stored((hidden, chosen, inputs.tensor(4)))
    total = None if read is None or weights is None else read + weights * used / up.dims[0]
    flops = 2 * calls * width * (up.dims[1] + down.dims[2])
    return Work(flops, total, sized(hidden.elements, hidden), hidden.dtype, estimate=_EXPERTS)


@register(Category.MOE, "logits read, the chosen weights and indices written", "_moe_C::topk_softmax")
def _topk_softmax(inputs: Inputs) -> Work | None:
    weights, indices, tokens, logits = (inputs.tensor(slot) for slot in range(4))
    if weights is None or logits is None or logits.elements == 0:
        return None
    return Work(5 * logits.elements, logits.bytes, stored((weights, indices, tokens)), logits.dtype)


@register(Category.MOE, "logits read, the chosen weights and indices written", "sgl_kernel::topk_softmax")
def _topk_of_sglang(inputs: Inputs) -> Work | None:
    """The logits are the widest of the matrices: versions differ in what lies between."""
    matrices = [tensor for tensor in inputs.all_tensors if len(tensor.dims) == 2]
    if len(matrices) < 3 or matrices[0].elements == 0:
        return None
    logits = max(matrices, key=lambda tensor: tensor.dims[1])
    return Work(5 * logits.elements, logits.bytes, stored(matrices[:2]), logits.dtype)


@register(Category.MOE, "the chosen experts read, the sorted tokens, their experts and count written", "_moe_C::moe_align_block_size")
@register(Category.MOE, "as _moe_C::moe_align_block_size", "sgl_kernel::moe_align_block_size")
def _align_block_size(inputs: Inputs) -> Work | None:
    chosen, *results = (inputs.tensor(slot) for slot in (0, 3, 4, 5))
    if chosen is None or chosen.elements == 0:
        return None
    return Work(0, chosen.bytes, stored(results), chosen.dtype)


@register(Category.MOE, "the experts' results read and added, the sum written", "_moe_C::moe_sum", "sgl_kernel::moe_sum_reduce")
def _moe_sum(inputs: Inputs) -> Work | None:
    x, out = inputs.tensor(0), inputs.tensor(1)
    if x is None or out is None or x.elements == 0:
        return None
    return Work(x.elements, x.bytes, sized(out.elements, out), x.dtype)


@register(Category.QUANTIZATION, "the input read, the narrow result and scales written; 2 FLOPs an element", "_C::static_scaled_fp8_quant")
@register(Category.QUANTIZATION, "as _C::static_scaled_fp8_quant", "_C::dynamic_scaled_fp8_quant", "_C::dynamic_per_token_scaled_fp8_quant")
@register(Category.QUANTIZATION, "as _C::static_scaled_fp8_quant", "_C::static_scaled_int8_quant", "_C::dynamic_scaled_int8_quant")
def _quantized(inputs: Inputs) -> Work | None:
    out, x, scale = inputs.tensor(0), inputs.tensor(1), inputs.tensor(2)
    if out is None or x is None or x.elements == 0 or out.elements != x.elements:
        return None
    return Work(2 * x.elements, stored((x, scale)), sized(out.elements, out), x.dtype)


def _paged(inputs: Inputs, out_at: int, query_at: int, cache_at: int, heads_at: int, longest_at: int) -> Work | None:
    out, q, cache = inputs.tensor(out_at), inputs.tensor(query_at), inputs.tensor(cache_at)
    if out is None or q is None or len(q.dims) != 3 or q.elements == 0:
        return None
    sequences, heads, width = q.dims
    context, key_heads = inputs.integer(longest_at), inputs.integer(heads_at)
    written = sized(out.elements, out)
    if sequences != 1 or not context or context < 0 or not key_heads or cache is None:
        return Work(None, q.bytes, written, q.dtype, estimate=_LENGTHS)
    pages = sized(2 * context * key_heads * width, Tensor((), cache.dtype))
    read = None if q.bytes is None or pages is None else q.bytes + pages
    return Work(4 * heads * width * context, read, written, q.dtype)
