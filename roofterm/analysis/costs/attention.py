"""Scaled dot-product attention in all its forms: visible pairs only, softmax not counted.

Forward: two products, 2 B Hq pairs (Dqk + Dv). Backward as flash attention runs it: five products, of which one is
computed again, 2 B Hq pairs (3 Dqk + 2 Dv), 2.5 times the forward; model_flops leave that one out (definitions.md).
Queries of a group share their key and value heads (GQA), so bytes count those once.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.model import Work, sized, stored
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import Inputs, Tensor

_SOURCE = "FlashAttention-2 (Dao 2023) section 3.3; torch.utils.flop_counter (sdpa_flop_count), causal pairs by definitions.md"
_UNKNOWN_LENGTHS = "lengths of the sequences are not recorded"

TOP_LEFT, BOTTOM_RIGHT = "top-left", "bottom-right"


class Form(NamedTuple):
    """Where an attention op keeps its arguments."""

    q: int
    causal: int | None
    """slot of the causal flag"""
    sequence_first: bool = False
    """[B, S, H, D]; else [B, H, S, D]"""
    align: str = TOP_LEFT
    out: int | None = None
    """slot of the forward's result: a backward"""
    bias: int | None = None
    lengths: tuple[int, int, int, int] | None = None
    """slots of the cumulative lengths of q and k and of the longest of each: packed sequences [T, H, D]"""
    window: tuple[int, int] | None = None
    mask_type: int | None = None
    """slot of xformers' custom_mask_type: 0 none, 1 causal from the top left, 2 from the bottom right"""


FORMS: dict[str, Form] = {
    "aten::scaled_dot_product_attention": Form(0, 5, bias=3),
    "aten::_scaled_dot_product_flash_attention": Form(0, 4),
    "aten::_scaled_dot_product_flash_attention_for_cpu": Form(0, 4, bias=5),
    "aten::_scaled_dot_product_efficient_attention": Form(0, 6, bias=3),
    "aten::_scaled_dot_product_cudnn_attention": Form(0, 6, bias=3),
    "aten::_scaled_dot_product_fused_attention_overrideable": Form(0, 5, bias=3),
    "aten::_flash_attention_forward": Form(0, 8, True, BOTTOM_RIGHT, lengths=(3, 4, 5, 6), window=(11, 12)),
    "aten::_efficient_attention_forward": Form(0, None, True, bias=3, lengths=(4, 5, 6, 7), mask_type=9),
    "aten::_cudnn_attention_forward": Form(0, 10, bias=3, lengths=(4, 5, 6, 7)),
    "flash_attn::_flash_attn_forward": Form(0, 5, True, BOTTOM_RIGHT, window=(6, 7)),
    "flash_attn::_flash_attn_varlen_forward": Form(0, 9, True, BOTTOM_RIGHT, lengths=(3, 4, 5, 6), window=(10, 11)),
    "aten::_scaled_dot_product_flash_attention_backward": Form(1, 11, out=4),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": Form(1, 7, out=4, bias=8),
    "aten::_scaled_dot_product_efficient_attention_backward": Form(1, 11, out=5, bias=4),
    "aten::_scaled_dot_product_cudnn_attention_backward": Form(1, 14, out=4, bias=8),
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": Form(1, 13, out=6, bias=4),
    "aten::_cudnn_attention_backward": Form(1, 14, out=4, bias=8, lengths=(9, 10, 11, 12)),
    "aten::_flash_attention_backward": Form(1, 11, True, BOTTOM_RIGHT, out=4, lengths=(6, 7, 8, 9), window=(15, 16)),
    "aten::_efficient_attention_backward": Form(1, None, True, out=5, bias=4, lengths=(6, 7, 8, 9), mask_type=14),
    "flash_attn::_flash_attn_backward": Form(1, 11, True, BOTTOM_RIGHT, out=4, window=(12, 13)),
    "flash_attn::_flash_attn_varlen_backward": Form(1, 15, True, BOTTOM_RIGHT, out=4, lengths=(9, 10, 11, 12), window=(16, 17)),
}


class Operands(NamedTuple):
    """What an attention op multiplies."""

    q: Tensor
    k: Tensor
    v: Tensor
    sequence_axis: int | None
    """axis of the sequence in all three; None: sequences are packed, [T, H, D]"""
    backward: bool

    @property
    def is_decode(self) -> bool:
        """Whether there are more keys than queries: the keys before them come from a cache (forward, self-attention)."""
        axis = 0 if self.sequence_axis is None else self.sequence_axis
        return not self.backward and self.q.dims[axis] < self.k.dims[axis]


def operands(name: str, inputs: Inputs) -> Operands | None:
    """q, k and v of an attention op; None for other ops, and where they were not recorded."""
    form = FORMS.get(name.partition(".")[0])
    if form is None:
        return None
    q, k, v = (inputs.tensor(form.q + step) for step in range(3))
    if q is None or k is None or v is None:
        return None
    rank = len(q.dims)
    if not rank == len(k.dims) == len(v.dims) or rank not in (3, 4):
        return None
    return Operands(q, k, v, None if rank == 3 else 1 if form.sequence_first else 2, form.out is not None)


def visible_pairs(queries: int, keys: int, causal: bool, align: str = TOP_LEFT, window: tuple[int, int] = (-1, -1)) -> int:
    """Pairs of query and key that a mask leaves visible.

    Causal, aligned top-left (SDPA's is_causal): Sq (Sq + 1) / 2 for Sq <= Sk; bottom-right (flash-attn from 2.1 on):
    Sq Sk - Sq (Sq - 1) / 2. `window`: keys seen to the left and right of the diagonal, -1: all.
    """
    left, right = window
    if causal:
        right = 0
    if left < 0 and right < 0:
        return queries * keys
    diagonal = np.arange(queries, dtype=np.int64) + (keys - queries if align == BOTTOM_RIGHT else 0)
    first = np.maximum(diagonal - left, 0) if left >= 0 else np.zeros(queries, np.int64)
    last = np.minimum(diagonal + right, keys - 1) if right >= 0 else np.full(queries, keys - 1, np.int64)
    return int(np.maximum(last - first + 1, 0).sum())


def _attention(inputs: Inputs, form: Form) -> Work | None:
    q, k, v = (inputs.tensor(form.q + step) for step in range(3))
    if q is None or k is None or v is None or 0 in (*q.dims, *k.dims, *v.dims):
        return None
    packed = len(q.dims) == len(k.dims) == len(v.dims) == 3 and form.lengths is not None
    if not packed and not len(q.dims) == len(k.dims) == len(v.dims) == 4:
        return None
    heads, key_heads, value_heads = ((t.dims[-2] if form.sequence_first else t.dims[1]) for t in (q, k, v))
    dims_match = q.dims[-1] == k.dims[-1] and (packed or q.dims[0] == k.dims[0] == v.dims[0]) and key_heads == value_heads
    if not dims_match or heads % key_heads:
        return None
    read, written = _bytes(inputs, form, q, k, v)
    counts = _pairs(inputs, form, q, k, packed)
    if counts is None:
        return Work(None, read, written, q.dtype, estimate=_UNKNOWN_LENGTHS)
    pairs, whole, estimate = counts
    d, dv = q.dims[-1], v.dims[-1]
    products = d + dv if form.out is None else 2 * (d + dv)
    recomputed = 0 if form.out is None else d
    model = 2 * heads * pairs * products
    flops = model + 2 * heads * pairs * recomputed
    return Work(flops, read, written, q.dtype, model_flops=model, whole_flops=2 * heads * whole * products, estimate=estimate)


def _pairs(inputs: Inputs, form: Form, q: Tensor, k: Tensor, packed: bool) -> tuple[int, int, str | None] | None:
    """Visible pairs over all sequences of the batch, those without the mask, and what is doubtful; None: unknown."""
    align, causal, estimate = form.align, False, None
    if form.mask_type is not None:
        kind = inputs.integer(form.mask_type)
        causal = kind in (1, 2)
        align = BOTTOM_RIGHT if kind == 2 else TOP_LEFT
        estimate = None if kind is not None else "the mask is not recorded: all pairs counted"
    elif form.causal is not None:
        flag = inputs.flag(form.causal)
        causal = bool(flag)
        estimate = None if flag is not None else "whether it is causal is not recorded: all pairs counted"
    window = (-1, -1)
    if form.window is not None:
        left, right = (inputs.integer(slot) for slot in form.window)
        window = (-1 if left is None else left, -1 if right is None else right)
    if not packed:
        axis = 1 if form.sequence_first else 2
        return _counted(q.dims[0], q.dims[axis], k.dims[axis], causal, align, window, estimate)
    if form.lengths is None:
        return None
    cumulative, longest_q, longest_k = inputs.tensor(form.lengths[0]), inputs.integer(form.lengths[2]), inputs.integer(form.lengths[3])
    if cumulative is None or len(cumulative.dims) != 1 or cumulative.elements < 2:
        return None
    sequences = cumulative.elements - 1
    if sequences == 1:
        return _counted(1, q.dims[0], k.dims[0], causal, align, window, estimate)
    if longest_q is None or longest_k is None or sequences * longest_q != q.dims[0] or sequences * longest_k != k.dims[0]:
        return None
    return _counted(sequences, longest_q, longest_k, causal, align, window, estimate)


def _counted(
    batch: int, queries: int, keys: int, causal: bool, align: str, window: tuple[int, int], estimate: str | None
) -> tuple[int, int, str | None]:
    return batch * visible_pairs(queries, keys, causal, align, window), batch * queries * keys, estimate


def _bytes(inputs: Inputs, form: Form, q: Tensor, k: Tensor, v: Tensor) -> tuple[float | None, float | None]:
    """q, k, v (and bias) read and the result written; backward: also the gradient and the result read, three gradients written."""
    bias = inputs.tensor(form.bias) if form.bias is not None else None
    result = sized(math.prod(q.dims[:-1]) * v.dims[-1], q)
    if form.out is None:
        return stored((q, k, v, bias)), result
    read = stored((q, k, v, bias, inputs.tensor(0), inputs.tensor(form.out)))
    return read, stored(Tensor(t.dims, t.dtype) for t in (q, k, v))


for _name, _form in FORMS.items():
    register(Category.ATTENTION, _SOURCE, _name)(partial(_attention, form=_form))
