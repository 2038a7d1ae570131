"""One training step as a user's loop has it: batch, forward, loss, backward under DDP, clipping, AdamW, and the loss read now and then."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from h100 import kernels, model, names, ops
from h100.machine import COLLECTIVE_STREAM, COMPUTE_STREAM, Host, Rank
from h100.model import BATCH, LENGTH, TOKENS, VOCABULARY, WIDTH
from h100.tensors import FP32, INT64, Tensor

WORLD = 8


@dataclass(frozen=True, slots=True)
class Arrival:
    """A rank has come to an all-reduce: from here on it waits for the others."""

    start: int
    bytes: int


Together = Generator[Arrival, int, None]
"""A piece of a step that stops at each all-reduce, and is sent the time at which all ranks are through with it."""


def train_step(rank: Rank, number: int, reads_loss: bool, stall_us: float = 0.0) -> Together:
    """Step `number`; `reads_loss` ends it with `.item()`, and `stall_us` is what the loader keeps it waiting."""
    rank.thread = rank.main_thread
    with rank.annotation(f"ProfilerStep#{number}") as window:
        tokens, labels = next_batch(rank, stall_us)
        with rank.annotation("Optimizer.zero_grad#AdamW.zero_grad"):
            rank.think(60, 90)
        with rank.annotation("DistributedDataParallel.forward"):
            x, layers, embedded = decoder(rank, tokens)
            final, norm = ops.rms_norm(rank, x, model.NORM_WEIGHT)
            logits, head = ops.linear(rank, final, model.HEAD_WEIGHT)
        loss = cross_entropy(rank, logits, labels)
        rank.think(40, 70)
        rank.thread = rank.autograd_thread
        gradient = cross_entropy_backward(rank, loss, labels)
        x_grad = ops.linear_backward(rank, head, gradient)
        rank.free(gradient)
        yield from all_reduce(rank, model.HEAD_WEIGHT.bytes)
        grad = ops.rms_norm_backward(rank, norm, x_grad)
        rank.free(x_grad, final, x)
        for layer, source in reversed(layers):
            grad = model.layer_backward(rank, layer, grad)
            rank.free(source)
            yield from all_reduce(rank, sum(weight.bytes for weight in model.LAYER))
        embedding_backward(rank, grad, tokens, embedded)
        rank.free(grad)
        yield from all_reduce(rank, model.EMBEDDING.bytes)
        rank.wait_for(COMPUTE_STREAM, COLLECTIVE_STREAM)
        rank.thread = rank.main_thread
        rank.think(30, 50)
        clip(rank)
        update(rank)
        if reads_loss:
            read_loss(rank, loss.value)
        rank.free(loss.value, tokens, labels)
    if rank.recording:
        rank.windows.append(window)


def next_batch(rank: Rank, stall_us: float) -> tuple[Tensor, Tensor]:
    with rank.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
        rank.think(900 + stall_us, 1300 + stall_us)
    device = []
    for _ in range(2):
        host = Tensor((BATCH, LENGTH), INT64)
        with (
            rank.op("aten::to", host, None, None, None, None, True, False, None),
            rank.op("aten::_to_copy", host, None, None, None, None, True, None),
        ):
            with rank.op("aten::empty_strided", (BATCH, LENGTH), (LENGTH, 1), None, None, None, None):
                device.append(rank.new((BATCH, LENGTH), INT64))
            with rank.op("aten::copy_", device[-1], host, True):
                rank.copy("HtoD (Pinned -> Device)", host.bytes, 21.0)
    return device[0], device[1]


def decoder(rank: Rank, tokens: Tensor) -> tuple[Tensor, list[tuple[model.Layer, Tensor]], Host]:
    """The last hidden state, each layer with what it was given, and the embedding's node."""
    with rank.op("aten::embedding", model.EMBEDDING, tokens, -1, False, False, grad=True) as embedded:
        with rank.op("aten::reshape", tokens, (TOKENS,)):
            ops.viewed(rank, "aten::view", tokens, (TOKENS,))
        with rank.op("aten::index_select", model.EMBEDDING, 0, tokens.view(TOKENS)):
            x = rank.new((BATCH, LENGTH, WIDTH))
            rank.launch(kernels.by_rows(rank.rng, names.GATHER, TOKENS, 2 * x.bytes, 0.8, 256, 0))
    layers = []
    for _ in range(model.LAYERS):
        source = x
        x, layer = model.layer_forward(rank, source)
        layers.append((layer, source))
    return x, layers, embedded


@dataclass(slots=True)
class Loss:
    value: Tensor
    logits: Tensor
    wide: Tensor
    scores: Tensor
    nodes: dict[str, Host]


def cross_entropy(rank: Rank, logits: Tensor, labels: Tensor) -> Loss:
    """In float32, as models do it: the logits are copied, then log-softmax and the mean over the tokens."""
    nodes: dict[str, Host] = {}
    shape = (TOKENS, VOCABULARY)
    nodes["flat"] = ops.viewed(rank, "aten::view", logits, shape, grad=True)
    flat = logits.view(*shape)
    with (
        rank.op("aten::to", flat, 6, False, False, None),
        rank.op("aten::_to_copy", flat, 6, None, None, None, False, None, grad=True) as nodes["to"],
    ):
        with rank.op("aten::empty_strided", shape, (VOCABULARY, 1), 6, None, None, None):
            wide = rank.new(shape, FP32)
        with rank.op("aten::copy_", wide, flat, False):
            rank.launch(kernels.streaming(rank.rng, names.TO_FP32, wide.numel, wide.bytes + flat.bytes, 0.87))
    with rank.op("aten::cross_entropy_loss", wide, labels.view(TOKENS), None, 1, -100, 0.0):
        with rank.op("aten::log_softmax", wide, 1, None), rank.op("aten::_log_softmax", wide, 1, False, grad=True) as nodes["softmax"]:
            scores = rank.new(shape, FP32)
            rank.launch(kernels.by_rows(rank.rng, names.LOG_SOFTMAX, TOKENS, 2 * wide.bytes, 0.79, 1024))
        mean = (scores, labels.view(TOKENS), None, 1, -100)
        with (
            rank.op("aten::nll_loss_nd", *mean),
            rank.op("aten::nll_loss", *mean),
            rank.op("aten::nll_loss_forward", *mean, grad=True) as nodes["loss"],
        ):
            value = rank.new((), FP32)
            rank.launch(kernels.small(rank.rng, names.NLL_LOSS, 1, 32))
    return Loss(value, logits, wide, scores, nodes)


def cross_entropy_backward(rank: Rank, loss: Loss, labels: Tensor) -> Tensor:
    """Gradient of the logits, [batch, length, vocabulary] in bf16."""
    with (
        rank.node("NllLossBackward0", loss.nodes["loss"]),
        rank.op("aten::nll_loss_backward", Tensor((), FP32), loss.scores, labels.view(TOKENS), None, 1, -100, Tensor((), FP32)),
    ):
        picked = rank.new(loss.scores.shape, FP32)
        model.fill(rank, picked)
        rank.launch(kernels.small(rank.rng, names.NLL_LOSS_BACKWARD, 1, 32))
    with rank.node("LogSoftmaxBackward0", loss.nodes["softmax"]), rank.op("aten::_log_softmax_backward_data", picked, loss.scores, 1, 6):
        wide = rank.new(loss.scores.shape, FP32)
        rank.launch(kernels.by_rows(rank.rng, names.LOG_SOFTMAX_BACKWARD, TOKENS, 3 * wide.bytes, 0.81, 1024))
    rank.free(picked, loss.scores, loss.wide)
    with (
        rank.node("ToCopyBackward0", loss.nodes["to"]),
        rank.op("aten::to", wide, 15, False, False, None),
        rank.op("aten::_to_copy", wide, 15, None, None, None, False, None),
    ):
        with rank.op("aten::empty_strided", wide.shape, (VOCABULARY, 1), 15, None, None, None):
            out = rank.new((BATCH, LENGTH, VOCABULARY))
        with rank.op("aten::copy_", out.view(TOKENS, VOCABULARY), wide, False):
            rank.launch(kernels.streaming(rank.rng, names.TO_BF16, out.numel, wide.bytes + out.bytes, 0.87))
    rank.free(wide, loss.logits)
    with rank.node("ViewBackward0", loss.nodes["flat"]), rank.op("aten::reshape", out.view(TOKENS, VOCABULARY), out.shape):
        ops.viewed(rank, "aten::view", out.view(TOKENS, VOCABULARY), out.shape)
    return out


def embedding_backward(rank: Rank, grad: Tensor, tokens: Tensor, node: Host) -> None:
    """Sorts the tokens, adds the gradients of equal ones, scatters the sums into zeros as large as the embedding."""
    flat = grad.view(TOKENS, WIDTH)
    with (
        rank.node("EmbeddingBackward0", node),
        rank.op("aten::embedding_backward", grad, tokens, VOCABULARY, -1, False, False),
        rank.op("aten::embedding_dense_backward", grad, tokens, VOCABULARY, -1, False),
    ):
        table = model.zeros(rank, model.EMBEDDING)
        rank.clear(3072)
        rank.launch(kernels.small(rank.rng, names.RADIX_HISTOGRAM, 8))
        for _ in range(4):
            rank.launch(kernels.small(rank.rng, names.RADIX_SORT, 3, 384))
        rank.launch(kernels.by_rows(rank.rng, names.EMBEDDING_PARTS, TOKENS // 4, flat.bytes + flat.bytes // 2, 0.72, 128))
        rank.launch(kernels.by_rows(rank.rng, names.EMBEDDING_SUM, TOKENS // 2, flat.bytes, 0.7, 128))
    ops.accumulate(rank, table, table.view(VOCABULARY, WIDTH))


def all_reduce(rank: Rank, message_bytes: int) -> Together:
    """A bucket is full: DDP starts its all-reduce on the stream of the collectives, behind what fills the bucket."""
    elements = message_bytes // 2
    bucket = Tensor((elements,))
    facts = {
        "Collective name": "allreduce",
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": WORLD,
        "dtype": "BFloat16",
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": str(list(range(WORLD))),
    }
    more = {"Rank": rank.number, "Global rank start": 0, "Global rank stride": 1}
    with (
        rank.op("c10d::allreduce_", [bucket], None, None, None, True, -1),
        rank.op("record_param_comms", [bucket], rank.sequence, (0,), rank.number, None, (), (), 0, 1, WORLD, args={**facts, **more}),
    ):
        rank.wait_for(COLLECTIVE_STREAM, COMPUTE_STREAM)
        with rank.annotation("nccl:all_reduce"):
            call = rank.call("cudaLaunchKernelExC", 5.0, 9.0)
            start = rank.earliest(call, COLLECTIVE_STREAM)
            end = yield Arrival(start, message_bytes)
            kernel = kernels.Kernel(names.ALL_REDUCE, (24, 1, 1), (640, 1, 1), 96, 82240, end - start, role="collective")
            rank.run("kernel", kernel.name, COLLECTIVE_STREAM, start, end - start, call, facts, kernel)


def clip(rank: Rank) -> None:
    """`clip_grad_norm_`: norms of all gradients, the norm of these, a factor, and all gradients times it."""
    elements = sum(parameter.numel for parameter in model.PARAMETERS)
    count = len(model.PARAMETERS)
    with rank.op("aten::_foreach_norm", model.PARAMETERS, 2, None):
        rank.clear(4 * 17312)
        for kernel in kernels.over_tensor_lists(rank.rng, names.LIST_NORM, elements, 2, 0.87):
            rank.launch(kernel)
        rank.launch(kernels.small(rank.rng, names.NORM_CLEANUP, count, 512))
    scalar = Tensor((), FP32)
    with rank.op("aten::stack", [scalar] * count, 0), rank.op("aten::cat", [Tensor((1,), FP32)] * count, 0):
        rank.launch(kernels.small(rank.rng, names.CAT, 2, 128))
    with rank.op("aten::linalg_vector_norm", Tensor((count,), FP32), 2, None, False, None):
        rank.launch(kernels.small(rank.rng, names.NORM_OF_NORMS, 1, 64))
    for op, name, inputs in (
        ("aten::add", names.ADD_NUMBER, (scalar, 1e-06, 1)),
        ("aten::reciprocal", names.RECIPROCAL, (scalar,)),
        ("aten::mul", names.MUL_BY_NUMBER, (scalar, 1.0)),
        ("aten::clamp", names.CLAMP, (scalar, None, 1.0)),
    ):
        with rank.op(op, *inputs):
            rank.launch(kernels.small(rank.rng, name))
    with rank.op("aten::_foreach_mul_", model.PARAMETERS, scalar):
        for kernel in kernels.over_tensor_lists(rank.rng, names.LIST_MUL, elements, 4):
            rank.launch(kernel)


def update(rank: Rank) -> None:
    """AdamW, fused: reads parameter, gradient and two moments of each element, writes all but the gradient."""
    elements = sum(parameter.numel for parameter in model.PARAMETERS)
    lists = [model.PARAMETERS] * 4
    steps = [Tensor((), FP32)] * len(model.PARAMETERS)
    with (
        rank.annotation("Optimizer.step#AdamW.step"),
        rank.op("aten::_fused_adamw_", *lists, [], steps, 0.0003, 0.9, 0.95, 0.1, 1e-08, False, False, None, None),
    ):
        for kernel in kernels.over_tensor_lists(rank.rng, names.ADAMW, elements, 14, 0.83):
            rank.launch(kernel)


def read_loss(rank: Rank, loss: Tensor) -> None:
    """`loss.item()`, and the next learning rate sent from memory that is not pinned: the host waits for the device twice."""
    with rank.op("aten::item", loss), rank.op("aten::_local_scalar_dense", loss):
        rank.copy("DtoH (Device -> Pinned)", 4, 1.0)
        rank.synchronize("cudaStreamSynchronize")
    rank.think(250, 400)
    rate = Tensor((), FP32)
    with rank.op("aten::copy_", rate, rate, False):
        rank.copy("HtoD (Pageable -> Device)", 4, 1.0)
        rank.synchronize("cudaStreamSynchronize")
