"""What the bytes of one call are: weights, KV cache, activations, gradients of weights, or an optimizer's state.

A matrix product's second operand is taken for a weight only in a forward pass and with evidence: `aten::linear` around it, a
transposed view (parameters are stored [N, K]), a bias, or the same call again and again (layers, steps). What nothing tells
has no role: unknown stays null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs import Cost
from roofterm.analysis.costs.attention import operands
from roofterm.analysis.costs.model import stored
from roofterm.analysis.costs.signature import Inputs, Tensor
from roofterm.analysis.surroundings import Place
from roofterm.analysis.told_shapes import NOTHING_TOLD, Shapes

ROLES = ("weight", "kv", "activation", "gradient", "optimizer")
ROLE_COLUMNS = tuple(f"{role}_{way}" for role in ROLES for way in ("read", "write"))
"""Bytes by role, of items: null where the role of an item's bytes is not known."""


class Roles(NamedTuple):
    """Bytes of one call by role; together its compulsory traffic."""

    weight_read: float = 0.0
    weight_write: float = 0.0
    kv_read: float = 0.0
    kv_write: float = 0.0
    activation_read: float = 0.0
    """activations, and what a backward pass hands on: their gradients"""
    activation_write: float = 0.0
    gradient_read: float = 0.0
    """gradients of weights"""
    gradient_write: float = 0.0
    optimizer_read: float = 0.0
    """an optimizer's state, and what of its step nothing tells apart"""
    optimizer_write: float = 0.0


class Circumstances(NamedTuple):
    """What stands around a call and tells the role of its operands."""

    place: Place = Place.FORWARD
    linear: bool = False
    """inside aten::linear"""
    calls: int = 1
    """of the same op with the same inputs in the profile"""
    by_heads: bool = False
    """a product inside aten::matmul of two tensors with heads ([B, H, S, D]), or inside attention"""
    told: Shapes = NOTHING_TOLD
    """by the forward calls of the profile"""


def forward_roles(name: str, inputs: Inputs, found: Cost, around: Circumstances) -> Roles | None:
    """The roles of a forward call's bytes. `found`: what it costs; None: nothing tells them."""
    read, written = found.read_bytes, found.write_bytes
    if read is None or written is None:
        return None
    bare = name.partition(".")[0]
    if found.category == Category.ATTENTION:
        return _attention(bare, inputs, read, written)
    if found.category == Category.KV_CACHE:
        return Roles(activation_read=read, kv_write=written)
    if bare in _WEIGHTS or bare in _PRODUCTS:
        if bare in _PRODUCTS and not _is_parameter(inputs, _PRODUCTS[bare], around):
            return None
        weights = stored(_tensor(inputs, slot) for slot in (_WEIGHTS.get(bare) or _PRODUCTS[bare].weights))
        return None if weights is None else _with_weights(min(weights, read), read, written)
    if bare.endswith("marlin_gemm"):  # all but the first operand belongs to the weights, wherever it stands
        x = inputs.tensor(0)
        return None if x is None or x.bytes is None else _with_weights(max(read - x.bytes, 0.0), read, written)
    if found.category == Category.GEMM:
        return plain(read, written) if is_of_activations(bare, inputs, around) else None
    if bare in _ACTIVATIONS:
        return plain(read, written)
    rule = _BY_CATEGORY.get(found.category)
    return None if rule is None else rule(inputs, read, written, around.told)


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
    "_C::cutlass_scaled_mm_azp": (2, 4, 5, 6, 7),
    "_C::cutlass_scaled_fp4_mm": (2, 4),
    "sgl_kernel::cutlass_scaled_fp4_mm": (2, 4),
    "sgl_kernel::fp8_scaled_mm": (1, 3, 5),
    "sgl_kernel::int8_scaled_mm": (1, 3, 5),
    "sgl_kernel::fp8_blockwise_scaled_mm": (1, 3),
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


def is_of_activations(name: str, inputs: Inputs, around: Circumstances) -> bool:
    """Whether a product is one of activations with one another: of attention in single products."""
    first = 1 if name.startswith("aten::baddbmm") else 0
    return around.by_heads or around.told.is_of_scores(inputs.tensor(first), inputs.tensor(first + 1))


def plain(read: float, written: float) -> Roles:
    """All of it activations."""
    return Roles(activation_read=read, activation_write=written)


def vectors(inputs: Inputs) -> float | None:
    """Bytes of the one-dimensional inputs: scales, shifts, running statistics."""
    return stored(tensor for tensor in inputs.all_tensors if len(tensor.dims) == 1)


def _all_activations(inputs: Inputs, read: float, written: float, told: Shapes) -> Roles:
    return plain(read, written)


def _norm(inputs: Inputs, read: float, written: float, told: Shapes) -> Roles | None:
    """Scale and shift are the vectors among the inputs; running statistics come with them."""
    held = vectors(inputs)
    return None if held is None else _with_weights(min(held, read), read, written)


def _convolution(inputs: Inputs, read: float, written: float, told: Shapes) -> Roles | None:
    """The second operand and the vectors (bias) are weights; a residual that is added is none."""
    weight, bias = inputs.tensor(1), vectors(inputs)
    held = None if weight is None or bias is None or weight.bytes is None else weight.bytes + bias
    return None if held is None else _with_weights(min(held, read), read, written)


def _experts(inputs: Inputs, read: float, written: float, told: Shapes) -> Roles | None:
    up = inputs.tensor(1)
    if up is None or len(up.dims) != 3:  # routing and sums
        return plain(read, written)
    others = stored(inputs.tensor(slot) for slot in (0, 3, 4))
    return None if others is None else _with_weights(max(read - others, 0.0), read, written)


def of_activations(inputs: Inputs, read: float, written: float, told: Shapes) -> Roles | None:
    """Work on activations, if by their sizes these can be nothing else.

    A parameter is a vector or a matrix, or has the size of one that is told. Where products tell the rows of a step, a matrix
    of other size than all weights is an activation too, and so are indices and masks.
    """
    tensors = [*inputs.all_tensors, *(tensor for slot in range(len(inputs)) for tensor in inputs.tensors(slot) or [])]
    if told.has_weight(tensors):
        return None
    if any(len(tensor.dims) > 2 for tensor in tensors):
        return plain(read, written)
    counts = bool(tensors) and all((tensor.dtype or "").startswith(("int", "bool")) for tensor in tensors)
    matrix = any(len(tensor.dims) == 2 for tensor in tensors)
    return plain(read, written) if told.products and (matrix or counts) else None


def _copied(inputs: Inputs, read: float, written: float, told: Shapes) -> Roles | None:
    """A weight in another type or layout (autocast), or activations."""
    tensors = [tensor for tensor in inputs.all_tensors if tensor.dims]
    if tensors and all(tensor.dims in told.weights and tensor.dims[0] not in told.rows for tensor in tensors):
        return Roles(weight_read=read, weight_write=written)
    return of_activations(inputs, read, written, told)


def _embedding(inputs: Inputs, read: float, written: float, told: Shapes) -> Roles | None:
    """Rows looked up in a table that is no activation: the second slot is the index (aten::embedding)."""
    index = inputs.tensor(1)
    if index is None or index.dtype not in ("int64", "int32"):
        # aten::gather, aten::index_select: of anything, so of a matrix it is not told what it is
        deep = any(len(tensor.dims) > 2 for tensor in inputs.all_tensors)
        return of_activations(inputs, read, written, told) if deep else None
    held = index.bytes
    return None if held is None or held > read else Roles(weight_read=read - held, activation_read=held, activation_write=written)


_BY_CATEGORY: dict[Category, Callable[[Inputs, float, float, Shapes], Roles | None]] = {
    Category.NORM: _norm,
    Category.CONV: _convolution,
    Category.MOE: _experts,
    Category.EMBEDDING: _embedding,
    Category.COPY: _copied,
    **dict.fromkeys((Category.ELEMENTWISE, Category.REDUCTION, Category.FILL, Category.RNG, Category.SORT), of_activations),
    **dict.fromkeys((Category.SOFTMAX, Category.ROPE, Category.POOLING, Category.QUANTIZATION), _all_activations),
}
