"""What bytes are in the parts of a step that only training has: backward passes, gradients of weights, optimizers.

A backward product is told by the forward product that it belongs to, [M, K] by [K, N]: the gradient of its input is
[M, N] by the weight [N, K], that of its weight [K, M] by [M, N] or [N, M] by [M, K] (autograd's formulas of mm and addmm).
"""

from __future__ import annotations

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs import Cost
from roofterm.analysis.costs.convolution import BACKWARD
from roofterm.analysis.costs.model import stored
from roofterm.analysis.costs.signature import Inputs, Tensor
from roofterm.analysis.op_roles import Circumstances, Roles, forward_roles, is_of_activations, is_transposed, of_activations, plain, vectors
from roofterm.analysis.surroundings import Place
from roofterm.analysis.told_shapes import Product, Shapes


def roles(name: str, inputs: Inputs, found: Cost, around: Circumstances) -> Roles | None:
    """The roles of one call's bytes, wherever in a step it runs. `found`: what it costs; None: nothing tells them."""
    read, written = found.read_bytes, found.write_bytes
    if around.place == Place.FORWARD or read is None or written is None or found.category in (Category.ATTENTION, Category.KV_CACHE):
        return forward_roles(name, inputs, found, around)
    bare = name.partition(".")[0]
    if around.place == Place.OPTIMIZER:
        return _optimizer(bare, inputs, read, written)
    if around.place == Place.GRADIENT:
        return Roles(gradient_read=read, gradient_write=written)
    return _backward(bare, inputs, found.category, read, written, around)


def _backward(name: str, inputs: Inputs, category: Category, read: float, written: float, around: Circumstances) -> Roles | None:
    if category == Category.GEMM:
        return _product(name, inputs, read, written, around)
    if category == Category.CONV:
        return _convolution(name, inputs, read, written)
    if category == Category.NORM:
        return _norm(inputs, read, written)
    if category == Category.EMBEDDING and name == "aten::embedding_dense_backward":
        return Roles(activation_read=read, gradient_write=written)
    if category in (Category.SOFTMAX, Category.POOLING) or name in _OF_ACTIVATIONS:
        return plain(read, written)
    if category == Category.COMMUNICATION:
        return None
    tensors = [tensor for tensor in inputs.all_tensors if tensor.dims]
    if tensors and all(tensor.dims in around.told.weights and tensor.dims[0] not in around.told.rows for tensor in tensors):
        return Roles(gradient_read=read, gradient_write=written)
    return of_activations(inputs, read, written, around.told)


_OF_ACTIVATIONS = frozenset(
    f"aten::{name}_backward"
    for name in (
        "threshold", "gelu", "silu", "sigmoid", "tanh", "mish", "hardswish", "hardsigmoid", "hardtanh", "leaky_relu", "elu", "softplus",
        "glu", "native_dropout", "log_sigmoid", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "nll_loss",
        "nll_loss2d", "rrelu_with_noise",
    )
)  # fmt: skip
"""Elementwise backwards of what is applied to activations alone."""


def _product(name: str, inputs: Inputs, read: float, written: float, around: Circumstances) -> Roles | None:
    """Gradient of the input (reads the weight) or of the weight (writes its gradient)."""
    a, b = inputs.tensor(0), inputs.tensor(1)
    if name not in ("aten::mm", "aten::_scaled_mm") or a is None or b is None or not len(a.dims) == len(b.dims) == 2:
        return plain(read, written) if is_of_activations(name, inputs, around) else None
    of_input, of_weight = _readings(a, b, around.told)
    if of_input and of_weight:
        # Sizes fit both: autograd transposes the first operand for the gradient of a weight, and never for that of an input.
        if a.strides is None or b.strides is None:
            return None
        of_input, of_weight = not is_transposed(a), is_transposed(a) and not is_transposed(b)
    if of_input:
        weight = stored((b,))
        return None if weight is None else Roles(weight_read=weight, activation_read=read - weight, activation_write=written)
    return Roles(activation_read=read, gradient_write=written) if of_weight else None


def _readings(a: Tensor, b: Tensor, told: Shapes) -> tuple[bool, bool]:
    """Whether a product can be the gradient of an input, and of a weight, of one of the forward products that are told."""
    rows, inner, columns = *a.dims, b.dims[1]
    of_input = Product(rows, columns, inner) in told.products
    return of_input, Product(inner, rows, columns) in told.products or Product(inner, columns, rows) in told.products


def _convolution(name: str, inputs: Inputs, read: float, written: float) -> Roles | None:
    """What the mask asks for: the input's gradient reads the weight, the weight's and the bias' gradients are written."""
    places = BACKWARD.get(name)
    if places is None:
        return None
    x, weight = inputs.tensor(places.x), inputs.tensor(places.weight)
    size = None if x is None or x.item_bytes is None else x.elements * x.item_bytes
    if size is None or weight is None or weight.bytes is None:
        return None
    mask = inputs.flags(places.mask)
    of_input = mask is None or len(mask) < 2 or mask[0]
    held, onward = (weight.bytes, size) if of_input else (0.0, 0.0)
    return Roles(weight_read=held, activation_read=read - held, activation_write=onward, gradient_write=written - onward)


def _norm(inputs: Inputs, read: float, written: float) -> Roles | None:
    """The scale is read, the gradients of scale and shift are written: the result beside that of the input."""
    held = vectors(inputs)
    onward = next((tensor for tensor in inputs.all_tensors if len(tensor.dims) > 1), None)
    size = None if onward is None or onward.item_bytes is None else onward.elements * onward.item_bytes
    if held is None or size is None or size > written:
        return None
    weight = min(held, max(0.0, read - 2 * size))
    return Roles(weight_read=weight, activation_read=read - weight, activation_write=size, gradient_write=written - size)


def _optimizer(name: str, inputs: Inputs, read: float, written: float) -> Roles | None:
    """A fused step by its lists of parameters, gradients and states; of single ops nothing tells parameters from states."""
    if name not in _FUSED:
        return Roles(optimizer_read=read, optimizer_write=written)
    parameters, gradients = (stored(inputs.tensors(slot) or ()) for slot in (0, 1))
    if parameters is None or gradients is None:
        return None
    return Roles(
        weight_read=parameters,
        gradient_read=gradients,
        optimizer_read=max(0.0, read - parameters - gradients),
        weight_write=parameters,
        optimizer_write=max(0.0, written - parameters),
    )


_FUSED = frozenset(("aten::_fused_adam_", "aten::_fused_adamw_", "aten::_fused_sgd_", "aten::_fused_adagrad_"))
