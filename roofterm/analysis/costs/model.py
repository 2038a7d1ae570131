"""What one call of an op costs."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from roofterm.analysis.categories.kinds import TENSOR_CATEGORIES, Category
from roofterm.analysis.costs.signature import Tensor


class Cost(msgspec.Struct, frozen=True):
    """FLOPs and compulsory bytes of one call (definitions.md, Work); None: cannot be told from what was recorded."""

    category: Category
    flops: float | None
    """executed work, 2 per multiply-add"""
    model_flops: float | None
    """without recomputation: the backward of attention counts 4 products, not 5"""
    whole_flops: float | None
    """model_flops with causal attention counted whole, as PaLM's and torchtitan's MFU do"""
    read_bytes: float | None
    """each operand once, as stored; broadcast and expanded ones at their unique elements"""
    write_bytes: float | None
    dtype: str | None
    """type that the arithmetic runs in"""
    estimate: str | None = None
    """why a figure is a bound or a guess; None: exact by the definition"""
    source: str = ""
    """where the formula comes from"""

    @property
    def bytes(self) -> float | None:
        """Read and written; where only one of them is known, that one (a lower bound)."""
        if self.read_bytes is None and self.write_bytes is None:
            return None
        return (self.read_bytes or 0.0) + (self.write_bytes or 0.0)

    @property
    def is_gemm_or_attention(self) -> bool:
        """Whether it is work of tensor cores: GEMM, convolution, attention, experts."""
        return self.category in TENSOR_CATEGORIES


class Work(msgspec.Struct, frozen=True):
    """What a rule answers; the registry adds category and source."""

    flops: float | None
    read_bytes: float | None
    write_bytes: float | None
    dtype: str | None
    model_flops: float | None = None
    """None: the same as flops"""
    whole_flops: float | None = None
    """None: the same as model_flops"""
    estimate: str | None = None


def stored(tensors: Iterable[Tensor | None]) -> float | None:
    """Bytes of tensors (absent ones: none); None if the type of one is unknown."""
    total = 0.0
    for tensor in tensors:
        if tensor is not None:
            size = tensor.bytes
            if size is None:
                return None
            total += size
    return total


def sized(elements: float, like: Tensor) -> float | None:
    """Bytes of so many elements of the type of `like`."""
    item = like.item_bytes
    return None if item is None else elements * item
