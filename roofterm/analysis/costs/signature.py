"""An op's recorded inputs (dims, types, strides, concrete values) as typed tensors and scalars.

The recordings are what a file says, so every reader here answers None for what is absent, cut, ragged, negative or text
instead of raising. Slots are the op's positional arguments (reference: torch's RECORD_FUNCTION inputs).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

ITEM_BYTES: dict[str, float] = {
    "fp64": 8,
    "fp32": 4,
    "tf32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp8": 1,
    "fp4": 0.5,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "int4": 0.5,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}
"""Bytes of one stored element, by roofterm's name of the type."""

_TYPES: dict[str, str] = {
    "float": "fp32",
    "double": "fp64",
    "c10::half": "fp16",
    "half": "fp16",
    "c10::bfloat16": "bf16",
    "bfloat16": "bf16",
    "long int": "int64",
    "long": "int64",
    "int": "int32",
    "short int": "int16",
    "short": "int16",
    "signed char": "int8",
    "char": "int8",
    "unsigned char": "int8",
    "byte": "int8",
    "unsigned int": "int32",
    "unsigned long": "int64",
    "unsigned short": "int16",
    "bool": "bool",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "float32": "fp32",
    "float64": "fp64",
    "float16": "fp16",
    "int64": "int64",
    "int32": "int32",
    "uint8": "int8",
}
_SCALAR_TYPES = {"scalar", "scalarlist", "genericlist", "device", "optional", ""}


def decoded(text: str | Sequence[Any] | None) -> list[Any] | None:
    """A recorded list from its JSON text (or as it is); None if it is no list."""
    if isinstance(text, str):
        try:
            text = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return None
    return list(text) if isinstance(text, (list, tuple)) else None


def dtype_name(recorded: str | None) -> str | None:
    """roofterm's name (bf16, fp32, int64, ...) of a type as torch records it; None if it is none."""
    if not isinstance(recorded, str):
        return None
    key = recorded.strip().lower()
    found = _TYPES.get(key)
    if found is not None:
        return found
    if "float8" in key or "e4m3" in key or "e5m2" in key:
        return "fp8"
    if "float4" in key or "e2m1" in key:
        return "fp4"
    return None


def int_list(recorded: Any) -> list[int] | None:
    """Integers of a concrete input such as "[1, 1]" or "2"; None if it is cut or holds anything else."""
    if isinstance(recorded, bool):
        return None
    if isinstance(recorded, int):
        return [recorded]
    if isinstance(recorded, list):
        return recorded if recorded and all(type(value) is int for value in recorded) else None
    if not isinstance(recorded, str):
        return None
    parts = recorded.strip().removeprefix("[").removesuffix("]").split(",")
    try:
        return [int(part) for part in parts]
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Tensor:
    """One recorded tensor: its sizes, stored type, strides (elements) where recorded."""

    dims: tuple[int, ...]
    dtype: str | None
    strides: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        """Elements as seen by the op."""
        return math.prod(self.dims)

    @property
    def unique_elements(self) -> int:
        """Elements that exist in memory: a dimension of stride 0 (expanded) counts once."""
        if self.strides is None or len(self.strides) != len(self.dims):
            return self.elements
        return math.prod(size for size, stride in zip(self.dims, self.strides, strict=True) if stride != 0)

    @property
    def item_bytes(self) -> float | None:
        return None if self.dtype is None else ITEM_BYTES.get(self.dtype)

    @property
    def bytes(self) -> float | None:
        """Stored bytes of the unique elements; None if the type is unknown."""
        item = self.item_bytes
        return None if item is None else item * self.unique_elements


class Inputs:
    """The recorded inputs of one distinct call, read by slot."""

    def __init__(
        self,
        dims: str | Sequence[Any] | None,
        types: str | Sequence[Any] | None = None,
        strides: str | Sequence[Any] | None = None,
        concrete: str | Sequence[Any] | None = None,
    ) -> None:
        self._dims = decoded(dims)
        self._types = decoded(types) or []
        self._strides = decoded(strides) or []
        self._concrete = decoded(concrete) or []

    @property
    def recorded(self) -> bool:
        """Whether the file holds shapes for this call at all."""
        return bool(self._dims)

    def __len__(self) -> int:
        return len(self._dims or ())

    def tensor(self, slot: int) -> Tensor | None:
        """The tensor in a slot; None for a scalar, a list, an absent or impossible one."""
        sizes = self._dims[slot] if self._dims is not None and slot < len(self._dims) else None
        if not _is_shape(sizes):
            return None
        recorded = self._types[slot] if slot < len(self._types) else None
        if isinstance(recorded, str) and recorded.strip().lower() in _SCALAR_TYPES and (recorded or not sizes):
            return None
        if not sizes and not self._types:
            return None  # without types an empty shape may be a scalar as well as a tensor of one element
        return Tensor(tuple(sizes), dtype_name(recorded), self._stride_tuple(slot))

    def tensors(self, slot: int) -> list[Tensor] | None:
        """The tensors of a tensor list; None if the slot holds none or the file recorded its tensors without sizes."""
        shapes = self._dims[slot] if self._dims is not None and slot < len(self._dims) else None
        if not isinstance(shapes, list) or not shapes or not all(_is_shape(shape) for shape in shapes):
            return None
        recorded = self._types[slot] if slot < len(self._types) else None
        inner = decoded(recorded) if not isinstance(recorded, str) else None
        strides = self._strides[slot] if slot < len(self._strides) else None
        found = []
        for row, shape in enumerate(shapes):
            dtype = dtype_name(inner[row]) if inner is not None and row < len(inner) else None
            stride = strides[row] if isinstance(strides, list) and row < len(strides) else None
            found.append(Tensor(tuple(shape), dtype, tuple(stride) if _is_shape(stride) else None))
        return found

    @cached_property
    def all_tensors(self) -> list[Tensor]:
        """Every single tensor among the inputs, in order."""
        return [found for slot in range(len(self)) if (found := self.tensor(slot)) is not None]

    def ints(self, slot: int) -> list[int] | None:
        """Integers of a concrete input (stride, dims, ...)."""
        value = self._concrete[slot] if slot < len(self._concrete) else None
        return int_list(value)

    def integer(self, slot: int) -> int | None:
        found = self.ints(slot)
        return found[0] if found is not None and len(found) == 1 else None

    def number(self, slot: int) -> float | None:
        value = self.text(slot)
        try:
            return None if value is None else float(value)
        except ValueError:
            return None

    def flag(self, slot: int) -> bool | None:
        value = self._concrete[slot] if slot < len(self._concrete) else None
        if isinstance(value, bool):
            return value
        return {"true": True, "false": False, "1": True, "0": False}.get(str(value).strip().lower())

    def flags(self, slot: int) -> list[bool] | None:
        """Booleans of a concrete list such as "[True, True, False]"."""
        value = self._concrete[slot] if slot < len(self._concrete) else None
        parts = value if isinstance(value, list) else str(value or "").strip().removeprefix("[").removesuffix("]").split(",")
        table = {"true": True, "false": False, "1": True, "0": False}
        found = [table.get(str(part).strip().lower()) for part in parts]
        return None if not found or None in found else [bool(value) for value in found]

    def text(self, slot: int) -> str | None:
        """A concrete input as text; None where it is absent or empty."""
        value = self._concrete[slot] if slot < len(self._concrete) else None
        return None if value is None or value == "" else str(value)

    def type_text(self, slot: int) -> str | None:
        value = self._types[slot] if slot < len(self._types) else None
        return value if isinstance(value, str) else None

    def _stride_tuple(self, slot: int) -> tuple[int, ...] | None:
        strides = self._strides[slot] if slot < len(self._strides) else None
        return tuple(strides) if _is_shape(strides) else None


def _is_shape(sizes: Any) -> bool:
    return isinstance(sizes, list) and all(type(size) is int and size >= 0 for size in sizes)
