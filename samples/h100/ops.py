"""Operators of a decoder as PyTorch runs them: the host's calls, the kernels behind them, and their backward."""

from __future__ import annotations

from dataclasses import dataclass

from h100 import kernels, names
from h100.machine import Host, Rank
from h100.tensors import FP32, Input, Tensor, strides_of


def pointwise(rank: Rank, op: str, name: str, *inputs: Input, like: Tensor, share: float = 0.86, grad: bool = False) -> Tensor:
    """An elementwise op whose result is new and looks like `like`; its operands are read once and its result written once."""
    with rank.op(op, *inputs, grad=grad):
        out = rank.new(like.shape, like.dtype)
        read = sum(value.bytes for value in inputs if isinstance(value, Tensor))
        rank.launch(kernels.streaming(rank.rng, name, out.numel, read + out.bytes, share))
    return out


def viewed(rank: Rank, op: str, x: Tensor, *inputs: Input, out: Tensor | None = None, grad: bool = False) -> Host:
    """A view: no kernel, no memory. `out`: what it looks like, where the op makes it by `as_strided`."""
    with rank.op(op, x, *inputs, grad=grad) as event:
        if out:
            with rank.op("aten::as_strided", x, out.shape, strides_of(out), None):
                pass
    return event


def turned(rank: Rank, x: Tensor, grad: bool = False) -> Host:
    """The transpose of a matrix."""
    with rank.op("aten::t", x, grad=grad) as event:
        viewed(rank, "aten::transpose", x, 0, 1, out=x.transposed(0, 1))
    return event


@dataclass(slots=True)
class Linear:
    """What the backward of a linear layer needs."""

    x: Tensor
    weight: Tensor
    transposed: Host
    flattened: Host
    product: Host
    shaped: Host


def linear(rank: Rank, x: Tensor, weight: Tensor) -> tuple[Tensor, Linear]:
    """x [batch, length, k] by weight [n, k]."""
    batch, length, k = x.shape
    n, rows = weight.shape[0], batch * length
    flat = x.view(rows, k)
    with rank.op("aten::linear", x, weight, None):
        transposed = turned(rank, weight, grad=True)
        with rank.op("aten::matmul", x, weight.transposed(0, 1)):
            flattened = viewed(rank, "aten::view", x, (rows, k), grad=True)
            with rank.op("aten::mm", flat, weight.transposed(0, 1), grad=True) as product:
                out = rank.new((batch, length, n))
                rank.launch(kernels.gemm(rank.rng, rows, n, k, "TNT"))
            shaped = viewed(rank, "aten::_unsafe_view", out.view(rows, n), (batch, length, n), grad=True)
    return out, Linear(x, weight, transposed, flattened, product, shaped)


def linear_backward(rank: Rank, saved: Linear, grad: Tensor, out: Tensor | None = None) -> Tensor:
    """Gradient of x; that of the weight goes into its bucket. `out`: another gradient of x, to be added to this one."""
    batch, length, k = saved.x.shape
    n, rows = saved.weight.shape[0], batch * length
    flat, x = grad.view(rows, n), saved.x.view(rows, k)
    with rank.node("UnsafeViewBackward0", saved.shaped), rank.op("aten::reshape", grad, (rows, n)):
        viewed(rank, "aten::view", grad, (rows, n))
    with rank.node("MmBackward0", saved.product):
        turned(rank, x)
        with rank.op("aten::mm", x.transposed(0, 1), flat):
            weight_grad = rank.new((k, n))
            rank.launch(kernels.gemm(rank.rng, k, n, rows, "NTN"))
        turned(rank, saved.weight.transposed(0, 1))
        with rank.op("aten::mm", flat, saved.weight):
            x_grad = rank.new((batch, length, k))
            rank.launch(kernels.gemm(rank.rng, rows, k, n, "NNN"))
    with rank.node("ViewBackward0", saved.flattened), rank.op("aten::reshape", x_grad.view(rows, k), (batch, length, k)):
        viewed(rank, "aten::view", x_grad.view(rows, k), (batch, length, k))
    if out is not None:
        pointwise_into(rank, "aten::add_", names.ADD, out, x_grad, 1)
        rank.free(x_grad)
        x_grad = out
    with rank.node("TBackward0", saved.transposed):
        turned(rank, weight_grad.view(k, n))
    accumulate(rank, weight_grad, weight_grad.view(k, n).transposed(0, 1))
    return x_grad


def pointwise_into(rank: Rank, op: str, name: str, target: Tensor, *inputs: Input) -> None:
    """An elementwise op that writes over its first operand."""
    with rank.op(op, target, *inputs):
        read = target.bytes + sum(value.bytes for value in inputs if isinstance(value, Tensor))
        rank.launch(kernels.streaming(rank.rng, name, target.numel, read + target.bytes))


def accumulate(rank: Rank, gradient: Tensor, seen_as: Tensor) -> None:
    """A parameter's gradient is done: DDP scales it into its bucket and the tensor goes."""
    with rank.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"):
        with rank.op("torch::autograd::AccumulateGrad"), rank.op("aten::detach", seen_as), rank.op("detach", seen_as):
            pass
        with rank.op("torch::distributed::reducer::mul_out"), rank.op("aten::mul", seen_as, Tensor((), FP32)):
            moved = 2 * gradient.bytes
            rank.launch(kernels.streaming(rank.rng, names.MUL_BY_NUMBER, gradient.numel, moved))
    rank.free(gradient)


@dataclass(slots=True)
class Norm:
    x: Tensor
    weight: Tensor
    done: Host
    inverse: Tensor


def rms_norm(rank: Rank, x: Tensor, weight: Tensor) -> tuple[Tensor, Norm]:
    width = x.shape[-1]
    rows = x.numel // width
    with (
        rank.op("aten::rms_norm", x, (width,), weight, 1e-05),
        rank.op("aten::_fused_rms_norm", x, (width,), weight, 1e-05, grad=True) as done,
    ):
        out = rank.new(x.shape)
        inverse = rank.new((*x.shape[:-1], 1), FP32)
        rank.launch(kernels.by_rows(rank.rng, names.RMS_NORM, rows, x.bytes + out.bytes + weight.bytes + inverse.bytes, 0.84))
    return out, Norm(x, weight, done, inverse)


def rms_norm_backward(rank: Rank, saved: Norm, grad: Tensor) -> Tensor:
    width = saved.x.shape[-1]
    rows = saved.x.numel // width
    with (
        rank.node("FusedRmsNormBackward0", saved.done),
        rank.op("aten::_fused_rms_norm_backward", grad, saved.x, (width,), saved.inverse, saved.weight, None),
    ):
        out = rank.new(saved.x.shape)
        rank.launch(kernels.by_rows(rank.rng, names.RMS_NORM_BACKWARD, rows, grad.bytes + saved.x.bytes + out.bytes, 0.8))
        weight_grad = rank.new((width,))
        rank.launch(kernels.by_rows(rank.rng, names.RMS_NORM_WEIGHT, width // 32, grad.bytes + saved.x.bytes, 0.72, 1024, 8448))
    accumulate(rank, weight_grad, weight_grad.view(width))
    rank.free(saved.inverse)
    return out


@dataclass(slots=True)
class Attention:
    q: Tensor
    k: Tensor
    v: Tensor
    out: Tensor
    weights: Tensor
    """log of the softmax's sum, row by row"""
    done: Host


def attention(rank: Rank, q: Tensor, k: Tensor, v: Tensor) -> Attention:
    """Causal attention of q [batch, heads, length, width] with k and v of fewer heads."""
    batch, heads, length, width = q.shape
    with (
        rank.op("aten::scaled_dot_product_attention", q, k, v, None, 0.0, True, None, True),
        rank.op("aten::_scaled_dot_product_flash_attention", q, k, v, 0.0, True, False, None, grad=True) as done,
    ):
        for tensor in (q, k, v):
            viewed(rank, "aten::transpose", tensor, 1, 2, out=tensor.transposed(1, 2))
        with rank.op(
            "aten::_flash_attention_forward",
            *(tensor.transposed(1, 2) for tensor in (q, k, v)),
            None,
            None,
            length,
            length,
            0.0,
            True,
            False,
            None,
            None,
            None,
            None,
            None,
        ):
            out = rank.new((batch, length, heads, width))
            weights = rank.new((batch, heads, length), FP32)
            rank.launch(kernels.attention_forward(rank.rng, batch, heads, length, width))
        viewed(rank, "aten::transpose", out, 1, 2, out=out.transposed(1, 2))
    return Attention(q, k, v, out, weights, done)


def attention_backward(rank: Rank, saved: Attention, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v in [batch, length, heads, width]."""
    batch, heads, length, width = saved.q.shape
    groups = saved.k.shape[1]
    q, k, v = (tensor.transposed(1, 2) for tensor in (saved.q, saved.k, saved.v))
    seen = grad.view(batch, length, heads, width)
    rest: tuple[Input, ...] = (saved.weights, None, None, length, length, 0.0, True, None, None, None)
    with (
        rank.node("ScaledDotProductFlashAttentionBackward0", saved.done),
        rank.op(
            "aten::_scaled_dot_product_flash_attention_backward",
            seen.transposed(1, 2), saved.q, saved.k, saved.v, saved.out.transposed(1, 2), *rest,
        ),
    ):  # fmt: skip
        for tensor in (seen.transposed(1, 2), saved.q, saved.k, saved.v):
            viewed(rank, "aten::transpose", tensor, 1, 2, out=tensor.transposed(1, 2))
        with rank.op("aten::_flash_attention_backward", seen, q, k, v, saved.out, *rest):
            q_grad = rank.new((batch, length, heads, width))
            wide = [rank.new((batch, length, heads, width)) for _ in range(2)]
            sums = rank.new((batch, heads, length, width), FP32)
            rank.clear(sums.bytes)
            rank.launch(kernels.by_rows(rank.rng, names.FLASH_DOT, batch * heads * length // 64, 2 * grad.bytes, 0.78, 256))
            rank.launch(kernels.attention_backward(rank.rng, batch, heads, length, width))
            rank.launch(kernels.by_rows(rank.rng, names.FLASH_CONVERT, batch * heads * length // 64, sums.bytes + q_grad.bytes, 0.8, 256))
            grads = [q_grad]
            for tensor in wide:
                with rank.op("aten::sum", tensor.view(batch, length, groups, heads // groups, width), (3,), False, None):
                    narrow = rank.new((batch, length, groups, width))
                    rank.launch(kernels.streaming(rank.rng, names.SUM, narrow.numel, tensor.bytes + narrow.bytes, 0.8, 40))
                grads.append(narrow)
            rank.free(*wide, sums)
    rank.free(saved.weights)
    return grads[0], grads[1], grads[2]
