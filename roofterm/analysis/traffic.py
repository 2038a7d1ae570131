"""What an op's bytes are: weights, KV cache or activations, read or written, as far as its recorded inputs tell.

The sum of an op's roles is its compulsory traffic. A matrix product's second operand is taken for a weight only in a
forward pass and with evidence: `aten::linear` around it, a transposed view (parameters are stored [N, K]), a bias, or the
same call again and again (layers, steps). What nothing tells has no role: unknown stays null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs import Cost, cost
from roofterm.analysis.costs.attention import operands
from roofterm.analysis.costs.model import stored
from roofterm.analysis.costs.signature import Inputs, Tensor
from roofterm_parsers.profile import ROOT, Profile

ROLES = ("weight", "kv", "activation")
ROLE_COLUMNS = tuple(f"{role}_{way}" for role in ROLES for way in ("read", "write"))
"""Bytes by role, of items: null where the role of an item's bytes is not known."""


class Roles(NamedTuple):
    """Bytes of one call by role; together its compulsory traffic."""

    weight_read: float = 0.0
    weight_write: float = 0.0
    kv_read: float = 0.0
    kv_write: float = 0.0
    activation_read: float = 0.0
    activation_write: float = 0.0


class Circumstances(NamedTuple):
    """What stands around a call and tells the role of its operands."""

    forward: bool = True
    """under no node of autograd and no optimizer's step"""
    linear: bool = False
    """inside aten::linear"""
    calls: int = 1
    """of the same op with the same inputs in the profile"""


def with_roles(profile: Profile, items: pl.DataFrame) -> pl.DataFrame:
    """Items (schema `costed.ITEMS`) with `ROLE_COLUMNS`, Float64, bytes."""
    nothing = [pl.lit(None, dtype=pl.Float64).alias(column) for column in ROLE_COLUMNS]
    known = items.filter(pl.col("op").is_not_null() & pl.col("signature").is_not_null()).select("op", "signature").unique("op")
    if known.height == 0:
        return items.with_columns(nothing)
    forward, linear = _around(profile, known["op"].to_numpy().astype(np.int64))
    calls = profile.ops.select(name=profile.slices["name"].gather(profile.ops["slice"]), signature="signature")
    counts = calls.drop_nulls().group_by("name", "signature").agg(calls=pl.len())
    known = known.with_columns(name=profile.slices["name"].gather(known["op"]), forward=pl.Series(forward), linear=pl.Series(linear)).join(
        counts, on=["name", "signature"], how="left", maintain_order="left"
    )
    key = ["name", "signature", "forward", "linear", "calls"]
    distinct = known.select(key).unique(maintain_order=True)
    rows = []
    for name, signature, is_forward, in_linear, count in distinct.iter_rows():
        dims, types, strides, concrete = profile.signatures.row(signature)
        text = profile.names["text"][name]
        found = cost(text, dims, types, strides, concrete)
        around = Circumstances(is_forward, in_linear, count or 1)
        rows.append(None if found is None else roles(text, Inputs(dims, types, strides, concrete), found, around))
    values = pl.DataFrame(
        [row or (None,) * len(ROLE_COLUMNS) for row in rows], schema=dict.fromkeys(ROLE_COLUMNS, pl.Float64), orient="row"
    )
    by_op = known.join(pl.concat([distinct, values], how="horizontal"), on=key, how="left").select("op", *ROLE_COLUMNS)
    return items.join(by_op, on="op", how="left", maintain_order="left")


def roles(name: str, inputs: Inputs, found: Cost, around: Circumstances) -> Roles | None:
    """The roles of one call's bytes. `found`: what it costs; None: nothing tells them."""
    read, written = found.read_bytes, found.write_bytes
    if read is None or written is None:
        return None
    bare = name.partition(".")[0]
    if found.category == Category.ATTENTION:
        return _attention(bare, inputs, read, written)
    if found.category == Category.KV_CACHE:
        return Roles(activation_read=read, kv_write=written)
    if not (around.forward or around.linear):
        return None
    if bare in _WEIGHTS or bare in _PRODUCTS:
        if bare in _PRODUCTS and not _is_parameter(inputs, _PRODUCTS[bare], around):
            return None
        weights = stored(_tensor(inputs, slot) for slot in (_WEIGHTS.get(bare) or _PRODUCTS[bare].weights))
        return None if weights is None else _with_weights(min(weights, read), read, written)
    if bare in _ACTIVATIONS:
        return _plain(inputs, read, written)
    rule = _BY_CATEGORY.get(found.category)
    return None if rule is None else rule(inputs, read, written)


class _Product(NamedTuple):
    """Slots of a product that multiplies anything by anything."""

    second: int
    weights: tuple[int, ...]
    """the second operand and what comes with it (bias, scales)"""
    bias: int | None = None


_PRODUCTS: dict[str, _Product] = {
    "aten::mm": _Product(1, (1,)),
    "aiter::hipb_mm": _Product(1, (1,)),
    "aten::_int_mm": _Product(1, (1,)),
    "aten::addmm": _Product(2, (0, 2), bias=0),
    "aten::_addmm_activation": _Product(2, (0, 2), bias=0),
    "aten::_scaled_mm": _Product(1, (1, 3, 4), bias=4),
    "aten::_grouped_mm": _Product(1, (1,)),
    "aten::_scaled_grouped_mm": _Product(1, (1, 3)),
}

_WEIGHTS: dict[str, tuple[int, ...]] = {
    "aten::linear": (1, 2),
    "mkldnn::_linear_pointwise": (1, 2),
    "vllm::rocm_unquantized_gemm": (1, 2),
    "vllm::rocm_unquantized_gemm_impl": (1, 2),
    "aiter::tuned_gemm": (1, 2),
    "aten::_weight_int4pack_mm": (1, 3),
    "aten::_weight_int8pack_mm": (1, 2),
    "_C::cutlass_scaled_mm": (2, 4, 5),
    "vllm::cutlass_scaled_mm": (2, 4, 5),
    "_C::gptq_gemm": (1, 2, 3),
    "_C::awq_gemm": (1, 2, 3),
    "aiter::gemm_a8w8": (1, 3),
    "aiter::gemm_a8w8_CK": (1, 3),
    "aiter::gemm_a8w8_blockscale": (1, 3),
    "_rocm_C::wvSplitK": (0,),
    "_rocm_C::LLMM1": (0,),
}
"""Slots of the operands that are weights by what the op is."""

_ACTIVATIONS = frozenset(
    [f"aten::{name}{way}" for name in ("relu", "silu", "gelu", "mish", "hardswish", "leaky_relu", "glu", "softplus") for way in ("", "_")]
    + [f"{library}::{name}_and_mul" for library in ("_C", "sgl_kernel", "aiter") for name in ("silu", "gelu", "gelu_tanh")]
)
"""Elementwise ops that are applied to activations alone."""

_EVIDENCE_CALLS = 2
"""The same product of the same shapes as often as this in one profile: layers or steps with a weight each."""


def _is_parameter(inputs: Inputs, product: _Product, around: Circumstances) -> bool:
    second = inputs.tensor(product.second)
    if second is None or len(second.dims) < 2:
        return False
    bias = inputs.tensor(product.bias) if product.bias is not None else None
    return around.linear or is_transposed(second) or (bias is not None and len(bias.dims) == 1) or around.calls >= _EVIDENCE_CALLS


def is_transposed(tensor: Tensor) -> bool:
    """Whether a matrix is the transposed view of a dense one: a parameter [N, K] as [K, N]."""
    if tensor.strides is None or len(tensor.dims) != 2 or len(tensor.strides) != 2 or 1 in tensor.dims:
        return False
    return tensor.strides[0] == 1 and tensor.strides[1] >= tensor.dims[0]


def _with_weights(weights: float, read: float, written: float) -> Roles:
    return Roles(weight_read=weights, activation_read=read - weights, activation_write=written)


def _tensor(inputs: Inputs, slot: int) -> Tensor | None:
    """A tensor with its stored bytes: two fp4 values share one recorded element."""
    tensor = inputs.tensor(slot)
    if tensor is None or "x2" not in (inputs.type_text(slot) or ""):
        return tensor
    return Tensor((*tensor.dims, 2), tensor.dtype)


_CACHED = ("aiter::mha_batch_prefill", "_C::paged_attention_v1", "_C::paged_attention_v2", "_rocm_C::paged_attention")
"""Attention over a paged cache: all that is read but the queries lies there. Slot of the queries: 0, else as below."""

_QUERY_SLOT = {"_C::paged_attention_v1": 1, "_C::paged_attention_v2": 4, "_rocm_C::paged_attention": 4}


def _attention(name: str, inputs: Inputs, read: float, written: float) -> Roles | None:
    if name in _CACHED:
        queries = inputs.tensor(_QUERY_SLOT.get(name, 0))
        held = None if queries is None else queries.bytes
        if held is None or held >= read:  # lengths unknown: the cost holds no cache either
            return None
        return Roles(kv_read=read - held, activation_read=held, activation_write=written)
    found = operands(name, inputs)
    if found is None:
        return None
    cache = stored((found.k, found.v)) if found.is_decode else 0.0
    if cache is None:
        return None
    return Roles(kv_read=cache, activation_read=read - cache, activation_write=written)


def _plain(inputs: Inputs, read: float, written: float) -> Roles:
    return Roles(activation_read=read, activation_write=written)


def _norm(inputs: Inputs, read: float, written: float) -> Roles | None:
    """Scale and shift are the vectors among the inputs; running statistics come with them."""
    vectors = stored(tensor for tensor in inputs.all_tensors if len(tensor.dims) == 1)
    return None if vectors is None else _with_weights(min(vectors, read), read, written)


def _convolution(inputs: Inputs, read: float, written: float) -> Roles | None:
    """The second operand and the vectors (bias) are weights; a residual that is added is none."""
    weight = inputs.tensor(1)
    vectors = stored(tensor for tensor in inputs.all_tensors if len(tensor.dims) == 1)
    held = None if weight is None or vectors is None or weight.bytes is None else weight.bytes + vectors
    return None if held is None else _with_weights(min(held, read), read, written)


def _experts(inputs: Inputs, read: float, written: float) -> Roles | None:
    up = inputs.tensor(1)
    if up is None or len(up.dims) != 3:  # routing and sums
        return _plain(inputs, read, written)
    others = stored(inputs.tensor(slot) for slot in (0, 3, 4))
    return None if others is None else _with_weights(max(read - others, 0.0), read, written)


def _elementwise(inputs: Inputs, read: float, written: float) -> Roles | None:
    """Work on activations, if by their rank these can be nothing else (a parameter that is updated is a matrix at most)."""
    return _plain(inputs, read, written) if any(len(tensor.dims) > 2 for tensor in inputs.all_tensors) else None


def _embedding(inputs: Inputs, read: float, written: float) -> Roles | None:
    """Rows looked up in a table that is no activation: the second slot is the index (aten::embedding)."""
    index = inputs.tensor(1)
    held = None if index is None or index.dtype not in ("int64", "int32") else index.bytes
    return None if held is None or held > read else Roles(weight_read=read - held, activation_read=held, activation_write=written)


_BY_CATEGORY: dict[Category, Callable[[Inputs, float, float], Roles | None]] = {
    Category.NORM: _norm,
    Category.CONV: _convolution,
    Category.MOE: _experts,
    Category.EMBEDDING: _embedding,
    Category.ELEMENTWISE: _elementwise,
    Category.REDUCTION: _elementwise,
    Category.SOFTMAX: _plain,
    Category.ROPE: _plain,
    Category.POOLING: _plain,
    Category.QUANTIZATION: _plain,
}

_NO_FORWARD = (
    r"^autograd::engine::|^\w+Backward\d*$|^torch::autograd::|_backward(\.|$)|^Optimizer\.(step|zero_grad)#|^aten::_(foreach|fused)_"
)


def _around(profile: Profile, ops: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For each op whether it belongs to a forward pass, and whether it runs inside aten::linear."""
    texts = profile.names["text"]
    name = profile.slices["name"].to_numpy()
    parent = profile.slices["parent"].to_numpy()
    not_forward = texts.str.contains(_NO_FORWARD).to_numpy()
    is_linear = (texts == "aten::linear").to_numpy()
    backward = np.zeros(parent.size, np.bool_)
    backward[profile.ops.filter(pl.col("forward_thread").is_not_null())["slice"].to_numpy()] = True
    forward, linear = np.ones(ops.size, np.bool_), np.zeros(ops.size, np.bool_)
    active, current = np.arange(ops.size), ops
    while active.size:
        forward[active] &= ~(not_forward[name[current]] | backward[current])
        linear[active] |= is_linear[name[current]]
        above = parent[current]
        inside = above != ROOT
        active, current = active[inside], above[inside].astype(np.int64)
    return forward, linear
