"""Collectives: what a device reads and writes of its memory, and what each link must carry at least.

Factors of bus bandwidth are those of nccl-tests (doc/PERFORMANCE.md; reference/kineto.md 2.3): wire bytes of a call are
the size of its larger buffer times the factor.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.model import Work, sized, stored
from roofterm.analysis.costs.registry import register
from roofterm.analysis.costs.signature import ITEM_BYTES, Inputs, Tensor, dtype_name


class Collective(NamedTuple):
    """Bytes of one call on one device; None: unknown."""

    read_bytes: float | None
    write_bytes: float | None
    message_bytes: float | None
    """size by which bandwidths are counted: the larger of the two buffers"""
    wire_bytes: float | None
    """what a device's link carries in one direction at least"""


_KINDS: tuple[tuple[str, str], ...] = (
    ("all_reduce", r"all_?reduce"),
    ("reduce_scatter", r"reduce_?scatter"),
    ("all_gather", r"all_?gather"),
    ("all_to_all", r"all_?to_?all"),
    ("broadcast", r"broadcast"),
    ("reduce", r"reduce"),
    ("gather", r"gather"),
    ("scatter", r"scatter"),
    ("send_recv", r"send|recv|p2p"),
    ("barrier", r"barrier"),
    ("wait", r"wait"),
)


def collective_kind(name: str | None) -> str | None:
    """all_reduce, all_gather, ... for a name as torch, NCCL or XLA write it ("_allgather_base"); None if it is none."""
    plain = (name or "").casefold().replace("-", "_")
    return next((kind for kind, pattern in _KINDS if re.search(pattern, plain)), None)


def bus_factor(kind: str | None, ranks: int | None) -> float | None:
    """Wire bytes over message bytes for n ranks: all-reduce 2 (n-1)/n; all-gather, reduce-scatter, all-to-all (n-1)/n; else 1."""
    if kind in ("broadcast", "reduce", "send_recv", "gather", "scatter"):
        return 1.0
    if kind not in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all") or not ranks:
        return None
    share = (ranks - 1) / ranks
    return 2 * share if kind == "all_reduce" else share


def collective_cost(
    name: str | None, dtype: str | None, in_elements: int | None, out_elements: int | None, ranks: int | None
) -> Collective | None:
    """Bytes of a collective from its recorded arguments (Collective name, dtype, In and Out msg nelems, Group size)."""
    kind = collective_kind(name)
    item = ITEM_BYTES.get(dtype_name(dtype) or "")
    if item is None or kind in ("barrier", "wait"):
        return None
    read = None if in_elements is None else in_elements * item
    written = None if out_elements is None else out_elements * item
    sizes = [size for size in (read, written) if size is not None]
    if not sizes:
        return None
    message = max(sizes)
    factor = bus_factor(kind, ranks)
    return Collective(read, written, message, None if factor is None else message * factor)


_BUFFERS = "the buffer read once and written once; what the links carry needs the collective's arguments"


@register(Category.COMMUNICATION, _BUFFERS, "record_param_comms")
@register(Category.COMMUNICATION, _BUFFERS, "c10d::allreduce_", "c10d::broadcast_", "c10d::reduce_", "c10d::send", "c10d::recv_")
@register(Category.COMMUNICATION, _BUFFERS, "c10d::alltoall_base_", "c10d::alltoall_", "c10d::reduce_scatter_", "c10d::allgather_")
def _buffer(inputs: Inputs) -> Work | None:
    first = inputs.tensor(0)
    tensors = [first] if first is not None and first.dims else inputs.tensors(0)
    if not tensors or sum(tensor.elements for tensor in tensors) == 0:
        return None
    size = stored(tensors)
    return None if size is None else Work(0, size, size, tensors[0].dtype, estimate="the result's size is not recorded: as the input's")


@register(Category.COMMUNICATION, "result and input buffers by their shapes", "c10d::_allgather_base_", "c10d::_reduce_scatter_base_")
def _two_buffers(inputs: Inputs) -> Work | None:
    out, x = inputs.tensor(0), inputs.tensor(1)
    if out is None or x is None or out.elements == 0:
        return None
    return Work(0, stored((x,)), sized(out.elements, Tensor((), out.dtype)), x.dtype)


@register(Category.COMMUNICATION, _BUFFERS, "_c10d_functional::all_reduce", "_c10d_functional::all_reduce_", "_c10d_functional::broadcast")
@register(Category.COMMUNICATION, _BUFFERS, "_c10d_functional::all_to_all_single", "vllm::all_reduce")
def _alike(inputs: Inputs) -> Work | None:
    return _one(inputs.tensor(0), 1.0)


@register(Category.COMMUNICATION, "the input read, as many of it as there are ranks written", "_c10d_functional::all_gather_into_tensor")
def _gathered(inputs: Inputs) -> Work | None:
    ranks = inputs.integer(1)
    return _one(inputs.tensor(0), None if not ranks or ranks < 1 else float(ranks))


@register(Category.COMMUNICATION, "the input read, a rank's share of it written", "_c10d_functional::reduce_scatter_tensor")
def _scattered(inputs: Inputs) -> Work | None:
    ranks = inputs.integer(2)
    return _one(inputs.tensor(0), None if not ranks or ranks < 1 else 1 / ranks)


@register(Category.COMMUNICATION, "input and result by their shapes", "_C_custom_ar::all_reduce", "sgl_kernel::all_reduce")
def _custom_all_reduce(inputs: Inputs) -> Work | None:
    x, out = inputs.tensor(1), inputs.tensor(2)
    if x is None or out is None or x.elements == 0:
        return None
    return Work(0, x.bytes, sized(out.elements, out), x.dtype)


def _one(x: Tensor | None, written: float | None) -> Work | None:
    """`written`: how many times the input's size the result has; None: not recorded."""
    if x is None or not x.dims or x.elements == 0:
        return None
    return Work(0, x.bytes, None if written is None else sized(written * x.elements, x), x.dtype)
