"""Tensors as a profiler sees them, and how it writes an op's inputs down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

BYTES = {"c10::BFloat16": 2, "float": 4, "long int": 8}
BF16, FP32, INT64 = BYTES


@dataclass(frozen=True, slots=True)
class Tensor:
    shape: tuple[int, ...]
    dtype: str = BF16
    strides: tuple[int, ...] | None = None
    """elements; None: contiguous"""
    address: int | None = None
    """None: a view, or memory that stays"""

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.numel * BYTES[self.dtype]

    def view(self, *shape: int, strides: tuple[int, ...] | None = None) -> Tensor:
        """The same memory in another shape; the caller keeps the original to free it."""
        return Tensor(shape, self.dtype, strides)

    def transposed(self, a: int, b: int) -> Tensor:
        shape, strides = list(self.shape), list(strides_of(self))
        shape[a], shape[b] = shape[b], shape[a]
        strides[a], strides[b] = strides[b], strides[a]
        return Tensor(tuple(shape), self.dtype, tuple(strides))


Input = Tensor | Sequence[Tensor] | tuple[int, ...] | bool | int | float | None
"""An op's argument: a tensor, a list of tensors, a list of numbers, a number, or nothing."""


def strides_of(tensor: Tensor) -> tuple[int, ...]:
    """Strides in elements."""
    if tensor.strides is not None:
        return tensor.strides
    return tuple(math.prod(tensor.shape[axis + 1 :]) for axis in range(len(tensor.shape)))


def described(inputs: Sequence[Input]) -> dict[str, Any]:
    """The args by which `record_shapes` describes an op's inputs, slot by slot."""
    dims: list[Any] = []
    strides: list[Any] = []
    types: list[str] = []
    concrete: list[str] = []
    for value in inputs:
        dim: Any = []
        stride: Any = []
        kind, text = "Scalar", ""
        if isinstance(value, Tensor):
            dim, stride, kind = list(value.shape), list(strides_of(value)), value.dtype
        elif value is None:
            kind = ""
        elif isinstance(value, bool | int | float):
            text = str(value)
        elif value and isinstance(value[0], Tensor):
            tensors = [item for item in value if isinstance(item, Tensor)]
            dim, stride, kind = [list(item.shape) for item in tensors], [list(strides_of(item)) for item in tensors], "TensorList"
        else:
            kind, text = "ScalarList", str(list(value))
        dims.append(dim)
        strides.append(stride)
        types.append(kind)
        concrete.append(text)
    return {"Concrete Inputs": concrete, "Input type": types, "Input Strides": strides, "Input Dims": dims}
