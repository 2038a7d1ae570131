"""A decoder of four layers as Llama has them, over 2 x 4,096 tokens in bf16: its layer, forward and backward."""

from __future__ import annotations

from dataclasses import dataclass, field

from h100 import kernels, names, ops
from h100.machine import Host, Rank
from h100.tensors import FP32, Tensor, strides_of

BATCH, LENGTH, WIDTH, HEADS, GROUPS, HEAD, INNER, LAYERS, VOCABULARY = 2, 4096, 4096, 32, 8, 128, 14336, 4, 32000
TOKENS = BATCH * LENGTH

EMBEDDING = Tensor((VOCABULARY, WIDTH))
NORM_WEIGHT = Tensor((WIDTH,))
QUERY, KEY, VALUE, OUTPUT = Tensor((WIDTH, WIDTH)), Tensor((GROUPS * HEAD, WIDTH)), Tensor((GROUPS * HEAD, WIDTH)), Tensor((WIDTH, WIDTH))
GATE, UP, DOWN = Tensor((INNER, WIDTH)), Tensor((INNER, WIDTH)), Tensor((WIDTH, INNER))
HEAD_WEIGHT = Tensor((VOCABULARY, WIDTH))
LAYER = [QUERY, KEY, VALUE, OUTPUT, GATE, UP, DOWN, NORM_WEIGHT, NORM_WEIGHT]
PARAMETERS = [EMBEDDING, *(tensor for _ in range(LAYERS) for tensor in LAYER), NORM_WEIGHT, HEAD_WEIGHT]
ANGLES = Tensor((BATCH, 1, LENGTH, HEAD))
"""cosines, and sines, of the rotary embedding"""


@dataclass(slots=True)
class Layer:
    """What the backward of a layer needs."""

    norms: list[ops.Norm] = field(default_factory=list)
    linears: dict[str, ops.Linear] = field(default_factory=dict)
    nodes: dict[str, Host] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    attention: ops.Attention | None = None
    kept: list[Tensor] = field(default_factory=list)
    """all that its backward frees"""


def layer_forward(rank: Rank, x: Tensor) -> tuple[Tensor, Layer]:
    saved = Layer()
    normed, norm = ops.rms_norm(rank, x, NORM_WEIGHT)
    saved.norms.append(norm)
    heads: dict[str, Tensor] = {}
    for name, weight, count in (("q", QUERY, HEADS), ("k", KEY, GROUPS), ("v", VALUE, GROUPS)):
        flat, saved.linears[name] = ops.linear(rank, normed, weight)
        shape = (BATCH, LENGTH, count, HEAD)
        saved.nodes[f"{name} view"] = ops.viewed(rank, "aten::view", flat, shape, grad=True)
        split = flat.view(*shape)
        heads[name] = split.transposed(1, 2)
        saved.nodes[f"{name} transpose"] = ops.viewed(rank, "aten::transpose", split, 1, 2, out=heads[name], grad=True)
        saved.kept.append(flat)
    q, k = rotate(rank, heads["q"], saved, "q"), rotate(rank, heads["k"], saved, "k")
    saved.attention = ops.attention(rank, q, k, heads["v"])
    mixed = saved.attention.out
    with rank.op("aten::reshape", mixed, (BATCH, LENGTH, WIDTH)):
        saved.nodes["mixed"] = ops.viewed(rank, "aten::view", mixed, (BATCH, LENGTH, WIDTH), grad=True)
    projected, saved.linears["o"] = ops.linear(rank, mixed.view(BATCH, LENGTH, WIDTH), OUTPUT)
    between = ops.pointwise(rank, "aten::add", names.ADD, x, projected, 1, like=x, grad=True)
    rank.free(projected)
    second, norm = ops.rms_norm(rank, between, NORM_WEIGHT)
    saved.norms.append(norm)
    gate, saved.linears["gate"] = ops.linear(rank, second, GATE)
    opened = ops.pointwise(rank, "aten::silu", names.SILU, gate, like=gate, grad=True)
    saved.nodes["silu"] = rank.forward[rank.sequence - 1]
    up, saved.linears["up"] = ops.linear(rank, second, UP)
    inner = ops.pointwise(rank, "aten::mul", names.MUL, opened, up, like=up, grad=True)
    saved.nodes["mul"] = rank.forward[rank.sequence - 1]
    down, saved.linears["down"] = ops.linear(rank, inner, DOWN)
    out = ops.pointwise(rank, "aten::add", names.ADD, between, down, 1, like=between, grad=True)
    rank.free(down)
    saved.tensors = {"gate": gate, "opened": opened, "up": up}
    saved.kept += [normed, q, k, mixed, between, second, gate, opened, up, inner]
    return out, saved


def rotate(rank: Rank, x: Tensor, saved: Layer, name: str) -> Tensor:
    """Rotary embedding: x cos + rotate_half(x) sin; the angles are broadcast over the heads."""
    shape = x.shape
    half = Tensor((*shape[:3], HEAD // 2), strides=x.strides)
    dense = Tensor(shape)
    straight = ops.pointwise(rank, "aten::mul", names.MUL_STRIDED, x, ANGLES, like=dense, share=0.74, grad=True)
    saved.nodes[f"{name} straight"] = rank.forward[rank.sequence - 1]
    for first, last in ((0, HEAD // 2), (HEAD // 2, 2**63 - 1)):
        saved.nodes[f"{name} slice {first}"] = ops.viewed(rank, "aten::slice", x, 3, first, last, 1, out=half, grad=True)
    minus = ops.pointwise(rank, "aten::neg", names.NEG_STRIDED, half, like=Tensor(half.shape), share=0.72, grad=True)
    saved.nodes[f"{name} neg"] = rank.forward[rank.sequence - 1]
    with rank.op("aten::cat", [minus.view(*minus.shape), half], -1, grad=True) as saved.nodes[f"{name} cat"]:
        turned = rank.new(shape)
        rank.launch(kernels.streaming(rank.rng, names.CAT, turned.numel, 2 * turned.bytes, 0.76, 32))
    crossed = ops.pointwise(rank, "aten::mul", names.MUL_STRIDED, turned, ANGLES, like=dense, share=0.78, grad=True)
    saved.nodes[f"{name} crossed"] = rank.forward[rank.sequence - 1]
    out = ops.pointwise(rank, "aten::add", names.ADD, straight, crossed, 1, like=dense, grad=True)
    rank.free(straight, minus, turned, crossed)
    return out


def layer_backward(rank: Rank, saved: Layer, grad: Tensor) -> Tensor:
    assert saved.attention is not None
    nodes, linears, tensors = saved.nodes, saved.linears, saved.tensors
    inner_grad = ops.linear_backward(rank, linears["down"], grad)
    with rank.node("MulBackward0", nodes["mul"]):
        up_grad = ops.pointwise(rank, "aten::mul", names.MUL, inner_grad, tensors["opened"], like=inner_grad)
        opened_grad = ops.pointwise(rank, "aten::mul", names.MUL, inner_grad, tensors["up"], like=inner_grad)
    second_grad = ops.linear_backward(rank, linears["up"], up_grad)
    with rank.node("SiluBackward0", nodes["silu"]):
        gate_grad = ops.pointwise(
            rank, "aten::silu_backward", names.SILU_BACKWARD, opened_grad, tensors["gate"], like=opened_grad, share=0.88
        )
    second_grad = ops.linear_backward(rank, linears["gate"], gate_grad, second_grad)
    rank.free(inner_grad, up_grad, opened_grad, gate_grad)
    between_grad = ops.rms_norm_backward(rank, saved.norms[1], second_grad)
    ops.pointwise_into(rank, "aten::add_", names.ADD, grad, between_grad, 1)
    rank.free(second_grad, between_grad)
    mixed_grad = ops.linear_backward(rank, linears["o"], grad)
    with rank.node("ViewBackward0", nodes["mixed"]), rank.op("aten::reshape", mixed_grad, (BATCH, LENGTH, HEADS, HEAD)):
        ops.viewed(rank, "aten::view", mixed_grad, (BATCH, LENGTH, HEADS, HEAD))
    grads = dict(zip(("q", "k", "v"), ops.attention_backward(rank, saved.attention, mixed_grad), strict=True))
    rank.free(mixed_grad)
    normed_grad: Tensor | None = None
    for name, count in (("v", GROUPS), ("k", GROUPS), ("q", HEADS)):
        if name != "v":
            grads[name] = rotate_backward(rank, grads[name], saved, name)
        split = Tensor((BATCH, count, LENGTH, HEAD))
        with rank.node("TransposeBackward0", nodes[f"{name} transpose"]):
            ops.viewed(rank, "aten::transpose", split, 1, 2, out=split.transposed(1, 2))
        flat = grads[name].view(BATCH, LENGTH, count * HEAD)
        with rank.node("ViewBackward0", nodes[f"{name} view"]), rank.op("aten::reshape", split.transposed(1, 2), flat.shape):
            ops.viewed(rank, "aten::view", split.transposed(1, 2), flat.shape)
        normed_grad = ops.linear_backward(rank, linears[name], flat, normed_grad)
        rank.free(grads[name])
    assert normed_grad is not None
    x_grad = ops.rms_norm_backward(rank, saved.norms[0], normed_grad)
    ops.pointwise_into(rank, "aten::add_", names.ADD, grad, x_grad, 1)
    rank.free(normed_grad, x_grad, *saved.kept)
    return grad


def rotate_backward(rank: Rank, grad: Tensor, saved: Layer, name: str) -> Tensor:
    """Gradient of what was rotated: through the sines, the cat, the negation and the slices, and through the cosines."""
    dense = Tensor((grad.shape[0], grad.shape[2], grad.shape[1], HEAD))
    half = Tensor((*dense.shape[:3], HEAD // 2), strides=strides_of(dense))
    seen = grad.view(*dense.shape)
    with rank.node("MulBackward0", saved.nodes[f"{name} crossed"]):
        crossed = ops.pointwise(rank, "aten::mul", names.MUL_STRIDED, seen, ANGLES, like=dense, share=0.78)
    with rank.node("CatBackward0", saved.nodes[f"{name} cat"]):
        for first in (0, HEAD // 2):
            with rank.op("aten::narrow", crossed, -1, first, HEAD // 2):
                ops.viewed(rank, "aten::slice", crossed, -1, first, first + HEAD // 2, 1, out=half)
    with rank.node("NegBackward0", saved.nodes[f"{name} neg"]):
        minus = ops.pointwise(rank, "aten::neg", names.NEG_STRIDED, half, like=Tensor(half.shape), share=0.72)
    parts = []
    for first in (HEAD // 2, 0):
        with (
            rank.node("SliceBackward0", saved.nodes[f"{name} slice {first}"]),
            rank.op("aten::slice_backward", half, dense.shape, 3, first, first + HEAD // 2, 1),
        ):
            padded = zeros(rank, dense)
            ops.viewed(rank, "aten::slice", padded, 3, first, first + HEAD // 2, 1, out=half)
            with rank.op("aten::copy_", half, half, False):
                rank.launch(kernels.streaming(rank.rng, names.COPY_STRIDED, half.numel, 2 * half.bytes, 0.72))
        parts.append(padded)
    with rank.node("MulBackward0", saved.nodes[f"{name} straight"]):
        straight = ops.pointwise(rank, "aten::mul", names.MUL_STRIDED, seen, ANGLES, like=dense, share=0.78)
    for part in parts:
        ops.pointwise_into(rank, "aten::add_", names.ADD, straight, part, 1)
    rank.free(crossed, minus, *parts, grad)
    return straight


def zeros(rank: Rank, like: Tensor) -> Tensor:
    with rank.op("aten::zeros", like.shape, None, None, None, None):
        with rank.op("aten::empty", like.shape, None, None, None, None, None):
            out = rank.new(like.shape, like.dtype)
        fill(rank, out)
    return out


def fill(rank: Rank, target: Tensor) -> None:
    with rank.op("aten::zero_", target), rank.op("aten::fill_", target, 0):
        name = names.FILL_FP32 if target.dtype == FP32 else names.FILL
        rank.launch(kernels.streaming(rank.rng, name, target.numel, target.bytes, 0.88, 16))
